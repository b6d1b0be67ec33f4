// Listening and connecting. Linux: SO_PEERCRED, fchmod on an unbound socket.
#include "http/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace loam::http {
namespace {

// As many as the kernel lets wait; it lowers the figure to net.core.somaxconn.
constexpr int backlog_max = 4096;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> unix_socket_address(const std::string& path) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(local.sun_path))
    return invalid("socket path '" + path + "' must have 1 to 107 bytes");
  std::memcpy(local.sun_path, path.c_str(), path.size() + 1);
  SocketAddress address;
  std::memcpy(&address.storage, &local, sizeof(local));
  address.length = sizeof(local);
  return address;
}

Result<SocketAddress> literal_address(const TcpAddress& tcp) {
  const std::string host = tcp.host == "localhost" ? "127.0.0.1" : tcp.host;
  SocketAddress address;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(tcp.port);
    std::memcpy(&address.storage, &four, sizeof(four));
    address.length = sizeof(four);
  } else if (inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(tcp.port);
    std::memcpy(&address.storage, &six, sizeof(six));
    address.length = sizeof(six);
  } else {
    return invalid("'" + tcp.host + "' is no address to listen on",
                   "give a literal address such as 127.0.0.1 or ::1");
  }
  return address;
}

bool is_loopback(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address.storage, sizeof(four));
    return (ntohl(four.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 six{};
  std::memcpy(&six, &address.storage, sizeof(six));
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

std::string text_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  std::uint16_t port = 0;
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address.storage, sizeof(four));
    inet_ntop(AF_INET, &four.sin_addr, host.data(), host.size());
    port = ntohs(four.sin_port);
  } else {
    sockaddr_in6 six{};
    std::memcpy(&six, &address.storage, sizeof(six));
    inet_ntop(AF_INET6, &six.sin6_addr, host.data(), host.size());
    port = ntohs(six.sin6_port);
  }
  return to_text(Address(TcpAddress{host.data(), port}));
}

std::uint16_t local_port(int fd) {
  SocketAddress bound;
  bound.length = sizeof(bound.storage);
  if (getsockname(fd, bound.get(), &bound.length) != 0) return 0;
  sockaddr_in6 either{};  // the port is at the same place in both families
  std::memcpy(&either, &bound.storage, sizeof(either));
  return ntohs(either.sin6_port);
}

Result<Descriptor> make_socket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return system_error("cannot make a socket", errno);
  return socket;
}

// Waits until `fd` can be written or `deadline` passes; the outcome of connect() after that.
Result<void> finish_connect(int fd, const std::string& what, TimePoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLOUT, 0};
    const int timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
    const int ready = ::poll(&wait, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return system_error(what, errno);
    if (ready == 0) return system_error(what, ETIMEDOUT);
    int fault = 0;
    socklen_t length = sizeof(fault);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &length) != 0) fault = errno;
    if (fault != 0) return system_error(what, fault);
    return {};
  }
}

Result<Descriptor> connect_address(const SocketAddress& address, const std::string& what,
                                   TimePoint deadline) {
  LOAM_TRY(socket, make_socket(address.storage.ss_family));
  while (::connect(socket.get(), address.get(), address.length) != 0) {
    if (errno == EINPROGRESS) {
      LOAM_CHECK(finish_connect(socket.get(), what, deadline));
      break;
    }
    // A Unix socket whose backlog is full says EAGAIN; nothing but time helps.
    if (errno != EINTR && errno != EAGAIN) return system_error(what, errno);
    if (std::chrono::steady_clock::now() >= deadline) return system_error(what, ETIMEDOUT);
    constexpr int backlog_retry_ms = 5;
    if (errno == EAGAIN) ::poll(nullptr, 0, backlog_retry_ms);
  }
  if (address.storage.ss_family != AF_UNIX) {
    const int on = 1;  // small requests must not wait for an acknowledgement
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return socket;
}

// Takes the lock of the socket file at `path`, which a living server holds as long as it lives.
Result<Descriptor> lock_socket(const std::string& path) {
  const std::string lock_path = path + ".lock";
  constexpr mode_t lock_mode = 0600;
  Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, lock_mode));
  if (!lock.open()) return system_error("cannot open " + lock_path, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("cannot lock " + lock_path, errno);
    return Error{ErrorKind::conflict, "another server holds the socket " + path,
                 "stop it first, or give this one a socket of its own"};
  }
  return lock;
}

// Makes way at `path`: a socket that nobody answers on is removed. Requires the lock.
Result<void> remove_stale(const std::string& path, const SocketAddress& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return system_error("cannot look at " + path, errno);
  }
  if (!S_ISSOCK(found.st_mode))
    return Error{ErrorKind::conflict, path + " exists and is not a socket",
                 "remove it, or give the server another path"};
  LOAM_TRY(probe, make_socket(AF_UNIX));
  const int outcome = ::connect(probe.get(), address.get(), address.length) == 0 ? 0 : errno;
  if (outcome == 0 || outcome == EAGAIN)  // EAGAIN: it lives and is busy
    return Error{ErrorKind::conflict, "another server answers on the socket " + path,
                 "stop it first, or give this one a socket of its own"};
  if (outcome != ECONNREFUSED)
    return system_error("cannot tell whether a server lives on " + path, outcome);
  if (::unlink(path.c_str()) != 0)
    return system_error("cannot remove the stale socket " + path, errno);
  return {};
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() noexcept {
  return std::exchange(fd_, -1);
}

void Descriptor::close() noexcept {
  if (fd_ >= 0) ::close(release());
}

Error system_error(std::string what, int number) {
  ErrorKind kind = ErrorKind::internal;
  switch (number) {
    case EACCES:
    case EPERM:
      kind = ErrorKind::permission_denied;
      break;
    case ENOENT:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case ENOMEM:
    case EADDRNOTAVAIL:
      kind = ErrorKind::unavailable;
      break;
    case EADDRINUSE:
      kind = ErrorKind::conflict;
      break;
    default:
      break;
  }
  return Error{kind,
               std::move(what) + ": " + std::generic_category().message(number) + " (errno " +
                   std::to_string(number) + ")",
               {}};
}

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::move(other.socket_);
    lock_ = std::move(other.lock_);
    family_ = other.family_;
    port_ = other.port_;
    path_ = std::exchange(other.path_, {});
    device_ = other.device_;
    inode_ = other.inode_;
  }
  return *this;
}

void Listener::close() noexcept {
  socket_.close();
  if (!path_.empty()) {
    // Only our own file: somebody may have put another one there.
    struct stat found {};
    if (::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_)
      ::unlink(path_.c_str());
    path_.clear();
  }
  lock_.close();  // last: until now nobody else may touch the file
}

Result<Listener> Listener::on_unix(const UnixAddress& unix_address, mode_t mode) {
  const std::string& path = unix_address.path;
  LOAM_TRY(address, unix_socket_address(path));
  Listener listener;
  listener.family_ = AF_UNIX;
  LOAM_TRY(lock, lock_socket(path));
  listener.lock_ = std::move(lock);
  LOAM_CHECK(remove_stale(path, address));
  LOAM_TRY(socket, make_socket(AF_UNIX));
  // Before bind() so that the file is never more open than asked; after it because bind() takes
  // the umask off.
  if (::fchmod(socket.get(), mode) != 0)
    return system_error("cannot set the mode of " + path, errno);
  if (::bind(socket.get(), address.get(), address.length) != 0)
    return system_error("cannot bind the socket " + path, errno);
  struct stat made {};
  if (::lstat(path.c_str(), &made) != 0) return system_error("cannot look at " + path, errno);
  listener.path_ = path;
  listener.device_ = made.st_dev;
  listener.inode_ = made.st_ino;
  if (::chmod(path.c_str(), mode) != 0)
    return system_error("cannot set the mode of " + path, errno);
  if (::listen(socket.get(), backlog_max) != 0)
    return system_error("cannot listen on " + path, errno);
  listener.socket_ = std::move(socket);
  return listener;
}

Result<Listener> Listener::on_tcp(const TcpAddress& tcp, bool allow_remote) {
  LOAM_TRY(address, literal_address(tcp));
  const std::string shown = to_text(Address(tcp));
  if (!allow_remote && !is_loopback(address))
    return Error{
        ErrorKind::permission_denied,
        "listening on " + shown + " would open loam to other machines",
        "use a loopback address; from other machines come through an SSH tunnel or a TLS proxy"};
  LOAM_TRY(socket, make_socket(address.storage.ss_family));
  const int on = 1;  // a restart must not wait for the old connections' TIME_WAIT
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), address.get(), address.length) != 0)
    return system_error("cannot bind " + shown, errno);
  if (::listen(socket.get(), backlog_max) != 0)
    return system_error("cannot listen on " + shown, errno);
  Listener listener;
  listener.family_ = address.storage.ss_family;
  listener.port_ = local_port(socket.get());
  listener.socket_ = std::move(socket);
  return listener;
}

Peer peer_of(int fd, int family) {
  if (family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof(credentials);
    // Cannot fail on a connected Unix socket; an unknown peer must never pass for root.
    LOAM_ASSERT(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0);
    return UnixPeer{credentials.uid, credentials.gid, credentials.pid};
  }
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getpeername(fd, address.get(), &address.length) != 0) return TcpPeer{"gone"};
  return TcpPeer{text_of(address)};
}

Result<Descriptor> connect_to(const Address& address, TimePoint deadline) {
  const std::string what = "cannot connect to " + to_text(address);
  if (const auto* local = std::get_if<UnixAddress>(&address)) {
    LOAM_TRY(target, unix_socket_address(local->path));
    return connect_address(target, what, deadline);
  }
  const auto& tcp = std::get<TcpAddress>(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int fault = getaddrinfo(tcp.host.c_str(), std::to_string(tcp.port).c_str(), &hints, &found);
  if (fault != 0) return Error{ErrorKind::unavailable, what + ": " + gai_strerror(fault), {}};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Error last{ErrorKind::unavailable, what + ": the name has no address", {}};
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress target;
    if (one->ai_addrlen > sizeof(target.storage)) continue;
    std::memcpy(&target.storage, one->ai_addr, one->ai_addrlen);
    target.length = one->ai_addrlen;
    auto connected = connect_address(target, what, deadline);
    if (connected.ok()) return connected;
    last = connected.error();
  }
  return last;
}

}  // namespace loam::http

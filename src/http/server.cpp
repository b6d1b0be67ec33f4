// The server: its listening sockets, its threads and its end. What happens on a connection is in
// connection.cpp.
#include "http/server.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/assert.hpp"
#include "http/server_core.hpp"
#include "http/socket.hpp"
#include "http/wire.hpp"

namespace loam::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptors = asio::posix::basic_stream_descriptor<Strand>;

// After the process ran out of descriptors, the pause before the next try.
constexpr std::chrono::milliseconds accept_pause{100};
// Connections taken in one go before others get a turn.
constexpr int accept_batch = 64;

thread_local bool is_server_thread = false;

std::int64_t now_s() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

Response plain_refusal(int status, std::string_view detail) {
  return make_response(status, "text/plain; charset=utf-8", std::string(detail) + "\n");
}

}  // namespace

// A listening socket, watched.
class Door : public std::enable_shared_from_this<Door> {
 public:
  Door(std::shared_ptr<ServerCore> core, Listener listener)
      : core_(core),
        strand_(asio::make_strand(core->context)),
        listener_(std::move(listener)),
        watch_(strand_),
        pause_(strand_) {}

  Result<void> open() {
    error_code fault;
    fd_ = listener_.fd();
    watch_.assign(fd_, fault);
    if (fault) return system_error("cannot watch the listening socket", fault.value());
    listener_.release_fd();
    await();
    return {};
  }

  void close() {
    core().post(strand_, [self = shared_from_this()] {
      error_code ignored;  // it is closed either way
      self->watch_.close(ignored);
      self->pause_.cancel();
      self->listener_.close();
      self->core().door_closed();
    });
  }

 private:
  ServerCore& core() { return *core_.lock(); }  // the core owns the doors and outlives them

  void await() {
    watch_.async_wait(Descriptors::wait_read, [self = shared_from_this()](error_code fault) {
      if (fault) return;
      try {
        self->accept();
      } catch (...) {  // no memory for a connection: the door stays open for the next
        self->rest();
      }
    });
  }

  void accept() {
    for (int i = 0; i < accept_batch && watch_.is_open(); ++i) {
      Descriptor socket(::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.open()) {
        welcome(std::move(socket));
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      return rest();  // out of descriptors or memory
    }
    await();
  }

  void rest() {
    pause_.expires_after(accept_pause);
    pause_.async_wait([self = shared_from_this()](error_code fault) {
      if (!fault && self->watch_.is_open()) self->await();
    });
  }

  void welcome(Descriptor socket) {
    const int fd = socket.get();
    auto core = core_.lock();
    const auto connection = make_connection(core, listener_.family(), std::move(socket));
    switch (core->admit(connection)) {
      case ServerCore::Admission::welcome:
        connection->start();
        return;
      case ServerCore::Admission::full: {
        Response response = core->refuse(503, "too many connections are open");
        response.headers.set("Retry-After", "1");
        const std::string bytes =
            response_head(response, {Framing::length, response.body.size(), false, now_s()}) +
            response.body;
        // Best effort: who does not take it at once sees the connection close.
        [[maybe_unused]] const auto sent =
            ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
      }
      case ServerCore::Admission::stopping:
        return;
    }
  }

  const std::weak_ptr<ServerCore> core_;
  const Strand strand_;
  Listener listener_;
  int fd_ = -1;
  Descriptors watch_;
  Timer pause_;
};

Response ServerCore::refuse(int status, std::string_view detail) const {
  try {
    Response response =
        options.refusal ? options.refusal(status, detail) : plain_refusal(status, detail);
    if (response.headers.all_valid()) return response;
  } catch (...) {  // the plain one is good enough
  }
  return plain_refusal(status, detail);
}

void ServerCore::run() {
  is_server_thread = true;
  for (;;) {
    try {
      context.run();
      return;
    } catch (...) {  // out of memory in one connection's work: that one is lost, the rest goes on
    }
  }
}

std::vector<std::shared_ptr<Connection>> ServerCore::living_connections() {
  std::vector<std::shared_ptr<Connection>> living;
  std::lock_guard lock(mutex);
  for (const auto& [pointer, weak] : connections) {
    if (auto connection = weak.lock()) living.push_back(std::move(connection));
  }
  return living;
}

bool ServerCore::stop(Duration grace) {
  LOAM_ASSERT(!is_server_thread);
  {
    std::lock_guard lock(mutex);
    if (stopping.exchange(true)) return true;
  }
  for (const auto& door : doors) door->close();
  for (const auto& connection : living_connections()) connection->begin_stop();
  bool clean = false;
  {
    std::unique_lock lock(mutex);
    clean = changed.wait_for(lock, std::chrono::milliseconds(grace.ms),
                             [&] { return connections.empty() && open_doors == 0; });
  }
  for (const auto& connection : living_connections()) connection->close();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return connections.empty() && open_doors == 0; });
  }
  {
    std::lock_guard lock(post_mutex);
    ended = true;
  }
  work.reset();
  for (std::thread& thread : threads) thread.join();
  return clean;
}

Server::Server(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) core_->stop(Duration{0});
    core_ = std::move(other.core_);
  }
  return *this;
}
Server::~Server() {
  if (core_ != nullptr) core_->stop(Duration{0});
}

Result<Server> Server::start(ServerOptions options, Handler handler) {
  LOAM_ASSERT(handler != nullptr);
  LOAM_ASSERT(options.threads >= 1 && options.threads <= 8);
  LOAM_ASSERT(options.unix_address || options.tcp_address);
  std::vector<Listener> listeners;
  if (options.unix_address) {
    LOAM_TRY(listener, Listener::on_unix(*options.unix_address, options.unix_mode));
    listeners.push_back(std::move(listener));
  }
  if (options.tcp_address) {
    LOAM_TRY(listener, Listener::on_tcp(*options.tcp_address, options.allow_remote));
    listeners.push_back(std::move(listener));
  }
  try {
    auto core = std::make_shared<ServerCore>(std::move(options), std::move(handler));
    for (Listener& listener : listeners) {
      if (listener.port() != 0) core->tcp_port = listener.port();
      auto door = std::make_shared<Door>(core, std::move(listener));
      LOAM_CHECK(door->open());
      core->doors.push_back(std::move(door));
      ++core->open_doors;
    }
    Server server(core);
    sigset_t all;  // signals are for the program's own threads
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int i = 0; i < core->options.threads; ++i)
        core->threads.emplace_back([core = core.get()] { core->run(); });
    } catch (...) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (core->threads.size() == static_cast<std::size_t>(core->options.threads)) return server;
    // At least one thread is needed to stop what has begun.
    if (core->threads.empty()) core->threads.emplace_back([core = core.get()] { core->run(); });
  } catch (const std::exception& fault) {
    return Error{
        ErrorKind::unavailable, std::string("cannot start the server: ") + fault.what(), {}};
  }
  return Error{ErrorKind::unavailable, "cannot start the server's threads", {}};
}

std::uint16_t Server::tcp_port() const {
  return core_->tcp_port;
}

std::size_t Server::connections() const {
  std::lock_guard lock(core_->mutex);
  return core_->connections.size();
}

bool Server::stop(Duration grace) {
  return core_->stop(grace);
}

}  // namespace loam::http

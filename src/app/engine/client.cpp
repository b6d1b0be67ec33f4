#include "app/engine/client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace loam::serve {

namespace wire = infer::wire;

namespace {

Error gone(const std::string& what) {
  return Error{ErrorKind::unavailable, what, "see whether the engine runs"};
}

}  // namespace

EngineClient::EngineClient(EngineClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      welcome_(std::move(other.welcome_)),
      reader_(std::move(other.reader_)) {}

EngineClient& EngineClient::operator=(EngineClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(welcome_, other.welcome_);
  std::swap(reader_, other.reader_);
  return *this;
}

EngineClient::~EngineClient() {
  if (socket_ >= 0) close(socket_);
}

Result<EngineClient> EngineClient::connect_silently(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return invalid("the socket path '" + path + "' has a length that is not possible",
                   "give a shorter one");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  EngineClient client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.socket_ < 0 ||
      ::connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return gone("nobody answers at '" + path + "': " + std::strerror(errno));
  }
  return client;
}

Result<EngineClient> EngineClient::connect(const std::string& path, const std::string& name) {
  LOAM_TRY(client, connect_silently(path));
  LOAM_CHECK(client.send(wire::Hello{wire::protocol_version, name}));
  constexpr int greeting_ms_max = 30'000;  // a step of a large model may be in the way
  LOAM_TRY(frame, client.receive(greeting_ms_max));
  if (!frame) return gone("the engine at '" + path + "' does not answer");
  if (auto* welcome = std::get_if<wire::Welcome>(&*frame)) {
    client.welcome_ = std::move(*welcome);
    return client;
  }
  const auto* failed = std::get_if<wire::Failed>(&*frame);
  return gone(failed != nullptr ? failed->message : "the engine does not greet");
}

Result<void> EngineClient::send(const wire::Frame& frame) {
  return send_bytes(wire::encode(frame));
}

Result<void> EngineClient::send_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return gone(std::string("the engine is gone: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::optional<wire::Frame>> EngineClient::receive(int wait_ms) {
  while (true) {
    LOAM_TRY(frame, reader_.next());
    if (frame) return frame;
    pollfd ready{socket_, POLLIN, 0};
    const int events = poll(&ready, 1, wait_ms);
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) return std::optional<wire::Frame>{};
    char buffer[65'536];
    const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gone("the engine closed the connection");
    reader_.append({buffer, static_cast<std::size_t>(got)});
  }
}

}  // namespace loam::serve

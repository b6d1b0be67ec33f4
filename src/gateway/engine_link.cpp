#include "gateway/engine_link.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/assert.hpp"

namespace loam::gateway {

namespace {

// What an engine that reads nothing may leave waiting here before it is given up: some requests
// with the longest prompts.
constexpr std::size_t waiting_bytes_max = 256U << 20U;
constexpr std::size_t read_bytes = 256U << 10U;

Error lost(const std::string& path, const std::string& why) {
  return {ErrorKind::unavailable, "the engine at " + path + " " + why,
          "the request can be sent again"};
}

}  // namespace

Result<void> EngineLink::connect() {
  LOAM_ASSERT(!open());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof(address.sun_path)) {
    return invalid("\"" + path_ + "\" is no path of a socket",
                   "give at most " + std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path_.data(), path_.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return lost(path_, std::string("cannot be reached: ") + std::strerror(errno));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int fault = errno;
    ::close(fd);
    return lost(path_, std::string("does not listen: ") + std::strerror(fault));
  }
  fd_ = fd;
  return {};
}

void EngineLink::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  out_ = {};
  offset_ = 0;
  reader_ = {};
}

Result<void> EngineLink::send(const infer::wire::Frame& frame) {
  LOAM_ASSERT(open());
  infer::wire::encode(frame, out_);
  if (out_.size() - offset_ > waiting_bytes_max) return lost(path_, "does not read");
  return flush();
}

Result<void> EngineLink::flush() {
  while (offset_ < out_.size()) {
    const ssize_t sent =
        ::send(fd_, out_.data() + offset_, out_.size() - offset_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return {};
      return lost(path_, std::string("broke the connection: ") + std::strerror(errno));
    }
    offset_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  offset_ = 0;
  if (out_.capacity() > read_bytes) out_ = {};
  return {};
}

Result<void> EngineLink::receive() {
  scratch_.resize(read_bytes);
  const ssize_t got = ::recv(fd_, scratch_.data(), scratch_.size(), MSG_DONTWAIT);
  if (got == 0) return lost(path_, "closed the connection");
  if (got < 0) {
    if (errno == EINTR || errno == EAGAIN) return {};
    return lost(path_, std::string("broke the connection: ") + std::strerror(errno));
  }
  reader_.append(std::string_view(scratch_).substr(0, static_cast<std::size_t>(got)));
  return {};
}

}  // namespace loam::gateway

#include "app/engine/connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace loam::serve {

namespace {

constexpr std::size_t unread_bytes_max = 64U << 20U;
constexpr std::size_t read_bytes = 64U << 10U;
// Of one client, before the others and the next step get their turn.
constexpr int reads_max = 64;

}  // namespace

Connection::~Connection() {
  if (socket_ >= 0) close(socket_);
}

Connection::Connection(Connection&& other) noexcept
    : greeted(other.greeted),
      ended(other.ended),
      closing(other.closing),
      id_(other.id_),
      socket_(std::exchange(other.socket_, -1)),
      reader_(std::move(other.reader_)),
      outgoing_(std::move(other.outgoing_)),
      written_(other.written_) {}

void Connection::receive() {
  char buffer[read_bytes];
  for (int i = 0; i < reads_max; ++i) {
    const ssize_t got = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      reader_.append({buffer, static_cast<std::size_t>(got)});
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    ended = true;
    return;
  }
}

void Connection::send(const infer::wire::Frame& frame) {
  if (ended) return;
  infer::wire::encode(frame, outgoing_);
  if (outgoing_.size() - written_ > unread_bytes_max) ended = true;
}

void Connection::flush() {
  while (!ended && wants_to_write()) {
    const ssize_t sent = ::send(socket_, outgoing_.data() + written_, outgoing_.size() - written_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      written_ += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    ended = true;
  }
  if (written_ == outgoing_.size()) {
    outgoing_.clear();
    written_ = 0;
    if (closing) ended = true;
  } else if (written_ > unread_bytes_max / 4) {
    outgoing_.erase(0, written_);
    written_ = 0;
  }
}

}  // namespace loam::serve

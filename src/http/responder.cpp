// Responder and Stream: exactly-once answers on top of the carrier's seam.
#include "http/responder.hpp"

#include <utility>

#include "base/assert.hpp"

namespace loam::http {

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (sink_ != nullptr) sink_->abort();
    sink_ = std::move(other.sink_);
  }
  return *this;
}

Stream::~Stream() {
  if (sink_ != nullptr) sink_->abort();
}

Sent Stream::write(std::string_view bytes) {
  if (sink_ == nullptr) return Sent::closed;
  return sink_->write(bytes);
}

void Stream::finish() {
  if (sink_ == nullptr) return;
  sink_->finish();
  sink_.reset();
}

bool Stream::closed() const {
  return sink_ == nullptr || sink_->closed();
}

void Stream::on_close(std::function<void()> callback) {
  if (sink_ == nullptr) return callback();
  sink_->on_close(std::move(callback));
}

void Stream::on_writable(std::function<void()> callback) {
  if (sink_ != nullptr) sink_->on_writable(std::move(callback));
}

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    drop();
    exchange_ = std::move(other.exchange_);
  }
  return *this;
}

Responder::~Responder() {
  drop();
}

void Responder::drop() noexcept {
  if (exchange_ == nullptr) return;
  std::exchange(exchange_, nullptr)
      ->answer(make_response(500, "text/plain; charset=utf-8", "no answer was given\n"));
}

void Responder::respond(Response response) {
  LOAM_ASSERT(pending());
  std::exchange(exchange_, nullptr)->answer(std::move(response));
}

void Responder::on_leave(std::function<void()> callback) {
  LOAM_ASSERT(pending());
  exchange_->on_leave(std::move(callback));
}

Stream Responder::begin_events(Response head) {
  LOAM_ASSERT(pending());
  head.headers.set("Content-Type", "text/event-stream");
  if (head.headers.find("Cache-Control") == nullptr) head.headers.add("Cache-Control", "no-store");
  return Stream(std::exchange(exchange_, nullptr)->begin(std::move(head), true));
}

Stream Responder::begin_body(Response head) {
  LOAM_ASSERT(pending());
  return Stream(std::exchange(exchange_, nullptr)->begin(std::move(head), false));
}

}  // namespace loam::http

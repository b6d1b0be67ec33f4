// The bounded queue of a stream. Callbacks are always called without the lock held, so that
// they may send, finish or set new callbacks.
#include "http/stream_queue.hpp"

#include <utility>

#include "http/wire.hpp"

namespace loam::http {

StreamQueue::StreamQueue(std::string preface, bool chunked, std::size_t bytes_max,
                         std::function<void()> wake)
    : pending_(std::move(preface)),
      chunked_(chunked),
      bytes_max_(bytes_max),
      wake_(std::move(wake)) {}

void StreamQueue::queue_locked(std::string_view bytes) {
  if (bytes.empty()) return;  // an empty chunk would end the body
  if (chunked_) {
    pending_ += chunk(bytes);
  } else {
    pending_ += bytes;
  }
}

Sent StreamQueue::write(std::string_view bytes) {
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    if (closed_ || ended_ || aborted_) return Sent::closed;
    if (pending_.size() + in_flight_bytes_ >= bytes_max_) return Sent::full;
    queue_locked(bytes);
    if (!pending_.empty() && !std::exchange(busy_, true)) wake = wake_;
  }
  if (wake) wake();
  return Sent::queued;
}

void StreamQueue::finish() {
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    if (closed_ || aborted_ || std::exchange(ended_, true)) return;
    if (chunked_) pending_ += last_chunk;
    if (!std::exchange(busy_, true)) wake = wake_;
  }
  if (wake) wake();
}

void StreamQueue::abort() {
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    // An ended stream that the writer lets go of is no abort.
    if (closed_ || ended_ || std::exchange(aborted_, true)) return;
    pending_.clear();
    // Woken even while a write is under way: it may hang on a client that does not read.
    wake = wake_;
    busy_ = true;
  }
  if (wake) wake();
}

bool StreamQueue::closed() const {
  std::lock_guard lock(mutex_);
  return closed_ || ended_ || aborted_;
}

void StreamQueue::on_close(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!closed_) {
      on_close_ = std::move(callback);
      return;
    }
  }
  callback();
}

void StreamQueue::on_writable(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (closed_ || ended_ || aborted_) return;  // there will never be room
    if (pending_.size() + in_flight_bytes_ >= bytes_max_) {
      on_writable_ = std::move(callback);
      return;
    }
  }
  callback();
}

StreamQueue::Work StreamQueue::take() {
  Work work;
  std::function<void()> writable;
  {
    std::lock_guard lock(mutex_);
    in_flight_bytes_ = 0;
    if (aborted_) {
      work.kind = Work::Kind::abort;
    } else if (!pending_.empty()) {
      work.kind = Work::Kind::write;
      work.bytes = std::exchange(pending_, {});
      in_flight_bytes_ = work.bytes.size();
    } else if (ended_) {
      work.kind = Work::Kind::end;
    } else {
      busy_ = false;
    }
    if (in_flight_bytes_ < bytes_max_ && !closed_ && !ended_ && !aborted_)
      writable = std::exchange(on_writable_, nullptr);
  }
  if (writable) writable();
  return work;
}

void StreamQueue::close() {
  std::function<void()> callback;
  std::function<void()> forgotten_writable;  // destroyed without the lock: they may own anything
  std::function<void()> forgotten_wake;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    pending_.clear();
    callback = std::exchange(on_close_, nullptr);
    forgotten_writable = std::exchange(on_writable_, nullptr);
    forgotten_wake = std::exchange(wake_, nullptr);
  }
  if (callback) callback();
}

}  // namespace loam::http

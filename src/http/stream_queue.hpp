// The bounded queue between a stream's writer and the connection that carries it. Knows
// threads but no sockets. Internal to this folder.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "http/responder.hpp"

namespace loam::http {

class StreamQueue final : public StreamSink {
 public:
  // `wake` is called from the writer's thread when the connection must look at take() again; a
  // connection that is writing looks by itself. `preface` (the response's head) leaves first,
  // unframed. The queue takes a write while it holds less than `bytes_max`.
  StreamQueue(std::string preface, bool chunked, std::size_t bytes_max, std::function<void()> wake);

  // The writer's side.
  Sent write(std::string_view bytes) override;
  void finish() override;
  void abort() override;
  bool closed() const override;
  void on_close(std::function<void()> callback) override;
  void on_writable(std::function<void()> callback) override;

  // The connection's side, by one thread at a time. After take() gave bytes they count as
  // held until the next take().
  struct Work {
    enum class Kind { write, wait, end, abort } kind = Kind::wait;
    std::string bytes;  // with write
  };
  Work take();
  // The connection is gone: calls the writer back, once.
  void close();

 private:
  void queue_locked(std::string_view bytes);

  mutable std::mutex mutex_;
  std::string pending_;
  std::size_t in_flight_bytes_ = 0;
  const bool chunked_;
  const std::size_t bytes_max_;
  bool busy_ = true;  // the connection will call take() without being woken
  bool ended_ = false;
  bool aborted_ = false;
  bool closed_ = false;
  std::function<void()> wake_;
  std::function<void()> on_close_;
  std::function<void()> on_writable_;
};

}  // namespace loam::http

// How a handler answers: at once or later, from any thread, whole or as a stream.
//
// The two abstract classes are the seam between a handler and whoever carries its answer, so
// that handlers can be tested without a server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "http/sse.hpp"

namespace loam::http {

enum class Sent {
  queued,  // taken; it leaves in order
  full,    // not taken: the client is slower than the stream. See Stream::on_writable
  closed,  // not taken: the client is gone, or the stream has ended
};

// The carrier's side of a stream. All of it is callable from any thread.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual Sent write(std::string_view bytes) = 0;
  virtual void finish() = 0;  // what is queued still leaves, then the body ends properly
  virtual void abort() = 0;   // the connection breaks, so that the client sees a cut-off body
  virtual bool closed() const = 0;
  virtual void on_close(std::function<void()> callback) = 0;
  virtual void on_writable(std::function<void()> callback) = 0;
};

// The writer of a streaming response. Callable from any thread, by one thread at a time.
// Destroying an unfinished stream aborts it. A default-made or moved-from Stream is closed.
class Stream {
 public:
  Stream() = default;
  explicit Stream(std::shared_ptr<StreamSink> sink) : sink_(std::move(sink)) {}
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  // An event, for a stream begun with begin_events(). Never blocks.
  Sent send(const SseEvent& event) { return write(encode_event(event)); }
  // A comment keeps a silent connection over TCP from being taken for dead.
  Sent send_comment(std::string_view text) { return write(encode_comment(text)); }
  // A piece of the body as it is. Never blocks. Empty pieces are taken and send nothing.
  Sent write(std::string_view bytes);

  // Ends the body; the stream is closed afterwards.
  void finish();
  // True once nothing can be sent any more: the client left, the server stops, or finish().
  bool closed() const;

  // `callback` is called once when the client leaves (or half-closes: it cannot be told apart) or
  // the connection ends for another reason, finish() included; at once if that has happened. On a
  // server thread: it must not block.
  void on_close(std::function<void()> callback);
  // `callback` is called once as soon as there is room again; at once if there is now. Replaces
  // the one set before. On a server thread: it must not block; it may send.
  void on_writable(std::function<void()> callback);

 private:
  std::shared_ptr<StreamSink> sink_;
};

// The carrier's side of one answer. Exactly one of the calls is made, once, from any thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void answer(Response response) = 0;
  // The head of `response` is sent; its body, where not empty, is the first piece.
  virtual std::shared_ptr<StreamSink> begin(Response response, bool events) = 0;
  // May be called before one of the two. A carrier that cannot tell never calls back.
  virtual void on_leave(std::function<void()> /*callback*/) {}
};

// The right and duty to answer one request, exactly once. Moves, also to other threads; a
// dropped one answers 500. Answering through a moved-from or used Responder is a programmer
// error (asserted).
class Responder {
 public:
  explicit Responder(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  void respond(Response response);
  // Server-sent events: Content-Type and Cache-Control are set. `head` may bring more headers.
  // A server that stops ends the stream after what is queued.
  [[nodiscard]] Stream begin_events(Response head = {});
  // A body of unknown length. A server that stops lets it go on until the stop's time is up.
  [[nodiscard]] Stream begin_body(Response head);

  // `callback` is called at most once, if the client leaves or half-closes while it waits for the
  // answer, which may still be given: one that only half-closed reads it. Not noticed behind a
  // pipelined request. On a server thread: it must not block. Requires pending().
  void on_leave(std::function<void()> callback);

  // Whether the answer is still to be given.
  bool pending() const noexcept { return exchange_ != nullptr; }

 private:
  void drop() noexcept;

  std::unique_ptr<Exchange> exchange_;
};

}  // namespace loam::http

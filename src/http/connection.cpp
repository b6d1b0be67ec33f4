// One connection on Boost.Asio and Beast. Beast parses requests; heads are written by wire.cpp.
//
// A connection lives on a strand of its own, and everything of it but its StreamQueue is touched
// there alone. It serves one request after the other: the next is not read before the answer to
// the last is written, which is what makes pipelining safe.
#include "http/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "http/server_core.hpp"
#include "http/stream_queue.hpp"
#include "http/target.hpp"
#include "http/wire.hpp"

namespace loam::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

using Protocol = asio::generic::stream_protocol;
using Socket = asio::basic_stream_socket<Protocol, Strand>;
using Parser = beast_http::request_parser<beast_http::string_body>;

// How long a connection that we closed may go on sending before it is cut. Cutting it at once
// would reset it and could take the answer away from the client (RFC 9112 §9.6).
constexpr Duration linger_timeout = Duration::seconds(2);

std::int64_t now_s() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

// What the answer needs to know of the request.
struct RequestFacts {
  bool keep_alive = false;
  bool http_1_0 = false;
  bool is_head = false;
};

struct Refused {
  int status;
  std::string detail;
};

// What Beast found wrong; status 0 where the client just went away.
Refused refusal_of(const error_code& fault) {
  using beast_http::error;
  if (fault == error::header_limit || fault == error::buffer_overflow)
    return {431, "the request line and headers are too large"};
  if (fault == error::body_limit) return {413, "the request body is too large"};
  if (fault == error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  if (fault == error::end_of_stream || fault == error::partial_message) return {0, {}};
  if (fault.category() == beast_http::make_error_code(error::bad_field).category())
    return {400, "malformed request: " + fault.message()};
  return {0, {}};
}

// What the parser lets pass and the specification or this server does not.
std::optional<Refused> check_head(const beast_http::request_header<>& head) {
  const auto count = [&](beast_http::field name) { return head.count(name); };
  if (!parse_method({head.method_string().data(), head.method_string().size()}))
    return Refused{501, "the method is not known here"};
  if (const auto codings = count(beast_http::field::transfer_encoding); codings > 0) {
    const auto coding = head[beast_http::field::transfer_encoding];
    // Two readings of where a body ends are how requests are smuggled.
    if (head.version() < 11) return Refused{400, "Transfer-Encoding needs HTTP/1.1"};
    if (codings > 1 || !equal_ignoring_case({coding.data(), coding.size()}, "chunked"))
      return Refused{501, "the only transfer coding known here is chunked"};
  }
  const auto hosts = count(beast_http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() >= 11))
    return Refused{400, "HTTP/1.1 requires exactly one Host header"};
  if (const auto expect = head[beast_http::field::expect]; !expect.empty()) {
    if (!equal_ignoring_case({expect.data(), expect.size()}, "100-continue"))
      return Refused{417, "the only expectation known here is 100-continue"};
  }
  return std::nullopt;
}

// A handler's answer that cannot be sent as it is: its headers could forge others.
bool is_malformed(const Response& response) {
  return !response.headers.all_valid() || response.status < 200 || response.status > 999;
}
Response malformed_answer(const ServerCore& core) {
  return core.refuse(500, "the answer had a malformed status or header");
}

class HttpConnection final : public Connection,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<ServerCore> core, Strand strand, int family, Descriptor socket)
      : core_(std::move(core)),
        strand_(strand),
        socket_(strand),
        timer_(strand),
        buffer_(core_->options.header_bytes_max + read_ahead_bytes),
        peer_(peer_of(socket.get(), family)) {
    const int fd = socket.get();
    if (family != AF_UNIX) {
      const int on = 1;  // answers leave at once; a vanished peer is noticed some day
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    error_code fault;
    socket_.assign(Protocol(family, 0), fd, fault);
    if (!fault) socket.release();
  }
  ~HttpConnection() override { core_->remove(this); }

  const Strand& strand() const { return strand_; }

  void start() override {
    core_->post(strand_, [self = shared_from_this()] { self->begin(); });
  }
  void begin_stop() override {
    core_->post(strand_, [self = shared_from_this()] { self->finish_soon(); });
  }
  void close() override {
    core_->post(strand_, [self = shared_from_this()] { self->shut(); });
  }

  // These and all below run on the strand.
  void answer(Response response, const RequestFacts& facts);
  void begin_stream(std::shared_ptr<StreamQueue> queue, bool events);
  void continue_stream();
  void watch_for_leaving(std::function<void()> callback);

 private:
  enum class State { idle, reading, handling, writing, streaming, lingering, closed };
  static constexpr std::size_t read_ahead_bytes = 64 * 1024;

  void begin();
  void finish_soon();
  void shut();
  void await_request();
  void read_head();
  void on_head(error_code fault);
  void read_body();
  void on_body(error_code fault);
  void handle(Target target);
  void refuse(const Refused& refused);
  bool stopped_by(error_code fault);
  void write_response(Response response, const RequestFacts& facts);
  void flush_stream();
  void linger();
  void discard_input();
  template <class Done>
  void write(Done done);

  void arm(Duration limit);
  void disarm() { deadline_ = TimePoint::max(); }
  void wait_for_deadline();
  void on_deadline();

  const std::shared_ptr<ServerCore> core_;  // first: the sockets live in its context
  const Strand strand_;
  Socket socket_;
  Timer timer_;
  boost::beast::flat_buffer buffer_;
  const Peer peer_;
  State state_ = State::idle;
  std::optional<Parser> parser_;
  Target target_;
  RequestFacts facts_;
  std::string head_;  // being written, and `body_` after it
  std::string body_;
  bool is_writing_ = false;
  bool is_discarding_ = false;
  bool is_event_stream_ = false;
  bool timed_out_ = false;
  std::uint64_t requests_ = 0;  // handed to the handler so far
  std::shared_ptr<StreamQueue> stream_;
  std::array<char, 512> scrap_{};
  TimePoint deadline_ = TimePoint::max();
  TimePoint timer_at_ = TimePoint::max();  // when the timer that runs will fire
};

// One request's way back to its connection.
class ServerExchange final : public Exchange {
 public:
  ServerExchange(std::shared_ptr<ServerCore> core, std::shared_ptr<HttpConnection> connection,
                 RequestFacts facts)
      : core_(std::move(core)), connection_(std::move(connection)), facts_(facts) {}

  void answer(Response response) override {
    core_->run_on(connection_->strand(), [connection = connection_, facts = facts_,
                                          response = std::move(response)]() mutable {
      connection->answer(std::move(response), facts);
    });
  }

  std::shared_ptr<StreamSink> begin(Response response, bool events) override {
    const bool malformed = is_malformed(response);
    if (malformed) response = malformed_answer(*core_);
    const bool bodiless = facts_.is_head || is_bodiless(response.status);
    ResponseFacts head{Framing::chunked, 0, false, now_s()};
    if (facts_.http_1_0) head.framing = Framing::close;
    if (is_bodiless(response.status)) head.framing = Framing::none;
    auto queue = std::make_shared<StreamQueue>(
        response_head(response, head), head.framing == Framing::chunked && !bodiless,
        core_->options.stream_bytes_max, [core = core_, connection = connection_] {
          core->post(connection->strand(), [connection] { connection->continue_stream(); });
        });
    if (!bodiless) queue->write(response.body);
    if (bodiless || malformed) queue->finish();
    const bool posted = core_->run_on(
        connection_->strand(),
        [connection = connection_, queue, events] { connection->begin_stream(queue, events); });
    if (!posted) queue->close();
    return queue;
  }

  void on_leave(std::function<void()> callback) override {
    core_->run_on(connection_->strand(),
                  [connection = connection_, callback = std::move(callback)]() mutable {
                    connection->watch_for_leaving(std::move(callback));
                  });
  }

 private:
  const std::shared_ptr<ServerCore> core_;
  const std::shared_ptr<HttpConnection> connection_;
  const RequestFacts facts_;
};

void HttpConnection::begin() {
  if (!socket_.is_open()) return shut();
  await_request();
}

void HttpConnection::await_request() {
  parser_.reset();
  facts_ = {};
  if (buffer_.size() > 0) return read_head();  // pipelined
  if (core_->stopping) return shut();
  state_ = State::idle;
  buffer_.shrink_to_fit();  // a thousand idle clients must cost little
  arm(core_->options.idle_timeout);
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code fault) {
    if (self->state_ != State::idle) return;
    if (fault) return self->shut();
    self->read_head();
  });
}

void HttpConnection::read_head() {
  state_ = State::reading;
  timed_out_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(core_->options.header_bytes_max));
  parser_->body_limit(core_->options.body_bytes_max);
  arm(core_->options.header_timeout);
  beast_http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](error_code fault, std::size_t) { self->on_head(fault); });
}

// While a handler works on request number `requests_`: what can be read then is the client's end of
// the conversation, or its next request, behind which nothing can be seen.
void HttpConnection::watch_for_leaving(std::function<void()> callback) {
  if (state_ != State::handling) return;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this(), request = requests_,
                                         callback = std::move(callback)](error_code fault) {
    if (self->state_ != State::handling || self->requests_ != request) return;
    char next = 0;
    const ssize_t seen =
        fault ? 0 : ::recv(self->socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (seen > 0) return;
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch_for_leaving(callback);
    callback();
  });
}

// Handles what ended the reading; false where nothing did.
bool HttpConnection::stopped_by(error_code fault) {
  if (state_ != State::reading) return true;
  if (!fault) return false;
  if (timed_out_ && parser_->got_some()) {
    refuse({408, "the request did not arrive in time"});
    return true;
  }
  const Refused refused = refusal_of(fault);
  if (refused.status == 0) {
    shut();
  } else {
    refuse(refused);
  }
  return true;
}

void HttpConnection::on_head(error_code fault) {
  if (stopped_by(fault)) return;
  const auto& head = parser_->get();
  facts_.http_1_0 = head.version() < 11;
  facts_.is_head = head.method() == beast_http::verb::head;
  if (const auto refused = check_head(head)) return refuse(*refused);
  auto target = parse_target({head.target().data(), head.target().size()});
  if (!target.ok()) return refuse({400, target.error().message});
  target_ = std::move(target).value();

  arm(core_->options.body_timeout);
  if (parser_->is_done()) return on_body({});
  if (head[beast_http::field::expect].empty() || facts_.http_1_0) return read_body();
  head_ = "HTTP/1.1 100 Continue\r\n\r\n";
  write([](HttpConnection& self) {
    if (self.state_ == State::reading) self.read_body();
  });
}

void HttpConnection::read_body() {
  timed_out_ = false;
  arm(core_->options.body_timeout);
  beast_http::async_read(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](error_code fault, std::size_t) { self->on_body(fault); });
}

void HttpConnection::on_body(error_code fault) {
  if (stopped_by(fault)) return;
  disarm();
  facts_.keep_alive = parser_->keep_alive();
  handle(std::move(target_));
}

void HttpConnection::handle(Target target) {
  state_ = State::handling;
  ++requests_;
  auto message = parser_->release();
  Request request;
  request.method = *parse_method({message.method_string().data(), message.method_string().size()});
  request.path = std::move(target.path);
  request.query = std::move(target.query);
  for (const auto& field : message) {
    request.headers.add({field.name_string().data(), field.name_string().size()},
                        {field.value().data(), field.value().size()});
  }
  request.body = std::move(message.body());
  request.peer = peer_;
  Responder responder(std::make_unique<ServerExchange>(core_, shared_from_this(), facts_));
  try {
    core_->handler(std::move(request), std::move(responder));
  } catch (...) {  // the Responder went with the exception, and answered 500
  }
}

void HttpConnection::refuse(const Refused& refused) {
  RequestFacts facts = facts_;
  facts.keep_alive = false;  // where the next request begins is not known
  write_response(core_->refuse(refused.status, refused.detail), facts);
}

void HttpConnection::answer(Response response, const RequestFacts& facts) {
  if (state_ != State::handling) return;  // closed meanwhile
  if (is_malformed(response)) response = malformed_answer(*core_);
  write_response(std::move(response), facts);
}

void HttpConnection::write_response(Response response, const RequestFacts& facts) {
  state_ = State::writing;
  ResponseFacts head{Framing::length, response.body.size(), facts.keep_alive, now_s()};
  if (core_->stopping) head.keep_alive = false;
  if (is_bodiless(response.status)) {
    head.framing = Framing::none;
    response.body.clear();
  }
  head_ = response_head(response, head);
  body_ = facts.is_head ? std::string() : std::move(response.body);
  write([keep_alive = head.keep_alive](HttpConnection& self) {
    if (self.state_ != State::writing) return;
    if (!keep_alive) return self.linger();
    self.await_request();
  });
}

// Writes head_ and body_, then calls `done`. Each bit of progress renews the time limit.
template <class Done>
void HttpConnection::write(Done done) {
  LOAM_ASSERT(!is_writing_);
  is_writing_ = true;
  arm(core_->options.write_timeout);
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(head_), asio::buffer(body_)};
  const auto progress = [this](error_code fault, std::size_t) -> std::size_t {
    if (fault) return 0;
    arm(core_->options.write_timeout);
    constexpr std::size_t piece_bytes = 256 * 1024;
    return piece_bytes;
  };
  asio::async_write(socket_, buffers, progress,
                    [self = shared_from_this(), done](error_code fault, std::size_t) {
                      self->is_writing_ = false;
                      self->head_ = std::string();  // gives the memory back, too
                      self->body_ = std::string();
                      if (fault) return self->shut();
                      done(*self);
                    });
}

void HttpConnection::begin_stream(std::shared_ptr<StreamQueue> queue, bool events) {
  if (state_ != State::handling) return queue->close();
  state_ = State::streaming;
  stream_ = std::move(queue);
  is_event_stream_ = events;
  if (events && core_->stopping) stream_->finish();
  discard_input();  // to notice when the client leaves
  flush_stream();
}

void HttpConnection::continue_stream() {
  if (state_ != State::streaming) return;
  // Only an abort wakes a connection that is writing.
  if (is_writing_) return shut();
  flush_stream();
}

void HttpConnection::flush_stream() {
  const auto stream = stream_;  // a callback may end this connection's hold on it
  StreamQueue::Work work = stream->take();
  if (state_ != State::streaming) return;
  switch (work.kind) {
    case StreamQueue::Work::Kind::wait:
      return disarm();
    case StreamQueue::Work::Kind::abort:
      return shut();
    case StreamQueue::Work::Kind::end:
      return linger();
    case StreamQueue::Work::Kind::write:
      break;
  }
  head_ = std::move(work.bytes);
  write([](HttpConnection& self) {
    if (self.state_ == State::streaming) self.flush_stream();
  });
}

// Says goodbye: nothing more is sent, and what still comes is read and thrown away until the
// client closes too.
void HttpConnection::linger() {
  state_ = State::lingering;
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->close();
  error_code fault;
  socket_.shutdown(Socket::shutdown_send, fault);
  if (fault) return shut();
  arm(linger_timeout);
  discard_input();
}

void HttpConnection::discard_input() {
  if (std::exchange(is_discarding_, true)) return;
  socket_.async_read_some(asio::buffer(scrap_),
                          [self = shared_from_this()](error_code fault, std::size_t) {
                            self->is_discarding_ = false;
                            if (fault) return self->shut();
                            if (self->state_ != State::closed) self->discard_input();
                          });
}

void HttpConnection::finish_soon() {
  if (state_ == State::idle) shut();
  if (state_ == State::streaming && is_event_stream_) stream_->finish();
}

void HttpConnection::shut() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  disarm();
  timer_.cancel();
  error_code ignored;      // it is closed either way
  socket_.close(ignored);  // a read that ends by it still looks at the parser: that goes with this
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->close();
  core_->remove(this);
}

// Sets the time limit. The timer is touched only when it would fire too late: most limits are
// moved on before they are due, and moving one then costs nothing.
void HttpConnection::arm(Duration limit) {
  constexpr std::int64_t limit_ms_max = 1LL << 40;  // 34 years: no overflow of the clock
  deadline_ = std::chrono::steady_clock::now() +
              std::chrono::milliseconds(std::min(limit.ms, limit_ms_max));
  if (deadline_ < timer_at_) wait_for_deadline();
}

void HttpConnection::wait_for_deadline() {
  timer_at_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](error_code fault) {
    const auto self = weak.lock();
    if (self == nullptr || fault || self->state_ == State::closed) return;
    if (std::chrono::steady_clock::now() < self->timer_at_) return;  // set anew meanwhile
    self->timer_at_ = TimePoint::max();
    if (self->deadline_ == TimePoint::max()) return;
    if (std::chrono::steady_clock::now() < self->deadline_) return self->wait_for_deadline();
    self->on_deadline();
  });
}

void HttpConnection::on_deadline() {
  disarm();
  if (state_ != State::reading || is_writing_) return shut();
  timed_out_ = true;
  error_code fault;
  socket_.cancel(fault);  // the reading ends with an error and sees timed_out_
  if (fault) shut();
}

}  // namespace

std::shared_ptr<Connection> make_connection(std::shared_ptr<ServerCore> core, int family,
                                            Descriptor socket) {
  const Strand strand = asio::make_strand(core->context);
  return std::make_shared<HttpConnection>(std::move(core), strand, family, std::move(socket));
}

}  // namespace loam::http

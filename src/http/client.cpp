// The blocking client: plain sockets and poll() for the time limits, Beast's parser for the
// answers.
#include "http/client.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "http/socket.hpp"
#include "http/tls.hpp"
#include "http/wire.hpp"

namespace loam::http {
namespace {

namespace beast_http = boost::beast::http;
using boost::system::error_code;

// A body that is taken out as it comes. Unlike Beast's string_body it sets nothing aside for the
// length that the server claims.
struct PieceBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(beast_http::header<is_request, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>&, error_code& fault) { fault = {}; }
    std::size_t put(const boost::asio::const_buffer& bytes, error_code& fault) {
      fault = {};
      body_.append(static_cast<const char*>(bytes.data()), bytes.size());
      return bytes.size();
    }
    void finish(error_code& fault) { fault = {}; }

   private:
    value_type& body_;
  };
};
using Parser = beast_http::response_parser<PieceBody>;

constexpr std::size_t read_bytes = 64 * 1024;

bool is_repeatable(const Request& request) {
  return (request.method != Method::post && request.method != Method::patch) ||
         request.headers.find("Idempotency-Key") != nullptr;
}

Response head_of(const Parser& parser) {
  Response response;
  response.status = parser.get().result_int();
  for (const auto& field : parser.get()) {
    response.headers.add({field.name_string().data(), field.name_string().size()},
                         {field.value().data(), field.value().size()});
  }
  return response;
}

bool is_event_stream(const Response& response) {
  constexpr std::string_view type = "text/event-stream";
  const std::string_view given = response.headers.get("Content-Type");
  return given.size() >= type.size() && equal_ignoring_case(given.substr(0, type.size()), type) &&
         (given.size() == type.size() || given[type.size()] == ';' || given[type.size()] == ' ');
}

enum class Verdict { whole, pieces };  // what the head of an answer asks for
enum class Pace { go_on, stop };

}  // namespace

Canceller::Canceller() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  LOAM_ASSERT(fd_ >= 0);
}
Canceller::~Canceller() {
  ::close(fd_);
}

void Canceller::cancel() const noexcept {
  const int saved = errno;  // a signal handler must leave it as it was
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof(one));
  errno = saved;
}

bool Canceller::cancelled() const noexcept {
  pollfd one{fd_, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

// The connection and the state of one call on it.
class Client::Wire {
 public:
  Wire(Address address, ClientOptions options)
      : address_(std::move(address)), options_(std::move(options)) {}

  struct Call {
    const Request& request;
    const Canceller* canceller = nullptr;
    // Whether a good head is followed by pieces for `on_piece`; else the body is held whole.
    std::function<Verdict(const Response&)> judge;
    std::function<Result<Pace>(std::string_view)> on_piece;
  };

  Result<void> connect() {
    if (socket_.open()) return {};
    pending_.clear();
    const TimePoint deadline = after(options_.connect_timeout);
    LOAM_TRY(socket, connect_to(address_, deadline));
    socket_ = std::move(socket);
    if (!options_.tls) return {};
    const Result<void> done = shake_hands(deadline);
    if (!done.ok()) disconnect();
    return done;
  }

  Result<StreamEnd> perform(const Call& call) {
    for (const auto& field : call.request.headers) {
      if (!valid_header(field.name, field.value))
        return invalid("the header '" + field.name + "' or its value cannot be sent",
                       "it must be one line without control characters");
    }
    drop_if_stale();
    const bool reused = socket_.open();
    auto end = attempt(call);
    if (!end.ok() && reused && !answered_ && broke_ && is_repeatable(call.request)) {
      disconnect();
      end = attempt(call);  // the server closed the kept connection just then
    }
    if (!end.ok() || end->how == StreamEnd::How::stopped || end->how == StreamEnd::How::cancelled)
      disconnect();
    return end;
  }

 private:
  static TimePoint after(Duration limit) {
    constexpr std::int64_t limit_ms_max = 1LL << 40;  // 34 years: no overflow of the clock
    return std::chrono::steady_clock::now() +
           std::chrono::milliseconds(std::min(limit.ms, limit_ms_max));
  }

  void disconnect() {
    socket_.close();
    pending_.clear();
    tls_.reset();
    said_goodbye_ = false;
  }

  Result<void> shake_hands(TimePoint deadline) {
    LOAM_TRY(filter, TlsFilter::begin(*options_.tls));
    tls_.emplace(std::move(filter));
    for (;;) {
      const Result<bool> done = tls_->shake_hands();
      // Also where it failed: the other side is told why.
      LOAM_TRY(sent, send_raw(tls_->take_output(), nullptr));
      static_cast<void>(sent);
      if (!done.ok()) return done.error();
      if (*done) return {};
      LOAM_TRY(ready, wait(POLLIN, nullptr, deadline));
      static_cast<void>(ready);
      std::string bytes;
      LOAM_TRY(more, receive_raw(bytes));
      if (!more) return broken("was closed before it was secure");
      tls_->feed(bytes);
    }
  }

  // A kept connection on which something can be read has been closed, or speaks out of turn.
  void drop_if_stale() {
    if (!socket_.open()) return;
    pollfd one{socket_.get(), POLLIN, 0};
    // A secure one may hold what is no answer: it is not kept.
    if (tls_ || !pending_.empty() || ::poll(&one, 1, 0) != 0) disconnect();
  }

  Error failure(const std::string& what, int number) const {
    return system_error(what + " " + to_text(address_), number);
  }
  Error broken(const char* what) const {
    return Error{ErrorKind::unavailable,
                 std::string("the connection to ") + to_text(address_) + " " + what,
                 {}};
  }

  enum class Ready { yes, cancelled };
  // Waits for `events` on the socket until `deadline`.
  Result<Ready> wait(short events, const Canceller* canceller, TimePoint deadline) {
    for (;;) {
      std::array<pollfd, 2> waits{{{socket_.get(), events, 0}, {-1, POLLIN, 0}}};
      if (canceller != nullptr) waits[1].fd = canceller->fd();
      int timeout_ms = -1;
      if (deadline != TimePoint::max()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
      }
      const int ready = ::poll(waits.data(), waits.size(), timeout_ms);
      if (ready < 0 && errno != EINTR) return failure("cannot wait for", errno);
      if (ready < 0) continue;
      if (waits[1].revents != 0) return Ready::cancelled;
      if (ready == 0) return failure("no answer in time from", ETIMEDOUT);
      return Ready::yes;
    }
  }

  Result<Ready> send_all(std::string_view bytes, const Canceller* canceller) {
    if (!tls_) return send_raw(bytes, canceller);
    LOAM_CHECK(tls_->encrypt(bytes));
    return send_raw(tls_->take_output(), canceller);
  }

  Result<Ready> send_raw(std::string_view bytes, const Canceller* canceller) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
        continue;
      }
      if (errno == EINTR) continue;
      // The server may have refused the request before taking all of it: read what it says.
      if (errno == EPIPE || errno == ECONNRESET) return Ready::yes;
      if (errno != EAGAIN) return failure("cannot send to", errno);
      LOAM_TRY(ready, wait(POLLOUT, canceller, after(options_.answer_timeout)));
      if (ready == Ready::cancelled) return ready;
    }
    return Ready::yes;
  }

  // Appends what came to pending_; false at the end of the connection.
  Result<bool> receive() {
    if (!tls_) return receive_raw(pending_);
    if (said_goodbye_) return false;
    std::string bytes;
    LOAM_TRY(more, receive_raw(bytes));
    tls_->feed(bytes);
    const std::size_t held = pending_.size();
    LOAM_TRY(ended, tls_->decrypt(pending_));
    said_goodbye_ = ended;
    if (pending_.size() > held) return true;  // the end may have come with it: next time
    if (ended) return false;
    // An end that was not announced may be somebody else's doing.
    if (!more) return broken("was cut off");
    return true;
  }

  Result<bool> receive_raw(std::string& to) {
    const std::size_t held = to.size();
    to.resize(held + read_bytes);
    const ssize_t got = ::recv(socket_.get(), to.data() + held, read_bytes, 0);
    const int fault = got < 0 ? errno : 0;
    to.resize(held + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) answered_ = true;
    if (got >= 0) return got > 0;
    if (fault == EAGAIN || fault == EINTR) return true;
    broke_ = fault == ECONNRESET || fault == EPIPE;
    return failure("cannot read from", fault);
  }

  // Feeds the parser what is pending; it keeps what belongs to no message.
  Result<void> parse(Parser& parser) {
    while (!pending_.empty() && !parser.is_done()) {
      error_code fault;
      const std::size_t used =
          parser.put(boost::asio::const_buffer(pending_.data(), pending_.size()), fault);
      pending_.erase(0, used);
      if (fault == beast_http::error::need_more) break;
      if (fault) return bad_answer(fault.message());
    }
    return {};
  }

  Error bad_answer(const std::string& why) const {
    return Error{
        ErrorKind::corrupt, "the answer of " + to_text(address_) + " is not usable: " + why, {}};
  }

  static void prepare(std::optional<Parser>& parser, const Call& call,
                      const ClientOptions& options) {
    parser.emplace();
    parser->eager(true);
    parser->header_limit(static_cast<std::uint32_t>(options.header_bytes_max));
    parser->body_limit(boost::none);  // the limit holds for whole bodies only, counted below
    parser->skip(call.request.method == Method::head);
  }

  Result<StreamEnd> attempt(const Call& call) {
    answered_ = false;
    broke_ = false;
    LOAM_CHECK(connect());
    const auto* unix_address = std::get_if<UnixAddress>(&address_);
    const std::string host = unix_address != nullptr ? "localhost" : to_text(address_);
    LOAM_TRY(sent, send_all(request_bytes(call.request, host), call.canceller));
    if (sent == Ready::cancelled) return StreamEnd{StreamEnd::How::cancelled, {}};
    return read_answer(call);
  }

  Result<StreamEnd> read_answer(const Call& call) {
    std::optional<Parser> parser;
    prepare(parser, call, options_);
    std::optional<StreamEnd> end;  // from the head on
    Verdict verdict = Verdict::whole;
    for (;;) {
      LOAM_CHECK(parse(*parser));
      if (parser->is_header_done() && !end) {
        if (parser->get().result_int() < 200) {  // 100 Continue and the like
          prepare(parser, call, options_);
          continue;
        }
        end.emplace(StreamEnd{StreamEnd::How::refused, head_of(*parser)});
        verdict = call.judge(end->response);
        if (verdict == Verdict::pieces) end->how = StreamEnd::How::finished;
      }
      if (end) {
        LOAM_TRY(pace, take_body(call, *parser, verdict, end->response));
        if (pace == Pace::stop) {
          end->how = StreamEnd::How::stopped;
          return *std::move(end);
        }
      }
      if (parser->is_done()) return finish(*parser, *std::move(end));
      LOAM_TRY(ready, wait_for_bytes(call, verdict));
      if (ready == Ready::cancelled) {
        if (!end) end.emplace();
        end->how = StreamEnd::How::cancelled;
        return *std::move(end);
      }
      LOAM_TRY(more, receive());
      if (more) continue;
      LOAM_CHECK(take_end(*parser));
      return *std::move(end);  // there is one: without a head take_end() fails
    }
  }

  Result<Ready> wait_for_bytes(const Call& call, Verdict verdict) {
    if (said_goodbye_) return Ready::yes;
    const Duration limit =
        verdict == Verdict::pieces ? options_.stream_timeout : options_.answer_timeout;
    return wait(POLLIN, call.canceller, limit.ms > 0 ? after(limit) : TimePoint::max());
  }

  // The server closed: the proper end of a body without a length, a cut in any other place.
  Result<void> take_end(Parser& parser) {
    if (!parser.got_some()) {
      broke_ = true;
      return broken("was closed before an answer came");
    }
    error_code fault;
    parser.put_eof(fault);
    if (fault) return broken("broke in the middle of an answer");
    disconnect();
    return {};
  }

  // Moves what the parser has of the body to where it belongs.
  Result<Pace> take_body(const Call& call, Parser& parser, Verdict verdict, Response& response) {
    const std::string piece = std::exchange(parser.get().body(), {});
    if (piece.empty()) return Pace::go_on;
    if (verdict == Verdict::pieces) return call.on_piece(piece);
    if (response.body.size() + piece.size() > options_.body_bytes_max)
      return bad_answer("its body is larger than " + std::to_string(options_.body_bytes_max) +
                        " bytes");
    response.body += piece;
    return Pace::go_on;
  }

  Result<StreamEnd> finish(Parser& parser, StreamEnd end) {
    if (!parser.keep_alive()) disconnect();
    return end;
  }

  const Address address_;
  const ClientOptions options_;
  Descriptor socket_;
  std::optional<TlsFilter> tls_;
  bool said_goodbye_ = false;  // nothing more will come
  std::string pending_;        // read and not parsed yet
  bool answered_ = false;      // this attempt has seen a byte of an answer
  bool broke_ = false;         // the connection was found closed
};

Client::Client(Address address, ClientOptions options)
    : wire_(std::make_unique<Wire>(std::move(address), std::move(options))) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<void> Client::connect() {
  return wire_->connect();
}

Result<Response> Client::send(const Request& request, const Canceller* canceller) {
  LOAM_TRY(end, wire_->perform({request, canceller, [](const Response&) { return Verdict::whole; },
                                [](std::string_view) { return Result<Pace>(Pace::go_on); }}));
  if (end.how == StreamEnd::How::cancelled)
    return Error{ErrorKind::unavailable, "the request was cancelled", {}};
  return std::move(end.response);
}

Result<StreamEnd> Client::download(const Request& request,
                                   const std::function<bool(std::string_view)>& on_bytes,
                                   const Canceller* canceller) {
  return wire_->perform({request, canceller,
                         [](const Response& head) {
                           return head.status / 100 == 2 ? Verdict::pieces : Verdict::whole;
                         },
                         [&](std::string_view bytes) {
                           return Result<Pace>(on_bytes(bytes) ? Pace::go_on : Pace::stop);
                         }});
}

Result<StreamEnd> Client::stream(const Request& request,
                                 const std::function<bool(const SseEvent&)>& on_event,
                                 const Canceller* canceller) {
  SseParser parser;
  return wire_->perform({request, canceller,
                         [](const Response& head) {
                           return head.status / 100 == 2 && is_event_stream(head) ? Verdict::pieces
                                                                                  : Verdict::whole;
                         },
                         [&](std::string_view bytes) -> Result<Pace> {
                           LOAM_TRY(events, parser.feed(bytes));
                           for (const SseEvent& event : events) {
                             if (!on_event(event)) return Pace::stop;
                           }
                           return Pace::go_on;
                         }});
}

}  // namespace loam::http

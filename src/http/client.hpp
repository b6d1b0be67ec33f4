// The HTTP/1.1 client of the command line: blocking, one connection, kept alive between calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "http/address.hpp"
#include "http/message.hpp"
#include "http/sse.hpp"

namespace loam::http {

// Ends a call from outside: from another thread or a signal handler.
class Canceller {
 public:
  Canceller();  // takes one descriptor; asserts that there is one
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;
  ~Canceller();

  // Async-signal-safe. Stays in force: later calls end at once.
  void cancel() const noexcept;
  bool cancelled() const noexcept;
  int fd() const noexcept { return fd_; }  // readable once cancelled

 private:
  int fd_ = -1;
};

// The connection is encrypted, and the server must prove who it is: TLS 1.2 or newer.
struct TlsOptions {
  std::string server_name;  // that its certificate must be of
  std::string ca_file;      // PEM; besides the authorities of the system; empty: these alone
};

struct ClientOptions {
  Duration connect_timeout = Duration::seconds(5);
  // Without a byte in either direction while an answer is due. Streams have their own.
  Duration answer_timeout = Duration::seconds(60);
  Duration stream_timeout = Duration{0};  // silence within a stream; 0: for ever
  std::size_t header_bytes_max = 64 * 1024;
  std::size_t body_bytes_max = 64 * 1024 * 1024;  // of a whole answer; streams have no bound
  std::optional<TlsOptions> tls;                  // nothing: in the clear
};

// How a stream ended, with the response that began it.
struct StreamEnd {
  enum class How {
    finished,   // the server ended it properly
    stopped,    // the callback said so
    cancelled,  // the Canceller did
    refused,    // it did not begin: `response` is the whole answer, status and body
  } how = How::finished;
  Response response;  // without a body unless refused
};

// Used by one thread at a time. Errors: unavailable when nobody listens, the connection breaks
// or time is up; permission_denied when the socket may not be opened; corrupt when the answer is
// no HTTP or too large; permission_denied when a certificate is refused. Each names the address
// and, where the system said one, the errno.
class Client {
 public:
  explicit Client(Address address, ClientOptions options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Connects where not connected: the way to tell "nobody is there" from later failures.
  Result<void> connect();

  // Sends path, query, headers and body of `request` and waits for the whole answer, whatever
  // its status. A kept connection that turns out dead is replaced once, for methods that may be
  // repeated (RFC 9110 §9.2.2) and requests with an Idempotency-Key.
  Result<Response> send(const Request& request, const Canceller* canceller = nullptr);

  // Server-sent events, each given to `on_event` until it says false. An answer that is not 2xx
  // or no event stream comes back as refused. A stream cut off in the middle is unavailable.
  Result<StreamEnd> stream(const Request& request,
                           const std::function<bool(const SseEvent&)>& on_event,
                           const Canceller* canceller = nullptr);

  // The same for any 2xx body in pieces, for what is too large to hold.
  Result<StreamEnd> download(const Request& request,
                             const std::function<bool(std::string_view)>& on_bytes,
                             const Canceller* canceller = nullptr);

 private:
  class Wire;
  std::unique_ptr<Wire> wire_;
};

}  // namespace loam::http

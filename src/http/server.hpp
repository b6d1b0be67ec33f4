// The HTTP/1.1 server (RFC 9110, 9112): a Unix socket, a TCP address or both, answered by one
// asynchronous handler. It sleeps while nothing happens: its only timers are the time limits
// of live connections.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "http/address.hpp"
#include "http/message.hpp"
#include "http/responder.hpp"

namespace loam::http {

// Called on a server thread, so it must not block: what takes long, or waits for the disk,
// keeps the Responder and answers later from wherever it is. An exception that escapes it is
// answered 500. With more than one thread it is called at the same time for several connections.
using Handler = std::function<void(Request, Responder)>;

// The answer the server gives by itself, without a handler: 400, 408, 413, 417, 431, 500, 501, 503,
// 505 with `detail`, a sentence for people. May be called on any thread.
using Refusal = std::function<Response(int status, std::string_view detail)>;

struct ServerOptions {
  std::optional<UnixAddress> unix_address;
  // Write permission on a Unix socket is the right to connect; who the peer is the handler sees.
  std::uint32_t unix_mode = 0600;
  std::optional<TcpAddress> tcp_address;  // port 0: the kernel chooses
  bool allow_remote = false;              // TCP beyond the loopback addresses

  std::size_t header_bytes_max = 16 * 1024;      // request line and headers
  std::size_t body_bytes_max = 8 * 1024 * 1024;  // of a request; over it is 413
  std::size_t stream_bytes_max = 1024 * 1024;    // queued on one stream before Sent::full
  std::size_t connections_max = 4096;            // over it is 503

  Duration idle_timeout = Duration::minutes(5);  // a kept-alive connection without a request
  Duration header_timeout =
      Duration::seconds(10);                      // from a request's first byte to its last header
  Duration body_timeout = Duration::seconds(60);  // for the whole body
  Duration write_timeout =
      Duration::seconds(30);  // without any progress; also bounds a silent close

  int threads = 1;  // 1 or 2
  Refusal refusal;  // default: plain text
};

struct ServerCore;

class Server {
 public:
  // Listens and answers from now on. Requires a handler, an address and threads in [1, 8].
  // Errors as Listener tells them: conflict (another server), permission_denied, invalid_argument.
  static Result<Server> start(ServerOptions options, Handler handler);

  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();  // stop() without waiting for requests in flight

  // The TCP port listened on; 0 without TCP.
  std::uint16_t tcp_port() const;
  std::size_t connections() const;  // open now

  // Takes no more connections, ends event streams, closes idle connections and waits at most
  // `grace` for what is in flight; then closes the rest. Responders that are answered later are
  // ignored. Afterwards the socket file is gone and no handler runs or callback comes. Not from a
  // server thread. True when nothing was cut off. A second call does nothing and gives true.
  bool stop(Duration grace);

 private:
  explicit Server(std::shared_ptr<ServerCore> core);
  std::shared_ptr<ServerCore> core_;
};

}  // namespace loam::http

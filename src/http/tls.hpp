// TLS as a filter between a program's bytes and a socket's: OpenSSL 3 on memory buffers, so that
// sockets, waiting and time limits stay with the client. Client side only. Touches no socket; reads
// the files of certificates. Internal to this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "http/client.hpp"

struct ssl_st;

namespace loam::http {

// One connection's. After an error it is of no use any more.
class TlsFilter {
 public:
  // TLS 1.2 or newer; the server's certificate must be of `options.server_name` and be signed by an
  // authority of the system or of `options.ca_file`. not_found where that file cannot be read.
  static Result<TlsFilter> begin(const TlsOptions& options);

  // Goes on with the handshake as far as what was fed reaches; true once it is done. The error
  // says why a certificate was refused.
  Result<bool> shake_hands();
  // What came from the socket.
  void feed(std::string_view bytes);
  // What is to go to the socket, since the last call.
  std::string take_output();
  // Requires a finished handshake.
  Result<void> encrypt(std::string_view text);
  // Appends what can be read of what was fed; true: the other side has said that it is done.
  Result<bool> decrypt(std::string& text);

 private:
  struct Free {
    void operator()(ssl_st* raw) const noexcept;
  };
  TlsFilter(std::unique_ptr<ssl_st, Free> ssl, std::string server_name)
      : ssl_(std::move(ssl)), server_name_(std::move(server_name)) {}
  Error fault(const std::string& doing) const;

  std::unique_ptr<ssl_st, Free> ssl_;
  std::string server_name_;
};

}  // namespace loam::http

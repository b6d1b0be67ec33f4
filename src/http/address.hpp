// Where a server listens and a client connects: a Unix socket's path or host and port. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace loam::http {

struct UnixAddress {
  std::string path;
  friend bool operator==(const UnixAddress&, const UnixAddress&) = default;
};
struct TcpAddress {
  std::string host;  // a name or a literal address, IPv6 without brackets
  std::uint16_t port = 0;
  friend bool operator==(const TcpAddress&, const TcpAddress&) = default;
};
using Address = std::variant<UnixAddress, TcpAddress>;

// "/run/loam/loam.sock", "unix:loam.sock", "127.0.0.1:7100", "[::1]:7100", "http://host:7100".
// Anything with a '/' that is no URL is a path. Refused: paths too long for the kernel (107
// bytes), ports that are no number in [0, 65535], a missing port.
Result<Address> parse_address(std::string_view text);

std::string to_text(const Address& address);  // the inverse: "unix:/run/...", "[::1]:7100"

}  // namespace loam::http

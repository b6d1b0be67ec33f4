// Addresses as text. Pure.
#include "http/address.hpp"

#include <sys/un.h>

#include <charconv>

namespace loam::http {
namespace {

// sun_path holds the path and a NUL.
constexpr std::size_t unix_path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

Error bad_address(std::string_view text, const char* why) {
  return invalid("address '" + std::string(text) + "': " + why,
                 "give a socket path such as /run/loam/loam.sock or host:port");
}

Result<Address> unix_address(std::string_view text, std::string_view path) {
  if (path.empty()) return bad_address(text, "the path is empty");
  if (path.find('\0') != std::string_view::npos) return bad_address(text, "the path holds a NUL");
  if (path.size() > unix_path_bytes_max)
    return bad_address(text, "the path is longer than the 107 bytes that the kernel allows");
  return Address(UnixAddress{std::string(path)});
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  constexpr std::string_view unix_prefix = "unix:";
  constexpr std::string_view http_prefix = "http://";
  if (text.starts_with(unix_prefix)) return unix_address(text, text.substr(unix_prefix.size()));
  std::string_view authority = text;
  if (text.starts_with(http_prefix)) {
    authority.remove_prefix(http_prefix.size());
    if (authority.ends_with('/')) authority.remove_suffix(1);
    if (authority.find('/') != std::string_view::npos)
      return bad_address(text, "a URL may name host and port only");
  } else if (text.starts_with("https://")) {
    return bad_address(text, "TLS is not supported");
  } else if (text.find('/') != std::string_view::npos) {
    return unix_address(text, text);
  }

  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "the port is missing");
  std::string_view host = authority.substr(0, colon);
  const std::string_view port_text = authority.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad_address(text, "an IPv6 address needs brackets: [::1]:7100");
  }
  if (host.empty()) return bad_address(text, "the host is empty");
  for (char c : host) {
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      return bad_address(text, "the host holds a character that no host name has");
  }
  TcpAddress address{std::string(host), 0};
  const char* end = port_text.data() + port_text.size();
  const auto [stop, fault] = std::from_chars(port_text.data(), end, address.port);
  if (port_text.empty() || fault != std::errc{} || stop != end)
    return bad_address(text, "the port must be a number from 0 to 65535");
  return Address(std::move(address));
}

std::string to_text(const Address& address) {
  if (const auto* local = std::get_if<UnixAddress>(&address)) return "unix:" + local->path;
  const auto& tcp = std::get<TcpAddress>(address);
  const bool is_ipv6 = tcp.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + tcp.host + "]" : tcp.host) + ":" + std::to_string(tcp.port);
}

}  // namespace loam::http

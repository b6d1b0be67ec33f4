// Message heads as bytes (RFC 9112): what the server and the client write. Pure. Internal to
// this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"

namespace loam::http {

enum class Framing {
  length,   // Content-Length
  chunked,  // Transfer-Encoding: chunked
  close,    // the end of the connection ends the body (HTTP/1.0)
  none,     // no body at all (204, 304)
};

struct ResponseFacts {
  Framing framing = Framing::length;
  std::uint64_t length = 0;  // with Framing::length
  bool keep_alive = true;
  std::int64_t date_s = 0;  // seconds since 1970, for the Date header
};

// The status line and headers with the empty line. Requires response.headers.all_valid().
std::string response_head(const Response& response, const ResponseFacts& facts);

// The request line, headers and body. Requires request.headers.all_valid().
std::string request_bytes(const Request& request, std::string_view host);

std::string chunk(std::string_view bytes);  // requires bytes
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

// "Mon, 02 Mar 2026 00:00:00 GMT", the IMF-fixdate of RFC 9110 §5.6.7.
std::string http_date(std::int64_t seconds);

// Whether a response of this status never has a body.
bool is_bodiless(int status) noexcept;

}  // namespace loam::http

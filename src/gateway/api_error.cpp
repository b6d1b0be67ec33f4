#include "gateway/api_error.hpp"

#include <algorithm>
#include <array>

#include "http/target.hpp"

namespace loam::gateway {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the valid UTF-8 character at the front; 0 where there is none.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes > text.size() || !http::is_utf8(text.substr(0, bytes))) return 0;
  return bytes;
}

void append_control(std::string& out, unsigned char byte) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += hex[byte >> 4U];
      out += hex[byte & 0xFU];
  }
}

void append_field(std::string& out, std::string_view name, const std::optional<std::string>& text) {
  out += ",\"";
  out += name;
  out += "\":";
  if (!text) {
    out += "null";
    return;
  }
  out += '"';
  append_escaped(out, *text);
  out += '"';
}

struct KindFacts {
  ErrorKind kind;
  int status;
  std::string_view type;
  std::string_view code;
};
constexpr std::array<KindFacts, 10> kind_facts{{
    {ErrorKind::invalid_argument, 400, "invalid_request_error", "invalid_value"},
    {ErrorKind::unauthenticated, 401, "invalid_request_error", "invalid_api_key"},
    {ErrorKind::permission_denied, 403, "invalid_request_error", "permission_denied"},
    {ErrorKind::not_found, 404, "invalid_request_error", "not_found"},
    {ErrorKind::conflict, 409, "invalid_request_error", "conflict"},
    {ErrorKind::exhausted, 429, "rate_limit_error", "capacity_exhausted"},
    {ErrorKind::unavailable, 503, "server_error", "unavailable"},
    {ErrorKind::unsupported, 400, "invalid_request_error", "unsupported_value"},
    {ErrorKind::corrupt, 500, "server_error", "corrupt"},
    {ErrorKind::internal, 500, "server_error", "internal_error"},
}};

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
  std::size_t plain = 0;  // bytes at the front that go out as they are
  while (plain < text.size()) {
    const auto byte = static_cast<unsigned char>(text[plain]);
    if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
      ++plain;
      continue;
    }
    if (byte >= 0x80) {
      if (const std::size_t bytes = character_bytes(text.substr(plain)); bytes > 0) {
        plain += bytes;
        continue;
      }
    }
    out += text.substr(0, plain);
    if (byte >= 0x80) {
      out += replacement;
    } else {
      append_control(out, byte);
    }
    text.remove_prefix(plain + 1);
    plain = 0;
  }
  out += text;
}

ApiError bad_request(std::string message, std::string_view param, std::string_view code) {
  ApiError error{400, std::move(message), "invalid_request_error"};
  if (!param.empty()) error.param = std::string(param);
  if (!code.empty()) error.code = std::string(code);
  return error;
}

ApiError api_error(const Error& error) {
  for (const KindFacts& facts : kind_facts) {
    if (facts.kind == error.kind)
      return {facts.status, to_text(error), std::string(facts.type), {}, std::string(facts.code)};
  }
  return {500, to_text(error), "server_error", {}, "internal_error"};
}

std::string to_json(const ApiError& error) {
  std::string out = "{\"error\":{\"message\":\"";
  append_escaped(out, error.message);
  out += '"';
  append_field(out, "type", error.type);
  append_field(out, "param", error.param);
  append_field(out, "code", error.code);
  return out + "}}";
}

http::Response to_response(const ApiError& error) {
  http::Response response = http::make_response(error.status, "application/json", to_json(error));
  if (error.retry_after) {
    const std::int64_t ms = std::max<std::int64_t>(error.retry_after->ms, 1);
    response.headers.add("Retry-After", std::to_string((ms + 999) / 1000));
    response.headers.add("retry-after-ms", std::to_string(ms));
  }
  return response;
}

http::Response refusal(int status, std::string_view detail) {
  ApiError error{status, std::string(detail), "invalid_request_error", {}, "malformed_request"};
  if (status == 413) error.code = "request_too_large";
  if (status == 408) error.code = "request_timeout";
  if (status >= 500) {
    error.type = "server_error";
    error.code = status == 503 ? "overloaded" : "internal_error";
  }
  return to_response(error);
}

}  // namespace loam::gateway

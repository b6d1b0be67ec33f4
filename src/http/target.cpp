// Decoding and normalising request targets. Pure.
#include "http/target.hpp"

#include <algorithm>
#include <utility>

namespace loam::http {
namespace {

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The target as it may be shown in a message: bounded, without bytes that could harm a terminal.
std::string shown(std::string_view raw) {
  constexpr std::size_t shown_bytes_max = 100;
  std::string text;
  for (char c : raw.substr(0, shown_bytes_max)) text += c >= 0x20 && c < 0x7f ? c : '?';
  if (raw.size() > shown_bytes_max) text += "...";
  return text;
}

Error bad_target(std::string_view raw, std::string why) {
  return invalid("request target '" + shown(raw) + "': " + std::move(why));
}

enum class Part { path, query };

// Percent-decoding by the rules of `part`: '+' is a blank in parameters only, and an encoded
// slash is refused in the path, where it would become a segment border.
Result<std::string> decode(std::string_view raw, Part part) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '%') {
      const int high = i + 2 < raw.size() ? hex_digit(raw[i + 1]) : -1;
      const int low = i + 2 < raw.size() ? hex_digit(raw[i + 2]) : -1;
      if (high < 0 || low < 0)
        return bad_target(raw, "'%' must be followed by two hexadecimal digits");
      c = static_cast<char>(high * 16 + low);
      i += 2;
      if (c == '/' && part == Part::path) return bad_target(raw, "an encoded slash is refused");
    } else if (c == '+' && part == Part::query) {
      c = ' ';
    } else if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      return bad_target(raw, "it holds a byte that must be percent-encoded");
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return bad_target(raw, "an encoded NUL is refused");
    if (part == Part::path && (byte < 0x20 || byte == 0x7f))
      return bad_target(raw, "control characters are refused");
    text += c;
  }
  if (!is_utf8(text)) return bad_target(raw, "it does not decode to UTF-8");
  return text;
}

// Without dot segments (RFC 3986 §5.2.4), but climbing above the root is an error, not "/".
Result<std::string> normalise(std::string_view raw, std::string_view decoded) {
  std::vector<std::string_view> segments;
  for (std::size_t at = 1; at <= decoded.size();) {
    const std::size_t slash = std::min(decoded.find('/', at), decoded.size());
    const std::string_view segment = decoded.substr(at, slash - at);
    at = slash + 1;
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      segments.push_back(segment);
    } else if (segments.empty()) {
      return bad_target(raw, "'..' climbs above the root");
    } else {
      segments.pop_back();
    }
  }
  std::string path;
  for (std::string_view segment : segments) path.append("/").append(segment);
  if (path.empty()) path = "/";
  return path;
}

// The path and query of an absolute-form target; the authority has been routed by already.
std::string_view without_authority(std::string_view raw) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (raw.size() < scheme.size() || !equal_ignoring_case(raw.substr(0, scheme.size()), scheme))
      continue;
    raw.remove_prefix(scheme.size());
    const std::size_t end = std::min(raw.find_first_of("/?"), raw.size());
    return raw.substr(end);
  }
  return raw;
}

bool is_unreserved(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

void append_encoded(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    std::size_t tail = 0;
    unsigned low = 0x80;  // bounds of the second byte (Unicode 15, table 3-7)
    unsigned high = 0xbf;
    if (first < 0x80) {
      tail = 0;
    } else if (first >= 0xc2 && first <= 0xdf) {
      tail = 1;
    } else if (first >= 0xe0 && first <= 0xef) {
      tail = 2;
      if (first == 0xe0) low = 0xa0;
      if (first == 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
      tail = 3;
      if (first == 0xf0) low = 0x90;
      if (first == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    if (bytes.size() - i <= tail) return false;
    for (std::size_t k = 1; k <= tail; ++k) {
      const auto byte = static_cast<unsigned char>(bytes[i + k]);
      if (byte < low || byte > high) return false;
      low = 0x80;
      high = 0xbf;
    }
    i += tail + 1;
  }
  return true;
}

Result<std::vector<Parameter>> parse_query(std::string_view raw) {
  std::vector<Parameter> query;
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t end = std::min(raw.find('&', at), raw.size());
    const std::string_view pair = raw.substr(at, end - at);
    at = end + 1;
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    LOAM_TRY(name, decode(pair.substr(0, equals), Part::query));
    LOAM_TRY(value, decode(pair.substr(std::min(equals + 1, pair.size())), Part::query));
    query.push_back({std::move(name), std::move(value)});
  }
  return query;
}

Result<Target> parse_target(std::string_view raw) {
  const std::string_view origin = without_authority(raw);
  const std::size_t mark = std::min(origin.find('?'), origin.size());
  std::string_view raw_path = origin.substr(0, mark);
  if (raw_path.empty() && origin.size() != raw.size()) raw_path = "/";  // "http://host"
  if (raw_path.empty() || raw_path.front() != '/')
    return bad_target(raw, "a path must start with '/'");
  if (origin.find('#') != std::string_view::npos)
    return bad_target(raw, "a fragment is never sent");

  LOAM_TRY(decoded, decode(raw_path, Part::path));
  Target target;
  LOAM_TRY(path, normalise(raw, decoded));
  target.path = std::move(path);
  LOAM_TRY(query, parse_query(origin.substr(std::min(mark + 1, origin.size()))));
  target.query = std::move(query);
  return target;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      append_encoded(out, c);
    }
  }
  return out;
}

std::string encode_target(std::string_view path, const std::vector<Parameter>& query) {
  std::string out;
  for (char c : path) {
    if (is_unreserved(c) || c == '/') {
      out += c;
    } else {
      append_encoded(out, c);
    }
  }
  char separator = '?';
  for (const Parameter& parameter : query) {
    out += separator;
    out += percent_encode(parameter.name) + '=' + percent_encode(parameter.value);
    separator = '&';
  }
  return out;
}

}  // namespace loam::http

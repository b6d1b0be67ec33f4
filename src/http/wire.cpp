// Message heads as bytes. Pure.
#include "http/wire.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "base/assert.hpp"
#include "http/target.hpp"

namespace loam::http {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

bool is_framing(std::string_view name) {
  constexpr std::array<std::string_view, 3> names{"content-length", "transfer-encoding",
                                                  "connection"};
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view known) { return equal_ignoring_case(known, name); });
}

}  // namespace

bool is_bodiless(int status) noexcept {
  return status < 200 || status == 204 || status == 304;
}

std::string http_date(std::int64_t seconds) {
  using namespace std::chrono;
  constexpr std::array<const char*, 7> days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const sys_seconds time{std::chrono::seconds(seconds)};
  const auto day = floor<std::chrono::days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  const int length = std::snprintf(
      text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
      days[weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
      months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  LOAM_ASSERT(length > 0 && static_cast<std::size_t>(length) < text.size());
  return text.data();
}

std::string response_head(const Response& response, const ResponseFacts& facts) {
  LOAM_ASSERT(response.headers.all_valid());
  LOAM_ASSERT(response.status >= 100 && response.status <= 999);
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out.append(reason_of(response.status)).append("\r\n");
  append_field(out, "Date", http_date(facts.date_s));
  for (const auto& field : response.headers) {
    if (!is_framing(field.name) && !equal_ignoring_case(field.name, "date"))
      append_field(out, field.name, field.value);
  }
  if (facts.framing == Framing::length)
    append_field(out, "Content-Length", std::to_string(facts.length));
  if (facts.framing == Framing::chunked) append_field(out, "Transfer-Encoding", "chunked");
  append_field(out, "Connection", facts.keep_alive ? "keep-alive" : "close");
  out += "\r\n";
  return out;
}

std::string request_bytes(const Request& request, std::string_view host) {
  LOAM_ASSERT(request.headers.all_valid());
  std::string out = name_of(request.method);
  out.append(" ").append(encode_target(request.path, request.query)).append(" HTTP/1.1\r\n");
  if (request.headers.find("Host") == nullptr) append_field(out, "Host", host);
  for (const auto& field : request.headers) {
    if (!is_framing(field.name)) append_field(out, field.name, field.value);
  }
  const bool may_have_body = request.method == Method::post || request.method == Method::put ||
                             request.method == Method::patch;
  if (may_have_body || !request.body.empty())
    append_field(out, "Content-Length", std::to_string(request.body.size()));
  return out.append("\r\n").append(request.body);
}

std::string chunk(std::string_view bytes) {
  LOAM_ASSERT(!bytes.empty());
  std::array<char, 16> size{};
  const auto [end, fault] = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16);
  LOAM_ASSERT(fault == std::errc{});
  std::string out(size.data(), end);
  return out.append("\r\n").append(bytes).append("\r\n");
}

}  // namespace loam::http

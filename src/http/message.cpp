// Methods, header fields and reason phrases of RFC 9110. Pure.
#include "http/message.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"

namespace loam::http {
namespace {

constexpr std::array<std::pair<Method, const char*>, 7> methods{{{Method::get, "GET"},
                                                                 {Method::head, "HEAD"},
                                                                 {Method::post, "POST"},
                                                                 {Method::put, "PUT"},
                                                                 {Method::patch, "PATCH"},
                                                                 {Method::del, "DELETE"},
                                                                 {Method::options, "OPTIONS"}}};

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_token_char(char c) noexcept {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

const char* name_of(Method method) noexcept {
  for (const auto& [known, name] : methods) {
    if (known == method) return name;
  }
  LOAM_ASSERT(false);
  return "";
}

std::optional<Method> parse_method(std::string_view name) noexcept {
  for (const auto& [method, known] : methods) {
    if (name == known) return method;
  }
  return std::nullopt;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool valid_header(std::string_view name, std::string_view value) noexcept {
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_token_char)) return false;
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

const std::string* Headers::find(std::string_view name) const noexcept {
  for (const Field& field : fields_) {
    if (equal_ignoring_case(field.name, name)) return &field.value;
  }
  return nullptr;
}

std::string_view Headers::get(std::string_view name, std::string_view fallback) const noexcept {
  const std::string* value = find(name);
  return value != nullptr ? std::string_view(*value) : fallback;
}

std::size_t Headers::count(std::string_view name) const noexcept {
  std::size_t count = 0;
  for (const Field& field : fields_) count += equal_ignoring_case(field.name, name) ? 1 : 0;
  return count;
}

void Headers::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  remove(name);
  add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return equal_ignoring_case(field.name, name); });
}

bool Headers::all_valid() const noexcept {
  return std::all_of(fields_.begin(), fields_.end(),
                     [](const Field& field) { return valid_header(field.name, field.value); });
}

std::string to_text(const Peer& peer) {
  if (const auto* tcp = std::get_if<TcpPeer>(&peer)) return tcp->address;
  const auto& local = std::get<UnixPeer>(peer);
  return "uid " + std::to_string(local.uid) + " pid " + std::to_string(local.pid);
}

const std::string* Request::find_query(std::string_view name) const noexcept {
  for (const Parameter& parameter : query) {
    if (parameter.name == name) return &parameter.value;
  }
  return nullptr;
}

Response make_response(int status, std::string content_type, std::string body) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", std::move(content_type));
  response.body = std::move(body);
  return response;
}

// house-allow function-length: a table, written as the switch that compilers check
std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "";
  }
}

}  // namespace loam::http

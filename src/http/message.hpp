// What goes over the wire, without the wire: methods, headers, requests and responses (RFC 9110).
// Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loam::http {

// Other methods exist and are answered 501 before any handler sees them.
enum class Method { get, head, post, put, patch, del, options };

const char* name_of(Method method) noexcept;  // "GET", ...
std::optional<Method> parse_method(
    std::string_view name) noexcept;  // case-sensitive, RFC 9110 §9.1

// A name is a token of RFC 9110; a value has no control characters but the tab. A value that
// fails this could forge headers, so the server and the client refuse to send it.
bool valid_header(std::string_view name, std::string_view value) noexcept;

// A header section in its order; names compare without case. Lookups cost one pass.
class Headers {
 public:
  struct Field {
    std::string name;
    std::string value;
  };

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first value of that name; null where there is none. Valid until the next change.
  const std::string* find(std::string_view name) const noexcept;
  // The same by value semantics: `fallback` where there is none.
  std::string_view get(std::string_view name, std::string_view fallback = {}) const noexcept;
  std::size_t count(std::string_view name) const noexcept;

  void add(std::string name, std::string value);
  void set(std::string name, std::string value);  // replaces every field of that name
  void remove(std::string_view name);

  bool all_valid() const noexcept;
  bool empty() const noexcept { return fields_.empty(); }
  std::size_t size() const noexcept { return fields_.size(); }
  auto begin() const noexcept { return fields_.begin(); }
  auto end() const noexcept { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

// The local process at the other end of a Unix socket, as the kernel saw it when it connected.
struct UnixPeer {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int32_t pid = 0;
  friend bool operator==(const UnixPeer&, const UnixPeer&) = default;
};
// The other end of a TCP connection: "127.0.0.1:40312", "[::1]:40312".
struct TcpPeer {
  std::string address;
  friend bool operator==(const TcpPeer&, const TcpPeer&) = default;
};
using Peer = std::variant<TcpPeer, UnixPeer>;

std::string to_text(const Peer& peer);  // for logs: "uid 1000 pid 4711", "127.0.0.1:40312"

struct Parameter {
  std::string name;
  std::string value;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct Request {
  Method method = Method::get;
  // Decoded and normalised (target.hpp): starts with '/', has no empty, "." or ".." segment, no
  // control characters and is valid UTF-8. Safe to split at '/'.
  std::string path = "/";
  std::vector<Parameter> query;  // decoded, in their order, repeated names kept
  Headers headers;
  std::string body;
  Peer peer;  // set by the server; the client ignores it

  // The first parameter of that name; null where there is none.
  const std::string* find_query(std::string_view name) const noexcept;
};

struct Response {
  int status = 200;
  // Content-Length, Transfer-Encoding, Connection and Date are the server's: what a handler
  // puts there is replaced.
  Headers headers;
  std::string body;
};

Response make_response(int status, std::string content_type, std::string body);

// "Not Found"; empty for codes without a registered phrase.
std::string_view reason_of(int status) noexcept;

// ASCII case-insensitive equality, as header names and most tokens compare.
bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace loam::http

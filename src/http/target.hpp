// The request target: from the bytes of the request line to a path and parameters, and back
// (RFC 3986, RFC 9112 §3.2; parameters as WHATWG application/x-www-form-urlencoded). Pure.
//
// One reading for everybody: the path is decoded once, here, and what could be read two ways is
// refused rather than guessed: an encoded slash or NUL, control characters, bytes that are not
// UTF-8, and ".." that climbs above the root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "http/message.hpp"

namespace loam::http {

struct Target {
  std::string path;  // see Request::path
  std::vector<Parameter> query;
  friend bool operator==(const Target&, const Target&) = default;
};

// Accepts origin form ("/v1/tasks?state=running") and absolute form ("http://host/v1"). Empty
// segments and "." are dropped, ".." is resolved, a trailing slash is dropped except on "/".
// invalid_argument with the reason otherwise. Linear in the input.
Result<Target> parse_target(std::string_view raw);

// The parameters after the '?': "a=1&b=x+y". A name without '=' has an empty value.
Result<std::vector<Parameter>> parse_query(std::string_view raw);

// The inverse, for clients. parse_target(encode_target(p, q)) gives p and q back where p is a
// path that Request::path allows. Only unreserved characters and '/' stay unencoded.
std::string encode_target(std::string_view path, const std::vector<Parameter>& query);

// One path segment or parameter with everything but unreserved characters percent-encoded.
std::string percent_encode(std::string_view text);

bool is_utf8(std::string_view bytes) noexcept;  // strict: no surrogates, no overlong forms

}  // namespace loam::http

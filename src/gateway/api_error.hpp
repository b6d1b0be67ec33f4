// What goes wrong, in the shape the OpenAI API tells it: an HTTP status and an object with the four
// fields message, type, param and code. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "http/message.hpp"

namespace loam::gateway {

struct ApiError {
  int status = 500;
  std::string message;                    // what was wrong, with the value, and what to do
  std::string type = "server_error";      // "invalid_request_error", "rate_limit_error", ...
  std::optional<std::string> param = {};  // the request's field at fault
  std::optional<std::string> code = {};   // for programs: "context_length_exceeded"
  std::optional<Duration> retry_after = {};
};

// 400 for a field of the request. `param` may be empty: the body as a whole.
ApiError bad_request(std::string message, std::string_view param, std::string_view code);
// The error of another folder: the status follows from its kind.
ApiError api_error(const Error& error);

// {"error":{"message":...,"type":...,"param":...,"code":...}}
std::string to_json(const ApiError& error);
// With Retry-After (whole seconds, rounded up) and retry-after-ms where it is known.
http::Response to_response(const ApiError& error);

// The server's own refusals, before a handler sees the request (http::Refusal).
http::Response refusal(int status, std::string_view detail);

// Appends `text` as the inside of a JSON string. `text` is UTF-8; bytes that are not become U+FFFD.
void append_escaped(std::string& out, std::string_view text);

}  // namespace loam::gateway

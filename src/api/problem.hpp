// Problem documents (RFC 9457): errors and rejections to HTTP and back. One table each way. Pure.
#pragma once

#include "api/types.hpp"
#include "base/result.hpp"
#include "domain/command.hpp"
#include "http/message.hpp"

namespace loam::api {

int status_of(ErrorKind kind) noexcept;
int status_of(RejectCode code) noexcept;
// What a rejection is to a program that only knows errors: the client's exit code follows from it.
ErrorKind kind_of(RejectCode code) noexcept;

Error error_of(const Reject& reject);

Problem problem_of(const Error& error);
Problem problem_of(const Reject& reject);

http::Response response_of(const Problem& problem);

// The client's side: an answer that is no success. One without a problem document (from something
// between the two) gives an error that quotes its status.
Error error_of(const http::Response& response);
Error error_of(const Problem& problem);

}  // namespace loam::api

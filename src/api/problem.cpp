#include "api/problem.hpp"

#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enum_to_string.hpp>

#include "api/json.hpp"

namespace loam::api {
namespace {

constexpr const char* content_type = "application/problem+json";

constexpr ErrorKind error_kinds[] = {ErrorKind::invalid_argument,  ErrorKind::unauthenticated,
                                     ErrorKind::permission_denied, ErrorKind::not_found,
                                     ErrorKind::conflict,          ErrorKind::exhausted,
                                     ErrorKind::unavailable,       ErrorKind::unsupported,
                                     ErrorKind::corrupt,           ErrorKind::internal};

Problem make(int status, std::string code, std::string detail, std::string next_step) {
  Problem problem;
  problem.title = std::string(http::reason_of(status));
  problem.status = status;
  problem.detail = std::move(detail);
  problem.code = std::move(code);
  problem.next_step = std::move(next_step);
  return problem;
}

ErrorKind kind_of_status(int status) {
  for (const ErrorKind kind : error_kinds) {
    if (status_of(kind) == status) return kind;
  }
  return status >= 400 && status < 500 ? ErrorKind::invalid_argument : ErrorKind::unavailable;
}

}  // namespace

int status_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return 400;
    case ErrorKind::unauthenticated:
      return 401;
    case ErrorKind::permission_denied:
      return 403;
    case ErrorKind::not_found:
      return 404;
    case ErrorKind::conflict:
      return 409;
    case ErrorKind::exhausted:
      return 429;
    case ErrorKind::unavailable:
      return 503;
    case ErrorKind::unsupported:
      return 501;
    case ErrorKind::corrupt:
    case ErrorKind::internal:
      return 500;
  }
  return 500;
}

int status_of(RejectCode code) noexcept {
  switch (code) {
    case RejectCode::invalid_argument:
      return 400;
    case RejectCode::insufficient_funds:
      return 402;
    case RejectCode::not_found:
    case RejectCode::no_such_tenant:
    case RejectCode::no_such_device:
      return 404;
    case RejectCode::name_taken:
    case RejectCode::no_rate_card:
    case RejectCode::wrong_state:
    case RejectCode::stale_epoch:
    case RejectCode::duplicate_report:
    case RejectCode::nothing_to_invoice:
      return 409;
    case RejectCode::does_not_fit:
    case RejectCode::not_sold:
    case RejectCode::unsupported_field:
    case RejectCode::key_reused:
      return 422;
    case RejectCode::quota_exceeded:
    case RejectCode::budget_exceeded:
      return 429;
  }
  return 500;
}

ErrorKind kind_of(RejectCode code) noexcept {
  switch (code) {
    case RejectCode::invalid_argument:
      return ErrorKind::invalid_argument;
    case RejectCode::not_found:
    case RejectCode::no_such_tenant:
    case RejectCode::no_such_device:
      return ErrorKind::not_found;
    case RejectCode::does_not_fit:
    case RejectCode::quota_exceeded:
    case RejectCode::budget_exceeded:
    case RejectCode::insufficient_funds:
      return ErrorKind::exhausted;
    case RejectCode::not_sold:
    case RejectCode::unsupported_field:
      return ErrorKind::unsupported;
    case RejectCode::name_taken:
    case RejectCode::no_rate_card:
    case RejectCode::wrong_state:
    case RejectCode::stale_epoch:
    case RejectCode::duplicate_report:
    case RejectCode::key_reused:
    case RejectCode::nothing_to_invoice:
      return ErrorKind::conflict;
  }
  return ErrorKind::internal;
}

Error error_of(const Reject& reject) {
  return {kind_of(reject.code), reject.message, reject.next_step};
}

Problem problem_of(const Error& error) {
  return make(status_of(error.kind), name_of(error.kind), error.message, error.next_step);
}

Problem problem_of(const Reject& reject) {
  return make(status_of(reject.code), boost::describe::enum_to_string(reject.code, "internal"),
              reject.message, reject.next_step);
}

http::Response response_of(const Problem& problem) {
  http::Response response =
      http::make_response(static_cast<int>(problem.status), content_type, to_json(problem));
  if (problem.status == 401) response.headers.set("WWW-Authenticate", "Bearer realm=\"loam\"");
  return response;
}

Error error_of(const Problem& problem) {
  RejectCode code{};
  if (boost::describe::enum_from_string(problem.code.c_str(), code))
    return {kind_of(code), problem.detail, problem.next_step};
  for (const ErrorKind kind : error_kinds) {
    if (problem.code == name_of(kind)) return {kind, problem.detail, problem.next_step};
  }
  return {kind_of_status(static_cast<int>(problem.status)), problem.detail, problem.next_step};
}

Error error_of(const http::Response& response) {
  if (response.headers.get("Content-Type").starts_with(content_type)) {
    if (const auto problem = from_json<Problem>(response.body)) return error_of(*problem);
  }
  constexpr std::size_t quoted_max = 200;
  return {kind_of_status(response.status),
          "the answer was " + std::to_string(response.status) + " " +
              std::string(http::reason_of(response.status)) +
              " without a reason: " + response.body.substr(0, quoted_max),
          "check that the address is loamd's"};
}

}  // namespace loam::api

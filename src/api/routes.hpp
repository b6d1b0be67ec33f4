// The route table: what the API answers, to whom, and in which shapes. Requests are dispatched by
// it and the OpenAPI document is made from it. Internal to this folder. Pure.
#pragma once

#include <span>

#include "api/call.hpp"

namespace loam::api {

struct QueryParameter {
  const char* name;
  const char* type;  // of JSON Schema: string, integer, boolean
  const char* summary;
};

struct Route {
  http::Method method = http::Method::get;
  const char* pattern = "";
  const char* id = "";  // operationId
  const char* summary = "";
  Action action = Action::see_self;
  bool open = false;          // answered to anybody
  const char* request = "";   // shape of the body; none
  const char* response = "";  // shape of the answer, or its media type; none: a stream
  int status = 200;           // of success
  std::span<const QueryParameter> query;
  const char* events = "";  // of a stream: types and their shapes; none
  bool keyed = false;       // takes an Idempotency-Key
  void (*handle)(const CallPtr& call) = nullptr;
  bool keeps_answer = false;  // keyed, and what it does is not in the journal: see KeptAnswers
};

std::span<const Route> routes();

}  // namespace loam::api

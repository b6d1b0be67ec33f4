// One request on its way through a handler, and what all calls share. Internal to this folder.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/api.hpp"
#include "api/json.hpp"
#include "api/kept_answers.hpp"
#include "api/live.hpp"
#include "api/metrics.hpp"
#include "api/problem.hpp"
#include "api/views.hpp"
#include "api/workers.hpp"
#include "http/router.hpp"

namespace loam::api {

struct Route;

class ApiCore : public std::enable_shared_from_this<ApiCore> {
 public:
  ApiCore(Backend& given_backend, Authenticator& given_authenticator, TokenStore& given_tokens,
          ApiOptions given_options);

  Backend& backend;
  Authenticator& authenticator;
  TokenStore& tokens;
  const ApiOptions options;
  http::Router router;
  Metrics metrics;
  std::atomic<bool> calibrating = false;  // one at a time: they would measure one another
  KeptAnswers kept;
  std::mutex patching;  // a tenant's change reads what it changes
  LiveStreams live;
  Workers workers;  // last: its threads end first
};

struct TenantRef {
  TenantId id;
  std::string name;
  Currency currency;
};

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<ApiCore> given_core, http::Request given_request,
       http::Responder given_responder)
      : core(std::move(given_core)),
        request(std::move(given_request)),
        responder(std::move(given_responder)) {}

  const std::shared_ptr<ApiCore> core;
  http::Request request;
  http::Responder responder;
  const Route* route = nullptr;
  http::RouteMatch match;
  Caller caller;
  RequestKey key;
  bool began = false;  // under its key, of a route that keeps its answer

  Backend& backend() { return core->backend; }
  // Of the path.
  const std::string& parameter(std::string_view name) const { return match[name]; }
  // Of the query; empty where it was not given.
  std::string query(std::string_view name) const;
  Result<std::int64_t> number(std::string_view name, std::int64_t fallback, std::int64_t max) const;
  Result<std::optional<Instant>> instant(std::string_view name) const;

  void answer(const std::string& json, std::string location = {});
  // Of a route that keeps its answer: what the same key will get; nothing where it failed.
  void keep(std::optional<std::string> json);
  void fail(const Error& error);
  void fail(const Reject& reject);
  // The one or the other.
  void finish(const Result<std::string>& json);

  // A tenant that the caller may see, by name; a member's own and the only one there is need no
  // name. One that the caller may not see does not exist.
  Result<TenantRef> tenant(const std::string& name);
  // For lists: none means all, which a member cannot ask for.
  Result<std::optional<TenantRef>> tenant_filter(const std::string& name);
  // A task that the caller may see, likewise.
  Result<TaskRecord> task(const std::string& id);
  Result<TaskView> task_view(TaskRecord record);

  // Sends a command through the loop and answers with what `view` makes of its subject. `view`
  // runs on a worker.
  using SubjectView = std::function<Result<std::string>(const std::string& subject)>;
  void post(Command command, SubjectView view,
            std::function<std::string(const std::string& subject)> location = {});
};
using CallPtr = std::shared_ptr<Call>;

// "there is no task t9": the one answer for what is not there and what is somebody else's.
Error no_task(const std::string& id);
Error no_tenant(const std::string& name);

// The request's body as a shape.
template <class T>
Result<T> body_of(const Call& call) {
  if (call.request.body.empty()) return invalid("the request has no body", "send a JSON object");
  return from_json<T>(call.request.body);
}

// Views that several handlers make.
Result<std::vector<TaskView>> task_views(ApiCore& core, std::vector<TaskRecord> records);
// Why each waits is told for the first so many of a list only: every one costs a look at the queue.
inline constexpr std::size_t reasons_in_list_max = 20;
TopView top_view(ApiCore& core, const std::optional<TenantId>& only);
// The device with that id, UUID or name ("n1/0"); null where there is none.
const Device* find_device(const engine::State& state, std::string_view name);

}  // namespace loam::api

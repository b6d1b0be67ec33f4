#include "api/call.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <charconv>

#include "api/routes.hpp"

namespace loam::api {

Error no_task(const std::string& id) {
  return {ErrorKind::not_found, "there is no task " + id, "see the tasks with: loam ps"};
}

Error no_tenant(const std::string& name) {
  return {ErrorKind::not_found, "there is no tenant '" + name + "'",
          "see the tenants with: loam tenant list"};
}

std::string Call::query(std::string_view name) const {
  const std::string* value = request.find_query(name);
  return value != nullptr ? *value : std::string();
}

Result<std::int64_t> Call::number(std::string_view name, std::int64_t fallback,
                                  std::int64_t max) const {
  const std::string text = query(name);
  if (text.empty()) return fallback;
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || value < 0 || value > max) {
    return invalid("'" + std::string(name) + "' is '" + text + "'",
                   "give a whole number from 0 to " + std::to_string(max));
  }
  return value;
}

Result<std::optional<Instant>> Call::instant(std::string_view name) const {
  const std::string text = query(name);
  if (text.empty()) return std::optional<Instant>();
  auto instant = parse_instant(text);
  if (!instant) {
    return invalid("'" + std::string(name) + "': " + instant.error().message,
                   instant.error().next_step);
  }
  return std::optional(*instant);
}

void Call::keep(std::optional<std::string> json) {
  if (route != nullptr && route->keeps_answer && !key.key.empty())
    core->kept.end(key, std::move(json));
}

void Call::answer(const std::string& json, std::string location) {
  keep(json);
  http::Response response = http::make_response(route->status, "application/json", json);
  if (!location.empty()) response.headers.set("Location", std::move(location));
  response.headers.set("Cache-Control", "no-store");
  core->metrics.on_request(response.status);
  responder.respond(std::move(response));
}

void Call::fail(const Error& error) {
  if (began) keep(std::nullopt);
  core->metrics.on_request(status_of(error.kind));
  responder.respond(response_of(problem_of(error)));
}

void Call::fail(const Reject& reject) {
  core->metrics.on_request(status_of(reject.code));
  responder.respond(response_of(problem_of(reject)));
}

void Call::finish(const Result<std::string>& json) {
  if (json) {
    answer(*json);
  } else {
    fail(json.error());
  }
}

Result<TenantRef> Call::tenant(const std::string& name) {
  std::string wanted = name;
  if (caller.role == Role::member) {
    if (wanted.empty()) wanted = caller.tenant;
    if (wanted != caller.tenant) return no_tenant(wanted);
  }
  std::optional<TenantRef> found;
  std::size_t count = 0;
  backend().read([&](const engine::State& state, Instant) {
    count = state.tenants.size();
    const Tenant* tenant = wanted.empty() ? (count == 1 ? &state.tenants.front() : nullptr)
                                          : state.find_tenant(wanted);
    if (tenant != nullptr) found = TenantRef{tenant->id, tenant->spec.name, tenant->spec.currency};
  });
  if (found) return *found;
  if (!wanted.empty()) return no_tenant(wanted);
  if (count == 0) {
    return Error{ErrorKind::not_found, "there is no tenant yet",
                 "an admin makes one with: loam tenant create NAME"};
  }
  return invalid("no tenant is named", "say which of the " + std::to_string(count) +
                                           " tenants: 'tenant' (loam: --tenant NAME)");
}

Result<std::optional<TenantRef>> Call::tenant_filter(const std::string& name) {
  if (name.empty() && caller.role != Role::member) return std::optional<TenantRef>();
  LOAM_TRY(found, tenant(name));
  return std::optional(std::move(found));
}

Result<TaskRecord> Call::task(const std::string& id_text) {
  const auto id = TaskId::parse(id_text);
  if (!id) return no_task(id_text);
  LOAM_TRY(record, backend().task(*id));
  if (!record) return no_task(id_text);
  if (caller.role != Role::member) return std::move(*record);
  std::string owner;
  backend().read(
      [&](const engine::State& state, Instant) { owner = tenant_name(state, record->tenant); });
  if (owner != caller.tenant) return no_task(id_text);
  return std::move(*record);
}

Result<TaskView> Call::task_view(TaskRecord record) {
  std::vector<TaskRecord> records;
  records.push_back(std::move(record));
  LOAM_TRY(views, task_views(*core, std::move(records)));
  return std::move(views.front());
}

void Call::post(Command command, SubjectView view,
                std::function<std::string(const std::string& subject)> location) {
  const bool submission = std::holds_alternative<SubmitTask>(command);
  backend().post(std::move(command), caller.actor, key,
                 [self = shared_from_this(), submission, view = std::move(view),
                  location = std::move(location)](const engine::Answer& given) {
                   // The loop goes on; what is left is work for others.
                   self->core->workers.run([self, submission, view, location, answer = given] {
                     if (submission) {
                       self->core->metrics.on_submission(
                           answer.ok() ? "accepted"
                           : answer.reject
                               ? boost::describe::enum_to_string(answer.reject->code, "?")
                               : "unavailable");
                     }
                     if (answer.error) return self->fail(*answer.error);
                     if (answer.reject) return self->fail(*answer.reject);
                     const Result<std::string> json = view(answer.subject);
                     if (!json) return self->fail(json.error());
                     self->answer(*json, location ? location(answer.subject) : std::string());
                   });
                 });
}

Result<std::vector<TaskView>> task_views(ApiCore& core, std::vector<TaskRecord> records) {
  constexpr std::size_t records_a_read = 100;  // bounds one visit to the loop
  const LiveLookup live = [&](LeaseId lease) { return core.backend.live(lease); };
  std::vector<TaskView> views(records.size());
  std::vector<std::size_t> stale;
  std::size_t reasons = 0;
  const auto look = [&](const engine::State& state, Instant now, std::size_t i,
                        engine::WaitReasons* shared) {
    const bool why = records[i].state != TaskState::finished && reasons++ < reasons_in_list_max;
    views[i] = view_of(state, now, records[i], live, {why, shared});
  };
  for (std::size_t from = 0; from < records.size(); from += records_a_read) {
    core.backend.read([&](const engine::State& state, Instant now) {
      engine::WaitReasons why_they_wait(state);
      for (std::size_t i = from; i < std::min(records.size(), from + records_a_read); ++i) {
        if (!is_current(state, records[i])) stale.push_back(i);
        look(state, now, i, &why_they_wait);
      }
    });
  }
  // Those that finished between the two looks.
  for (const std::size_t i : stale) {
    LOAM_TRY(record, core.backend.task(records[i].id));
    if (!record) continue;
    records[i] = std::move(*record);
    core.backend.read(
        [&](const engine::State& state, Instant now) { look(state, now, i, nullptr); });
  }
  return views;
}

}  // namespace loam::api

// Quotes and tasks.
#include "api/handlers.hpp"
#include "api/page.hpp"
#include "api/requests.hpp"
#include "api/suggestion.hpp"
#include "domain/enumerators.hpp"

namespace loam::api::handlers {
namespace {

struct Asked {
  TenantRef tenant;
  TaskSpec spec;
  std::optional<Duration> expected;  // run time
};

// What is asked of a quote and of a submission alike, checked as far as the engine does not.
Result<Asked> asked_of(Call& call) {
  LOAM_TRY(request, body_of<TaskRequest>(call));
  LOAM_TRY(tenant, call.tenant(request.tenant));
  LOAM_TRY(spec, spec_of(request));
  // A device may be named by its id too; the engine knows UUIDs and names.
  if (!spec.request.device.empty()) {
    call.backend().read([&](const engine::State& state, Instant) {
      if (const Device* device = find_device(state, spec.request.device))
        spec.request.device = device->facts->uuid;
    });
  }
  // Whoever may start loamd with other settings needs none for a mount of their own.
  const bool runs_loamd = call.caller.role == Role::admin && call.caller.actor.issuer == "socket";
  const bool by_operator = call.caller.role == Role::admin || call.caller.role == Role::operator_;
  for (const Mount& mount : spec.mounts) {
    if (runs_loamd) break;
    LOAM_CHECK(call.backend().mount_allowed(tenant.name, by_operator, mount));
  }
  LOAM_TRY(expected, expected_of(request, spec.limit));
  return Asked{std::move(tenant), std::move(spec), expected};
}

Result<std::string> json_of(Call& call, const std::string& id) {
  LOAM_TRY(record, call.task(id));
  LOAM_TRY(view, call.task_view(std::move(record)));
  return to_json(view);
}

// Stop, pause and resume: a command for one task of the caller's.
template <class TaskCommand>
void command_task(const CallPtr& call, TaskCommand command) {
  const auto record = call->task(call->parameter("id"));
  if (!record) return call->fail(record.error());
  // A repeated request gets its first answer; a new one for what is over is told so.
  bool repeated = false;
  call->backend().read([&](const engine::State& state, Instant) {
    repeated = state.requests.count({call->key.scope, call->key.key}) > 0;
  });
  if (record->state == TaskState::finished && !repeated) {
    return call->fail(Reject{RejectCode::wrong_state,
                             "the task " + record->id.text() + " has finished",
                             "see how it ended with: loam show " + record->id.text()});
  }
  command.task = record->id;
  call->post(command, [call](const std::string& subject) { return json_of(*call, subject); });
}

}  // namespace

void quote(const CallPtr& call) {
  const auto asked = asked_of(*call);
  if (!asked) return call->fail(asked.error());
  engine::QuoteAnswer answer;
  call->backend().read([&](const engine::State& state, Instant now) {
    answer = engine::quote(state, std::max(now, state.now), asked->tenant.id, asked->spec,
                           asked->expected);
  });
  if (answer.reject) return call->fail(*answer.reject);
  QuoteView view = view_of(*answer.quote, asked->tenant.name);
  const auto suggestion = suggest(call->backend(), asked->tenant.id, asked->spec);
  if (!suggestion) return call->fail(suggestion.error());
  if (*suggestion) {
    view.suggested_ce = to_text((*suggestion)->ce);
    view.suggestion = (*suggestion)->words;
  }
  call->answer(to_json(view));
}

void submit_task(const CallPtr& call) {
  auto asked = asked_of(*call);
  if (!asked) {
    call->core->metrics.on_submission(name_of(asked.error().kind));
    return call->fail(asked.error());
  }
  call->post(
      SubmitTask{asked->tenant.id, std::move(asked->spec)},
      [call](const std::string& subject) { return json_of(*call, subject); },
      [](const std::string& subject) { return "/v1/tasks/" + subject; });
}

void list_tasks(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    TaskFilter filter;
    LOAM_TRY(tenant, call->tenant_filter(call->query("tenant")));
    if (tenant) filter.tenant = tenant->id;
    LOAM_TRY(states, parse_states(call->query("state")));
    filter.states = std::move(states);
    filter.name = call->query("name");
    LOAM_TRY(limit, page_limit(*call, " tasks"));
    LOAM_TRY(after, page_after<TaskId>(*call));
    filter.before = after;
    filter.limit = limit + 1;  // one more tells whether there is a next page
    LOAM_TRY(records, call->backend().tasks(filter));
    TaskPage page;
    page.next = cut_to_page(records, limit, [](const TaskRecord& task) { return task.id; });
    LOAM_TRY(views, task_views(*call->core, std::move(records)));
    page.tasks = std::move(views);
    return to_json(page);
  }());
}

void show_task(const CallPtr& call) {
  call->finish(json_of(*call, call->parameter("id")));
}

void stop_task(const CallPtr& call) {
  command_task(call, StopTask{});
}

void pause_task(const CallPtr& call) {
  command_task(call, PauseTask{});
}

void resume_task(const CallPtr& call) {
  ResumeTask command;
  if (const std::string model = call->query("purchase_model"); !model.empty()) {
    const auto known = parse_enumerator<PurchaseModel>(model);
    if (!known) return call->fail(known.error());
    command.purchase_model = *known;
  }
  command_task(call, command);
}

}  // namespace loam::api::handlers

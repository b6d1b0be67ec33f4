// ps, show, logs, stop, pause, resume, top.
#include <algorithm>
#include <functional>

#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/logs.hpp"
#include "app/loam/session.hpp"
#include "app/loam/top.hpp"
#include "base/quantity.hpp"
#include "billing/attribution.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

constexpr std::int64_t page_default = 50;
constexpr std::int64_t page_most = 500;  // the API's own limit on a page
constexpr std::int64_t leases_shown = 20;

Table task_table() {
  return Table({{"ID"},
                {"NAME"},
                {"TENANT"},
                {"STATE"},
                {"DEVICE"},
                {"SHARE", Align::right},
                {"MEMORY", Align::right},
                {"TIME", Align::right},
                {"COST", Align::right},
                {""},
                {"COMMAND", Align::left, true}});
}

void add_task(Table& table, const api::TaskView& task) {
  const bool placed = !task.device.empty();
  const std::string state = task.state == "finished" ? task.outcome : task.state;
  table.add({task.id, task.name, task.tenant, Cell(state, style_of(task)), task.device,
             placed ? percent(task.share) : "", placed ? memory_text(task.memory_mib) : "",
             human_duration(task.run_ms), money_short(task.cost_with_tax, task.currency),
             task.currency, command_text(task.command)});
}

Result<int> run_ps(Session& session, const Arguments& arguments) {
  api::TaskQuery query;
  query.tenant = session.tenant();
  query.name = arguments.text("name");
  query.after = arguments.text("after");
  query.state = arguments.text("state");
  const bool all = arguments.has("all");
  if (query.state.empty() && !all && query.name.empty())
    query.state = "waiting,starting,running,stopping,paused";
  const auto limit = parse_decimal(arguments.text("limit", std::to_string(page_default)), 0,
                                   page_most, "number of tasks");
  if (!limit || *limit == 0)
    return invalid("--limit: '" + arguments.text("limit") + "' is not a number of tasks",
                   "use 1 to " + std::to_string(page_most));
  query.limit = *limit;
  LOAM_TRY(client, session.client());
  LOAM_TRY(page, client->tasks(query));
  if (session.json()) return session.print_json(page);
  if (page.tasks.empty()) {
    std::string which;
    if (!query.name.empty()) which += " of the name '" + printable(query.name) + "'";
    if (arguments.has("state")) which += " in the state '" + printable(query.state) + "'";
    session.say(all || !which.empty() ? "no tasks" + which
                                      : "no live tasks; those that have finished: loam ps --all");
    return 0;
  }
  Table table = task_table();
  for (const api::TaskView& task : page.tasks) add_task(table, task);
  session.out() << session.text_of(table);
  if (!page.next.empty()) session.say("more: loam ps --after " + page.next + (all ? " --all" : ""));
  return 0;
}

// What its last attempts held, and used of it from their beginning on.
Result<std::string> leases_text(Session& session, api::Client& client, const api::TaskView& task) {
  api::LeaseQuery query;
  query.task = task.id;
  query.limit = leases_shown;
  LOAM_TRY(page, client.leases(query));
  Table table({{"LEASE"},
               {"DEVICE"},
               {"STARTED (UTC)"},
               {"ENDED (UTC)"},
               {"RAN", Align::right},
               {"SHARE", Align::right},
               {"MEASURED", Align::right},
               {"COST " + task.currency, Align::right}});
  for (const api::LeaseView& lease : page.leases) {
    std::string devices;
    for (const api::LeaseSliceView& slice : lease.slices)
      devices += (devices.empty() ? "" : ",") + slice.device;
    table.add({lease.id, devices, instant_text(lease.started_at), instant_text(lease.ended_at),
               human_duration(lease.run_ms), percent(lease.share),
               lease.share_measured ? percent(*lease.share_measured) : "",
               money_short(lease.cost, lease.currency)});
  }
  return table.empty() ? std::string() : "\n" + session.text_of(table);
}

std::string backups_text(const api::TaskView& task) {
  if (task.backups == 0) return {};
  const std::string most =
      "the last " + std::to_string(task.backups) + " checkpoints it went on from";
  return task.backed_up_mib == 0 ? most : most + ", " + memory_text(task.backed_up_mib) + " now";
}

Result<int> run_show(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(task, client->task(arguments.operand(0)));
  if (session.json()) return session.print_json(task);
  const auto money = [&](const std::string& amount) {
    return amount.empty() ? "" : money_exact(amount, task.currency) + " " + task.currency;
  };
  std::string share;
  if (!task.device.empty()) {
    share = percent(task.share) + (task.promise.empty() ? " promised" : " lent, " + task.promise);
    if (task.share_measured) share += ", " + percent(*task.share_measured) + " measured";
  }
  std::string state = task.state;
  if (task.state == "finished") {
    state = task.outcome;
    if (task.outcome == "failed" || task.exit_code != 0)
      state += ", exit code " + std::to_string(task.exit_code);
  }
  session.out() << facts_text(
      {{"task", task.id + (task.name.empty() ? "" : " (" + task.name + ")")},
       {"state", Cell(state, style_of(task))},
       {task.state == "waiting" ? "waits" : "why", task.reason},
       {"command", command_text(task.command)},
       {"tenant", task.tenant + " / " + task.project + " / " + task.environment +
                      (task.model.empty() ? "" : " / ") +
                      billing::model_name(task.model, task.model_version)},
       {"group",
        task.group.empty() ? "" : task.group + (task.role == "critical" ? ", critical" : "")},
       {"tags", billing::to_text(task.tags)},
       {"device", task.device + (task.device_type.empty() ? "" : " (" + task.device_type + ")")},
       {"isolation",
        task.isolation + (task.isolation_note.empty() ? "" : "; " + task.isolation_note)},
       {"share", share},
       {"memory", task.memory_mib == 0 ? "" : memory_text(task.memory_mib)},
       {"backups", backups_text(task)},
       {"compute", task.ce.empty() ? "once it is placed"
                                   : task.ce + " CE, billed " + task.billable_ce + " CE"},
       {"takes", task.takes},
       {"submitted", instant_text(task.submitted_at)},
       {"expires", instant_text(task.expires_at)},
       {"started", instant_text(task.started_at)},
       {"finished", instant_text(task.finished_at)},
       {"ran", human_duration(task.run_ms) + " of at most " + human_duration(task.limit_ms) +
                   " in " + count_of(task.attempts, "attempt")},
       {"cost", money(task.cost) +
                    (task.cost_with_tax == task.cost
                         ? std::string()
                         : " before tax, " + money(task.cost_with_tax) + " with it") +
                    ", " + task.purchase_model +
                    (task.reservation.empty() ? std::string() : " " + task.reservation) + ", " +
                    task.tariff},
       {"made", task.output.value_or("")},
       {"held", money(task.held)}},
      session.console().colour);
  // Of one that has ended in one attempt it is all above.
  if (task.attempts == 0 || (task.attempts == 1 && task.state == "finished")) return 0;
  LOAM_TRY(leases, leases_text(session, *client, task));
  session.out() << leases;
  return 0;
}

using Verb = std::function<Result<api::TaskView>(api::Client&, const std::string& id)>;

// Asks for each; goes on after a fault and ends with the first one's status.
Result<int> ask_of_each(Session& session, const Arguments& arguments, const Verb& verb,
                        const char* done) {
  LOAM_TRY(client, session.client());
  api::TaskPage page;
  std::optional<Error> fault;
  for (const std::string& id : arguments.operands) {
    auto task = verb(*client, id);
    if (task) {
      if (!session.json()) session.say(id + " " + done + ": " + task->state);
      page.tasks.push_back(std::move(*task));
      continue;
    }
    if (fault) session.say("error: " + fault->message);
    fault = task.error();
  }
  if (session.json()) session.print_json(page);
  if (fault) return *fault;
  return 0;
}

Result<int> run_stop(Session& session, const Arguments& arguments) {
  return ask_of_each(session, arguments, std::mem_fn(&api::Client::stop), "asked to stop");
}
Result<int> run_pause(Session& session, const Arguments& arguments) {
  return ask_of_each(session, arguments, std::mem_fn(&api::Client::pause), "asked to pause");
}
Result<int> run_resume(Session& session, const Arguments& arguments) {
  const std::string model = arguments.text("purchase");
  return ask_of_each(
      session, arguments,
      [&](api::Client& client, const std::string& id) { return client.resume(id, model); },
      "resumed");
}

const Operand task_id{"ID", "a task, such as t17", Operand::Kind::one, "@any_task"};
const Operand task_ids{"ID", "tasks, such as t17", Operand::Kind::many, "@task"};

Command verb(const char* name, const char* summary, const char* example,
             Result<int> (*run)(Session&, const Arguments&)) {
  return {name, summary, "", example, {task_ids}, {}, run, true};
}

}  // namespace

Style style_of(const api::TaskView& task) {
  if (task.state == "running") return Style::good;
  if (task.state != "finished") return Style::warn;
  if (task.outcome == "succeeded") return Style::plain;
  return task.outcome == "stopped" ? Style::dim : Style::bad;
}

std::vector<Command> task_commands() {
  return {
      {"ps",
       "List tasks, newest first",
       "Without --all or a filter: those that have not finished.",
       "loam ps\nloam ps --all --tenant acme --limit 200\nloam ps --state waiting",
       {},
       {{"Which",
         {{"--all,-a", "", "finished ones too", Kind::flag},
          {"--state", "STATES",
           "waiting, starting, running, stopping, paused, finished; several "
           "with commas"},
          {"--name", "NAME", "of that name"},
          {"--tenant", "NAME", "of that tenant", Kind::value, "@tenant"},
          {"--limit", "N", "of a page, 1 to 500; default: 50"},
          {"--after", "MARK", "the page that follows, as the page before says"}}}},
       run_ps},
      {"show",
       "All there is to know of one task",
       "With its last 20 leases where it had several, or still runs: what each held, and the "
       "share\n"
       "of its devices' time that was measured from its beginning on.",
       "loam show t17",
       {task_id},
       {},
       run_show},
      {"logs",
       "What a task has written",
       "Its standard output goes to standard output, its error stream to the error stream.",
       "loam logs t17\nloam logs -f t17",
       {task_id},
       {{"What",
         {{"--follow,-f", "", "go on until the task ends", Kind::flag},
          {"--stream", "NAME", "one of its streams only", Kind::value, "stdout stderr"},
          {"--offset", "BYTES", "begin there; with --stream"}}}},
       run_logs},
      verb("stop", "End tasks, with their grace period", "loam stop t17 t18", run_stop),
      verb("pause", "Take tasks off their devices; paused time costs nothing", "loam pause t17",
           run_pause),
      {"resume",
       "Let paused tasks go on",
       "Where the rate card no longer sells what a task was bought as, it can go on otherwise.",
       "loam resume t17\nloam resume t17 --purchase on_demand",
       {task_ids},
       {{"How",
         {{"--purchase", "MODEL", "by which it goes on; default: as before", Kind::value,
           "on_demand spot hybrid commitment"}}}},
       run_resume,
       true},
      {"top",
       "Devices and the tasks on them, live",
       "On a terminal it redraws each second until Ctrl-C or q; elsewhere it prints once.",
       "loam top\nloam top --once",
       {},
       {{"How", {{"--once", "", "print once and end", Kind::flag}}}},
       run_top},
  };
}

}  // namespace loam::cli

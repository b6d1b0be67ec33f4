#include "api/suggestion.hpp"

#include <algorithm>

#include "billing/efficiency.hpp"

namespace loam::api {
namespace {

constexpr std::int64_t tasks_looked_at = 20;
constexpr std::int64_t leases_looked_at = 500;

// One lease of the work; nothing where it did not run, or nobody measured it.
std::optional<billing::RunMeasure> run_of(const LeaseUse& use) {
  const LeaseRecord& lease = use.lease;
  if (!lease.started_at || !lease.ended_at || lease.measured.ms <= 0) return std::nullopt;
  billing::RunMeasure run;
  MilliDevice share;
  for (const Slice& slice : lease.slices) {
    share += slice.share;
    run.slices.push_back({slice.device.text(), slice.share});
  }
  if (share.value <= 0) return std::nullopt;
  run.task = use.task;
  run.name = use.name;
  run.submitted = run.from = *lease.started_at;
  run.to = *lease.ended_at;
  run.asked = lease.ce;
  run.used = billing::used_of(lease.ce, share, lease.measured, lease.device_time);
  run.cost = use.net;
  return run;
}

}  // namespace

Result<std::optional<Suggestion>> suggest(Backend& backend, TenantId tenant, const TaskSpec& spec) {
  const std::optional<Suggestion> none;
  if (spec.name.empty() || spec.gang > 1 || spec.auto_ce) return none;
  TaskFilter filter;
  filter.tenant = tenant;
  filter.states = {TaskState::finished};
  filter.name = spec.name;
  filter.limit = tasks_looked_at;
  LOAM_TRY(records, backend.tasks(filter));
  if (records.empty()) return none;
  LeaseFilter of_these;
  of_these.limit = leases_looked_at;
  for (const TaskRecord& record : records) of_these.tasks.push_back(record.id);
  LOAM_TRY(uses, backend.leases(of_these));
  std::vector<billing::RunMeasure> runs;
  billing::Period period{Instant::never(), Instant{}};
  for (const LeaseUse& use : uses) {
    auto run = run_of(use);
    if (!run || run->from >= run->to) continue;
    period.from = std::min(period.from, run->from);
    period.to = std::max(period.to, run->to);
    runs.push_back(std::move(*run));
  }
  if (runs.empty()) return none;
  const auto hints = billing::hints(billing::efficiency(runs, {}, period));
  const auto hint = hints.find(spec.name);
  if (hint == hints.end() || (spec.request.ce && *spec.request.ce <= hint->second)) return none;
  MilliCe used;
  for (const billing::RunMeasure& run : runs) used = std::max(used, run.used);
  const std::string count =
      runs.size() == 1 ? "last run" : "last " + std::to_string(runs.size()) + " runs";
  return std::optional(Suggestion{hint->second, "its " + count + " used at most " + to_text(used) +
                                                    " of " + to_text(runs.front().asked) + " CE: " +
                                                    to_text(hint->second) + " CE would do"});
}

}  // namespace loam::api

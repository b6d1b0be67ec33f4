#include "api/suggestion.hpp"

#include <algorithm>

#include "billing/efficiency.hpp"

namespace loam::api {
namespace {

constexpr std::int64_t runs_looked_at = 20;

// Its last lease as one run; nothing where it did not run, or nobody measured it.
std::optional<billing::RunMeasure> run_of(const TaskRecord& record) {
  if (!record.lease || !record.lease->started_at || !record.lease->ended_at) return std::nullopt;
  const LeaseRecord& lease = *record.lease;
  const Duration length = *lease.ended_at - *lease.started_at;
  if (length.ms <= 0 || (lease.device_time.ms == 0 && lease.isolation == "advisory"))
    return std::nullopt;
  MilliDevice share;
  for (const Slice& slice : lease.slices) share += slice.share;
  if (share.value <= 0) return std::nullopt;
  billing::RunMeasure run;
  run.task = record.id;
  run.name = record.spec.name;
  run.submitted = run.from = *lease.started_at;
  run.to = *lease.ended_at;
  run.asked = lease.ce;
  // The measured part of the device's time, over the part that was promised.
  const Int128 promised = static_cast<Int128>(length.ms) * share.value;
  const Int128 used =
      std::min<Int128>(static_cast<Int128>(lease.device_time.ms) * whole_device.value, promised);
  run.used = MilliCe{static_cast<std::int64_t>(used * lease.ce.value / promised)};
  run.cost = record.net;
  return run;
}

}  // namespace

Result<std::optional<Suggestion>> suggest(Backend& backend, TenantId tenant, const TaskSpec& spec) {
  const std::optional<Suggestion> none;
  if (spec.name.empty() || spec.gang > 1) return none;
  TaskFilter filter;
  filter.tenant = tenant;
  filter.states = {TaskState::finished};
  filter.name = spec.name;
  filter.limit = runs_looked_at;
  LOAM_TRY(records, backend.tasks(filter));
  std::vector<billing::RunMeasure> runs;
  billing::Period period{Instant::never(), Instant{}};
  for (const TaskRecord& record : records) {
    auto run = run_of(record);
    if (!run) continue;
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

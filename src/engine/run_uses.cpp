#include "engine/run_uses.hpp"

#include <algorithm>

#include "billing/efficiency.hpp"
#include "engine/state.hpp"

namespace loam::engine {

std::optional<RunUse> use_of(const Task& task, const Lease& lease, const LeaseEnded& end) {
  const TaskSpec& spec = *task.spec;
  const Duration ran = lease.started() ? end.ended_at - lease.started_at : Duration{};
  if (!spec.auto_ce || end.verdict.outcome != TaskOutcome::succeeded || ran.ms <= 0 ||
      end.device_time.ms <= 0)
    return std::nullopt;
  MilliDevice share;
  for (const Slice& slice : lease.slices) share += slice.share;
  const MilliCe of_all = billing::used_of(lease.ce, share, ran, end.device_time);
  return RunUse{task.id, end.ended_at, MilliCe{of_all.value / spec.request.devices}};
}

void note_use(RunUses& uses, const std::string& name, const RunUse& run) {
  std::vector<RunUse>& runs = uses[name];
  if (!runs.empty() && runs.back().task == run.task) {  // another member of its gang
    runs.back().used = std::max(runs.back().used, run.used);
    runs.back().at = std::max(runs.back().at, run.at);
    return;
  }
  if (runs.size() >= run_uses_max) runs.erase(runs.begin());
  runs.push_back(run);
  if (uses.size() <= run_names_max) return;
  uses.erase(std::min_element(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
    return a.second.back().at < b.second.back().at;
  }));
}

TaskSpec with_ce(const State& state, TenantId tenant, TaskSpec spec,
                 const std::optional<RunUse>& last) {
  if (!spec.auto_ce) return spec;
  RunUses known;
  if (const auto of_tenant = state.run_uses.find(tenant); of_tenant != state.run_uses.end()) {
    if (const auto runs = of_tenant->second.find(spec.name); runs != of_tenant->second.end())
      known.insert(*runs);
  }
  if (last) note_use(known, spec.name, *last);
  AutoCe& taken = *spec.auto_ce;
  taken.runs = 0;
  taken.used = {};
  for (const RunUse& run : known[spec.name]) {
    ++taken.runs;
    taken.used = std::max(taken.used, run.used);
  }
  spec.request.ce =
      taken.runs == 0 ? taken.most : std::min(taken.most, billing::would_do(taken.used));
  return spec;
}

std::string words_of(const AutoCe& taken, MilliCe ce) {
  if (taken.runs == 0) return to_text(ce) + " CE, the most: no run of its name was measured before";
  const std::string runs =
      taken.runs == 1 ? "last run" : "last " + std::to_string(taken.runs) + " runs";
  const std::string why = "its " + runs + " used " + to_text(taken.used) + " CE at most";
  if (ce >= taken.most) return to_text(ce) + " CE, the most: " + why;
  return to_text(ce) + " of at most " + to_text(taken.most) + " CE: " + why +
         ", and a fifth is added";
}

}  // namespace loam::engine

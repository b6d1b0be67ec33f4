// What finished runs used of their compute, kept for tasks that take theirs from it: the last few
// of a tenant's tasks of one name. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "domain/event.hpp"

namespace loam::engine {

class State;

// One run that succeeded and was measured. `used` is in the request's CE: of each device, mean over
// its last attempt, the most of any member.
struct RunUse {
  TaskId task;
  Instant at;
  MilliCe used;
};
BOOST_DESCRIBE_STRUCT(RunUse, (), (task, at, used))

// By name, oldest first: at most run_uses_max of each of run_names_max names.
using RunUses = std::map<std::string, std::vector<RunUse>>;
inline constexpr std::size_t run_uses_max = 5;
inline constexpr std::size_t run_names_max =
    64;  // of one tenant; the one longest not run goes first

// What an attempt that ends so adds to them; nothing for a task that takes its compute as stated,
// and where it did not succeed or was not measured.
std::optional<RunUse> use_of(const Task& task, const Lease& lease, const LeaseEnded& end);
void note_use(RunUses& uses, const std::string& name, const RunUse& run);

// The spec as the task is to run: where its compute is taken from earlier runs, what they used most
// and a fifth more, never above the most that is stated. `last`: a run that the state does not know
// yet. O(log names).
TaskSpec with_ce(const State& state, TenantId tenant, TaskSpec spec,
                 const std::optional<RunUse>& last = std::nullopt);

// "10.8 of at most 40 CE: its last 2 runs used 9 CE at most, and a fifth is added".
std::string words_of(const AutoCe& taken, MilliCe ce);

}  // namespace loam::engine

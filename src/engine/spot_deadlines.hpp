// Spot under a deadline: a task that is bought as spot and has a deadline runs on spot where there
// is some, and is bought on demand where it must, by a policy of schedule/spot/deadline.hpp. Its
// work is its limit and its progress what it has run, so that it has ended, or used its limit, by
// its deadline. Facts move a plan; what time brings turns its task. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <optional>
#include <set>
#include <utility>

#include "domain/command.hpp"
#include "schedule/spot/deadline.hpp"

namespace loam::engine {

class Draft;
class State;

// What is remembered of such a task besides itself. Times are of facts; the policy's own state is
// made from them at each look.
struct SpotPlan {
  TaskId task;
  SpotPolicy policy = SpotPolicy::reserve;
  schedule::spot::Terms terms;
  Instant from;                           // the first tick
  Instant waits_until;                    // idle: not turned before, as spot may be given to it
  Instant seen_since = Instant::never();  // on demand: there has been room for spot
  Instant looked_at;                      // for that, last
  Duration on_spot;                       // run in ended rounds
  Duration counted;                       // of its run time: of rounds that `on_spot` has seen
  bool on_spot_now = false;               // its present round
  bool told = false;                      // that its deadline is at risk
  Instant due = Instant::never();         // as in SpotDues; made anew when a snapshot is loaded
};
BOOST_DESCRIBE_STRUCT(SpotPlan, (),
                      (task, policy, terms, from, waits_until, seen_since, looked_at, on_spot,
                       counted, on_spot_now, told))
using SpotDues = std::set<std::pair<Instant, TaskId>>;

// Whether a policy decides when it is on spot: now, or before it was turned to on demand.
bool runs_by_plan(const TaskSpec& spec);

// Requires a valid spec that runs_by_plan() and is for sale. A reject where even a change to on
// demand at once would miss the deadline, with the earliest end that can be promised.
struct SpotPlanAnswer {
  SpotPlanned plan;  // of no task yet
  std::optional<Reject> reject;
};
SpotPlanAnswer plan_spot(const State& state, Instant now, const Tenant& tenant,
                         const TaskSpec& spec);
// When it is bought on demand should no spot come before. O(log ticks).
Instant turns_at(const SpotPlanned& plan, Instant from);
// The same of a task that waits for spot; nothing: it does not, or has no plan.
std::optional<Instant> turns_at(const State& state, const Task& task);
// What the other purchase model is for it.
PurchaseModel turned(const TaskSpec& spec);

// What time brings, one step: a task that waits for spot is bought on demand, one that runs on
// demand looks for spot or goes back to it, a deadline is at risk. True where the draft has events.
bool follow_spot(Draft& draft);

// For evolve(): each after its event, and note_spot() after every event while there are plans.
void apply_to_books(State& state, const SpotPlanned& event, Instant at);
void apply_to_books(State& state, const SpotSighted& event, Instant at);
void apply_to_books(State& state, const DeadlineNoticed& event, Instant at);
void note_spot(State& state, const Record& record);
// After a snapshot was loaded, with its tasks.
void index_spot(State& state);

}  // namespace loam::engine

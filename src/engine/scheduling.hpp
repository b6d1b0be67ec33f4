// The scheduler's side of the state: how the engine's facts become those of the scheduler, and
// what operators settle becomes its settings. Pure.
#pragma once

#include "engine/state.hpp"
#include "engine/terms.hpp"

namespace loam::engine {

// Hands settings, queues and weights over. Requires settings that validate() lets pass.
void apply_settings(State& state, const SchedulingSettings& settings);
std::optional<Reject> validate(const SchedulingSettings& settings);
// Whether the queue that a spec names is there and takes it. A service class that is not listed has
// level 0: whether it is for sale is the rate card's to say.
std::optional<Reject> validate_queue(const State& state, const TaskSpec& spec);

// What the pool is to know of the device. A marked node's take no leases, and nobody waits behind a
// task that only they could serve, as if they were drained.
void refresh_pool(State& state, const Device& device);

// What waits for spot, or may use it, is demand in its market; and then no more.
void want_spot(State& state, const Task& task);
void want_spot_no_more(State& state, TaskId id);

// A tenant's limits, and the weights that name it, as they are now.
void apply_tenant(State& state, const Tenant& tenant);
// When the next step is due for a waiting task whose class promises a wait.
void note_late(State& state, const Task& task);
void forget_late(State& state, TaskId task);
void count_late(State& state);
// The scheduler learns what the tenant has used of the month.
void set_month(State& state, TenantId tenant);
// What was held counts for the month in which it was.
void count_month(State& state, const UsageRecord& usage, const Lease& lease);
// What the pool has in all is the measure of fair shares: adds (+1) or takes away (−1) a device
// or a node.
void count_capacity(State& state, const Device& device, int sign);
void count_capacity(State& state, const Node& node, int sign);

// A task that waits as the scheduler takes it, from what there is now; it keeps that as it is.
schedule::Job job_of(const State& state, const Task& task, Instant arrival);
// A task that has started is preempted as what it was sold as, which of a hybrid one, or of spot
// with a deadline, changes; one that waits, as it asks.
void note_sold_as(State& state, const Task& task);
// It goes on waiting by another spec, as old as it is.
void wait_as(State& state, Task& task, std::shared_ptr<const TaskSpec> spec, Instant now);
// The same task, bought otherwise.
std::shared_ptr<const TaskSpec> resold(const TaskSpec& spec, PurchaseModel model);
// What a whole task takes where each slice takes `needs` of a device.
schedule::Amounts amounts_on(const TaskSpec& spec, const schedule::Demand& demand,
                             const schedule::Placement& needs);
// Where its live leases lie, by rank.
schedule::Place place_of(const State& state, const Task& task);
schedule::Place place_of(const State& state, const std::vector<PromisedMember>& members);
std::vector<PromisedMember> members_of(const schedule::Place& place);
// An attempt is a process of one node: a member spread over several has nowhere to run.
bool on_one_node_each(const schedule::Place& place);

// The number of a queue by its name; the first open one where it is empty; nothing: there is none,
// or it is closed.
std::optional<std::uint32_t> queue_named(const State& state, std::string_view name);
// The queue that a spec names, closed ones included; nullptr: there is none.
const QueueSettings* queue_of(const State& state, const TaskSpec& spec);
// Whether the queue's tasks may have a device of that type there.
bool admits(const QueueSettings& queue, const Node& node, const std::string& type);
// Narrows a demand to the queue's devices; a reject where it asks for others.
std::optional<Reject> keep_to_queue(const State& state, const TaskSpec& spec,
                                    schedule::Demand& demand);
// Which queues have devices in common follows what is attached to a node, and the settings.
void note_sharing(State& state, const Node& node);
void count_sharing(State& state);
// Whether their tasks may have the same devices.
bool same_devices(const QueueSettings& a, const QueueSettings& b);
const ServiceClass* class_named(const SchedulingSettings& settings, std::string_view name);

// At most so many levels up and down.
inline constexpr std::int64_t level_max = 1'000;

}  // namespace loam::engine

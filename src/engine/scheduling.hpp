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

// A tenant's limits, and the weights that name it, as they are now.
void apply_tenant(State& state, const Tenant& tenant);
// What the pool has in all is the measure of fair shares: adds (+1) or takes away (−1) a device
// or a node.
void count_capacity(State& state, const Device& device, int sign);
void count_capacity(State& state, const Node& node, int sign);

// A task that waits as the scheduler takes it, from what there is now; it keeps that as it is.
schedule::Job job_of(const State& state, const Task& task, Instant arrival);
// What a whole task takes where each slice takes `needs` of a device.
schedule::Amounts amounts_on(const TaskSpec& spec, const schedule::Demand& demand,
                             const schedule::Placement& needs);
// Where its live leases lie, by rank.
schedule::Place place_of(const State& state, const Task& task);
schedule::Place place_of(const State& state, const std::vector<PromisedMember>& members);
std::vector<PromisedMember> members_of(const schedule::Place& place);

// The number of a queue by its name; the first open one where it is empty; nothing: there is none,
// or it is closed.
std::optional<std::uint32_t> queue_named(const State& state, std::string_view name);
const ServiceClass* class_named(const SchedulingSettings& settings, std::string_view name);

// Promises that cannot be kept because the device takes no leases any more.
void forget_promises_on(State& state, DeviceId device);

// At most so many levels up and down.
inline constexpr std::int64_t level_max = 1'000;

}  // namespace loam::engine

#include "engine/scheduling.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"

namespace loam::engine {
namespace {

using schedule::Amounts;
using schedule::Dimension;

constexpr std::size_t queues_max = 64;
constexpr std::size_t weights_max = 100'000;
constexpr std::int64_t weight_max = 1'000'000;
constexpr Duration setting_max = Duration::hours(24 * 366);

Reject bad(std::string message, std::string next_step) {
  return {RejectCode::invalid_argument, std::move(message), std::move(next_step)};
}

schedule::Discipline discipline_of(const QueueSettings& queue) {
  auto named = schedule::discipline_named(queue.discipline);
  LOAM_ASSERT(named.ok());
  schedule::Discipline discipline = *named;
  if (queue.safe) discipline.safe_min = discipline.safe_max = *queue.safe;
  if (queue.preemptions) discipline.preemptions_max = *queue.preemptions;
  if (queue.preemption_window) discipline.preemption_window = *queue.preemption_window;
  if (queue.ageing) discipline.ageing = *queue.ageing;
  if (queue.overdue) discipline.overdue_after = *queue.overdue;
  return discipline;
}

schedule::QuotaSpec quota_of(const Quota& quota) {
  schedule::QuotaSpec spec;
  const auto part = [](std::int64_t value, BasisPoints of) {
    return static_cast<std::int64_t>(Int128{value} * of.value / 10'000);
  };
  const auto set = [&](Dimension dimension, std::optional<std::int64_t> value) {
    const auto d = static_cast<std::size_t>(dimension);
    spec.nominal[d] = value;
    if (value && quota.borrow) spec.borrow_max[d] = part(*value, *quota.borrow);
    if (value && quota.lend) spec.lend_max[d] = part(*value, *quota.lend);
  };
  if (quota.ce) set(Dimension::ce, quota.ce->value);
  if (quota.memory) set(Dimension::memory, quota.memory->value);
  if (quota.devices) set(Dimension::devices, quota.devices->value);
  set(Dimension::tasks, quota.tasks);
  spec.cohort = quota.cohort;
  spec.longest = quota.longest;
  return spec;
}

}  // namespace

Amounts amounts_on(const TaskSpec& spec, const schedule::Demand& demand,
                   const schedule::Placement& needs) {
  const std::int64_t slices = demand.devices * spec.gang;
  Amounts amounts;
  amounts[Dimension::ce] = needs.ce.value * slices;
  amounts[Dimension::memory] = needs.memory.value * slices;
  amounts[Dimension::devices] = needs.share.value * slices;
  amounts[Dimension::tasks] = 1;
  amounts[Dimension::cpu] = demand.cpu.value * spec.gang;
  amounts[Dimension::host_memory] = demand.host_memory.value * spec.gang;
  return amounts;
}

namespace {

void keep_larger(Amounts& most, const Amounts& other) {
  for (std::size_t d = 0; d < schedule::dimensions; ++d)
    most.values[d] = std::max(most.values[d], other.values[d]);
}

// What it takes at most. Kinds of device on which it would pass its tenant's quota even alone are
// left out, unless all are.
void settle_amounts(const State& state, const Task& task, schedule::Job& job) {
  std::vector<std::string> types;
  const Quota& quota = state.tenant(task.tenant).spec.quota;
  const bool limited = quota.ce || quota.memory || quota.devices;
  bool left_out = false;
  Amounts any;
  for (const auto& fit : kinds_for(state, job.ask.demand)) {
    const Amounts amounts = amounts_on(*task.spec, job.ask.demand, fit.needs);
    keep_larger(any, amounts);
    if (!state.scheduler.quotas().admissible(task.tenant, amounts, job.limit)) {
      left_out = true;
      continue;
    }
    if (std::find(types.begin(), types.end(), fit.facts->type) == types.end())
      types.push_back(fit.facts->type);
    keep_larger(job.takes, amounts);
  }
  if (types.empty()) {
    job.takes = any;
    job.takes[Dimension::tasks] = 1;
  } else if ((left_out || limited) && !job.ask.demand.device.valid()) {
    // A type that comes later, or is out of service now, may be worth more.
    job.ask.demand.device_types = std::move(types);
  }
  job.milli = std::max<std::int64_t>(1, job.takes[Dimension::devices]);
}

}  // namespace

std::optional<std::uint32_t> queue_named(const State& state, std::string_view name) {
  const auto& queues = state.settings.queues;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if ((name.empty() || queues[i].name == name) && !queues[i].closed)
      return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

const ServiceClass* class_named(const SchedulingSettings& settings, std::string_view name) {
  for (const ServiceClass& known : settings.classes) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

namespace {

std::optional<Reject> validate(const QueueSettings& queue) {
  if (!is_name(queue.name)) {
    return bad("'" + queue.name + "' is not the name of a queue",
               "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  const std::string whose = "the queue '" + queue.name + "'";
  if (const auto known = schedule::discipline_named(queue.discipline); !known)
    return bad(whose + ": " + known.error().message, known.error().next_step);
  if (queue.weight < 1 || queue.weight > weight_max) {
    return bad(whose + " has a weight of " + std::to_string(queue.weight),
               "use 1 to " + std::to_string(weight_max));
  }
  if (queue.preemptions && *queue.preemptions < 0)
    return bad(whose + " has a negative number of preemptions", "use zero or more");
  for (const auto& duration : {queue.safe, queue.preemption_window, queue.ageing, queue.overdue}) {
    if (duration && (duration->ms < 0 || *duration > setting_max)) {
      return bad(whose + " has a time of " + to_text(*duration) + " that is out of range",
                 "use 0 to " + to_text(setting_max));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reject> validate(const SchedulingSettings& settings) {
  if (settings.queues.empty() || settings.queues.size() > queues_max) {
    return bad(std::to_string(settings.queues.size()) + " queues",
               "name 1 to " + std::to_string(queues_max));
  }
  std::set<std::string> names;
  for (const QueueSettings& queue : settings.queues) {
    if (auto reject = validate(queue)) return reject;
    if (!names.insert(queue.name).second)
      return bad("there are two queues '" + queue.name + "'", "give each its own name");
  }
  names.clear();
  for (const ServiceClass& known : settings.classes) {
    if (!is_name(known.name) || !names.insert(known.name).second) {
      return bad("'" + known.name + "' is not the name of one service class",
                 "use 1 to 63 of a-z, 0-9 and '-', starting with a letter, each once");
    }
    if (known.level < -level_max || known.level > level_max) {
      return bad("the service class '" + known.name + "' has level " + std::to_string(known.level),
                 "use -" + std::to_string(level_max) + " to " + std::to_string(level_max));
    }
  }
  if (names.count("standard") == 0)
    return bad("there is no service class 'standard'", "tasks that name none are in it: add it");
  if (settings.weights.size() > weights_max)
    return bad("there are too many weights", "use at most " + std::to_string(weights_max));
  for (const ShareWeight& weight : settings.weights) {
    if (weight.tenant.empty() || weight.weight < 1 || weight.weight > weight_max) {
      return bad("a weight of " + std::to_string(weight.weight) + " for '" + weight.tenant + "'",
                 "name a tenant, and use 1 to " + std::to_string(weight_max));
    }
  }
  if (settings.share_half_life.ms <= 0 || settings.share_half_life > setting_max) {
    return bad("a half-life of " + to_text(settings.share_half_life) + " is out of range",
               "use 1ms to " + to_text(setting_max));
  }
  return std::nullopt;
}

std::optional<Reject> validate_queue(const State& state, const TaskSpec& spec) {
  const auto queue = queue_named(state, spec.queue);
  if (!queue) {
    std::string names;
    for (const QueueSettings& known : state.settings.queues)
      if (!known.closed) names += (names.empty() ? "" : ", ") + known.name;
    return bad("there is no queue '" + spec.queue + "'", "use one of: " + names);
  }
  const auto& barred = state.settings.queues[*queue].barred_environments;
  if (std::find(barred.begin(), barred.end(), spec.attribution.environment) != barred.end()) {
    return bad("the environment '" + spec.attribution.environment + "' may not use the queue '" +
                   state.settings.queues[*queue].name + "'",
               "name another queue, or another environment");
  }
  return std::nullopt;
}

void apply_settings(State& state, const SchedulingSettings& settings) {
  const std::vector<ShareWeight> before = std::move(state.settings.weights);
  state.settings = settings;
  for (std::uint32_t number = 0; number < settings.queues.size(); ++number) {
    const QueueSettings& queue = settings.queues[number];
    schedule::QueueSpec spec;
    spec.name = queue.name;
    spec.discipline = discipline_of(queue);
    spec.rank = queue.rank;
    spec.weight = queue.weight;
    spec.barred_environments.insert(queue.barred_environments.begin(),
                                    queue.barred_environments.end());
    state.scheduler.set_queue(number, std::move(spec));
  }
  state.scheduler.shares().set_half_life(settings.share_half_life);
  const auto weigh = [&](const ShareWeight& weight, double value) {
    const Tenant* tenant = state.find_tenant(weight.tenant);
    if (tenant == nullptr) return;  // once it is created
    if (weight.project.empty()) {
      state.scheduler.shares().set_weight(tenant->id, value);
    } else {
      state.scheduler.shares().set_weight(tenant->id, weight.project, value);
    }
  };
  for (const ShareWeight& weight : before) weigh(weight, 1);
  for (const ShareWeight& weight : settings.weights)
    weigh(weight, static_cast<double>(weight.weight));
}

void apply_tenant(State& state, const Tenant& tenant) {
  state.scheduler.quotas().set(tenant.id, quota_of(tenant.spec.quota));
  for (const ShareWeight& weight : state.settings.weights) {
    if (weight.tenant != tenant.spec.name) continue;
    const auto value = static_cast<double>(weight.weight);
    if (weight.project.empty()) {
      state.scheduler.shares().set_weight(tenant.id, value);
    } else {
      state.scheduler.shares().set_weight(tenant.id, weight.project, value);
    }
  }
}

void refresh_pool(State& state, const Device& device) {
  if (!state.node(device.node).marked()) return state.pool.refresh(device);
  Device drained = device;
  drained.draining = true;
  state.pool.refresh(drained);
}

void count_capacity(State& state, const Device& device, int sign) {
  Amounts& all = state.capacity;
  all[Dimension::ce] += device.facts->factors.general.value * sign;
  all[Dimension::memory] += device.facts->memory.value * sign;
  all[Dimension::devices] += whole_device.value * sign;
  state.scheduler.shares().set_capacity(all);
}

void count_capacity(State& state, const Node& node, int sign) {
  Amounts& all = state.capacity;
  all[Dimension::cpu] += node.cpu.value * sign;
  all[Dimension::host_memory] += node.memory.value * sign;
  state.scheduler.shares().set_capacity(all);
}

schedule::Job job_of(const State& state, const Task& task, Instant arrival) {
  const TaskSpec& spec = *task.spec;
  schedule::Job job;
  job.id = task.id;
  job.tenant = task.tenant;
  job.project = spec.attribution.project;
  job.environment = spec.attribution.environment;
  job.queue = queue_named(state, spec.queue).value_or(0);
  const ServiceClass* known = class_named(state.settings, spec.service_class);
  job.level = known == nullptr ? 0 : known->level;
  job.preemptible = spec.purchase_model == PurchaseModel::spot;
  if (job.preemptible) job.level -= schedule::spot_levels_below;
  job.arrival = arrival;
  job.limit = Duration{std::max<std::int64_t>(1, (spec.limit - task.run_time).ms)};
  job.ask.demand = demand_of(state, spec).demand;
  job.ask.count = spec.gang;
  settle_amounts(state, task, job);
  return job;
}

schedule::Place place_of(const State& state, const Task& task) {
  schedule::Place place;
  for (const LeaseId id : task.leases) place.push_back(place_of(state, state.leases.at(id)));
  return place;
}

schedule::Place place_of(const State&, const std::vector<PromisedMember>& members) {
  schedule::Place place;
  for (const PromisedMember& member : members) {
    schedule::UnitPlacement unit;
    for (const PromisedSlice& slice : member.slices)
      unit.slices.push_back({slice.device, slice.share, slice.memory, slice.ce, member.node});
    unit.hosts = {{member.node, member.cpu, member.host_memory}};
    place.push_back(std::move(unit));
  }
  return place;
}

std::vector<PromisedMember> members_of(const schedule::Place& place) {
  std::vector<PromisedMember> members;
  for (const schedule::UnitPlacement& unit : place) {
    PromisedMember& member = members.emplace_back();
    for (const schedule::Placement& slice : unit.slices)
      member.slices.push_back({slice.device, slice.share, slice.memory, slice.ce});
    member.node = unit.hosts.front().node;
    member.cpu = unit.hosts.front().cpu;
    member.host_memory = unit.hosts.front().memory;
  }
  return members;
}

void forget_promises_on(State& state, DeviceId device) {
  std::vector<TaskId> off;
  for (const auto& [task, plan] : state.scheduler.plans()) {
    for (const schedule::UnitPlacement& unit : plan.promise.place) {
      for (const schedule::Placement& slice : unit.slices) {
        if (slice.device == device) off.push_back(task);
      }
    }
  }
  for (const TaskId task : off) state.scheduler.forget_promise(task);
}

}  // namespace loam::engine

#include "engine/scheduling.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <set>

#include "base/assert.hpp"
#include "engine/moves.hpp"
#include "engine/oversubscription.hpp"
#include "engine/reservations.hpp"

namespace loam::engine {
namespace {

using schedule::Amounts;
using schedule::Dimension;

constexpr std::size_t queues_max = 64;
constexpr std::size_t late_steps_max = 16;  // of one class
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
  spec.ce_hours_month = quota.ce_hours_month;
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
  const bool limited = quota.ce || quota.memory || quota.devices || quota.ce_hours_month;
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

const QueueSettings* queue_of(const State& state, const TaskSpec& spec) {
  const QueueSettings* first = nullptr;
  for (const QueueSettings& queue : state.settings.queues) {
    if (queue.name == spec.queue) return &queue;
    if (first == nullptr && !queue.closed) first = &queue;
  }
  return first;
}

bool admits(const QueueSettings& queue, const Node& node, const std::string& type) {
  const auto has = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  if (!queue.region.empty() && queue.region != node.region) return false;
  if (!queue.device_types.empty() && !has(queue.device_types, type)) return false;
  return std::all_of(queue.labels.begin(), queue.labels.end(),
                     [&](const std::string& label) { return has(node.labels, label); });
}

bool same_devices(const QueueSettings& a, const QueueSettings& b) {
  return a.device_types == b.device_types && a.region == b.region && a.labels == b.labels;
}

std::optional<Reject> keep_to_queue(const State& state, const TaskSpec& spec,
                                    schedule::Demand& demand) {
  const QueueSettings* queue = queue_of(state, spec);
  if (queue == nullptr) return std::nullopt;
  const auto none = [&](const std::string& what) {
    return bad("the queue '" + queue->name + "' has no devices " + what,
               "leave that out, or name another queue");
  };
  const auto& sold = queue->work_classes;
  if (!sold.empty() && std::find(sold.begin(), sold.end(), demand.work_class) == sold.end()) {
    std::string names;
    for (const WorkClass known : sold)
      names +=
          (names.empty() ? "" : ", ") + std::string(boost::describe::enum_to_string(known, "?"));
    return bad("the queue '" + queue->name + "' does not sell the work class '" +
                   boost::describe::enum_to_string(demand.work_class, "?") + "'",
               "it sells: " + names + "; an operator adds others with `work_classes`");
  }
  if (!queue->region.empty()) {
    if (!demand.region.empty() && demand.region != queue->region)
      return none("in region '" + demand.region + "', only in '" + queue->region + "'");
    demand.region = queue->region;
  }
  for (const std::string& label : queue->labels) {
    if (std::find(demand.labels.begin(), demand.labels.end(), label) == demand.labels.end())
      demand.labels.push_back(label);
  }
  if (!queue->device_types.empty()) {
    demand.device_types = queue->device_types;
    if (!demand.device_type.empty() && !schedule::admits(demand, demand.device_type))
      return none("of type '" + demand.device_type + "'");
  }
  return std::nullopt;
}

namespace {

bool any_restricted(const State& state) {
  return std::any_of(
      state.settings.queues.begin(), state.settings.queues.end(),
      [](const QueueSettings& queue) { return !same_devices(queue, QueueSettings{}); });
}

// Those of one node share its host, whatever their types of device.
void add_sharing(const State& state, const Node& node, std::vector<std::uint64_t>& sharing) {
  const auto& queues = state.settings.queues;
  std::uint64_t there = 0;
  for (const DeviceId id : node.devices) {
    const Device& device = state.device(id);
    if (device.facts == nullptr) continue;
    for (std::size_t queue = 0; queue < queues.size(); ++queue)
      there |= std::uint64_t{admits(queues[queue], node, device.facts->type)} << queue;
  }
  for (std::size_t queue = 0; queue < queues.size(); ++queue) {
    if ((there >> queue & 1) != 0) sharing[queue] |= there;
  }
}

}  // namespace

void note_sharing(State& state, const Node& node) {
  if (state.sharing.empty()) return;
  add_sharing(state, node, state.sharing);
  state.scheduler.set_sharing(state.sharing);
}

void count_sharing(State& state) {
  state.sharing.clear();
  if (any_restricted(state)) {
    for (std::size_t queue = 0; queue < state.settings.queues.size(); ++queue)
      state.sharing.push_back(std::uint64_t{1} << queue);
    for (const Node& node : state.nodes) add_sharing(state, node, state.sharing);
  }
  state.scheduler.set_sharing(state.sharing);
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
  for (const std::string& label : queue.labels) {
    if (label.empty()) return bad(whose + " has an empty label", "leave it out");
  }
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
    if (known.late.size() > late_steps_max || (known.wait && *known.wait > setting_max))
      return bad("the service class '" + known.name + "' waits too long, or in too many steps",
                 "use at most " + std::to_string(late_steps_max) + " steps");
    if (!known.late.empty() && !known.wait) {
      return bad("the service class '" + known.name + "' promises no wait that could be passed",
                 "give it a wait, such as 10m, or leave out what is late");
    }
    Duration before;
    for (const LateStep& step : known.late) {
      if (step.after < before || step.after > setting_max) {
        return bad("the service class '" + known.name + "' has a step after " +
                       to_text(step.after) + " that follows one after " + to_text(before),
                   "put the steps in order of time");
      }
      before = step.after;
      const bool there = std::any_of(settings.queues.begin(), settings.queues.end(),
                                     [&](const auto& queue) { return queue.name == step.queue; });
      if (step.kind == LateStepKind::larger_queue && !there) {
        return bad("the service class '" + known.name + "' names the queue '" + step.queue +
                       "', which is not there",
                   "name one of the queues");
      }
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
  if (settings.hold_expires &&
      (settings.hold_expires->ms <= 0 || *settings.hold_expires > setting_max)) {
    return bad("holds that expire after " + to_text(*settings.hold_expires) + " are out of range",
               "use 1ms to " + to_text(setting_max) + ", or leave it out: never");
  }
  if (const auto policy = schedule::parse_placement_policy(settings.placement); !policy)
    return bad(policy.error().message, policy.error().next_step);
  if (auto reject = validate(settings.oversubscription)) return reject;
  return validate(settings.defrag);
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

namespace {

// Another policy is another index of what is free, and so are other factors.
void use_placement(State& state, const SchedulingSettings& settings) {
  const auto policy = schedule::parse_placement_policy(settings.placement);
  LOAM_ASSERT(policy.ok());
  schedule::PoolOptions options = state.pool.options();
  if (options.placement.policy == *policy && options.oversubscription == settings.oversubscription)
    return;
  options.placement.policy = *policy;
  options.oversubscription = settings.oversubscription;
  state.pool = schedule::Pool(options);
  for (const Node& node : state.nodes) state.pool.refresh(figures_of(node));
  for (const Device& device : state.devices) refresh_pool(state, device);
}

}  // namespace

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
  count_sharing(state);
  use_placement(state, settings);
  state.scheduler.set_defrag(rules_of(settings.defrag));
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
  if (tenant.spec.quota.ce_hours_month) {
    state.month_limited.insert(tenant.id);
  } else {
    state.month_limited.erase(tenant.id);
  }
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

void forget_late(State& state, TaskId task) {
  const auto known = state.late_at.find(task);
  if (known == state.late_at.end()) return;
  state.late_due.erase({known->second, task});
  state.late_at.erase(known);
}

// What a waiting task wants of spot, in CE: what it asks, or its share of a device of the middle.
void want_spot(State& state, const Task& task) {
  const PurchaseModel model = task.spec->purchase_model;
  const bool auxiliary = model == PurchaseModel::hybrid && task.spec->role == GroupRole::auxiliary;
  if (model != PurchaseModel::spot && !auxiliary) return;
  const ResourceRequest& request = task.spec->request;
  MilliCe each = request.ce.value_or(MilliCe{0});
  if (request.share && !state.devices.empty()) {
    const auto devices = static_cast<std::int64_t>(state.devices.size());
    each = MilliCe{state.market.ready.value / devices * request.share->value / whole_device.value};
  }
  const MilliCe all = each * request.devices * task.spec->gang;
  state.market.wanted += all;
  state.spot_waiting[task.id] = all;
}

void want_spot_no_more(State& state, TaskId id) {
  const auto found = state.spot_waiting.find(id);
  if (found == state.spot_waiting.end()) return;
  state.market.wanted -= found->second;
  state.spot_waiting.erase(found);
}

void note_late(State& state, const Task& task) {
  forget_late(state, task.id);
  if (task.state != TaskState::waiting || task.spec->reservation.valid()) return;
  const ServiceClass* promised = class_named(state.settings, task.spec->service_class);
  if (promised == nullptr || !promised->wait) return;
  const auto step = static_cast<std::size_t>(task.late_steps);  // the first is the alarm
  if (step > promised->late.size()) return;
  const Duration after = step == 0 ? Duration{} : promised->late[step - 1].after;
  const schedule::Standing& standing = state.scheduler.standing(task.id);
  const Instant due = standing.job.arrival + standing.on_devices + *promised->wait + after;
  state.late_at[task.id] = due;
  state.late_due.insert({due, task.id});
}

void count_late(State& state) {
  state.late_at.clear();
  state.late_due.clear();
  for (const auto& [id, task] : state.tasks) note_late(state, task);
}

void set_month(State& state, TenantId tenant) {
  const MonthUse& use = state.month_uses[tenant];
  constexpr Int128 ms_per_hour = 3'600'000;
  state.scheduler.quotas().set_month(
      tenant, static_cast<std::int64_t>(use.milli_ce_ms / ms_per_hour), use.until);
}

// What was held counts for the month in which it was; a record that goes back over a month's end
// takes nothing from the next one.
void count_month(State& state, const UsageRecord& usage, const Lease& lease) {
  MonthUse& use = state.month_uses[usage.tenant];
  const Instant at = std::min(usage.from, usage.to);
  if (use.until == Instant{} || at >= use.until) {
    if (usage.to < usage.from) return;
    use = {billing::month_of(billing::Zone{}, at).to, 0};
  } else if (at < billing::month_of(billing::Zone{}, use.until - Duration{1}).from) {
    return;
  }
  use.milli_ce_ms += static_cast<Int128>(lease.ce.value) * (usage.to - usage.from).ms;
  set_month(state, usage.tenant);
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
  job.reservation = spec.reservation;
  job.stays = spec.deadline.has_value();
  job.until = reserved_until(state, spec);
  job.arrival = std::max(arrival, task.not_before);
  if (task.not_before > arrival) job.due = task.not_before;
  job.limit = Duration{std::max<std::int64_t>(1, (spec.limit - task.run_time).ms)};
  job.ask.demand = demand_of(state, spec).demand;
  job.ask.count = spec.gang;
  settle_amounts(state, task, job);
  return job;
}

void note_sold_as(State& state, const Task& task) {
  const PurchaseModel asked = task.spec->purchase_model;
  if (asked != PurchaseModel::hybrid && state.spot_plans.count(task.id) == 0) return;
  if (state.scheduler.running().count(task.id) == 0) return;
  const PurchaseModel sold =
      task.leases.empty() ? asked : state.leases.at(task.leases.front()).purchase_model;
  state.scheduler.is_sold_as_spot(task.id, sold == PurchaseModel::spot);
}

void wait_as(State& state, Task& task, std::shared_ptr<const TaskSpec> spec, Instant now) {
  want_spot_no_more(state, task.id);
  task.spec = std::move(spec);
  want_spot(state, task);
  const schedule::Standing& standing = state.scheduler.standing(task.id);
  const Instant came = standing.job.arrival + standing.on_devices;
  state.scheduler.leaves(task.id, now, false);
  state.scheduler.arrives(job_of(state, task, came), now);
}

std::shared_ptr<const TaskSpec> resold(const TaskSpec& spec, PurchaseModel model) {
  TaskSpec other = spec;
  other.purchase_model = model;
  if (model != PurchaseModel::reservation) other.reservation = {};
  if (model != PurchaseModel::hybrid) other.role = GroupRole::auxiliary;
  return std::make_shared<const TaskSpec>(std::move(other));
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
      unit.slices.push_back({slice.device, slice.share, slice.memory, slice.ce, member.node,
                             slice.unpromised, slice.memory_unpromised});
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
      member.slices.push_back({slice.device, slice.share, slice.memory, slice.ce, slice.unpromised,
                               slice.memory_unpromised});
    member.node = unit.hosts.front().node;
    member.cpu = unit.hosts.front().cpu;
    member.host_memory = unit.hosts.front().memory;
  }
  return members;
}

bool on_one_node_each(const schedule::Place& place) {
  return std::all_of(place.begin(), place.end(),
                     [](const schedule::UnitPlacement& unit) { return unit.hosts.size() == 1; });
}

}  // namespace loam::engine

// Decisions of the scheduler, carried out: who starts, who is asked to leave, what is promised.
#include <algorithm>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/reservations.hpp"
#include "engine/scheduling.hpp"
#include "engine/service_books.hpp"

namespace loam::engine {
namespace {

// Bounds of one pass, so that the command stays below 2 ms on a big pool; what they leave out has
// its turn in the passes that follow.
schedule::Scheduler::PassLimits limits_of(const SchedulePass& asked,
                                          const std::set<TaskId>& left_out,
                                          const std::set<TaskId>& nobody_moves_for) {
  schedule::Scheduler::PassLimits limits;
  limits.actions_max = 16;
  limits.reasons = false;
  limits.turns_max = 100;
  limits.turns_beyond = 100;
  limits.ends_max = 256;
  limits.victims_max = 512;
  limits.victim_tries_max = 64;
  limits.move_askers_max = 8;
  limits.movers_max = 512;
  limits.move_tries_max = 128;
  limits.left_out = &left_out;
  limits.nobody_moves_for = &nobody_moves_for;
  for (const PassMark& mark : asked.beyond) {
    limits.beyond[mark.queue] = {static_cast<schedule::Tier>(mark.tier), mark.key, mark.second_key,
                                 mark.arrival, mark.task};
  }
  return limits;
}

// Tasks that their tenants cannot pay for are passed over, so many in one command.
constexpr std::size_t left_out_max = 16;

std::vector<PassMark> marks_of(const schedule::Pass& pass) {
  std::vector<PassMark> marks;
  for (const auto& [queue, rank] : pass.next) {
    marks.push_back({queue, static_cast<std::int64_t>(rank.tier), rank.key, rank.second_key,
                     rank.arrival, rank.id});
  }
  return marks;
}

// Carries out the actions of one pass, one after the other.
class Carrier {
 public:
  // `room`: what is free before the pass.
  Carrier(Draft& draft, const schedule::Room& room)
      : draft_(draft),
        room_(room.copy()),
        quotas_(schedule::Quotas::on_top_of(draft.state().scheduler.quotas(), draft.now())) {}

  // False: it cannot be done now, and none of it was.
  bool operator()(const schedule::Start& start) {
    // The pass takes those who were told to leave for gone. Once they are, and have given back
    // their part of the quota, it starts.
    const schedule::Job& job = draft_.state().scheduler.standing(start.task).job;
    if (!room_->holds(start.place)) return true;
    if (quotas_.check(job.tenant, job.takes, job.limit)) return true;
    if (!grant(draft_.state().tasks.at(start.task), start.place)) return false;
    room_->take(start.place);
    quotas_.charge(job.tenant, job.takes, job.limit);
    return true;
  }

  bool operator()(const schedule::Preempt& preempt) {
    const State& state = draft_.state();
    // Nobody is stopped for one that could not start then: it would be stopped for it again.
    if (preempt.task.valid() && !could_start(state.tasks.at(preempt.task), preempt.place))
      return false;
    Duration longest;
    for (const TaskId id : preempt.victims)
      longest = std::max(longest, ask_to_leave(state.tasks.at(id), StopReason::preempted));
    if (!preempt.task.valid()) return true;
    const Task& task = state.tasks.at(preempt.task);
    return promise(task, draft_.now() + longest, preempt.place, true);
  }

  bool operator()(const schedule::Promise& promised) {
    const Task& task = draft_.state().tasks.at(promised.task);
    return promise(task, promised.at, promised.place, false);
  }

  bool operator()(const schedule::Defrag& defrag) {
    const State& state = draft_.state();
    if (!could_start(state.tasks.at(defrag.task), defrag.place)) return false;
    // Nobody is moved who could not go on. It costs what it cost: on the same type of device.
    for (const schedule::Move& move : defrag.moves) {
      const Task& task = state.tasks.at(move.task);
      if (!on_one_node_each(move.to) ||
          state.budgets.holds_back(task.tenant, task.spec->attribution, draft_.now()))
        return false;
    }
    Duration longest;
    for (const schedule::Move& move : defrag.moves) {
      draft_.add(MoveBegun{move.task, defrag.task, members_of(move.to), move.lost});
      longest = std::max(longest, ask_to_leave(state.tasks.at(move.task), StopReason::moved));
    }
    return promise(state.tasks.at(defrag.task), draft_.now() + longest, defrag.place, true);
  }

 private:
  // Gives how long it may take.
  Duration ask_to_leave(const Task& task, StopReason reason) {
    for (const LeaseId lease : task.leases) {
      if (draft_.state().leases.at(lease).stopping == StopReason::none)
        draft_.add(StopRequested{lease, reason});
    }
    return grace_of(task, reason);
  }

  bool promise(const Task& task, Instant at, const schedule::Place& place, bool leaving) {
    if (!on_one_node_each(place)) return false;
    draft_.add(TaskPromised{task.id, at, leaving, members_of(place)});
    return true;
  }

  // What there costs more than is set aside, with a dearer card or device than at submission.
  Money more_to_hold(const Task& task, const schedule::Place& places, const RateCard& card) const {
    const State& state = draft_.state();
    const Tenant& tenant = state.tenant(task.tenant);
    const Duration rest = task.spec->limit - task.run_time;
    Money needed = Money::zero(tenant.spec.currency);
    if (paid_by_reservation(state, task)) return needed;
    for (const schedule::UnitPlacement& place : places) {
      const Bought unit = bought({place});
      needed += most_it_costs(state, draft_.now(), tenant, *task.spec,
                              billing::billable_ce(unit.ce, unit.memory, card), rest);
    }
    return needed > task.held ? needed - task.held : Money::zero(tenant.spec.currency);
  }

  // What must be set aside to start it there; nothing: its budget or its wallet does not allow it.
  std::optional<Money> price_of_start(const Task& task, const schedule::Place& places) const {
    const State& state = draft_.state();
    const Tenant& tenant = state.tenant(task.tenant);
    if (state.budgets.holds_back(tenant.id, task.spec->attribution, draft_.now())) return {};
    const Money more = more_to_hold(task, places, card_of(tenant));
    const auto spent = spent_.find(tenant.id);
    Money left = available(state, tenant.id);
    if (spent != spent_.end()) left = left - spent->second;
    if (!more.is_zero() && more > left) return {};
    return more;
  }

  const RateCard& card_of(const Tenant& tenant) const {
    const billing::PriceTable* table = draft_.state().rates.at(tenant.spec.currency, draft_.now());
    LOAM_ASSERT(table != nullptr);  // there was one at submission
    return table->card();
  }

  bool could_start(const Task& task, schedule::Place places) const {
    if (!on_one_node_each(places)) return false;
    take_off_surplus_of(task, places);
    return price_of_start(task, places).has_value();
  }

  // One that asks for CE gets no more of several devices together than it asked for.
  static void take_off_surplus_of(const Task& task, schedule::Place& places) {
    const ResourceRequest& request = task.spec->request;
    for (schedule::UnitPlacement& place : places) {
      if (request.ce && request.devices == 1 && place.slices.size() > 1)
        take_off_surplus(*request.ce, place);
    }
  }

  // Of a hybrid task: where it had to, spot is tight. Sold as spot, it would be displaced by those
  // in turn, and so on without end.
  bool displaced_others(const Task& task) const {
    if (task.spec->purchase_model != PurchaseModel::hybrid) return false;
    const auto& plans = draft_.state().scheduler.plans();
    const auto plan = plans.find(task.id);
    return plan != plans.end() && plan->second.leaving && !plan->second.moved_for.valid();
  }

  bool grant(const Task& task, schedule::Place places) {
    if (!on_one_node_each(places)) return false;
    const State& state = draft_.state();
    const Tenant& tenant = state.tenant(task.tenant);
    take_off_surplus_of(task, places);
    const std::optional<Money> more = price_of_start(task, places);
    if (!more) return false;
    if (!more->is_zero()) {
      spent_.try_emplace(tenant.id, Money::zero(tenant.spec.currency)).first->second += *more;
      draft_.add(TransactionPosted{
          billing::hold(TransactionId{draft_.next().transaction++}, tenant.id, task.id, *more)});
    }
    settle_kept(draft_, task);
    // A gang is of one model, which others can displace as a whole or not at all.
    const PurchaseModel model = displaced_others(task) ? PurchaseModel::on_demand
                                                       : model_now(state, draft_.now(), tenant,
                                                                   *task.spec, bought(places).ce);
    std::int64_t rank = 0;
    for (const schedule::UnitPlacement& place : places) {
      const Bought unit = bought({place});
      LeaseGranted granted;
      granted.lease = LeaseId{draft_.next().lease++};
      granted.task = task.id;
      granted.epoch = Epoch{task.epoch.value + 1};
      granted.rank = rank++;
      for (const schedule::Placement& slice : place.slices)
        granted.slices.push_back(
            {slice.device, slice.share, slice.memory, slice.unpromised, slice.memory_unpromised});
      granted.isolation = isolation_of(state, place);
      granted.purchase_model = model;
      granted.cpu = place.hosts.front().cpu;
      granted.host_memory = place.hosts.front().memory;
      granted.ce = unit.ce;
      granted.billable_ce = billing::billable_ce(unit.ce, unit.memory, card_of(tenant));
      draft_.add(std::move(granted));
    }
    draft_.subject(task.id.text());
    return true;
  }

  Draft& draft_;
  // As they are until somebody has left.
  std::unique_ptr<schedule::Room> room_;
  schedule::Quotas quotas_;
  std::map<TenantId, Money> spent_;
};

TaskId task_of(const schedule::Action& action) {
  return std::visit([](const auto& one) { return one.task; }, action);
}

}  // namespace

Decision decide_on(const State& state, Instant now, const SchedulePass& asked) {
  Draft draft(state, now);
  const schedule::Scheduler& scheduler = state.scheduler;
  if (scheduler.waiting() == 0 && scheduler.reservations().empty()) return draft.done();
  const schedule::PoolRoom room(state.pool, state.kinds);
  std::set<TaskId> left_out;
  std::set<TaskId> nobody_moves_for;
  while (left_out.size() + nobody_moves_for.size() < left_out_max) {
    const schedule::Pass pass =
        scheduler.pass(now, room, limits_of(asked, left_out, nobody_moves_for));
    for (const TaskId task : pass.dropped) draft.add(PromiseDropped{task});
    Carrier carry_out(draft, room);
    bool all = true;
    for (const schedule::Action& action : pass.actions) {
      all = std::visit([&](const auto& one) { return carry_out(one); }, action);
      if (all) continue;
      const TaskId task = task_of(action);
      if (std::holds_alternative<schedule::Defrag>(action)) {  // it waits on, as promised
        nobody_moves_for.insert(task);
        break;
      }
      left_out.insert(task);
      // What is cleared or kept for one that cannot have it is for others again.
      if (scheduler.plans().count(task) != 0) draft.add(PromiseDropped{task});
      break;
    }
    draft.beyond(marks_of(pass));
    if (all || !draft.empty()) break;
  }
  return draft.done();
}

}  // namespace loam::engine

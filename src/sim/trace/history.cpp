#include "sim/trace/history.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/quantity.hpp"
#include "schedule/order/discipline.hpp"
#include "schedule/placement/policy.hpp"
#include "sim/program.hpp"
#include "sim/trace/fairness.hpp"
#include "sim/trace/replay_pool.hpp"
#include "sim/world.hpp"

namespace loam::sim {
namespace {

// So long after the history's end a replay is over, whatever still waits.
constexpr Duration patience = Duration::hours(24 * 90);

double seconds(Duration duration) {
  return static_cast<double>(duration.ms) / 1000;
}

class Replay {
 public:
  Replay(const History& history, const ReplaySetting& setting)
      : history_(history), setting_(setting), world_(history.first, setting.seed) {
    world_.on_record([this](const Record& record) { hear(record); });
  }

  Result<ReplayOutcome> run() {
    LOAM_CHECK(set_up());
    for (const PastTask& past : history_.tasks) {
      const Duration after = past.submitted - history_.first;
      world_.advance_to(history_.first + Duration{after.ms / setting_.arrivals_percent * 100 +
                                                  after.ms % setting_.arrivals_percent * 100 /
                                                      setting_.arrivals_percent});
      submit(past);
    }
    // Every attempt has a limit; but what a smaller pool, or a quota, never lets start waits for
    // ever.
    const Instant give_up = std::max(history_.last, world_.clock().now()) + patience;
    while (!open_.empty()) {
      const Instant due = world_.next_due();
      if (due == Instant::never() || due > give_up) break;
      world_.advance_to(due);
    }
    sum_up();
    return std::move(outcome_);
  }

 private:
  struct Lease {
    TaskId task;
    Instant from = Instant::never();
    std::int64_t milli = 0;
  };

  // What the replay cannot do without.
  Result<void> need(Command command) {
    const engine::Answer answer = world_.ask(std::move(command));
    if (answer.error) return *answer.error;
    if (answer.reject) return invalid(answer.reject->message, answer.reject->next_step);
    return {};
  }

  Result<void> set_up() {
    LOAM_TRY(pool, replay_pool(history_, setting_));
    for (const ReplayNode& node : pool) {
      LOAM_CHECK(need(node.node));
      for (const DeviceFacts& facts : node.devices)
        LOAM_CHECK(need(AttachDevice{node.node.name, facts}));
      outcome_.devices += static_cast<std::int64_t>(node.devices.size());
    }
    SchedulingSettings settings = history_.settings;
    if (!setting_.discipline.empty()) {
      for (QueueSettings& queue : settings.queues) queue.discipline = setting_.discipline;
    }
    if (!setting_.placement.empty()) settings.placement = setting_.placement;
    LOAM_CHECK(need(SetScheduling{settings}));
    set_up_money();
    return {};
  }

  void set_up_money() {
    std::set<Currency> priced;
    for (RateCard card : history_.cards) {
      card.effective_from = std::max(card.effective_from, world_.clock().now());
      if (setting_.on_demand && setting_.on_demand->currency() == card.currency) {
        if (!priced.insert(card.currency).second) continue;
        card.on_demand = *setting_.on_demand;
      }
      world_.ask(PublishRateCard{card});
    }
    for (TenantSpec tenant : history_.tenants) {
      // Whether they could have paid is not what is asked.
      tenant.payment = PaymentMode::postpaid;
      tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000'000, tenant.currency);
      world_.ask(CreateTenant{tenant});
    }
  }

  void submit(const PastTask& past) {
    const Instant now = world_.clock().now();
    TaskSpec spec = past.spec;
    Program program;
    program.run = past.ran;
    program.exit_code = past.exit_code;
    spec.command = command_of(program);
    // As long after its arrival as it was.
    if (spec.deadline) spec.deadline = now + (*spec.deadline - past.submitted);
    if (spec.deadline && *spec.deadline <= now) spec.deadline.reset();
    spec.recurrence.clear();  // each of its runs is in the history
    ++outcome_.tasks;
    ReplayedTask& fate = outcome_.fates.emplace_back();
    fate.task = past.task;
    fate.tenant = past.tenant;
    fate.submitted = now;
    const engine::Answer answer = world_.ask(SubmitTask{past.tenant, spec});
    if (!answer.ok()) ++outcome_.refused;
  }

  ReplayedTask* fate_of(TaskId task) {
    const auto found = open_.find(task);
    return found == open_.end() ? nullptr : &outcome_.fates[found->second];
  }

  void hear(const Record& record) {
    if (const auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
      open_[accepted->task] = outcome_.fates.size() - 1;  // it is being submitted
    } else if (const auto* granted = std::get_if<LeaseGranted>(&record.event)) {
      Lease& lease = leases_[granted->lease];
      lease.task = granted->task;
      for (const Slice& slice : granted->slices) lease.milli += slice.share.value;
    } else if (const auto* started = std::get_if<AttemptStarted>(&record.event)) {
      starts(leases_[started->lease], started->started_at, record.at);
    } else if (const auto* ended = std::get_if<LeaseEnded>(&record.event)) {
      const Lease lease = leases_[ended->lease];
      leases_.erase(ended->lease);
      if (lease.from != Instant::never()) ends(lease, ended->ended_at, record.at);
    } else if (const auto* requeued = std::get_if<TaskRequeued>(&record.event)) {
      last_ended_ = {};
      if (requeued->cause != RequeueCause::preempted) return;
      ++outcome_.preemptions;
      if (ReplayedTask* fate = fate_of(requeued->task)) ++fate->preemptions;
    } else if (const auto* finished = std::get_if<TaskFinished>(&record.event)) {
      if (ReplayedTask* fate = fate_of(finished->task)) fate->finished = record.at;
      open_.erase(finished->task);
      last_ended_ = {};
      ++outcome_.finished;
    } else if (const auto* usage = std::get_if<UsageRated>(&record.event)) {
      const Currency currency = usage->record.net.currency();
      charged_.try_emplace(currency, Money::zero(currency)).first->second += usage->record.net;
    }
  }

  void note_busy(Instant at, std::int64_t more) {
    busy_ += more;
    auto& series = outcome_.busy_milli;
    if (!series.empty() && series.back().first == at) {
      series.back().second = busy_;
    } else {
      series.emplace_back(at, busy_);
    }
  }

  void starts(Lease& lease, Instant from, Instant heard) {
    lease.from = from;
    note_busy(heard, lease.milli);
    ReplayedTask* fate = fate_of(lease.task);
    if (fate != nullptr && fate->started == Instant::never()) fate->started = from;
  }

  void ends(const Lease& lease, Instant at, Instant heard) {
    const Duration ran = at - lease.from;
    note_busy(heard, -lease.milli);
    used_ += seconds(ran) * static_cast<double>(lease.milli);
    ReplayedTask* fate = fate_of(lease.task);
    if (fate != nullptr && (lease.task != last_ended_ || ran > last_ran_)) fate->ran += ran;
    last_ended_ = lease.task;
    last_ran_ = ran;
  }

  void sum_up() {
    std::vector<double> waits;
    std::map<TenantId, std::pair<double, double>> speeds;  // by tenant: their sum, and how many
    double completion = 0;
    Instant last{};
    for (const ReplayedTask& fate : outcome_.fates) {
      auto& [sum, count] = speeds[fate.tenant];
      count += 1;
      if (fate.finished == Instant::never()) continue;
      const Duration took = fate.finished - fate.submitted;
      sum += took.ms > 0 ? std::min(1.0, seconds(fate.ran) / seconds(took)) : 1;
      waits.push_back(seconds(fate.wait()));
      completion += seconds(took);
      last = std::max(last, fate.finished);
    }
    std::vector<double> means;
    for (const auto& [tenant, speed] : speeds) means.push_back(speed.first / speed.second);
    outcome_.jain = jain_index(means);
    for (const auto& [currency, amount] : charged_) outcome_.charged.push_back(amount);
    if (waits.empty()) return;
    const auto count = static_cast<double>(waits.size());
    std::sort(waits.begin(), waits.end());
    outcome_.wait_mean_s = std::accumulate(waits.begin(), waits.end(), 0.0) / count;
    outcome_.wait_p99_s = waits[(waits.size() - 1) * 99 / 100];
    outcome_.completion_mean_s = completion / count;
    outcome_.makespan_s = seconds(last - outcome_.fates.front().submitted);
    const double capacity = outcome_.makespan_s * static_cast<double>(outcome_.devices) * 1000;
    if (capacity > 0) outcome_.utilisation = used_ / capacity;
  }

  const History& history_;
  const ReplaySetting& setting_;
  World world_;
  ReplayOutcome outcome_;
  std::map<TaskId, std::size_t> open_;  // its place among the fates
  std::map<LeaseId, Lease> leases_;
  std::map<Currency, Money> charged_;
  TaskId last_ended_;  // members of one round end one after the other: the longest counts
  Duration last_ran_;
  double used_ = 0;  // milli-device times seconds
  std::int64_t busy_ = 0;
};

}  // namespace

void HistoryReader::hear(const Record& record) {
  if (record.sequence == 1) history_.first = record.at;
  history_.last = record.at;
  if (const auto* node = std::get_if<NodeAttached>(&record.event)) {
    if (node->node.value > history_.nodes.size()) history_.nodes.resize(node->node.value);
    history_.nodes[node->node.value - 1] = *node;
  } else if (const auto* device = std::get_if<DeviceAttached>(&record.event)) {
    if (device->device.value > history_.devices.size())
      history_.devices.resize(device->device.value);
    history_.devices[device->device.value - 1] = *device;
  } else if (const auto* tenant = std::get_if<TenantCreated>(&record.event)) {
    history_.tenants.push_back(tenant->spec);
  } else if (const auto* changed = std::get_if<TenantChanged>(&record.event)) {
    history_.tenants.at(changed->tenant.value - 1) = changed->spec;
  } else if (const auto* card = std::get_if<RateCardPublished>(&record.event)) {
    history_.cards.push_back(card->card);
  } else if (const auto* set = std::get_if<SchedulingSet>(&record.event)) {
    history_.settings = set->settings;
  } else if (const auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
    const bool recurs = !accepted->spec->recurrence.empty();
    const Instant submitted = recurs ? std::max(record.at, accepted->not_before) : record.at;
    open_[accepted->task] = {accepted->task, accepted->tenant, *accepted->spec, submitted, {}, 0,
                             false};
  } else if (const auto* granted = std::get_if<LeaseGranted>(&record.event)) {
    if (granted->rank == 0) started_[granted->lease] = {granted->task, Instant::never()};
  } else if (const auto* started = std::get_if<AttemptStarted>(&record.event)) {
    const auto lease = started_.find(started->lease);
    if (lease != started_.end()) lease->second.second = started->started_at;
  } else if (const auto* ended = std::get_if<LeaseEnded>(&record.event)) {
    const auto lease = started_.find(ended->lease);
    if (lease == started_.end()) return;
    const auto [task, from] = lease->second;
    started_.erase(lease);
    // What a lost attempt did was done again.
    if (from != Instant::never() && ended->verdict.outcome != TaskOutcome::device_lost)
      open_[task].ran += ended->ended_at - from;
  } else if (const auto* finished = std::get_if<TaskFinished>(&record.event)) {
    PastTask past = std::move(open_[finished->task]);
    open_.erase(finished->task);
    if (past.ran.ms <= 0) return;  // it never ran
    past.exit_code = finished->exit_code;
    past.withdrawn = finished->outcome == TaskOutcome::stopped;
    history_.tasks.push_back(std::move(past));
  }
}

History HistoryReader::done() && {
  std::sort(history_.tasks.begin(), history_.tasks.end(), [](const PastTask& a, const PastTask& b) {
    return std::tie(a.submitted, a.task) < std::tie(b.submitted, b.task);
  });
  return std::move(history_);
}

Result<ReplayOutcome> replay(const History& history, const ReplaySetting& setting) {
  if (history.tasks.empty()) return invalid("this journal holds no task that ran and ended");
  if (setting.devices_percent < 1 || setting.devices_percent > devices_percent_max) {
    return invalid(std::to_string(setting.devices_percent) + " % of the devices",
                   "use 1 to " + std::to_string(devices_percent_max));
  }
  if (setting.arrivals_percent < 1)
    return invalid("tasks that never come", "let them come at least 0.01 times as fast");
  if (!setting.discipline.empty()) LOAM_CHECK(schedule::discipline_named(setting.discipline));
  if (!setting.placement.empty()) LOAM_CHECK(schedule::parse_placement_policy(setting.placement));
  return Replay(history, setting).run();
}

std::string to_csv(const History& history, const ReplayOutcome& outcome) {
  const auto at = [&](Instant instant) {
    return instant == Instant::never() ? "" : decimal_text((instant - history.first).ms, 3);
  };
  std::string text = "task,tenant,submitted_s,started_s,finished_s,ran_s,wait_s,preemptions\n";
  for (const ReplayedTask& fate : outcome.fates) {
    const bool finished = fate.finished != Instant::never();
    text += std::to_string(fate.task.value) + "," + history.tenants.at(fate.tenant.value - 1).name +
            "," + at(fate.submitted) + "," + at(fate.started) + "," + at(fate.finished) + "," +
            decimal_text(fate.ran.ms, 3) + "," + (finished ? decimal_text(fate.wait().ms, 3) : "") +
            "," + std::to_string(fate.preemptions) + "\n";
  }
  return text;
}

}  // namespace loam::sim

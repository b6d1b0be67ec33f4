#include "sim/trace/history.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "schedule/order/discipline.hpp"
#include "sim/program.hpp"
#include "sim/world.hpp"

namespace loam::sim {
namespace {

// So long after the history's end a replay is over, whatever still waits.
constexpr Duration patience = Duration::hours(24 * 90);

double seconds(Duration duration) {
  return static_cast<double>(duration.ms) / 1000;
}

// What became of the tasks of one replay.
struct Fate {
  Instant submitted;
  Duration ran;
};

class Replay {
 public:
  Replay(const History& history, const ReplaySetting& setting)
      : history_(history), setting_(setting), world_(history.first, setting.seed) {
    world_.on_record([this](const Record& record) { hear(record); });
  }

  Result<ReplayOutcome> run() {
    set_up();
    for (const PastTask& past : history_.tasks) {
      world_.advance_to(past.submitted);
      submit(past);
    }
    // Every attempt has a limit; but what a smaller pool, or a quota, never lets start waits for
    // ever.
    const Instant give_up = history_.last + patience;
    while (!open_.empty()) {
      const Instant due = world_.next_due();
      if (due == Instant::never() || due > give_up) break;
      world_.advance_to(due);
    }
    sum_up();
    return std::move(outcome_);
  }

 private:
  void set_up() {
    for (const NodeAttached& node : history_.nodes)
      world_.ask(AttachNode{node.name, node.region, node.cpu, node.memory, node.labels});
    std::map<NodeId, std::int64_t> of_node;
    for (const DeviceAttached& device : history_.devices) ++of_node[device.node];
    std::map<NodeId, std::int64_t> attached;
    for (const DeviceAttached& device : history_.devices) {
      const std::int64_t most = (of_node[device.node] * setting_.devices_percent + 99) / 100;
      if (attached[device.node] >= most) continue;
      ++attached[device.node];
      world_.ask(AttachDevice{history_.nodes.at(device.node.value - 1).name, device.facts});
      ++outcome_.devices;
    }
    SchedulingSettings settings = history_.settings;
    if (!setting_.discipline.empty()) {
      for (QueueSettings& queue : settings.queues) queue.discipline = setting_.discipline;
    }
    world_.ask(SetScheduling{settings});
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
    TaskSpec spec = past.spec;
    Program program;
    program.run = past.ran;
    program.exit_code = past.exit_code;
    spec.command = command_of(program);
    if (spec.deadline && *spec.deadline <= world_.clock().now()) spec.deadline.reset();
    ++outcome_.tasks;
    const engine::Answer answer = world_.ask(SubmitTask{past.tenant, spec});
    if (!answer.ok()) ++outcome_.refused;
  }

  void hear(const Record& record) {
    if (const auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
      open_[accepted->task] = {record.at, {}};
    } else if (const auto* granted = std::get_if<LeaseGranted>(&record.event)) {
      Lease& lease = leases_[granted->lease];
      lease.task = granted->task;
      for (const Slice& slice : granted->slices) lease.milli += slice.share.value;
    } else if (const auto* started = std::get_if<AttemptStarted>(&record.event)) {
      leases_[started->lease].from = started->started_at;
    } else if (const auto* ended = std::get_if<LeaseEnded>(&record.event)) {
      const Lease lease = leases_[ended->lease];
      leases_.erase(ended->lease);
      if (lease.from == Instant::never()) return;
      const Duration ran = ended->ended_at - lease.from;
      used_ += seconds(ran) * static_cast<double>(lease.milli);
      Fate& fate = open_[lease.task];
      if (lease.task != last_ended_ || ran > last_ran_) fate.ran += ran;
      last_ended_ = lease.task;
      last_ran_ = ran;
    } else if (const auto* requeued = std::get_if<TaskRequeued>(&record.event)) {
      last_ended_ = {};
      if (requeued->cause == RequeueCause::preempted) ++outcome_.preemptions;
    } else if (const auto* finished = std::get_if<TaskFinished>(&record.event)) {
      const Fate fate = open_[finished->task];
      open_.erase(finished->task);
      last_ended_ = {};
      ++outcome_.finished;
      waits_.push_back(std::max(0.0, seconds(record.at - fate.submitted - fate.ran)));
      completion_ += seconds(record.at - fate.submitted);
      end_ = record.at;
    } else if (const auto* usage = std::get_if<UsageRated>(&record.event)) {
      const Currency currency = usage->record.net.currency();
      charged_.try_emplace(currency, Money::zero(currency)).first->second += usage->record.net;
    }
  }

  void sum_up() {
    if (waits_.empty()) return;
    const auto count = static_cast<double>(waits_.size());
    std::sort(waits_.begin(), waits_.end());
    outcome_.wait_mean_s = std::accumulate(waits_.begin(), waits_.end(), 0.0) / count;
    outcome_.wait_p99_s = waits_[(waits_.size() - 1) * 99 / 100];
    outcome_.completion_mean_s = completion_ / count;
    outcome_.makespan_s = seconds(end_ - history_.tasks.front().submitted);
    const double capacity = outcome_.makespan_s * static_cast<double>(outcome_.devices) * 1000;
    if (capacity > 0) outcome_.utilisation = used_ / capacity;
    for (const auto& [currency, amount] : charged_) outcome_.charged.push_back(amount);
  }

  struct Lease {
    TaskId task;
    Instant from = Instant::never();
    std::int64_t milli = 0;
  };

  const History& history_;
  const ReplaySetting& setting_;
  World world_;
  ReplayOutcome outcome_;
  std::map<TaskId, Fate> open_;
  std::map<LeaseId, Lease> leases_;
  std::map<Currency, Money> charged_;
  std::vector<double> waits_;
  TaskId last_ended_;  // members of one round end one after the other: the longest counts
  Duration last_ran_;
  double used_ = 0;
  double completion_ = 0;
  Instant end_;
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
    open_[accepted->task] = {accepted->task, accepted->tenant, *accepted->spec, record.at, {}, 0,
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
  std::sort(history_.tasks.begin(), history_.tasks.end(),
            [](const PastTask& a, const PastTask& b) { return a.task < b.task; });
  return std::move(history_);
}

Result<ReplayOutcome> replay(const History& history, const ReplaySetting& setting) {
  if (history.tasks.empty()) return invalid("this journal holds no task that ran and ended");
  if (setting.devices_percent < 1 || setting.devices_percent > 100) {
    return invalid(std::to_string(setting.devices_percent) + " % of the devices", "use 1 to 100");
  }
  if (!setting.discipline.empty()) LOAM_CHECK(schedule::discipline_named(setting.discipline));
  return Replay(history, setting).run();
}

}  // namespace loam::sim

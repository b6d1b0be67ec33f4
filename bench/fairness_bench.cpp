// Fairness through the daemon's own engine: two tenants with weights 1 and 3 who always want more,
// an hour of virtual time. Figures do not depend on the machine.
#include <array>
#include <cmath>
#include <map>

#include "base/random.hpp"
#include "bench/bench.hpp"
#include "sim/trace/fairness.hpp"
#include "sim/world.hpp"

namespace loam::bench {
namespace {

constexpr Instant start{1'767'225'600'000};
constexpr std::array<std::int64_t, 2> weights{1, 3};
constexpr std::uint64_t devices = 100;
constexpr std::uint64_t waiting_each = 200;  // more than the pool starts in a minute

void set_up(sim::World& world) {
  SchedulingSettings settings;
  settings.queues.front().discipline = "drf";
  for (std::size_t i = 0; i < weights.size(); ++i)
    settings.weights.push_back({"tenant" + std::to_string(i), "", weights[i]});
  world.ask(AttachNode{"n1", "here", {}, {}});
  for (std::uint64_t i = 0; i < devices; ++i) {
    DeviceFacts facts;
    facts.uuid = "gpu-" + std::to_string(i);
    facts.type = "a100";
    facts.memory = Mebibytes{80 * 1024};
    facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
    world.ask(AttachDevice{"n1", facts});
  }
  RateCard card;
  card.on_demand = Money(Money::units_per_one / 50, Currency("USD"));
  world.ask(PublishRateCard{card});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    TenantSpec tenant;
    tenant.name = "tenant" + std::to_string(i);
    tenant.payment = PaymentMode::postpaid;
    tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000'000, Currency("USD"));
    world.ask(CreateTenant{tenant});
  }
  world.ask(SetScheduling{settings});
}

// Device time that each tenant had between two instants.
class DeviceTime {
 public:
  DeviceTime(Instant from, Instant to) : from_(from), to_(to) {}

  void hear(const Record& record) {
    if (const auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
      tenants_[accepted->task] = accepted->tenant.value - 1;
    } else if (const auto* granted = std::get_if<LeaseGranted>(&record.event)) {
      held_[granted->lease] = {tenants_.at(granted->task), record.at};
    } else if (const auto* ended = std::get_if<LeaseEnded>(&record.event)) {
      count(held_.at(ended->lease), record.at);
      held_.erase(ended->lease);
    }
  }

  // Of each tenant, for one unit of its weight; what still runs counts too.
  std::vector<double> by_weight() {
    for (const auto& [lease, since] : held_) count(since, to_);
    held_.clear();
    std::vector<double> each;
    for (std::size_t i = 0; i < weights.size(); ++i)
      each.push_back(sums_[i] / static_cast<double>(weights[i]));
    return each;
  }

 private:
  struct Since {
    std::uint64_t tenant = 0;
    Instant at;
  };
  void count(const Since& since, Instant end) {
    const Instant from = std::max(since.at, from_);
    const Instant to = std::min(end, to_);
    if (from < to) sums_[since.tenant] += static_cast<double>((to - from).ms);
  }

  Instant from_;
  Instant to_;
  std::map<TaskId, std::uint64_t> tenants_;
  std::map<LeaseId, Since> held_;
  std::array<double, weights.size()> sums_{};
};

LOAM_BENCHMARK(fairness, {{"fairness.weights_1_3_error", "%", at_most(1)},
                          {"fairness.jain", "ratio", at_least(0.9999)}}) {
  sim::World world(start, 1);
  Random random(7);
  DeviceTime time(start + Duration::minutes(10), start + Duration::minutes(70));
  world.on_record([&](const Record& record) { time.hear(record); });
  set_up(world);
  for (int minute = 0; minute < 70; ++minute) {
    for (std::uint64_t tenant = 0; tenant < weights.size(); ++tenant) {
      for (auto n = world.state().tenants[tenant].tasks_waiting; n < std::int64_t{waiting_each};
           ++n) {
        sim::Program program;
        program.run = Duration::seconds(random.between(20, 120));
        TaskSpec spec;
        spec.command = sim::command_of(program);
        spec.request.share = whole_device;
        world.ask(SubmitTask{TenantId{tenant + 1}, std::move(spec)});
      }
    }
    world.advance_to(start + Duration::minutes(minute + 1));
    report.progress("minute " + std::to_string(minute + 1) + " of 70");
  }
  const std::vector<double> each = time.by_weight();
  if (each[0] == 0) return invalid("the first tenant had no device at all");
  report.set("fairness.weights_1_3_error", 100 * std::abs(each[1] / each[0] - 1),
             "device time over an hour against 1:3; 100 devices, tasks of 20 to 120 s");
  report.set("fairness.jain", sim::jain_index(each), "of the two tenants' time by weight");
  return {};
}

}  // namespace
}  // namespace loam::bench

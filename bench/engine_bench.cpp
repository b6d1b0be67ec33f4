// The engine in memory: whole task lives a second, what history costs, the longest command, the
// pause of a snapshot. One core.
#include <algorithm>

#include "base/random.hpp"
#include "bench/bench.hpp"
#include "engine/loop.hpp"
#include "engine/snapshot.hpp"

namespace loam::bench {
namespace {

constexpr Instant start{1'767'225'600'000};
const Actor actor{"bench", "client"};

class BenchClock final : public engine::Clock {
 public:
  Instant now() override { return time; }
  Instant time = start;
};

// Takes everything and keeps nothing: the engine alone is measured.
class NoJournal final : public engine::Journal {
 public:
  Result<void> append(std::span<const Record>) override { return {}; }
  Result<void> replay(std::uint64_t, const std::function<Result<void>(const Record&)>&) override {
    return {};
  }
  Result<engine::StateImage> load_snapshot() override { return engine::StateImage{}; }
};

// Remembers what to report; programs run no time at all.
class BenchExecutor final : public engine::Executor {
 public:
  void launch(const engine::State&, const engine::LaunchEffect& effect) override {
    launched.push_back(effect);
  }
  void stop(const engine::State&, const engine::StopEffect&) override {}

  std::vector<engine::LaunchEffect> launched;
};

struct Bench {
  BenchClock clock;
  NoJournal journal;
  BenchExecutor executor;
  engine::Loop loop{clock, journal, executor};

  explicit Bench(std::uint64_t devices) {
    std::vector<engine::Submission> batch;
    constexpr std::uint64_t devices_a_node = 8;
    for (std::uint64_t i = 0; i < devices; ++i) {
      const std::string node = "n" + std::to_string(i / devices_a_node);
      if (i % devices_a_node == 0)
        batch.push_back(
            {AttachNode{node, "here", MilliCpu{64'000}, Mebibytes{524'288}}, actor, {}, {}});
      DeviceFacts facts;
      facts.uuid = "gpu-" + std::to_string(i);
      facts.type = "a100";
      facts.memory = Mebibytes{80 * 1024};
      facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
      batch.push_back({AttachDevice{node, facts}, actor, {}, {}});
    }
    RateCard card;
    card.on_demand = Money(Money::units_per_one / 50, Currency("USD"));
    batch.push_back({PublishRateCard{card}, actor, {}, {}});
    for (int i = 0; i < 10; ++i) {
      TenantSpec tenant;
      tenant.name = "tenant" + std::to_string(i);
      tenant.payment = PaymentMode::postpaid;
      tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000'000, Currency("USD"));
      batch.push_back({CreateTenant{tenant}, actor, {}, {}});
    }
    loop.run(std::move(batch));
  }

  static TaskSpec spec() {
    TaskSpec spec;
    spec.name = "job";
    spec.command = {"/usr/bin/train", "--steps", "100"};
    spec.request.ce = MilliCe{10'000};
    spec.request.memory = Mebibytes{8192};
    return spec;
  }

  static engine::Submission task(std::uint64_t number, TaskSpec what = spec()) {
    return {SubmitTask{TenantId{number % 10 + 1}, std::move(what)}, actor, {}, {}};
  }

  ReportEnded ended(LeaseId lease, Epoch epoch) const {
    ReportEnded ended;
    ended.lease = lease;
    ended.epoch = epoch;
    ended.ended_at = clock.time;
    return ended;
  }

  // `count` tasks are submitted, start, run a second and end, `at_once` in a batch; none of them
  // waits for another, or the next batch would run more tasks than it is charged with.
  Result<void> live(std::uint64_t count, std::uint64_t at_once) {
    for (std::uint64_t done = 0; done < count; done += at_once) {
      std::vector<engine::Submission> batch;
      for (std::uint64_t i = 0; i < at_once; ++i) batch.push_back(task(done + i));
      loop.run(std::move(batch));
      report_all();
      if (const std::size_t left = loop.state().tasks.size(); left != 0)
        return invalid(std::to_string(left) + " of " + std::to_string(at_once) +
                       " tasks found no room at once");
    }
    return {};
  }

  void report_all() {
    std::vector<engine::Submission> batch;
    for (const engine::LaunchEffect& effect : executor.launched) {
      batch.push_back({ReportStarted{effect.lease, effect.epoch, clock.time}, actor, {}, {}});
    }
    loop.run(std::move(batch));
    clock.time = clock.time + Duration::seconds(1);
    batch.clear();
    for (const engine::LaunchEffect& effect : executor.launched) {
      batch.push_back({ended(effect.lease, effect.epoch), actor, {}, {}});
    }
    executor.launched.clear();
    loop.run(std::move(batch));
  }
};

Result<void> measure_lives(Report& report) {
  Bench bench(1000);
  LOAM_CHECK(bench.live(20'000, 100));
  constexpr std::uint64_t lives = 200'000;
  Result<void> lived;
  const double seconds = core_seconds_of([&] { lived = bench.live(lives, 100); });
  LOAM_CHECK(lived);
  report.set("engine.lives_per_second", static_cast<double>(lives) / seconds,
             "1,000 devices, 10 tenants, batches of 100");
  return {};
}

std::size_t state_bytes(const Bench& bench) {
  return engine::encode(engine::image_of(bench.loop.state())).size();
}

// The same work with next to nothing and with a million finished tasks behind it.
Result<void> measure_history(Report& report) {
  Bench fresh(100);
  Bench old(100);
  LOAM_CHECK(fresh.live(10, 10));
  report.progress("a million finished tasks");
  LOAM_CHECK(old.live(1'000'000, 500));
  Result<void> lived;
  const auto thousand = [&lived](Bench& bench) {
    return core_seconds_of([&] {
      const Result<void> these = bench.live(1000, 100);
      if (!these) lived = these;
    });
  };
  const Median ratio =
      compare_alternating([&] { return thousand(old); }, [&] { return thousand(fresh); });
  LOAM_CHECK(lived);
  // What is not there cannot be touched: every table of the state, and the scheduler's.
  report.set("engine.history_state_ratio",
             static_cast<double>(state_bytes(old)) / static_cast<double>(state_bytes(fresh)),
             "the whole state as text, 1,000,000 finished tasks against 10 behind it");
  report.set("engine.history_cost_ratio", ratio.value, ratio.interval,
             "1,000,000 finished tasks against 10, the same work");
  return {};
}

// Every kind of command on a full pool, each timed alone.
class Stopwatch {
 public:
  explicit Stopwatch(Bench& bench)
      : state_(engine::state_of(engine::image_of(bench.loop.state()))), now_(bench.clock.time) {}

  void time(const Command& command) {
    const double seconds = core_seconds_of([&] {
      const engine::Decision decision = engine::decide(state_, now_, command);
      for (const Event& event : decision.events) {
        engine::evolve(state_, {state_.sequence + 1, now_, actor, event});
      }
    });
    longest_ = std::max(longest_, seconds);
  }
  // Whether leases on lost devices wait for their end.
  bool loses() const { return !state_.lost_in_use.empty(); }
  double longest_ms() const { return longest_ * 1000; }

 private:
  engine::State state_;
  Instant now_;
  double longest_ = 0;
};

Result<void> measure_commands(Report& report) {
  Bench bench(1000);
  std::vector<engine::Submission> batch;
  for (std::uint64_t i = 0; i < 12'000; ++i) batch.push_back(bench.task(i));
  bench.loop.run(std::move(batch));
  Stopwatch watch(bench);
  Random random(1);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t lease = random.below(10'000) + 1;
    watch.time(bench.task(i).command);
    watch.time(ReportStarted{LeaseId{lease}, Epoch{1}, bench.clock.time});
    watch.time(PauseTask{TaskId{random.below(12'000) + 1}});
    watch.time(StopTask{TaskId{random.below(12'000) + 1}});
    watch.time(bench.ended(LeaseId{lease}, Epoch{1}));
    watch.time(SchedulePass{});
    watch.time(TimePassed{});
    watch.time(TopUp{TenantId{1}, Money(1, Currency("USD")), ""});
  }
  for (std::uint64_t device = 1; device <= 100; ++device) {
    watch.time(ReportDeviceHealth{DeviceId{device}, DeviceHealth::lost, "gone", bench.clock.time});
    while (watch.loses()) watch.time(EndLost{});
  }
  for (std::uint64_t tenant = 1; tenant <= 10; ++tenant) watch.time(IssueInvoice{TenantId{tenant}});
  report.set("engine.longest_command", watch.longest_ms(),
             "decide and evolve; 1,000 full devices, 2,000 tasks waiting");
  return {};
}

// The same on a big pool that is full, with a queue behind it of which the first has a plan.
Result<void> measure_big_pool(Report& report) {
  report.progress("100,000 full devices");
  Bench bench(100'000);
  Random random(2);
  const auto task = [&](std::uint64_t number) {
    TaskSpec spec = Bench::spec();
    spec.request = {};
    spec.request.share = whole_device;
    spec.request.devices = 2;
    spec.limit = Duration::minutes(random.between(10, 600));
    return Bench::task(number, std::move(spec));
  };
  for (std::uint64_t at = 0; at < 70'000; at += 1'000) {
    std::vector<engine::Submission> batch;
    for (std::uint64_t i = 0; i < 1'000; ++i) batch.push_back(task(at + i));
    bench.loop.run(std::move(batch));
  }
  Stopwatch watch(bench);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t lease = random.below(50'000) + 1;
    watch.time(task(i).command);
    watch.time(bench.ended(LeaseId{lease}, Epoch{1}));
    watch.time(SchedulePass{});
    watch.time(SchedulePass{});
    watch.time(TimePassed{});
  }
  report.set("engine.longest_command_100k", watch.longest_ms(),
             "decide and evolve; 100,000 full devices, 50,000 tasks running, 20,000 waiting");
  return {};
}

Result<void> measure_snapshot(Report& report) {
  report.progress("100,000 devices");
  Bench bench(100'000);
  std::vector<engine::Submission> batch;
  for (std::uint64_t i = 0; i < 10'000; ++i) batch.push_back(bench.task(i));
  bench.loop.run(std::move(batch));
  std::vector<double> pauses;
  for (int i = 0; i < 11; ++i) {
    std::size_t devices = 0;
    pauses.push_back(1000 * core_seconds_of([&] {
                       devices = engine::image_of(bench.loop.state()).devices.size();
                     }));
    if (devices != 100'000) return invalid("the snapshot lost devices");
  }
  const Median pause = median_of(std::move(pauses));
  report.set("engine.snapshot_pause", pause.value, pause.interval,
             "100,000 devices, 10,000 live tasks");
  return {};
}

LOAM_BENCHMARK(engine, {{"engine.lives_per_second", "1/s", at_least(50'000)},
                        {"engine.history_cost_ratio", "ratio", at_most(1.3)},
                        {"engine.history_state_ratio", "ratio", at_most(1.05)},
                        {"engine.longest_command", "ms", at_most(2)},
                        {"engine.longest_command_100k", "ms", at_most(2)},
                        {"engine.snapshot_pause", "ms", at_most(50)}}) {
  LOAM_CHECK(measure_lives(report));
  LOAM_CHECK(measure_history(report));
  LOAM_CHECK(measure_commands(report));
  LOAM_CHECK(measure_big_pool(report));
  return measure_snapshot(report);
}

}  // namespace
}  // namespace loam::bench

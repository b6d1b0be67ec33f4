// Job traces through the scheduler: the reference orders against a small independent simulation,
// and the promises of the orders for unknown lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "base/random.hpp"
#include "sim/trace/jobs_run.hpp"

namespace loam::sim {
namespace {

using Jobs = std::vector<TraceJob>;

// Arrivals over some hours; widths and lengths as on training clusters: mostly small, some large.
Jobs random_jobs(Random& random, std::size_t count, std::int64_t devices) {
  Jobs jobs(count);
  std::int64_t at = 0;
  for (TraceJob& job : jobs) {
    at += random.between(0, 400);
    job.arrival = Instant{at * 1000};
    const auto octave = static_cast<double>(random.between(0, 80)) / 10;
    job.length = Duration::seconds(30 + static_cast<std::int64_t>(30 * std::exp2(octave)));
    job.devices = std::min<std::int64_t>(devices, std::int64_t{1} << random.below(4));
  }
  return jobs;
}

JobsSetting setting_of(const char* name, std::int64_t devices, Duration cost = {}) {
  JobsSetting setting;
  setting.devices = devices;
  setting.discipline = *schedule::discipline_named(name);
  setting.knowledge = knowledge_of(setting.discipline);
  setting.preemption_cost = cost;
  return setting;
}

// The reference conventions, written down as plainly as they go, in whole milliseconds.
class Plain {
 public:
  Plain(const Jobs& jobs, std::int64_t devices, std::string name)
      : jobs_(jobs), devices_(devices), name_(std::move(name)) {
    served_.assign(jobs.size(), 0);
    ends_.assign(jobs.size(), -1);
  }

  std::vector<std::int64_t> run() {
    std::size_t arrived = 0;
    while (std::count(ends_.begin(), ends_.end(), -1) > 0) {
      std::int64_t next = std::numeric_limits<std::int64_t>::max();
      if (arrived < jobs_.size()) next = jobs_[arrived].arrival.ms;
      for (const std::size_t i : running_) next = std::min(next, now_ + left(i));
      if (name_ == "las2" && !(running_.empty() && waiting_.empty()))
        next = std::min(next, now_ + 120'000);
      for (const std::size_t i : running_) served_[i] += next - now_;
      now_ = next;
      for (const std::size_t i : std::set(running_)) {
        if (left(i) > 0) continue;
        ends_[i] = now_;
        running_.erase(i);
      }
      while (arrived < jobs_.size() && jobs_[arrived].arrival.ms <= now_)
        waiting_.insert(arrived++);
      name_ == "srtf" || name_ == "srsf" || name_ == "las2" ? refill() : fill();
    }
    return ends_;
  }

 private:
  using Key = std::pair<std::int64_t, std::size_t>;
  std::int64_t left(std::size_t i) const { return jobs_[i].length.ms - served_[i]; }
  Key key(std::size_t i) const {
    if (name_ == "sjf") return {jobs_[i].length.ms, i};
    if (name_ == "srtf") return {left(i), i};
    if (name_ == "srsf") return {left(i) * jobs_[i].devices, i};
    if (name_ == "las2") return {served_[i] * jobs_[i].devices >= 3'600'000, i};
    return {0, i};
  }
  std::vector<std::size_t> sorted(std::set<std::size_t> from) const {
    std::vector<std::size_t> order(from.begin(), from.end());
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  }
  std::int64_t free() const {
    return std::accumulate(running_.begin(), running_.end(), devices_,
                           [&](std::int64_t n, std::size_t i) { return n - jobs_[i].devices; });
  }

  void refill() {
    std::set<std::size_t> all = running_;
    all.insert(waiting_.begin(), waiting_.end());
    running_.clear();
    waiting_.clear();
    for (const std::size_t i : sorted(all))
      (jobs_[i].devices <= free() ? running_ : waiting_).insert(i);
  }

  void fill() {
    while (const auto go = next_start()) {
      waiting_.erase(*go);
      running_.insert(*go);
    }
  }

  std::optional<std::size_t> next_start() const {
    const std::vector<std::size_t> order = sorted(waiting_);
    if (order.empty()) return std::nullopt;
    if (jobs_[order[0]].devices <= free()) return order[0];
    if (name_ == "fifo") return std::nullopt;
    std::int64_t shadow = std::numeric_limits<std::int64_t>::max();
    std::int64_t spare = 0;
    if (name_ == "easy") {
      std::set<std::int64_t> times;
      for (const std::size_t i : running_) times.insert(now_ + left(i));
      for (const std::int64_t at : times) {
        std::int64_t then = free();
        for (const std::size_t i : running_) {
          if (now_ + left(i) <= at) then += jobs_[i].devices;
        }
        if (then < jobs_[order[0]].devices) continue;
        shadow = at;
        spare = then - jobs_[order[0]].devices;
        break;
      }
    }
    for (const std::size_t i : order) {
      if (jobs_[i].devices > free()) continue;
      if (now_ + jobs_[i].length.ms <= shadow || jobs_[i].devices <= spare) return i;
    }
    return std::nullopt;
  }

  const Jobs& jobs_;
  std::int64_t devices_;
  std::string name_;
  std::int64_t now_ = 0;
  std::vector<std::int64_t> served_;
  std::vector<std::int64_t> ends_;
  std::set<std::size_t> running_;
  std::set<std::size_t> waiting_;
};

TEST(JobsRun, ReferenceOrdersEndEveryTaskWhenAPlainSimulationDoes) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const std::int64_t devices = random.between(8, 24);
    const Jobs jobs = random_jobs(random, 60, devices);
    for (const char* name : {"fifo", "easy", "any", "sjf", "srtf", "srsf", "las2"}) {
      const auto outcome = run_jobs(jobs, setting_of(name, devices));
      ASSERT_TRUE(outcome.ok()) << to_text(outcome.error());
      const std::vector<std::int64_t> ends = Plain(jobs, devices, name).run();
      for (std::size_t i = 0; i < jobs.size(); ++i)
        ASSERT_EQ(outcome->fates[i].finished.ms, ends[i])
            << name << " seed " << seed << " task " << i;
    }
  }
}

TEST(JobsRun, FiguresOfATraceThatCanBeReckonedByHand) {
  // Two devices: 1 runs 0–100 on both, 2 waits for it, 3 for 2.
  const Jobs jobs{{Instant{0}, Duration::seconds(100), 2, {}},
                  {Instant{10'000}, Duration::seconds(50), 1, {}},
                  {Instant{20'000}, Duration::seconds(10), 2, {}}};
  const auto outcome = run_jobs(jobs, setting_of("fifo", 2));
  ASSERT_TRUE(outcome.ok());
  EXPECT_DOUBLE_EQ(outcome->completion_mean_s, (100 + 140 + 140) / 3.0);
  EXPECT_DOUBLE_EQ(outcome->wait_max_s, 130);
  EXPECT_DOUBLE_EQ(outcome->wait_p99_s, 90);  // element ⌊0.99 · 2⌋ = 1
  EXPECT_DOUBLE_EQ(outcome->makespan_s, 160);
  EXPECT_EQ(outcome->preemptions, 0);
  EXPECT_DOUBLE_EQ(outcome->utilisation, (200 + 50 + 20) / 320.0);
  EXPECT_EQ(to_csv(jobs, *outcome),
            "task,arrival_s,devices,duration_s,started_s,finished_s,wait_s,preemptions\n"
            "1,0,2,100,0,100,0,0\n"
            "2,10,1,50,100,150,90,0\n"
            "3,20,2,10,150,160,130,0\n");
}

TEST(JobsRun, APreemptedTaskPaysItsCostWheneverItResumes) {
  // The short one takes the device; the long one owes 60 s when it comes back.
  const Jobs jobs{{Instant{0}, Duration::seconds(1000), 1, {}},
                  {Instant{100'000}, Duration::seconds(10), 1, {}}};
  const auto outcome = run_jobs(jobs, setting_of("srtf", 1, Duration::seconds(60)));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->preemptions, 1);
  EXPECT_EQ(outcome->fates[1].finished, Instant{110'000});
  EXPECT_EQ(outcome->fates[0].finished, Instant{1'070'000});
}

TEST(JobsRun, ATaskWiderThanThePoolIsRefused) {
  const auto outcome = run_jobs({{Instant{0}, Duration::seconds(1), 3, {}}}, setting_of("fifo", 2));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, ErrorKind::invalid_argument);
}

TEST(JobsRun, EveryDisciplineEndsEveryTaskAndTakesNoMoreThanThereIs) {
  for (const std::string_view name : schedule::discipline_names()) {
    Random random(99);
    Jobs jobs = random_jobs(random, 80, 16);
    state_limits(jobs, 1, 1000, 3000);
    const auto outcome =
        run_jobs(jobs, setting_of(std::string(name).c_str(), 16, Duration::seconds(60)));
    ASSERT_TRUE(outcome.ok()) << name << ": " << to_text(outcome.error());
    for (const auto& [at, busy] : outcome->busy) {
      EXPECT_GE(busy, 0) << name;
      EXPECT_LE(busy, 16) << name;
    }
    EXPECT_EQ(outcome->busy.back().second, 0) << name;
    EXPECT_LE(outcome->utilisation, 1) << name;
  }
}

// --- The bound on waiting
// -------------------------------------------------------------------------
//
// On N identical devices, no task wider than G, let X be a task's device time with all that it may
// cost: its length, a charge for every preemption it may suffer, and for those it may cause when
// overdue. C = N − G + 1 devices are busy whenever anything waits. With Y the largest X a device of
// width, and s the largest excess of arriving X over C in any interval, no task waits longer than
//     overdue_after + (N·Y + s) / C.

double bound_s(const Jobs& jobs, const JobsSetting& setting) {
  const schedule::Discipline& d = setting.discipline;
  const auto seconds = [](Duration duration) { return static_cast<double>(duration.ms) / 1000; };
  std::int64_t widest = 0;
  for (const TraceJob& job : jobs) widest = std::max(widest, job.devices);
  const auto devices = static_cast<double>(setting.devices);
  const double served_at_least = devices - static_cast<double>(widest) + 1;
  const double cost = seconds(setting.preemption_cost);
  double per_device = 0;  // Y
  double excess = 0;      // s
  double running = 0;
  double last = 0;
  for (const TraceJob& job : jobs) {  // by arrival
    const auto width = static_cast<double>(job.devices);
    const double often = static_cast<double>(d.preemptions_max) +
                         std::floor(seconds(job.length) / seconds(d.preemption_earned));
    const double work =
        width * (seconds(job.length) + cost * often) + cost * (width + static_cast<double>(widest));
    per_device = std::max(per_device, work / width);
    const double at = static_cast<double>(job.arrival.ms) / 1000;
    running = std::max(0.0, running - served_at_least * (at - last)) + work;
    last = at;
    excess = std::max(excess, running);
  }
  return seconds(d.overdue_after) + (devices * per_device + excess) / served_at_least;
}

TEST(JobsRun, NobodyWaitsLongerThanTheBoundUnderOrdersForUnknownLengths) {
  std::size_t overdue = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const std::int64_t devices = random.between(8, 32);
    Jobs jobs = random_jobs(random, 80, devices);
    state_limits(jobs, seed, 1000, 10'000);
    for (const char* name : {"blind", "semi_blind"}) {
      JobsSetting setting = setting_of(name, devices, Duration::seconds(60));
      setting.discipline.overdue_after = Duration::minutes(random.between(5, 120));
      const auto outcome = run_jobs(jobs, setting);
      ASSERT_TRUE(outcome.ok()) << to_text(outcome.error());
      EXPECT_LE(outcome->wait_max_s, bound_s(jobs, setting)) << name << " seed " << seed;
      overdue +=
          outcome->wait_max_s * 1000 > static_cast<double>(setting.discipline.overdue_after.ms);
    }
  }
  EXPECT_GT(overdue, 20U) << "the bound was hardly put to the test";
}

// A wide task among an endless stream of narrow ones, each of which fits beside the others.
Jobs starving_jobs() {
  Jobs jobs;
  for (std::int64_t i = 0; i < 3000; ++i)
    jobs.push_back({Instant{i * 100'000}, Duration::seconds(350), 1, Duration::seconds(700)});
  jobs.push_back({Instant{10'000}, Duration::seconds(100), 4, Duration::seconds(200)});
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.arrival < b.arrival; });
  return jobs;
}

TEST(JobsRun, SmallTasksDoNotStarveAGang) {
  const Jobs jobs = starving_jobs();
  for (const char* name : {"blind", "semi_blind", "easy", "conservative", "fifo", "priority"}) {
    JobsSetting setting = setting_of(name, 4, Duration::seconds(60));
    const auto outcome = run_jobs(jobs, setting);
    ASSERT_TRUE(outcome.ok());
    EXPECT_LT(outcome->fates[1].finished, Instant::never());
    EXPECT_LT((outcome->fates[1].started - jobs[1].arrival).ms, Duration::hours(27).ms) << name;
  }
  // Without a rule it waits for the stream to end.
  const auto outcome = run_jobs(jobs, setting_of("any", 4));
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT((outcome->fates[1].started - jobs[1].arrival).ms, Duration::hours(80).ms);
}

TEST(JobsRun, UnknownLengthsPreemptLessThanTwiceATask) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    const Jobs jobs = random_jobs(random, 120, 12);
    const auto outcome = run_jobs(jobs, setting_of("blind", 12, Duration::seconds(60)));
    ASSERT_TRUE(outcome.ok());
    EXPECT_LE(outcome->preemptions, 240);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::int64_t most = 5 + jobs[i].length.ms / Duration::hours(6).ms;
      EXPECT_LE(outcome->fates[i].preemptions, most + 1);
    }
  }
}

}  // namespace
}  // namespace loam::sim

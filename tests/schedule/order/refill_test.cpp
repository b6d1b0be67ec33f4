// Disciplines that fill their queue anew at every pass: it comes to rest at every instant, whoever
// leaves in what order, and nobody is stopped in vain.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

// A pool whose victims take their time: they leave one after the other, with passes between.
class Slow {
 public:
  Slow(const char* how, CountingRoom devices) : room_(std::move(devices)) {
    scheduler.set_queue(0, {"main", discipline(how), 0, 1, {}});
  }

  // Carries out what can be done, until nothing more is decided and everybody has left who was
  // told to. False: it does not come to that.
  bool settle() {
    constexpr int rounds_max = 500;
    for (int i = 0; i < rounds_max; ++i) {
      bool done = false;
      for (const Action& action : scheduler.pass(now, room_).actions)
        done = std::visit([&](const auto& one) { return carry_out(one); }, action) || done;
      if (done) continue;
      if (scheduler.stopping().empty()) return true;
      const TaskId leaving = *scheduler.stopping().begin();
      room_.give_back(scheduler.standing(leaving).place);
      scheduler.is_preempted(leaving, now);
    }
    return false;
  }

  void end_one(std::uint64_t which) {
    if (scheduler.running().empty()) return;
    auto task = scheduler.running().begin();
    std::advance(task, static_cast<std::ptrdiff_t>(which % scheduler.running().size()));
    const TaskId ended = *task;
    room_.give_back(scheduler.standing(ended).place);
    scheduler.leaves(ended, now, true);
  }

  Scheduler scheduler;
  Instant now{1'000'000};

 private:
  bool carry_out(const Start& start) {
    const Job& job = scheduler.standing(start.task).job;
    if (!room_.holds(start.place)) return false;
    if (scheduler.quotas().check(job.tenant, job.takes, job.limit)) return false;
    room_.take(start.place);
    scheduler.starts(start.task, now, start.place);
    return true;
  }
  bool carry_out(const Preempt& preempt) {
    // Nobody is stopped in vain, and what is cleared is kept for the one it is cleared for.
    EXPECT_TRUE(preempt.task.valid());
    if (!preempt.task.valid()) return false;
    for (const TaskId victim : preempt.victims) scheduler.is_stopping(victim, now);
    scheduler.is_promised(preempt.task, now, {preempt.task, now, preempt.place}, true);
    return true;
  }
  template <class Other>
  bool carry_out(const Other&) {
    return false;
  }

  CountingRoom room_;
};

Job part_of_a_device(std::uint64_t id, Random& random) {
  Job made = job(id, 1, random.below(3) + 1);
  made.ask.demand.share = MilliDevice{random.between(1, 10) * 100};
  made.ask.count = random.chance(200) ? 2 : 1;
  if (random.chance(500)) made.ask.demand.device_types = {random.chance(500) ? "a100" : "t4"};
  made.milli = made.ask.demand.share->value * made.ask.count;
  made.takes[Dimension::devices] = made.milli;
  made.limit = Duration::minutes(random.between(1, 600));
  return made;
}

TEST(Refill, ComesToRestAtEveryInstant) {
  for (const char* how : {"srtf", "srsf", "las2", "mlfq"}) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      Slow pool(how, CountingRoom({{"a100", random.between(1, 3)}, {"t4", random.between(1, 3)}}));
      for (std::uint64_t tenant = 1; tenant <= 3; ++tenant) {
        if (random.chance(300)) continue;
        QuotaSpec quota;
        quota.nominal[static_cast<std::size_t>(Dimension::devices)] = random.between(5, 25) * 100;
        pool.scheduler.quotas().set(TenantId{tenant}, quota);
      }
      for (std::uint64_t id = 1; id <= 40; ++id) {
        Job next = part_of_a_device(id, random);
        next.arrival = pool.now;
        pool.scheduler.arrives(std::move(next), pool.now);
        ASSERT_TRUE(pool.settle()) << how << ", seed " << seed << ", task " << id;
        pool.now = pool.now + Duration::minutes(random.between(0, 20));
        if (random.chance(400)) pool.end_one(random.next());
        ASSERT_TRUE(pool.settle()) << how << ", seed " << seed << ", after task " << id;
      }
    }
  }
}

}  // namespace
}  // namespace loam::schedule

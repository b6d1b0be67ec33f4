// When tasks may start: in the cheapest hours before a deadline, and each time that a recurring one
// is due.
#include "engine/start_times.hpp"
#include "engine/region.hpp"

namespace loam::engine {
namespace {

class StartTimesTest : public ::testing::Test {
 protected:
  // By day (8 to 20 in Berlin, 7 to 19 UTC) 3, at night 1.
  void SetUp() override { ASSERT_FALSE(region.publish(day_and_night(), "2").reject); }

  static TaskSpec spec(Duration limit, std::optional<Instant> deadline) {
    TaskSpec made = Region::spec();
    made.tariff = Tariff::time_of_day;
    made.limit = limit;
    made.grace = Duration{0};
    made.deadline = deadline;
    return made;
  }
  TaskId submit(const TaskSpec& made) {
    const Decision decision = region.act(SubmitTask{acme, made});
    EXPECT_FALSE(decision.reject) << decision.reject->message;
    region.settle();
    return *TaskId::parse(decision.subject);
  }
  bool runs(TaskId id) const {
    const Task* task = region.state.find_task(id);
    return task != nullptr && !task->leases.empty();
  }
  // Starts and ends what was granted.
  void live(AttemptEnd end = AttemptEnd::exited) {
    for (const auto& [id, lease] : std::map(region.state.leases)) {
      region.act(ReportStarted{id, lease.epoch, region.now, false});
      region.now = region.now + Duration::minutes(1);
      ReportEnded ended;
      ended.lease = id;
      ended.epoch = lease.epoch;
      ended.end = end;
      ended.started_at = ended.ended_at = region.now;
      region.act(ended);
      region.settle();
    }
  }
  const Task* only_task() const {
    return region.state.tasks.size() == 1 ? &region.state.tasks.begin()->second : nullptr;
  }

  Region region;
};

TEST_F(StartTimesTest, ADeadlineFarAwayWaitsForTheNight) {
  region.go(start + hour * 8);
  const TaskSpec made = spec(hour * 2, start + hour * 24);
  const QuoteAnswer answer = quote(region.state, region.now, acme, made);
  ASSERT_FALSE(answer.reject);
  EXPECT_FALSE(answer.quote->starts_now);
  EXPECT_EQ(answer.quote->room_by, start + hour * 19);
  EXPECT_EQ(answer.quote->unit_price, money("1"));
  const TaskId task = submit(made);
  EXPECT_FALSE(runs(task));
  EXPECT_EQ(why_waits(region.state, region.state.tasks.at(task)).code, "not_due");
  region.go(start + hour * 19 - Duration{1});
  EXPECT_FALSE(runs(task));
  region.go(start + hour * 19);
  EXPECT_TRUE(runs(task));
}

TEST_F(StartTimesTest, ANearOneTakesWhatItCanOfTheNight) {
  region.go(start + hour * 8);
  const TaskId task = submit(spec(hour * 2, start + hour * 20));
  EXPECT_EQ(region.state.tasks.at(task).not_before, start + hour * 18);
}

TEST_F(StartTimesTest, WhereThePriceNeverChangesNothingIsPutOff) {
  region.go(start + hour * 8);
  TaskSpec made = spec(hour * 2, start + hour * 24);
  made.tariff = Tariff::flat;
  EXPECT_TRUE(runs(submit(made)));
}

TEST_F(StartTimesTest, ADeadlineThatItsLimitDoesNotMeetIsRefused) {
  const auto reject = region.act(SubmitTask{acme, spec(hour * 2, start + hour)}).reject;
  ASSERT_TRUE(reject);
  EXPECT_EQ(reject->code, RejectCode::invalid_argument);
}

TEST_F(StartTimesTest, ARecurringTaskRunsEachTimeItIsDue) {
  TaskSpec made = spec(hour, std::nullopt);
  made.recurrence = "0 2 * * * Europe/Berlin";
  const TaskId first = submit(made);
  EXPECT_FALSE(runs(first));
  for (int day = 0; day < 3; ++day) {
    region.go(start + hour * (24 * day + 1));
    ASSERT_NE(only_task(), nullptr);
    ASSERT_TRUE(runs(only_task()->id)) << day;
    live();
    ASSERT_NE(only_task(), nullptr) << "the next run is accepted once this one ended";
    EXPECT_EQ(only_task()->not_before, start + hour * (24 * day + 25));
  }
  ASSERT_FALSE(region.act(StopTask{only_task()->id}).reject);
  EXPECT_TRUE(region.state.tasks.empty()) << "stopped, it recurs no more";
}

TEST_F(StartTimesTest, WhatWasMissedRunsOnce) {
  TaskSpec made = spec(hour * 30, std::nullopt);
  made.recurrence = "@hourly";
  submit(made);
  region.go(start + hour);
  region.now = start + hour * 5 + Duration::minutes(10);
  live();
  EXPECT_EQ(only_task()->not_before, start + hour * 6);
}

TEST_F(StartTimesTest, ARecurrenceThatNobodyCanReadIsRefused) {
  for (const char* text :
       {"2 * *", "61 * * * *", "0 0 30 2 *", "0 2 * * * Mars/Olympus", "@often"}) {
    TaskSpec made = spec(hour, std::nullopt);
    made.recurrence = text;
    const auto reject = region.act(SubmitTask{acme, made}).reject;
    ASSERT_TRUE(reject) << text;
    EXPECT_NE(reject->message.find(text), std::string::npos);
  }
}

// Each piece ends in a checkpoint; the last one in the task's limit.
TEST_F(StartTimesTest, SegmentsFollowOneAnother) {
  TaskSpec made = spec(hour * 3, std::nullopt);
  made.segments = 3;
  const TaskId task = submit(made);
  for (int piece = 0; piece < 3; ++piece) {
    ASSERT_EQ(region.state.leases.size(), 1U) << piece;
    const LeaseId id = region.state.leases.begin()->first;
    const Lease& lease = region.state.leases.at(id);
    region.act(ReportStarted{id, lease.epoch, region.now, false});
    EXPECT_EQ(lease.stop_at, start + hour * (piece + 1));
    region.go(start + hour * (piece + 1));
    EXPECT_EQ(lease.stopping, piece < 2 ? StopReason::segment : StopReason::limit);
    ReportEnded ended;
    ended.lease = id;
    ended.epoch = lease.epoch;
    ended.started_at = lease.started_at;
    ended.ended_at = region.now;
    region.act(ended);
    region.settle();
  }
  EXPECT_EQ(region.state.find_task(task), nullptr);
  EXPECT_TRUE(region.held().is_zero());
}

// Its end was told after the segment's: it is done all the same, and not begun again for ever.
TEST_F(StartTimesTest, WhatEndedBeforeItsSegmentIsDone) {
  TaskSpec made = spec(hour * 3, std::nullopt);
  made.segments = 3;
  const TaskId task = submit(made);
  const LeaseId id = region.state.leases.begin()->first;
  const Lease& lease = region.state.leases.at(id);
  region.act(ReportStarted{id, lease.epoch, region.now, false});
  region.go(start + hour);
  ASSERT_EQ(lease.stopping, StopReason::segment);
  ReportEnded ended;
  ended.lease = id;
  ended.epoch = lease.epoch;
  ended.started_at = lease.started_at;
  ended.ended_at = start + hour - Duration::seconds(1);
  region.act(ended);
  region.settle();
  EXPECT_EQ(region.state.find_task(task), nullptr);
}

TEST_F(StartTimesTest, SegmentsOfNoLengthAreRefused) {
  TaskSpec made = spec(Duration::minutes(5), std::nullopt);
  for (const std::int64_t segments : {0, -1, 6}) {
    made.segments = segments;
    EXPECT_TRUE(region.act(SubmitTask{acme, made}).reject) << segments;
  }
}

TEST_F(StartTimesTest, ItEndsWhereItsNextRunCannotBePaid) {
  TaskSpec made = spec(hour, std::nullopt);
  made.recurrence = "@hourly";
  submit(made);
  region.go(start + hour);
  ASSERT_FALSE(region.act(PayOut{acme, available(region.state, acme), "all"}).reject);
  std::string reason;
  region.on_decision = [&](const Decision& decision) {
    for (const Event& event : decision.events)
      if (const auto* finished = std::get_if<TaskFinished>(&event)) reason = finished->reason;
  };
  live();
  EXPECT_TRUE(region.state.tasks.empty());
  EXPECT_NE(reason.find("recurs no more"), std::string::npos) << reason;
}

}  // namespace
}  // namespace loam::engine

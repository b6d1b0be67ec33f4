// The loop's promises: durable before anyone is told, reports before submissions, effects again
// after a crash, nothing at all when the journal takes nothing.
#include "engine/loop.hpp"

#include <gtest/gtest.h>

#include "engine/snapshot.hpp"

namespace loam::engine {
namespace {

constexpr Instant opened_at{1'767'225'600'000};
const Actor actor{"test", "me"};

class TestClock final : public Clock {
 public:
  Instant now() override { return time; }
  Instant time = opened_at;
};

class TestJournal final : public Journal {
 public:
  Result<void> append(std::span<const Record> batch) override {
    if (full) return Error{ErrorKind::unavailable, "full", "make room"};
    ++appends;
    records.insert(records.end(), batch.begin(), batch.end());
    return {};
  }
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const Record&)>& each) override {
    for (const Record& record : records) {
      if (record.sequence > after) LOAM_CHECK(each(record));
    }
    return {};
  }
  Result<StateImage> load_snapshot() override { return StateImage{}; }

  std::vector<Record> records;
  std::size_t appends = 0;
  bool full = false;
};

class TestExecutor final : public Executor {
 public:
  explicit TestExecutor(const TestJournal& journal) : journal_(journal) {}
  void launch(const State&, const LaunchEffect& effect) override {
    EXPECT_GT(journal_.records.size(), 0u);
    launched.push_back(effect.lease);
  }
  void stop(const State&, const StopEffect& effect) override { stopped.push_back(effect.lease); }

  std::vector<LeaseId> launched;
  std::vector<LeaseId> stopped;

 private:
  const TestJournal& journal_;
};

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    EXPECT_TRUE(loop.recover().ok());
    DeviceFacts facts;
    facts.uuid = "gpu-0";
    facts.memory = Mebibytes{1000};
    facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
    RateCard card;
    card.on_demand = Money(Money::units_per_one, Currency("USD"));
    TenantSpec tenant;
    tenant.name = "acme";
    tenant.payment = PaymentMode::postpaid;
    tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000, Currency("USD"));
    ask({AttachNode{"n1", "", MilliCpu{}, Mebibytes{}}, AttachDevice{"n1", facts},
         PublishRateCard{card}, CreateTenant{tenant}});
  }

  static Command task() {
    TaskSpec spec;
    spec.command = {"true"};
    spec.request.share = whole_device;
    return SubmitTask{TenantId{1}, spec};
  }

  std::vector<Answer> ask(std::vector<Command> commands, RequestKey key = {}) {
    std::vector<Answer> answers(commands.size());
    std::vector<Submission> batch;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      batch.push_back({std::move(commands[i]), actor, key,
                       [&answers, i](const Answer& answer) { answers[i] = answer; }});
    }
    loop.run(std::move(batch));
    return answers;
  }

  TestClock clock;
  TestJournal journal;
  TestExecutor executor{journal};
  Loop loop{clock, journal, executor};
};

TEST_F(LoopTest, OneBatchIsOneAppend) {
  const std::size_t before = journal.appends;
  const auto answers = ask({task(), task(), task()});
  EXPECT_EQ(journal.appends, before + 1);
  EXPECT_EQ(answers[0].subject, "t1");
  EXPECT_EQ(answers[2].subject, "t3");
  EXPECT_EQ(executor.launched.size(), 1u);
}

TEST_F(LoopTest, AFullJournalMeansThatNothingHappened) {
  const std::uint64_t before = digest(loop.state());
  journal.full = true;
  const auto answers = ask({task(), TopUp{TenantId{1}, Money(1, Currency("EUR")), ""}});
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_EQ(answer.error->kind, ErrorKind::unavailable);
  }
  EXPECT_FALSE(loop.healthy());
  EXPECT_TRUE(executor.launched.empty());
  EXPECT_EQ(digest(loop.state()), before);
  journal.full = false;
  EXPECT_TRUE(ask({task()})[0].ok());
  EXPECT_TRUE(loop.healthy());
  EXPECT_EQ(executor.launched.size(), 1u);
}

TEST_F(LoopTest, AReportFreesRoomForTheSubmissionBesideIt) {
  ask({task()});
  ReportEnded ended;
  ended.lease = LeaseId{1};
  ended.epoch = Epoch{1};
  ended.ended_at = opened_at;
  ask({task(), ended});
  EXPECT_EQ(executor.launched, (std::vector<LeaseId>{LeaseId{1}, LeaseId{2}}));
}

TEST_F(LoopTest, AfterACrashLaunchesAndStopsAreSaidAgain) {
  ask({task()});
  TestExecutor fresh(journal);
  Loop again(clock, journal, fresh);
  ASSERT_TRUE(again.recover().ok());
  EXPECT_EQ(fresh.launched, std::vector<LeaseId>{LeaseId{1}});
  EXPECT_EQ(digest(again.state()), digest(loop.state()));

  ask({ReportStarted{LeaseId{1}, Epoch{1}, opened_at}});
  TestExecutor running(journal);
  Loop third(clock, journal, running);
  ASSERT_TRUE(third.recover().ok());
  EXPECT_TRUE(running.launched.empty());

  ask({StopTask{TaskId{1}}});
  TestExecutor stopping(journal);
  Loop fourth(clock, journal, stopping);
  ASSERT_TRUE(fourth.recover().ok());
  EXPECT_EQ(stopping.stopped, std::vector<LeaseId>{LeaseId{1}});
}

TEST_F(LoopTest, AJournalWithAHoleIsRefused) {
  journal.records.erase(journal.records.begin() + 1);
  TestExecutor fresh(journal);
  Loop again(clock, journal, fresh);
  const auto recovered = again.recover();
  ASSERT_FALSE(recovered.ok());
  EXPECT_EQ(recovered.error().kind, ErrorKind::corrupt);
}

TEST_F(LoopTest, TwoClientsWithOneKeyAtOnceMakeOneTask) {
  const RequestKey key{"acme", "k", "print"};
  const auto answers = ask({task(), task()}, key);
  EXPECT_EQ(answers[0].subject, "t1");
  EXPECT_EQ(answers[1].subject, "t1");
  EXPECT_EQ(loop.state().tasks.size(), 1u);
}

TEST_F(LoopTest, TheClockMayFallAndInstantsDoNot) {
  clock.time = opened_at + Duration::hours(1);
  ask({task()});
  clock.time = opened_at;
  ask({StopTask{TaskId{1}}});
  for (std::size_t i = 1; i < journal.records.size(); ++i) {
    EXPECT_GE(journal.records[i].at, journal.records[i - 1].at);
  }
}

TEST_F(LoopTest, IsDueAtTheLimitAndAtTheHour) {
  EXPECT_EQ(loop.next_due(), Instant::never());
  ask({task()});
  EXPECT_EQ(loop.next_due(), Instant::never());  // nothing is due before it runs
  ask({ReportStarted{LeaseId{1}, Epoch{1}, opened_at}});
  EXPECT_EQ(loop.next_due(), opened_at + Duration::hours(1));  // its limit, before the metering
  clock.time = loop.next_due();
  ask({});
  EXPECT_EQ(executor.stopped.size(), 1u);
}

}  // namespace
}  // namespace loam::engine

// Storage and network in the books: charged once whatever is told again, kept storage without a
// gap.
#include "engine/region.hpp"

namespace loam::engine {
namespace {

constexpr std::int64_t gib_hour = 1024 * 3'600'000LL;  // MiB × ms

class ServiceBooksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PriceTerms terms;
    terms.services.storage = money("0.10");
    terms.services.network = money("0.02");
    ASSERT_FALSE(region.publish(terms, "2").reject);
  }

  // Submitted, granted and started.
  LeaseId run() {
    const Decision submitted = region.act(SubmitTask{acme, Region::spec()});
    task = *TaskId::parse(submitted.subject);
    region.settle();
    const LeaseId lease = region.state.tasks.at(task).leases.front();
    region.act(ReportStarted{lease, region.state.leases.at(lease).epoch, region.now});
    return lease;
  }
  static ServiceReport held(std::int64_t gib_hours, std::int64_t gib_kept = 0) {
    return {{gib_hours * gib_hour, 0, 0}, Mebibytes{gib_kept * 1024}};
  }
  Decision tell(LeaseId lease, const ServiceReport& report) {
    return region.act(
        ReportServices{lease, region.state.leases.at(lease).epoch, region.now, report});
  }
  void end(LeaseId lease, const ServiceReport& report) {
    ReportEnded ended;
    ended.lease = lease;
    ended.epoch = region.state.leases.at(lease).epoch;
    ended.started_at = region.state.leases.at(lease).started_at;
    ended.ended_at = region.now;
    ended.services = report;
    region.act(ended);
  }
  // Before the discount of 5 %.
  static std::vector<Money> list_of(const Decision& decision) {
    std::vector<Money> amounts;
    for (const Event& event : decision.events) {
      if (const auto* used = std::get_if<ServicesUsed>(&event)) {
        for (const AdjustmentLine& line : used->lines) amounts.push_back(line.list);
      }
    }
    return amounts;
  }

  Region region;
  TaskId task;
};

TEST_F(ServiceBooksTest, WhatIsToldAgainOrLateIsChargedOnce) {
  const LeaseId lease = run();
  region.go(region.now + Duration::hours(1));
  ServiceReport report = held(10);
  report.use.received_bytes = std::int64_t{3} << 30;
  EXPECT_EQ(list_of(tell(lease, report)), (std::vector{money("1"), money("0.06")}));
  EXPECT_TRUE(tell(lease, report).events.empty());
  region.go(region.now + Duration::hours(1));
  EXPECT_TRUE(tell(lease, held(4)).events.empty()) << "an older one";
  EXPECT_EQ(list_of(tell(lease, held(15))), std::vector{money("0.5")});
  EXPECT_EQ(region.state.leases.at(lease).services.storage_mib_ms, 15 * gib_hour);
}

TEST_F(ServiceBooksTest, AQuoteSaysWhatComesOnTop) {
  const QuoteAnswer quoted = quote(region.state, region.now, acme, Region::spec());
  ASSERT_TRUE(quoted.quote.has_value());
  const std::string words =
      "; storage 0.1 USD a GiB-hour held; network 0.02 USD a GiB moved, on top";
  EXPECT_TRUE(quoted.quote->rule.ends_with(words)) << quoted.quote->rule;
}

TEST_F(ServiceBooksTest, AnEndThatNobodyCountedKeepsWhatIsKnown) {
  const LeaseId lease = run();
  region.go(region.now + Duration::hours(1));
  tell(lease, held(1, 2));
  EXPECT_EQ(region.state.tasks.at(task).kept, Mebibytes{2048});
  const Decision none = tell(lease, {});
  EXPECT_TRUE(none.events.empty());
  EXPECT_EQ(region.state.tasks.at(task).kept, Mebibytes{2048});
}

TEST_F(ServiceBooksTest, OneCheckpointOfAGangIsKeptOnce) {
  TaskSpec gang = Region::spec();
  gang.gang = 2;
  const Decision submitted = region.act(SubmitTask{acme, gang});
  task = *TaskId::parse(submitted.subject);
  region.settle();
  const std::vector<LeaseId> leases = region.state.tasks.at(task).leases;
  ASSERT_EQ(leases.size(), 2U);
  for (const LeaseId lease : leases)
    region.act(ReportStarted{lease, region.state.leases.at(lease).epoch, region.now});
  region.go(region.now + Duration::minutes(30));
  tell(leases[0], held(1, 5));
  tell(leases[1], held(1));
  EXPECT_EQ(region.state.tasks.at(task).kept, Mebibytes{5 * 1024});
}

TEST_F(ServiceBooksTest, APausedTaskPaysForWhatItKeepsUntilItRunsOn) {
  const LeaseId lease = run();
  region.go(region.now + Duration::minutes(30));
  region.act(PauseTask{task});
  end(lease, held(1, 3));
  ASSERT_EQ(region.state.tasks.at(task).state, TaskState::paused);
  Money listed = Money::zero(usd);
  const Instant paused = region.now;
  Instant expected = paused;
  region.on_decision = [&](const Decision& decision) {
    for (const Event& event : decision.events) {
      const auto* used = std::get_if<ServicesUsed>(&event);
      if (used == nullptr || used->lease.valid()) continue;
      EXPECT_EQ(used->from, expected) << "no gap, nothing twice";
      expected = used->to;
      for (const AdjustmentLine& line : used->lines) listed += line.list;
    }
  };
  region.go(paused + Duration::minutes(100));
  EXPECT_EQ(expected, paused + Duration::minutes(90)) << "the last full hour";
  region.act(ResumeTask{task});
  region.settle();
  EXPECT_EQ(region.state.tasks.at(task).state, TaskState::starting);
  EXPECT_EQ(expected, paused + Duration::minutes(100)) << "up to its start";
  EXPECT_EQ(listed, money("0.5"));  // 3 GiB × 100 min × 0.10
  EXPECT_TRUE(region.state.kept_hours.empty());
}

TEST_F(ServiceBooksTest, AStoppedTaskPaysUntilThenAndNoLonger) {
  const LeaseId lease = run();
  region.go(region.now + Duration::minutes(60));
  region.act(PauseTask{task});
  end(lease, held(0, 6));
  region.go(region.now + Duration::minutes(10));
  EXPECT_EQ(list_of(region.act(StopTask{task})), std::vector{money("0.1")});
  EXPECT_TRUE(region.state.kept_hours.empty());
  EXPECT_EQ(next_due(region.state, region.now), Instant::never());
}

TEST_F(ServiceBooksTest, ASnapshotKnowsWhatIsKept) {
  const LeaseId lease = run();
  region.go(region.now + Duration::minutes(30));
  region.act(PauseTask{task});
  end(lease, held(1, 3));
  const State restored = state_of(image_of(region.state));
  EXPECT_EQ(restored.kept_hours, region.state.kept_hours);
  EXPECT_EQ(digest(restored), digest(region.state));
}

TEST_F(ServiceBooksTest, AbsurdFiguresAreRefused) {
  const LeaseId lease = run();
  region.go(region.now + Duration::hours(1));
  for (const ServiceReport& report :
       {ServiceReport{{-1, 0, 0}, {}}, ServiceReport{{0, -1, 0}, {}}, ServiceReport{{0, 0, -1}, {}},
        ServiceReport{{0, 0, 0}, Mebibytes{-1}},
        ServiceReport{{std::numeric_limits<std::int64_t>::max(), 0, 0}, {}}}) {
    const Decision decision = tell(lease, report);
    ASSERT_TRUE(decision.reject.has_value());
    EXPECT_TRUE(decision.events.empty());
  }
  ReportServices measured{lease, region.state.leases.at(lease).epoch, region.now, {}, Duration{-1}};
  EXPECT_EQ(region.act(measured).reject->code, RejectCode::invalid_argument);
  ReportServices stale{lease, Epoch{99}, region.now, held(1)};
  EXPECT_EQ(region.act(stale).reject->code, RejectCode::stale_epoch);
}

TEST_F(ServiceBooksTest, WhatALeaseUsesOfItsDevicesIsToldAsItRuns) {
  const LeaseId lease = run();
  region.go(region.now + Duration::hours(1));
  tell(lease, held(0, 2));
  ReportServices report{lease, region.state.leases.at(lease).epoch, region.now, {}, Duration{}};
  const auto told = [&]() -> std::optional<Duration> {
    const Decision decision = region.act(report);
    EXPECT_FALSE(decision.reject);
    if (decision.events.empty()) return std::nullopt;
    const auto& used = std::get<ServicesUsed>(decision.events.front());
    EXPECT_EQ(used.kept, Mebibytes{2048}) << "nobody counted storage: it stays";
    EXPECT_TRUE(used.lines.empty());
    return used.device_time;
  };
  region.go(region.now + Duration::hours(1));
  report.at = region.now;
  EXPECT_EQ(told(), Duration{}) << "nothing used is a measurement";
  report.at = region.now;
  report.device_time = Duration::minutes(7);
  EXPECT_EQ(told(), std::nullopt) << "of a time that was told of";
  region.go(region.now + Duration::hours(1));
  report.at = region.now;
  EXPECT_EQ(told(), Duration::minutes(7));
  report.at = region.now - Duration::minutes(30);
  EXPECT_EQ(told(), std::nullopt) << "late";
}

TEST_F(ServiceBooksTest, OtherFiguresOfATimeThatWasToldOfAreRefused) {
  const LeaseId lease = run();
  const Instant started = region.now;
  region.go(started + Duration::hours(2));
  EXPECT_EQ(list_of(tell(lease, held(10))), std::vector{money("1")});
  ReportServices other{lease, region.state.leases.at(lease).epoch, region.now - Duration::hours(1),
                       held(12)};
  const Decision overlapping = region.act(other);
  ASSERT_TRUE(overlapping.reject.has_value());
  EXPECT_EQ(overlapping.reject->code, RejectCode::duplicate_report);
  EXPECT_NE(overlapping.reject->message.find("overlaps"), std::string::npos);
  EXPECT_TRUE(overlapping.events.empty());
  other.at = started;
  const Decision empty = region.act(other);
  ASSERT_TRUE(empty.reject.has_value());
  EXPECT_EQ(empty.reject->code, RejectCode::invalid_argument);
  EXPECT_NE(empty.reject->message.find("not after its start"), std::string::npos);
  // A node's clock that runs ahead does not reach beyond now.
  other.at = region.now + Duration::hours(1);
  region.go(region.now + Duration::minutes(1));
  EXPECT_EQ(list_of(region.act(other)), std::vector{money("0.2")});
  EXPECT_EQ(region.state.leases.at(lease).services_until, region.now);
}

TEST_F(ServiceBooksTest, AnImpossibleEndIsRefusedAndNothingBooked) {
  const LeaseId lease = run();
  region.go(region.now + Duration::hours(1));
  ReportEnded ended;
  ended.lease = lease;
  ended.epoch = region.state.leases.at(lease).epoch;
  ended.started_at = region.now - Duration::minutes(10);
  ended.ended_at = region.now - Duration::minutes(20);
  const auto refused = [&](const char* words) {
    const Decision decision = region.act(ended);
    ASSERT_TRUE(decision.reject.has_value()) << words;
    EXPECT_EQ(decision.reject->code, RejectCode::invalid_argument);
    EXPECT_NE(decision.reject->message.find(words), std::string::npos) << decision.reject->message;
    EXPECT_TRUE(decision.events.empty());
    EXPECT_NE(region.state.find_lease(lease), nullptr);
  };
  refused("before its start");
  ended.ended_at = region.now;
  ended.device_time = Duration{-1};
  refused("-1 is out of range");
  ended.device_time = {};
  ended.memory_peak = Mebibytes{-1};
  refused("below zero");
  ended.memory_peak = {};
  ended.services = held(-1);
  refused("out of range");
  ended.services = {};
  EXPECT_FALSE(region.act(ended).reject);
  EXPECT_EQ(region.state.find_lease(lease), nullptr);
}

}  // namespace
}  // namespace loam::engine

// The virtual ports keep the contracts that the engine's ports state.
#include "sim/world.hpp"

#include <gtest/gtest.h>

#include "engine/snapshot.hpp"
#include "sim/broken_run.hpp"
#include "sim/seeds.hpp"

namespace loam::sim {
namespace {

void set_up(World& world) {
  DeviceFacts facts;
  facts.uuid = "gpu-0";
  facts.type = "a100";
  facts.memory = Mebibytes{80 * 1024};
  facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
  ASSERT_TRUE(world.ask(AttachNode{"n1", "here", {}, {}}).ok());
  ASSERT_TRUE(world.ask(AttachDevice{"n1", facts}).ok());
  RateCard card;
  card.on_demand = Money(Money::units_per_one, Currency("USD"));
  card.effective_from = run_start;
  ASSERT_TRUE(world.ask(PublishRateCard{card}).ok());
  TenantSpec tenant;
  tenant.name = "acme";
  tenant.payment = PaymentMode::postpaid;
  tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000, Currency("USD"));
  ASSERT_TRUE(world.ask(CreateTenant{tenant}).ok());
}

SubmitTask task(const Program& program) {
  TaskSpec spec;
  spec.command = command_of(program);
  spec.request.share = MilliDevice{100};
  return {TenantId{1}, spec};
}

TEST(VirtualJournal, TornAtAnyByteABatchIsThereWholeOrNotAtAll) {
  std::vector<Record> batch;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    batch.push_back({i, run_start, {"test", "it"}, RequestsForgotten{run_start}});
  }
  VirtualJournal whole;
  ASSERT_TRUE(whole.append(batch).ok());
  const std::size_t size = whole.bytes().size();
  for (std::size_t cut = 0; cut <= size; ++cut) {
    VirtualJournal journal;
    journal.tear_next(cut);
    EXPECT_FALSE(journal.append(batch).ok());
    EXPECT_TRUE(journal.take_torn());
    EXPECT_EQ(journal.repair(), cut == size ? 0 : cut);
    std::size_t records = 0;
    ASSERT_TRUE(journal
                    .replay(0,
                            [&](const Record&) -> Result<void> {
                              ++records;
                              return {};
                            })
                    .ok());
    EXPECT_EQ(records, cut == size ? batch.size() : 0u);
  }
}

TEST(VirtualJournal, FullTakesNothingAndLosesNothing) {
  VirtualJournal journal;
  const std::vector<Record> batch{{1, run_start, {}, RequestsForgotten{run_start}}};
  ASSERT_TRUE(journal.append(batch).ok());
  const std::string before = journal.bytes();
  journal.set_full(true);
  EXPECT_FALSE(journal.append(batch).ok());
  EXPECT_EQ(journal.bytes(), before);
}

TEST(VirtualClock, WhatIsSeenNeverFalls) {
  VirtualClock clock(run_start);
  clock.advance_to(run_start + Duration::seconds(10));
  const Instant seen = clock.now();
  clock.step(Duration{-5000});
  EXPECT_EQ(clock.now(), seen);
  clock.advance_to(run_start + Duration::seconds(16));
  EXPECT_EQ(clock.now(), run_start + Duration::seconds(11));
  clock.step(Duration::hours(1));
  EXPECT_EQ(clock.now(), run_start + Duration::seconds(11) + Duration::hours(1));
}

TEST(Program, IsWrittenInItsCommandLine) {
  Program program;
  program.run = Duration::seconds(7);
  program.exit_code = 3;
  program.launch = Duration{1};
  program.stop = Duration{2};
  program.deaf = true;
  program.refused = "no such program";
  program.start_delay = Duration{4};
  program.report_delay = Duration{5};
  program.reports_twice = true;
  EXPECT_EQ(program_of(command_of(program)), program);
  EXPECT_EQ(program_of({"anything", "else=x"}), Program{});
}

TEST(World, ALaunchLostWithTheDaemonIsRepeated) {
  World world(run_start, 1);
  set_up(world);
  world.die_before_effects();
  EXPECT_FALSE(world.ask(task({})).ok());  // nobody answered
  EXPECT_EQ(world.restarts(), 1u);
  EXPECT_EQ(world.state().tasks.size(), 1u);  // but the journal had it
  EXPECT_EQ(world.executor().attempts().size(), 1u);
  world.advance_to(run_start + Duration::minutes(2));
  EXPECT_TRUE(world.state().tasks.empty());
}

TEST(World, AStopForALeaseNeverLaunchedIsAnsweredAndALaunchAfterItIsNotCarriedOut) {
  VirtualClock clock(run_start);
  VirtualExecutor executor(clock, 1);
  const engine::State empty;
  executor.stop(empty, {LeaseId{9}, Epoch{1}, StopReason::by_tenant, Duration{0}});
  const auto parcels = executor.collect();
  ASSERT_EQ(parcels.size(), 1u);
  const auto& report = std::get<ReportEnded>(parcels[0].command);
  EXPECT_EQ(report.lease, LeaseId{9});
  EXPECT_EQ(report.started_at, Instant::never());
  executor.launch(empty, {LeaseId{9}, Epoch{1}, TaskId{1}});
  EXPECT_EQ(executor.next_due(), Instant::never());
}

TEST(World, AStopLostWithTheDaemonIsRepeated) {
  World world(run_start, 1);
  set_up(world);
  Program slow;
  slow.launch = Duration::minutes(5);
  ASSERT_TRUE(world.ask(task(slow)).ok());
  world.die_before_effects();
  world.ask(StopTask{TaskId{1}});
  world.advance_to(run_start + Duration::seconds(1));
  EXPECT_TRUE(world.state().tasks.empty());
}

TEST(World, WhatEndedWhileTheDaemonWasDownEndedThen) {
  World world(run_start, 1);
  set_up(world);
  ASSERT_TRUE(world.ask(task({})).ok());
  std::vector<LeaseEnded> ended;
  world.on_record([&](const Record& record) {
    if (const auto* end = std::get_if<LeaseEnded>(&record.event)) ended.push_back(*end);
  });
  world.kill();
  world.advance_to(run_start + Duration::hours(5));
  world.start();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].ended_at, run_start + Duration::seconds(60));
}

TEST(Seeds, TheSameSeedEndsTheSame) {
  const auto first = run_seed(7);
  const auto second = run_seed(7);
  const auto other = run_seed(8);
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(first->digest, second->digest);
  EXPECT_NE(first->digest, other->digest);
  EXPECT_GT(first->tasks, 0u);
}

}  // namespace
}  // namespace loam::sim

// A pool's own history, replayed: the same pool gives the same again, another one does not.
#include "sim/trace/history.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "sim/broken_run.hpp"
#include "sim/program.hpp"
#include "sim/world.hpp"

namespace loam::sim {
namespace {

// A node of four devices, a price and a tenant.
void set_up_devices(World& world) {
  world.ask(AttachNode{"n1", "here", MilliCpu{64'000}, Mebibytes{524'288}});
  for (const char* uuid : {"a", "b", "c", "d"}) {
    DeviceFacts facts;
    facts.uuid = uuid;
    facts.type = "a100";
    facts.memory = Mebibytes{81'920};
    const MilliCe worth{100'000};
    facts.factors = {worth, worth, worth, worth};
    world.ask(AttachDevice{"n1", facts});
  }
  RateCard card;
  card.on_demand = Money(Money::units_per_one, Currency("USD"));
  card.effective_from = run_start;
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  tenant.payment = PaymentMode::postpaid;
  tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000, Currency("USD"));
  world.ask(CreateTenant{tenant});
}

History lived(std::size_t tasks) {
  World world(run_start, 1);
  HistoryReader reader;
  world.on_record([&](const Record& record) { reader.hear(record); });
  set_up_devices(world);
  Random random(7);
  for (std::size_t i = 0; i < tasks; ++i) {
    world.advance_to(world.clock().true_now() + Duration::seconds(random.between(0, 120)));
    Program program;
    program.run = Duration::seconds(random.between(10, 600));
    if (i % 9 == 0) program.exit_code = 3;
    TaskSpec spec;
    spec.command = command_of(program);
    spec.request.share = whole_device;
    spec.limit = Duration::hours(1);
    world.ask(SubmitTask{TenantId{1}, spec});
  }
  world.advance_to(world.clock().true_now() + Duration::hours(24));
  return std::move(reader).done();
}

TEST(History, TheSamePoolGivesTheSameAgain) {
  const History history = lived(60);
  ASSERT_EQ(history.tasks.size(), 60u);
  const auto once = replay(history, {});
  const auto twice = replay(history, {});
  ASSERT_TRUE(once.ok()) << to_text(once.error());
  EXPECT_EQ(once->finished, 60);
  EXPECT_EQ(once->refused, 0);
  EXPECT_EQ(once->devices, 4);
  EXPECT_EQ(once->wait_mean_s, twice->wait_mean_s);
  EXPECT_GT(once->utilisation, 0.3);
  // What was charged is what was run, whatever the order.
  Duration ran;
  for (const PastTask& task : history.tasks) ran += task.ran;
  ASSERT_EQ(once->charged.size(), 1u);
  const Money due = Money(Money::units_per_one, Currency("USD"))
                        .times_ratio(ran.ms * 100, 3'600'000, Rounding::down);
  EXPECT_LT((once->charged[0] - due).units(), Money::units_per_one / 1000);
  EXPECT_GT((once->charged[0] - due).units(), -Money::units_per_one / 1000);
}

TEST(History, HalfThePoolMeansLongerWaitsAndTheDoublePriceTwiceTheBill) {
  const History history = lived(60);
  const auto whole = replay(history, {});
  ReplaySetting half;
  half.devices_percent = 50;
  half.on_demand = Money(Money::units_per_one * 2, Currency("USD"));
  const auto small = replay(history, half);
  ASSERT_TRUE(whole.ok() && small.ok());
  EXPECT_EQ(small->devices, 2);
  EXPECT_EQ(small->finished, 60);
  EXPECT_GT(small->wait_mean_s, whole->wait_mean_s);
  const Money twice = whole->charged[0] + whole->charged[0];
  EXPECT_LT((small->charged[0] - twice).units(), Money::units_per_one / 1000);
  EXPECT_GT((small->charged[0] - twice).units(), -Money::units_per_one / 1000);
}

TEST(History, ALargerPoolHasCopiesOfItsNodes) {
  const History history = lived(60);
  ReplaySetting larger;
  larger.devices_percent = 250;
  const auto outcome = replay(history, larger);
  ASSERT_TRUE(outcome.ok()) << to_text(outcome.error());
  EXPECT_EQ(outcome->devices, 10);
  EXPECT_EQ(outcome->finished, 60);
  EXPECT_LT(outcome->wait_mean_s, replay(history, {})->wait_mean_s);
  EXPECT_EQ(outcome->fates.size(), 60u);
  EXPECT_EQ(outcome->busy_milli.back().second, 0);
}

TEST(History, TasksThatComeTwiceAsFastWaitLonger) {
  const History history = lived(60);
  ReplaySetting fast;
  fast.arrivals_percent = 200;
  const auto outcome = replay(history, fast);
  ASSERT_TRUE(outcome.ok()) << to_text(outcome.error());
  EXPECT_EQ(outcome->finished, 60);
  EXPECT_GT(outcome->wait_mean_s, replay(history, {})->wait_mean_s);
}

TEST(History, ATaskThatRecursComesAsOftenAsItDid) {
  World world(run_start, 1);
  HistoryReader reader;
  world.on_record([&](const Record& record) { reader.hear(record); });
  set_up_devices(world);
  TaskSpec spec;
  spec.name = "hourly";
  spec.command = command_of(Program{});
  spec.request.share = whole_device;
  spec.limit = Duration::minutes(10);
  spec.recurrence = "0 * * * *";
  ASSERT_TRUE(world.ask(SubmitTask{TenantId{1}, spec}).ok());
  world.advance_to(run_start + Duration::minutes(5 * 60 + 30));
  const History history = std::move(reader).done();
  ASSERT_EQ(history.tasks.size(), 5u);
  EXPECT_EQ(history.tasks[1].submitted, run_start + Duration::hours(2));
  const auto outcome = replay(history, {});
  ASSERT_TRUE(outcome.ok()) << to_text(outcome.error());
  EXPECT_EQ(outcome->finished, 5);
  EXPECT_LT(outcome->wait_mean_s, 60);
}

TEST(History, WhatCannotBeReplayedIsSaid) {
  EXPECT_FALSE(replay(History{}, {}).ok());
  const History history = lived(3);
  ReplaySetting odd;
  odd.discipline = "fairest";
  EXPECT_FALSE(replay(history, odd).ok());
  odd.discipline.clear();
  for (const std::int64_t percent : {0, 10'001}) {
    odd.devices_percent = percent;
    EXPECT_FALSE(replay(history, odd).ok()) << percent;
  }
  odd.devices_percent = 100;
  odd.arrivals_percent = 0;
  EXPECT_FALSE(replay(history, odd).ok());
  odd.arrivals_percent = 100;
  odd.placement = "tightest";
  EXPECT_FALSE(replay(history, odd).ok());
}

}  // namespace
}  // namespace loam::sim

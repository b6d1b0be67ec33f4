// A pool's own history, replayed: the same pool gives the same again, another one does not.
#include "sim/trace/history.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "sim/broken_run.hpp"
#include "sim/program.hpp"
#include "sim/world.hpp"

namespace loam::sim {
namespace {

History lived(std::size_t tasks) {
  World world(run_start, 1);
  HistoryReader reader;
  world.on_record([&](const Record& record) { reader.hear(record); });
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

TEST(History, WhatCannotBeReplayedIsSaid) {
  EXPECT_FALSE(replay(History{}, {}).ok());
  const History history = lived(3);
  ReplaySetting odd;
  odd.discipline = "fairest";
  EXPECT_FALSE(replay(history, odd).ok());
  odd.discipline.clear();
  odd.devices_percent = 0;
  EXPECT_FALSE(replay(history, odd).ok());
}

}  // namespace
}  // namespace loam::sim

// Replays of placement traces: the protocol, and figures that can be told beforehand.
#include "sim/trace/placement_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/trace/fairness.hpp"
#include "sim/trace/synthetic.hpp"

namespace loam::sim {
namespace {

PlacementTrace small_trace() {
  PlacementTrace trace;
  for (int n = 0; n < 4; ++n) {
    trace.nodes.push_back({"n" + std::to_string(n), 64'000, 262'144, 4, n < 2 ? "a" : "b", ""});
  }
  for (int i = 0; i < 40; ++i) {
    TraceTask task;
    task.name = "t" + std::to_string(i);
    task.cpu_milli = 1'000 + 500 * (i % 5);
    task.memory_mib = 4'096;
    task.devices = i % 8 == 7 ? 0 : (i % 8 == 6 ? 2 : 1);
    task.milli = task.devices == 0 ? 0 : (task.devices == 2 ? 1000 : 100 * (i % 10 + 1));
    task.created_s = i * 10;
    task.deleted_s = i * 10 + 100;
    trace.tasks.push_back(task);
  }
  trace.has_times = true;
  return trace;
}

TEST(PlacementRun, ArrivalsComeToTheirShareOfThePoolAndNoFurther) {
  const PlacementTrace trace = small_trace();
  for (const std::int64_t percent : {50, 130, 300}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto order = arrivals_of(trace, percent, seed);
      // All devices of a task count. The last one drawn may pass the limit by its second device;
      // where tasks are dropped, the last one may leave the limit by both.
      const std::int64_t limit = trace.device_milli() * percent / 100;
      std::int64_t milli = 0;
      for (const std::size_t at : order) milli += trace.tasks[at].milli * trace.tasks[at].devices;
      if (percent < 200) {  // the list alone asks for more
        EXPECT_LE(milli, limit);
        EXPECT_GT(milli, limit - 2000);
        EXPECT_LT(order.size(), trace.tasks.size());
      } else {
        EXPECT_LE(milli, limit + 1000);
        EXPECT_GT(milli, limit - 1000);
        EXPECT_GT(order.size(), trace.tasks.size());
      }
      EXPECT_EQ(order, arrivals_of(trace, percent, seed));
    }
  }
  EXPECT_NE(arrivals_of(trace, 130, 1), arrivals_of(trace, 130, 2));
}

TEST(PlacementRun, ATraceWithoutDevicesAskedForEnds) {
  PlacementTrace trace = small_trace();
  for (TraceTask& task : trace.tasks) {
    task.devices = 0;
    task.milli = 0;
  }
  EXPECT_EQ(arrivals_of(trace, 130, 1).size(), trace.tasks.size());
  EXPECT_EQ(run_placement(trace, {}, 1).allocated_percent, 0);
}

TEST(PlacementRun, SameSeedSameResultAndFiguresAgree) {
  const PlacementTrace trace = small_trace();
  for (const auto policy :
       {schedule::PlacementPolicy::packing_value, schedule::PlacementPolicy::random,
        schedule::PlacementPolicy::fragmentation}) {
    PlacementRun run;
    run.pool.placement.policy = policy;
    const PlacementOutcome one = run_placement(trace, run, 7);
    const PlacementOutcome two = run_placement(trace, run, 7);
    EXPECT_EQ(one.curve, two.curve);
    EXPECT_EQ(one.placed, two.placed);
    double used = 0;
    for (const double use : one.device_use) used += use;
    EXPECT_NEAR(one.allocated_percent, 100 * used / 16, 1e-9);
    EXPECT_EQ(one.device_use.size(), 16u);
    EXPECT_TRUE(std::is_sorted(one.curve.begin(), one.curve.end()));
  }
}

TEST(PlacementRun, WhatFitsEasilyIsAllPlaced) {
  PlacementRun run;
  run.arrivals_percent = 40;
  const PlacementOutcome outcome = run_placement(small_trace(), run, 3);
  EXPECT_EQ(outcome.placed, outcome.arrived);
}

TEST(PlacementRun, MovesStayWithinTheirBound) {
  PlacementRun run;
  run.pool.placement.policy = schedule::PlacementPolicy::spread;  // leaves much to be moved
  std::int64_t moved = 0;
  double with = 0;
  double without = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    run.moves_max = 0;
    without += run_placement(small_trace(), run, seed).allocated_percent;
    run.moves_max = 5;
    const PlacementOutcome outcome = run_placement(small_trace(), run, seed);
    with += outcome.allocated_percent;
    EXPECT_LE(outcome.moves, 5);
    moved += outcome.moves;
  }
  EXPECT_GT(moved, 0);
  EXPECT_GT(with, without);
}

TEST(PlacementRun, DeparturesGiveTheirRoomBack) {
  const PlacementTrace trace = small_trace();
  const ChurnOutcome churn = run_with_departures(trace, {});
  EXPECT_EQ(churn.placed + churn.refused, 40);
  EXPECT_EQ(churn.refused, 0);  // ten at a time fit easily
  EXPECT_GT(churn.allocated_mean_percent, 0);
  EXPECT_LE(churn.allocated_mean_percent, churn.allocated_peak_percent);
  // The mean use of each device adds up to that of the pool.
  ASSERT_EQ(churn.device_use.size(), 16u);
  double use = 0;
  for (const double each : churn.device_use) {
    EXPECT_GE(each, 0);
    EXPECT_LE(each, 1);
    use += each;
  }
  EXPECT_NEAR(100 * use / 16, churn.allocated_mean_percent, 1e-9);
}

TEST(PlacementRun, FairnessIsOverTenantsAndOneAloneIsTreatedFairly) {
  // One device; the first gets it, the second is refused.
  PlacementTrace trace;
  trace.nodes.push_back({"n", 64'000, 262'144, 1, "a", ""});
  for (const char* tenant : {"acme", "globex"}) {
    TraceTask task;
    task.name = task.tenant = tenant;
    task.devices = 1;
    task.milli = 1000;
    task.deleted_s = 100;
    trace.tasks.push_back(task);
  }
  trace.has_times = true;
  PlacementRun run;
  run.arrivals_percent = 200;
  EXPECT_EQ(run_with_departures(trace, run).refused, 1);
  EXPECT_DOUBLE_EQ(run_with_departures(trace, run).jain, 0.5);
  EXPECT_DOUBLE_EQ(run_placement(trace, run, 1).jain, 0.5);
  for (TraceTask& task : trace.tasks) task.tenant.clear();
  EXPECT_DOUBLE_EQ(run_with_departures(trace, run).jain, 1);
  EXPECT_DOUBLE_EQ(run_placement(trace, run, 1).jain, 1);
}

TEST(PlacementRun, JainsIndex) {
  EXPECT_DOUBLE_EQ(jain_index({1, 1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(jain_index({1, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index({}), 1);
  EXPECT_DOUBLE_EQ(jain_index({0, 0}), 1);
  EXPECT_NEAR(spread_of({1, 2, 3}).deviation, 1, 1e-12);
  EXPECT_DOUBLE_EQ(spread_of({5}).deviation, 0);
}

TEST(Synthetic, SpecificationsAreReadAndFaultsNamed) {
  const auto spec = parse_synthetic("devices=1000,nodes=125,load=0.85,placements=10,seed=4");
  ASSERT_TRUE(spec.ok()) << to_text(spec.error());
  EXPECT_EQ(spec->devices, 1000);
  EXPECT_EQ(spec->nodes, 125);
  EXPECT_EQ(spec->load_permille, 850);
  EXPECT_TRUE(parse_synthetic("").ok());
  for (const char* wrong : {"devices", "devices=x", "load=1.1", "nodes=0", "devices=5,nodes=6",
                            "x=1", "devices=-1", "load="}) {
    EXPECT_FALSE(parse_synthetic(wrong).ok()) << wrong;
  }
}

TEST(Synthetic, AChurnKeepsItsLoadAndTheBoundCostsLittle) {
  SyntheticPool pool;
  pool.devices = 800;
  pool.nodes = 100;
  pool.placements = 4'000;
  schedule::PoolOptions options;
  const SyntheticOutcome all = run_synthetic(pool, options);
  options.scored_max = 32;
  const SyntheticOutcome bounded = run_synthetic(pool, options);
  EXPECT_GT(all.placements, 3'500);
  EXPECT_GT(all.allocated_percent, 90);
  // Of values up to 1 the index is not below their mean.
  EXPECT_GE(all.jain_devices, all.allocated_percent / 100 - 1e-9);
  EXPECT_LE(all.jain_devices, 1 + 1e-9);
  EXPECT_GT(bounded.allocated_percent, all.allocated_percent - 1.5);
}

}  // namespace
}  // namespace loam::sim

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/launch/task_environment.hpp"

namespace loam::node {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

LaunchOrder small_order() {
  LaunchOrder order;
  order.attempt = "a1";
  order.task = "t1";
  order.lease = "l1";
  order.restart = 3;
  order.argv = {"true"};
  return order;
}

const TaskPlaces places{
    "/w", "/c", "/b", "/k", "/tmp", "/n/notice.json", "/o/units", "http://127.0.0.1:1", "", ""};

TEST(TaskEnvironment, holds_what_is_promised_and_nothing_of_the_daemons) {
  ::setenv("SECRET_OF_THE_DAEMON", "1", 1);
  const auto lines = task_environment(small_order(), places);
  for (const char* line :
       {"LOAM_TASK=t1", "LOAM_LEASE=l1", "LOAM_RESTART=3", "LOAM_RANK=0", "LOAM_SIZE=1",
        "LOAM_CHECKPOINT_DIR=/c", "LOAM_BACKUP_DIR=/b", "LOAM_NOTICE=/n/notice.json",
        "LOAM_OUTPUT_FILE=/o/units", "POCL_CACHE_DIR=/k", "LOAM_METADATA_URL=http://127.0.0.1:1",
        "XDG_CACHE_HOME=/k", "HOME=/w", "TMPDIR=/tmp"}) {
    EXPECT_THAT(lines, Contains(line));
  }
  EXPECT_THAT(lines, Not(Contains(StartsWith("SECRET"))));
  EXPECT_THAT(lines, Not(Contains(StartsWith("LD_PRELOAD"))));
  EXPECT_THAT(lines, Not(Contains(StartsWith("LOAM_RENDEZVOUS"))));
}

TEST(TaskEnvironment, the_orders_own_wins_over_defaults_but_not_over_loams) {
  LaunchOrder order = small_order();
  order.environment = {{"PATH", "/x"}, {"LOAM_TASK", "forged"}, {"LOAM_SLICE_PAGE", "/forged"}};
  const auto lines = task_environment(order, places);
  EXPECT_THAT(lines, Contains("PATH=/x"));
  EXPECT_THAT(lines, Contains("LOAM_TASK=t1"));
  EXPECT_THAT(lines, Not(Contains(StartsWith("LOAM_SLICE_PAGE"))));
}

TEST(TaskEnvironment, the_guard_comes_before_a_preload_of_the_task) {
  LaunchOrder order = small_order();
  order.environment = {{"LD_PRELOAD", "/mine.so"}};
  TaskPlaces guarded = places;
  guarded.preload = "/guard.so";
  EXPECT_THAT(task_environment(order, guarded), Contains("LD_PRELOAD=/guard.so:/mine.so"));
  EXPECT_THAT(task_environment(small_order(), guarded), Contains("LD_PRELOAD=/guard.so"));
}

}  // namespace
}  // namespace loam::node

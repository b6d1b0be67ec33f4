// CPU, host memory and processes of a task are limited.
#include <unistd.h>

#include <fstream>

#include "node/launch/attempt_fixture.hpp"
#include "node/launch/clock.hpp"

namespace loam::node {
namespace {

class Limits : public AttemptTest {};

TEST_F(Limits, a_program_over_its_host_memory_dies_and_the_reason_is_told) {
  LaunchOrder wanted = order("a", {"tail", "/dev/zero"});  // keeps all it read
  wanted.host_memory_mib = 64;
  const auto status = run(wanted);
  if (status.memory_limit == LimitBy::rlimit) {
    GTEST_SKIP() << "no control group limits memory here: " << status.isolation_detail;
  }
  EXPECT_EQ(status.outcome, Outcome::out_of_memory);
  EXPECT_NE(status.detail.find("64 MiB"), std::string::npos);
  ASSERT_TRUE(status.usage.memory_peak_bytes.has_value());
  EXPECT_LE(*status.usage.memory_peak_bytes, 65 << 20);
}

TEST_F(Limits, a_child_over_the_host_memory_is_told_next_to_the_exit_code) {
  LaunchOrder wanted = shell("a", "tail /dev/zero; exit 3");
  wanted.host_memory_mib = 64;
  const auto status = run(wanted);
  if (status.memory_limit != LimitBy::cgroup_v1) {
    GTEST_SKIP() << "a v2 group ends as a whole, and without a group nobody tells";
  }
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_NE(status.detail.find("host memory"), std::string::npos);
}

TEST_F(Limits, a_fork_bomb_of_ten_thousand_harms_nobody) {
  LaunchOrder wanted = shell("a",
                             "i=0; while [ $i -lt 10000 ]; do sleep 1000 & i=$((i+1)); done; "
                             "echo all");
  wanted.pids_max = 50;
  const auto status = run(wanted);
  if (status.pids_limit == LimitBy::nothing) {
    GTEST_SKIP() << "nothing limits processes here: " << status.isolation_detail;
  }
  EXPECT_NE(output("a"), "all\n");
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
}

TEST_F(Limits, a_bomb_that_goes_on_is_stopped_whole) {
  LaunchOrder wanted = shell("a",
                             "trap '' TERM; echo ready; "
                             "while :; do (trap '' TERM; sleep 1000 & sleep 1000) & "
                             "sleep 0.001; done 2>/dev/null");
  wanted.pids_max = 200;
  start(wanted);
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->stop("a", 300, "").ok());
  EXPECT_TRUE(is_final(wait_end("a").phase));
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
}

TEST_F(Limits, a_busy_program_gets_its_cpu_share_and_no_more) {
  LaunchOrder wanted = shell("a", "timeout 1.5 sh -c 'while :; do :; done'; exit 0");
  wanted.cpu_milli = 200;
  const auto status = run(wanted);
  if (status.cpu_limit == LimitBy::nothing) {
    GTEST_SKIP() << "nothing limits CPU here: " << status.isolation_detail;
  }
  const std::int64_t wall_ms = (status.end_boottime_ns - status.start_boottime_ns) / 1'000'000;
  const std::int64_t cpu_ms = status.usage.user_cpu_ms + status.usage.system_cpu_ms;
  EXPECT_GE(wall_ms, 1500);
  // A fifth of the time, and one period of 100 ms for the edges.
  EXPECT_LE(cpu_ms, wall_ms / 5 + 120);
}

// Where the device is the CPU, what a program computes past the guard counts by what it bought.
TEST_F(Limits, a_weight_and_a_limit_over_turns_reach_the_control_group) {
  LaunchOrder wanted = shell("a", "echo ready; sleep 600");
  wanted.cpu_milli = 500;
  wanted.cpu_turns_milli = 1200;
  wanted.cpu_weight_milli = 1700;
  start(wanted);
  wait_output("a", "ready");
  const auto status = supervisor_->status_now("a");
  ASSERT_TRUE(status.ok());
  if (status->cpu_limit == LimitBy::nothing) GTEST_SKIP() << "nothing limits CPU here";
  const auto number_in = [](const std::string& path) {
    std::ifstream file(path);
    std::int64_t number = -1;
    file >> number;
    return number;
  };
  bool seen = false;
  for (const std::string& group : status->cgroups) {
    if (number_in(group + "/cpu.cfs_quota_us") >= 0) {
      seen = true;
      EXPECT_EQ(number_in(group + "/cpu.cfs_period_us"), 250'000);
      EXPECT_EQ(number_in(group + "/cpu.cfs_quota_us"), 425'000);
      EXPECT_EQ(number_in(group + "/cpu.shares"), 1'740);
    } else if (number_in(group + "/cpu.weight") >= 0) {
      seen = true;
      EXPECT_EQ(number_in(group + "/cpu.max"), 425'000);
      EXPECT_EQ(number_in(group + "/cpu.weight"), 170);
    }
  }
  EXPECT_TRUE(seen);
  ASSERT_TRUE(supervisor_->stop("a", 300, "").ok());
  wait_end("a");
}

}  // namespace
}  // namespace loam::node

#include "node/launch/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loam::node {
namespace {

using ::testing::HasSubstr;

Usage full_usage() {
  Usage usage;
  usage.user_cpu_ms = 1;
  usage.system_cpu_ms = 2;
  usage.max_rss_bytes = 3;
  usage.memory_peak_bytes = 4;
  usage.io_read_bytes = 5;
  usage.io_write_bytes = 6;
  usage.work_bytes = 7;
  usage.checkpoint_bytes = 8;
  usage.log_bytes = 9;
  usage.network_rx_bytes = 10;
  usage.network_tx_bytes = 11;
  return usage;
}

AttemptStatus full_status() {
  AttemptStatus status;
  status.attempt = "t17-l23-e1";
  status.task = "t17";
  status.lease = "l23";
  status.epoch = 7;
  status.phase = Phase::exited;
  status.outcome = Outcome::killed_after_grace;
  status.detail = "in words";
  status.boot_id = "0e7c";
  status.start_boottime_ns = 1'000'000'001;
  status.end_boottime_ns = 2'000'000'002;
  status.start_wall_ms = 1'772'409'600'250;
  status.end_wall_ms = 1'772'409'601'250;
  status.paused_ns = 12;
  status.paused_since_boottime_ns = 13;
  status.launcher_pid = 100;
  status.launcher_start_ticks = 101;
  status.program_pid = 102;
  status.exit_code = 3;
  status.signal = 9;
  status.isolation = Isolation::sandboxed;
  status.isolation_detail = "fine";
  status.cpu_limit = LimitBy::cgroup_v2;
  status.memory_limit = LimitBy::rlimit;
  status.pids_limit = LimitBy::nothing;
  status.cgroups = {"/sys/fs/cgroup/loam/x"};
  status.notices = {{"stop", "reclaimed", 5, 6}, {"kill", "", 7, 7}};
  status.usage = full_usage();
  status.log_segment_bytes = 65536;
  status.stdout_bytes = 14;
  status.stderr_bytes = 15;
  status.log_dropped_bytes = 16;
  return status;
}

TEST(AttemptStatusJson, every_field_survives_the_round_trip) {
  const auto parsed = parse_attempt_status(to_json(full_status()));
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.error());
  EXPECT_EQ(*parsed, full_status());
}

TEST(AttemptStatusJson, unknown_quantities_are_null_and_not_zero) {
  AttemptStatus status;
  status.attempt = "a";
  const std::string json = to_json(status);
  EXPECT_THAT(json, HasSubstr("\"network_rx_bytes\":null"));
  EXPECT_THAT(json, HasSubstr("\"exit_code\":null"));
  EXPECT_THAT(json, HasSubstr("\"work_bytes\":null"));
  const auto parsed = parse_attempt_status(json);
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.error());
  EXPECT_EQ(*parsed, status);
}

TEST(AttemptStatusJson, bad_text_is_refused_with_the_field) {
  const auto error_of = [](std::string_view json) {
    const auto parsed = parse_attempt_status(json);
    return parsed.ok() ? std::string("accepted") : to_text(parsed.error());
  };
  EXPECT_THAT(error_of(""), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(to_json(full_status()).substr(0, 200)), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a"})"), HasSubstr("`phase` is missing"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","phase":"flying"})"), HasSubstr("flying"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","phase":"exited","usage":{"x":1}})"),
              HasSubstr("unknown field `x`"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","phase":"exited","start_wall":"soon"})"),
              HasSubstr("soon"));
  EXPECT_THAT(error_of(R"({"version":9,"attempt":"a","phase":"exited"})"),
              HasSubstr("has version 9"));
}

TEST(HeartbeatJson, survives_the_round_trip_and_refuses_bad_text) {
  const Heartbeat heartbeat{"boot", 123, full_usage()};
  const auto parsed = parse_heartbeat(to_json(heartbeat));
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.error());
  EXPECT_EQ(*parsed, heartbeat);
  EXPECT_FALSE(parse_heartbeat("{\"version\":1}").ok());
  EXPECT_FALSE(parse_heartbeat("").ok());
}

}  // namespace
}  // namespace loam::node

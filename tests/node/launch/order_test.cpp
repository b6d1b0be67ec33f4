#include "node/launch/order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace loam::node {
namespace {

using ::testing::HasSubstr;

LaunchOrder full_order() {
  LaunchOrder order;
  order.attempt = "t17-l23-e1";
  order.task = "t17";
  order.lease = "l23";
  order.epoch = 18446744073709551615ULL;
  order.restart = 2;
  order.rank = 1;
  order.size = 4;
  order.rendezvous = "n1:29500";
  order.argv = {"python3", "a b", "line\nbreak", "\"quoted\"", ""};
  order.environment = {{"A", "1"}, {"EMPTY", ""}};
  order.working_directory = "/home/u/job";
  order.checkpoint_directory = "/ckpt/t17";
  order.cache_directory = "/cache/acme";
  order.backup_directory = "/backups/t17";
  order.backups = 3;
  order.mounts = {{"/data", "/mnt/data", true}, {"/scratch", "/scratch", false}};
  order.read_only = {"/home/u"};
  order.visible = {"/run/loam/keeper.sock"};
  order.cpu_milli = 1500;
  order.host_memory_mib = 2048;
  order.pids_max = 100;
  order.log_segment_bytes = 65536;
  order.log_segments = 3;
  order.grace_ms = 5000;
  order.run_limit_ms = 3'600'000;
  order.sandbox = SandboxMode::bubblewrap;
  order.network = false;
  order.guard_library = "/opt/loam/libloam-guard.so";
  order.slice_page = "/dev/shm/loam/l23";
  return order;
}

TEST(LaunchOrderJson, every_field_survives_the_round_trip) {
  const auto parsed = parse_launch_order(to_json(full_order()));
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.error());
  EXPECT_EQ(*parsed, full_order());
}

TEST(LaunchOrderJson, left_out_fields_have_their_defaults) {
  const auto parsed = parse_launch_order(R"({"version":1,"attempt":"a","argv":["true"]})");
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.error());
  LaunchOrder expected;
  expected.attempt = "a";
  expected.argv = {"true"};
  EXPECT_EQ(*parsed, expected);
}

std::string error_of(std::string_view json) {
  const auto parsed = parse_launch_order(json);
  return parsed.ok() ? "accepted" : to_text(parsed.error());
}

TEST(LaunchOrderJson, bad_text_is_refused_with_the_field_and_the_value) {
  EXPECT_THAT(error_of(""), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"]} trailing)"),
              HasSubstr("not JSON"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(R"({"attempt":"a","argv":["x"]})"), HasSubstr("`version` is missing"));
  EXPECT_THAT(error_of(R"({"version":1,"argv":["x"]})"), HasSubstr("`attempt` is missing"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a"})"), HasSubstr("`argv` is missing"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"argvs":1})"),
              HasSubstr("unknown field `argvs`"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":"x"})"), HasSubstr("`argv`"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x",7]})"), HasSubstr("`argv`"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":7,"argv":["x"]})"), HasSubstr("`attempt`"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"grace_ms":1.5})"),
              HasSubstr("1.5"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"grace_ms":-1})"),
              HasSubstr("-1"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"cpu_milli":1e30})"),
              HasSubstr("cpu_milli"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"sandbox":"docker"})"),
              HasSubstr("docker"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"environment":{"A":1}})"),
              HasSubstr("`A`"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],"mounts":[{"source":"/a"}]})"),
              HasSubstr("`target` is missing"));
  EXPECT_THAT(error_of(R"({"version":1,"attempt":"a","argv":["x"],
                           "mounts":[{"source":"/a","target":"/b","readonly":true}]})"),
              HasSubstr("unknown field `readonly`"));
}

TEST(LaunchOrderJson, a_newer_version_is_named_and_a_nonsense_one_is_refused) {
  EXPECT_THAT(error_of(R"({"version":2,"attempt":"a","argv":["x"],"news":1})"),
              HasSubstr("has version 2, this program reads up to 1"));
  EXPECT_THAT(error_of(R"({"version":0,"attempt":"a","argv":["x"]})"), HasSubstr("version"));
  EXPECT_THAT(error_of(R"({"version":"1","attempt":"a","argv":["x"]})"), HasSubstr("version"));
}

TEST(LaunchOrderCheck, refuses_what_cannot_be_carried_out) {
  const auto refusal = [](const std::function<void(LaunchOrder&)>& change) -> std::string {
    LaunchOrder order = full_order();
    change(order);
    const auto checked = check(order);
    return checked.ok() ? "accepted" : to_text(checked.error());
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  for (const char* name : {"", ".", "..", "../x", "a/b", ".hidden", "a b", "a\n"}) {
    EXPECT_THAT(refusal([&](auto& o) { o.attempt = name; }), HasSubstr("attempt")) << name;
  }
  EXPECT_THAT(refusal([](auto& o) { o.attempt = std::string(101, 'a'); }), HasSubstr("attempt"));
  EXPECT_THAT(refusal([](auto& o) { o.argv.clear(); }), HasSubstr("argv"));
  EXPECT_THAT(refusal([](auto& o) { o.argv = {""}; }), HasSubstr("argv"));
  EXPECT_THAT(refusal([](auto& o) { o.argv = {std::string("a\0b", 3)}; }), HasSubstr("NUL"));
  EXPECT_THAT(refusal([](auto& o) { o.environment = {{"A=B", "c"}}; }), HasSubstr("A=B"));
  EXPECT_THAT(refusal([](auto& o) { o.environment = {{"", "c"}}; }), HasSubstr("environment"));
  EXPECT_THAT(refusal([](auto& o) { o.rank = 4; }), HasSubstr("rank"));
  EXPECT_THAT(refusal([](auto& o) { o.size = 0; }), HasSubstr("rank"));
  EXPECT_THAT(refusal([](auto& o) { o.working_directory = "job"; }), HasSubstr("absolute"));
  EXPECT_THAT(refusal([](auto& o) { o.working_directory = "/"; }), HasSubstr("root"));
  EXPECT_THAT(refusal([](auto& o) { o.checkpoint_directory = "/a/../b"; }), HasSubstr(".."));
  EXPECT_THAT(refusal([](auto& o) { o.backup_directory = ""; }), HasSubstr("backup_directory"));
  EXPECT_THAT(refusal([](auto& o) { o.backups = 0; }), HasSubstr("backup_directory"));
  EXPECT_THAT(refusal([](auto& o) { o.cpu_milli = -1; }), HasSubstr("cpu_milli"));
  EXPECT_THAT(refusal([](auto& o) { o.log_segments = 1; }), HasSubstr("log_segments"));
  EXPECT_THAT(refusal([](auto& o) { o.log_segment_bytes = 1; }), HasSubstr("log_segment_bytes"));
  for (const char* target : {"/", "/etc", "/etc/ld.so.preload", "/proc/1", "/dev", "/sys/x",
                             "/run/loam", "/run/loam/guard.so", "/usr/bin", "relative"}) {
    EXPECT_THAT(refusal([&](auto& o) {
                  o.mounts = {{"/data", target, true}};
                }),
                HasSubstr("mounts.target"))
        << target;
  }
}

}  // namespace
}  // namespace loam::node

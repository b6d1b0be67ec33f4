#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using DevicesTest = ApiTest;

TEST_F(DevicesTest, refused_devices_are_listed_with_what_helps) {
  RefusedDevice refused;
  refused.uuid = "gpu-9";
  refused.note = "no measurement: loam device calibrate gpu-9";
  daemon.refused = {refused};
  const auto list = get("/v1/devices").as<DeviceList>();
  ASSERT_EQ(list.devices.size(), 2U);
  EXPECT_EQ(list.devices[0].name, "n1/0");
  EXPECT_EQ(list.devices[0].state, "ready");
  EXPECT_EQ(list.devices[0].ce, "100");
  EXPECT_EQ(list.devices[1].state, "refused");
  EXPECT_EQ(list.devices[1].note, refused.note);
}

TEST_F(DevicesTest, draining_is_by_id_uuid_or_name) {
  EXPECT_EQ(post("/v1/devices/d1/drain").as<DeviceView>().state, "draining");
  EXPECT_EQ(post("/v1/devices/n1/0/undrain").as<DeviceView>().state, "ready");
  EXPECT_EQ(post("/v1/devices/gpu-1/drain").as<DeviceView>().state, "draining");
  EXPECT_EQ(post("/v1/devices/n1/1/drain").status(), 404);
  EXPECT_EQ(post("/v1/devices/d2/drain").status(), 404);
}

TEST_F(DevicesTest, calibration_tells_its_progress_and_ends_with_the_device) {
  const Caught answer = post("/v1/devices/n1/0/calibrate");
  ASSERT_EQ(answer.status(), 200);
  const auto events = answer.stream->events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].type, "progress");
  EXPECT_EQ(from_json<ProgressView>(events[0].data)->step, "matrix products");
  EXPECT_EQ(events[2].type, "done");
  EXPECT_EQ(from_json<DeviceView>(events[2].data)->uuid, "gpu-1");
  EXPECT_TRUE(answer.stream->finished);
}

TEST_F(DevicesTest, the_same_calibration_measures_once) {
  ASSERT_EQ(post("/v1/devices/n1/0/calibrate", {}, root, "k").stream->events().size(), 3U);
  const auto again = post("/v1/devices/n1/0/calibrate", {}, root, "k").stream->events();
  ASSERT_EQ(again.size(), 1U) << "its end alone";
  EXPECT_EQ(again[0].type, "done");
  EXPECT_EQ(from_json<DeviceView>(again[0].data)->uuid, "gpu-1");
}

TEST_F(DevicesTest, a_failed_calibration_ends_with_a_problem) {
  RefusedDevice refused;
  refused.uuid = "broken";
  daemon.refused = {refused};
  const auto events = post("/v1/devices/broken/calibrate").stream->events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2].type, "problem");
  EXPECT_EQ(from_json<Problem>(events[2].data)->code, "unavailable");
  EXPECT_EQ(post("/v1/devices/nothing/calibrate").status(), 404);
}

TEST_F(DevicesTest, top_shows_who_runs_and_who_waits) {
  for (int i = 0; i < 5; ++i) submit();
  const auto top = get("/v1/top").as<TopView>();
  EXPECT_EQ(top.devices.size(), 1U);
  ASSERT_EQ(top.tasks.size(), 5U);
  EXPECT_EQ(top.tasks[0].state, "starting");
  EXPECT_EQ(top.tasks[4].state, "waiting");
  EXPECT_EQ(top.tasks_running, 4);
  EXPECT_EQ(top.tasks_waiting, 1);
  EXPECT_EQ(top.tasks_left_out, 0);
  EXPECT_EQ(get("/v1/top", uid(1002)).as<TopView>().tasks.size(), 0U);
}

}  // namespace
}  // namespace loam::api::testing

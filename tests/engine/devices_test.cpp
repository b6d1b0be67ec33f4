// What may be said anew of a device, and when.
#include "engine/region.hpp"

namespace loam::engine {
namespace {

TEST(Devices, WhichOthersAreNearMayBecomeKnownWhileLeasesHoldThem) {
  Region region;
  ASSERT_FALSE(region.publish({}).reject);
  region.act(SubmitTask{TenantId{1}, Region::spec()});
  region.settle();
  ASSERT_EQ(region.state.devices.front().leases, 1u);
  DeviceFacts facts = *region.state.devices.front().facts;
  facts.link_group = "0000:10:00.0";
  facts.numa_node = 1;
  EXPECT_EQ(region.act(AttachDevice{"n1", facts}).events.size(), 1u);
  EXPECT_EQ(*region.state.devices.front().facts, facts);
  EXPECT_EQ(region.state.devices.front().leases, 1u);
  EXPECT_EQ(region.act(AttachDevice{"n1", facts}).events.size(), 0u) << "nothing is new";
  // What a lease was priced and placed by stays.
  facts.link_group.clear();
  facts.memory = Mebibytes{40'960};
  EXPECT_TRUE(region.act(AttachDevice{"n1", facts}).reject);
  facts.uuid = "gpu-1";
  facts.numa_node = -1;
  EXPECT_TRUE(region.act(AttachDevice{"n1", facts}).reject);
}

}  // namespace
}  // namespace loam::engine

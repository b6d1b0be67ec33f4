#include "node/launch/cgroup.hpp"

#include <gtest/gtest.h>

namespace loam::node {
namespace {

TEST(CgroupMounts, finds_a_pure_v2_machine) {
  const auto mounts =
      parse_cgroup_mounts("proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
                          "0::/system.slice/loamd.service\n");
  EXPECT_EQ(mounts.v2, "/sys/fs/cgroup");
  EXPECT_EQ(mounts.v2_own, "/system.slice/loamd.service");
  EXPECT_EQ(mounts.cpu_v1, "");
  EXPECT_EQ(mounts.memory_v1, "");
}

TEST(CgroupMounts, finds_a_hybrid_machine_with_joined_controllers) {
  const auto mounts = parse_cgroup_mounts(
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
      "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n"
      "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n"
      "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
      "cgroup /sys/fs/cgroup/my\\040freezer cgroup rw,freezer 0 0\n",
      "12:memory:/box/1\n4:cpu,cpuacct:/cpus\n3:cpuset:/no\n2:pids:/\n0::/user\n");
  EXPECT_EQ(mounts.v2, "/sys/fs/cgroup/unified");
  EXPECT_EQ(mounts.v2_own, "/user");
  EXPECT_EQ(mounts.cpu_v1, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(mounts.cpu_own, "/cpus");
  EXPECT_EQ(mounts.memory_v1, "/sys/fs/cgroup/memory");
  EXPECT_EQ(mounts.memory_own, "/box/1");
  EXPECT_EQ(mounts.pids_v1, "/sys/fs/cgroup/pids");
  EXPECT_EQ(mounts.freezer_v1, "/sys/fs/cgroup/my freezer");
}

TEST(CgroupMounts, nonsense_and_nothing_give_no_mounts) {
  EXPECT_EQ(parse_cgroup_mounts("", ""), CgroupMounts{});
  EXPECT_EQ(parse_cgroup_mounts("x\ny z\n\n", "a\nb:c\n:::\n"), CgroupMounts{});
}

TEST(AttemptCgroup, without_any_hierarchy_says_what_nothing_limits) {
  const auto group = AttemptCgroup::make({}, "x", {1000, 1 << 20, 10});
  EXPECT_FALSE(group.can_kill());
  EXPECT_FALSE(group.can_freeze());
  EXPECT_EQ(group.cpu(), LimitBy::nothing);
  EXPECT_EQ(group.memory(), LimitBy::nothing);
  EXPECT_EQ(group.pids(), LimitBy::nothing);
  EXPECT_NE(group.trouble().find("host memory"), std::string::npos);
  EXPECT_FALSE(group.freeze(true).ok());
}

TEST(AttemptCgroup, what_was_not_asked_for_is_no_trouble) {
  const auto group = AttemptCgroup::make({}, "x", {});
  EXPECT_EQ(group.cpu(), LimitBy::not_asked);
  EXPECT_EQ(group.trouble(), "");
}

}  // namespace
}  // namespace loam::node

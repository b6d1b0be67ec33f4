#include "node/launch/cgroup.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/launch/file.hpp"

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

// A real group with one process that sleeps and one that it made.
class RealGroup : public ::testing::Test {
 protected:
  void use(const CgroupMounts& mounts, const CgroupLimits& limits) {
    group_ = AttemptCgroup::make(mounts, "test-" + std::to_string(::getpid()), limits);
  }
  void spawn() {
    int inside[2];
    ASSERT_EQ(::pipe(inside), 0);
    child_ = group_.fork_inside();
    if (child_ == 0) {
      if (group_.join_fault() != 0) ::_exit(1);
      (void)!::fork();
      (void)!::write(inside[1], "x", 1);
      while (true) ::pause();
    }
    ASSERT_GT(child_, 0);
    char word = 0;
    EXPECT_EQ(::read(inside[0], &word, 1), 1);
    ::close(inside[0]);
    ::close(inside[1]);
  }
  static void reap(void*) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  void TearDown() override {
    if (!group_.can_kill()) return;
    EXPECT_TRUE(group_.kill_all(10'000, &reap));
    const auto directories = group_.directories();
    EXPECT_TRUE(group_.remove());
    for (const auto& directory : directories) {
      EXPECT_NE(::access(directory.c_str(), F_OK), 0) << directory;
    }
  }
  // The state letter of a process: 'S' asleep, 'D' or 'T' where frozen, 'Z' dead.
  static char state_of(pid_t pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
    return text ? text->at(text->rfind(')') + 2) : 'X';
  }

  AttemptCgroup group_;
  pid_t child_ = -1;
};

TEST_F(RealGroup, a_v2_group_alone_kills_and_freezes) {
  CgroupMounts mounts = read_cgroup_mounts();
  mounts.cpu_v1 = mounts.memory_v1 = mounts.pids_v1 = mounts.freezer_v1 = "";
  use(mounts, {});
  if (!group_.can_freeze()) GTEST_SKIP() << "no v2 hierarchy to write in";
  spawn();
  EXPECT_TRUE(group_.freeze(true).ok());
  EXPECT_TRUE(group_.freeze(false).ok());
  EXPECT_EQ(group_.directories().size(), 1u);
}

TEST_F(RealGroup, a_v1_freezer_alone_kills_and_freezes) {
  CgroupMounts mounts;
  mounts.freezer_v1 = read_cgroup_mounts().freezer_v1;
  use(mounts, {});
  if (!group_.can_freeze()) GTEST_SKIP() << "no v1 freezer to write in";
  spawn();
  EXPECT_TRUE(group_.freeze(true).ok());
  EXPECT_TRUE(group_.kill_all(10'000, &reap)) << "also while frozen";
}

TEST_F(RealGroup, groups_that_only_limit_kill_too) {
  CgroupMounts mounts;
  mounts.pids_v1 = read_cgroup_mounts().pids_v1;
  use(mounts, {0, 0, 20});
  if (group_.pids() != LimitBy::cgroup_v1) GTEST_SKIP() << "no v1 pids hierarchy to write in";
  spawn();
  EXPECT_FALSE(group_.can_freeze());
}

TEST_F(RealGroup, another_process_finds_the_groups_again_and_kills) {
  use(read_cgroup_mounts(), {1000, 64 << 20, 20});
  if (!group_.can_kill()) GTEST_SKIP() << "no control groups to write in";
  spawn();
  const auto adopted = AttemptCgroup::adopt(group_.directories());
  EXPECT_EQ(adopted.directories().size(), group_.directories().size());
  EXPECT_TRUE(adopted.kill_all(10'000, &reap));
  EXPECT_EQ(state_of(child_), 'X');
  EXPECT_FALSE(AttemptCgroup::adopt({"/no/such/group", "/tmp"}).can_kill());
}

}  // namespace
}  // namespace loam::node

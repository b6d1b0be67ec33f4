// What a program sees in the sandbox, and what happens without one.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "node/launch/attempt_files.hpp"
#include "node/launch/attempt_fixture.hpp"
#include "node/launch/file.hpp"
#include "node/launch/sandbox.hpp"

namespace loam::node {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Sandbox : public AttemptTest {
 protected:
  void SetUp() override {
    AttemptTest::SetUp();
    probe_ = probe_sandbox(root_ + "/" + attempt_files::sandbox_probe);
    if (!probe_.works) GTEST_SKIP() << probe_.trouble;
  }
  SandboxProbe probe_;
};

class NoSandbox : public AttemptTest {};

TEST_F(Sandbox, shows_programs_and_its_own_places_only) {
  std::ofstream(root_ + "/secret") << "x";
  const auto status =
      run(shell("a", "ls -d /root /home /var/lib /etc/shadow " + root_ +
                         "/secret 2>/dev/null; touch /usr/x /etc/x /x /run/x 2>/dev/null"
                         "; ls /usr/x /etc/x /x /run/x 2>/dev/null; "
                         "echo t > /tmp/t && cat /tmp/t; cat /etc/hostname 2>/dev/null; "
                         "hostname; ls /proc | grep -c '^[0-9]'"));
  EXPECT_EQ(status.isolation, Isolation::sandboxed);
  const std::string seen = output("a");
  EXPECT_THAT(seen, ::testing::StartsWith("t\na\n")) << "no secret, no writable system";
  EXPECT_FALSE(std::filesystem::exists("/tmp/t"));
  EXPECT_LT(std::atoi(seen.substr(4).c_str()), 10) << "processes of others are out of sight";
}

TEST_F(Sandbox, mounts_appear_where_they_were_ordered) {
  std::filesystem::create_directory(root_ + "/data");
  std::ofstream(root_ + "/data/file") << "content";
  LaunchOrder wanted = shell("a",
                             "cat /mnt/in/file; touch /mnt/in/new 2>/dev/null && echo wrote; "
                             "echo fresh > /mnt/out/new; cat " +
                                 root_ + "/data/file");
  wanted.mounts = {{root_ + "/data", "/mnt/in", true}, {root_ + "/data", "/mnt/out", false}};
  wanted.read_only = {root_ + "/data"};
  EXPECT_EQ(run(wanted).exit_code, 0);
  EXPECT_EQ(output("a"), "contentcontent");
  EXPECT_TRUE(std::filesystem::exists(root_ + "/data/new"));
}

TEST_F(Sandbox, a_folder_that_may_be_written_inside_one_that_may_not_is_so_in_any_order) {
  std::filesystem::create_directories(root_ + "/models/run");
  LaunchOrder wanted = shell("a", "touch /models/run/new && ! touch /models/new");
  wanted.mounts = {{root_ + "/models/run", "/models/run", false},
                   {root_ + "/models", "/models", true}};
  EXPECT_EQ(run(wanted).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(root_ + "/models/run/new"));
}

TEST_F(Sandbox, a_mount_whose_source_is_missing_is_refused_by_name) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.mounts = {{"/no/such/source", "/data", true}};
  const auto status = run(wanted);
  EXPECT_EQ(status.phase, Phase::refused);
  EXPECT_THAT(status.detail, HasSubstr("/no/such/source"));
}

TEST_F(Sandbox, a_program_of_the_node_that_is_not_mounted_gets_a_hint) {
  std::filesystem::copy_file("/bin/true", root_ + "/mine");
  const auto status = run(order("a", {root_ + "/mine"}));
  EXPECT_EQ(status.exit_code, 127);
  EXPECT_THAT(status.detail, HasSubstr("not mounted into the sandbox"));
  LaunchOrder wanted = order("b", {root_ + "/mine"});
  wanted.read_only = {root_ + "/mine"};
  EXPECT_EQ(run(wanted).exit_code, 0);
}

TEST_F(Sandbox, without_network_there_is_only_the_loopback) {
  if (!probe_.network_works) GTEST_SKIP() << "no network namespaces here";
  LaunchOrder wanted = shell("a", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
  wanted.network = false;
  const auto status = run(wanted);
  EXPECT_EQ(output("a"), "lo\n");
  EXPECT_EQ(status.usage.network_rx_bytes, 0);
}

TEST_F(Sandbox, the_guard_binds_a_child_with_an_empty_environment_too) {
  LaunchOrder wanted = order("a", {"env", "-i", "/bin/true"});
  wanted.guard_library = LOAM_MARKING_GUARD;
  const auto status = run(wanted);
  EXPECT_EQ(status.exit_code, 0) << status.detail;
  EXPECT_EQ(status.isolation, Isolation::sandboxed);
  EXPECT_EQ(output("a", "stderr"), "marking guard\nmarking guard\n") << "env, and then true";
}

TEST_F(Sandbox, the_guard_cannot_be_taken_off_the_list) {
  LaunchOrder wanted = shell("a",
                             "rm -f /etc/ld.so.preload; (: > /etc/ld.so.preload); "
                             "cat /etc/ld.so.preload");
  wanted.guard_library = LOAM_MARKING_GUARD;
  run(wanted);
  EXPECT_EQ(output("a"), std::string(sandbox_guard) + "\n");
}

TEST_F(Sandbox, the_slice_page_is_seen_at_its_well_known_path_and_sockets_at_their_own) {
  std::filesystem::create_directory(root_ + "/pages");
  std::ofstream(root_ + "/pages/l1.limits") << "limits ";
  std::ofstream(root_ + "/pages/l1.counters") << "counters ";
  std::ofstream(root_ + "/pages/other.limits") << "other";
  std::ofstream(root_ + "/keeper.sock") << "k";
  LaunchOrder wanted =
      shell("a", "cat $LOAM_SLICE_PAGE.limits $LOAM_SLICE_PAGE.counters; ls " + root_ +
                     "/pages; "
                     "(echo x > $LOAM_SLICE_PAGE.limits) 2> /dev/null; echo w > " +
                     root_ + "/keeper.sock");
  wanted.slice_page = root_ + "/pages/l1";
  wanted.visible = {root_ + "/keeper.sock"};
  EXPECT_EQ(run(wanted).exit_code, 0);
  EXPECT_EQ(output("a"), "limits counters ");
  EXPECT_EQ(*read_file(root_ + "/pages/l1.limits"), "limits ");
  EXPECT_EQ(*read_file(root_ + "/keeper.sock"), "w\n");
}

TEST_F(Sandbox, an_opencl_platform_of_the_node_is_found_inside) {
  if (std::system("clinfo -l 2>/dev/null | grep -q Platform") != 0) {
    GTEST_SKIP() << "no clinfo, or no OpenCL platform on this machine";
  }
  const auto status = run(order("a", {"clinfo", "-l"}));
  EXPECT_EQ(status.exit_code, 0) << output("a", "stderr");
  EXPECT_THAT(output("a"), HasSubstr("Platform #0"));
  EXPECT_THAT(output("a"), HasSubstr("Device #0"));
}

// An attempt run by an ordinary user, who may neither make control groups nor mount.
class OrdinaryUser : public AttemptTest {
 protected:
  void SetUp() override {
    AttemptTest::SetUp();
    if (::geteuid() != 0) GTEST_SKIP() << "all tests run as an ordinary user already";
    // A user must reach the launcher: a copy below /tmp.
    std::filesystem::create_directories(home_ = root_ + "/home");
    std::filesystem::copy_file(LOAM_LAUNCH, home_ + "/loam-launch");
    ::chmod(root_.c_str(), 0755);
    ASSERT_EQ(::chown(home_.c_str(), nobody, nobody), 0);
  }

  AttemptStatus run_as_user(const LaunchOrder& order) {
    directory_ = home_ + "/" + order.attempt;
    std::filesystem::create_directory(directory_);
    std::ofstream(directory_ + "/order.json") << to_json(order);
    EXPECT_EQ(::chown(directory_.c_str(), nobody, nobody), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(99);
      const std::string launcher = home_ + "/loam-launch";
      ::execl(launcher.c_str(), "loam-launch", "--foreground", directory_.c_str(), nullptr);
      ::_exit(98);
    }
    int wait_status = 0;
    EXPECT_EQ(::waitpid(child, &wait_status, 0), child);
    EXPECT_EQ(wait_status, 0);
    const auto text = read_file(directory_ + "/status.json");
    EXPECT_TRUE(text.ok());
    if (!text) return {};
    const auto status = parse_attempt_status(*text);
    EXPECT_TRUE(status.ok());
    return status ? *status : AttemptStatus{};
  }

  static constexpr uid_t nobody = 65534;
  std::string home_;
  std::string directory_;
};

TEST_F(OrdinaryUser, runs_in_a_sandbox_where_that_works_and_says_so_where_not) {
  LaunchOrder wanted = shell("a", "id -u; touch mine && echo wrote; (setsid sleep 1000 &)");
#ifndef __SANITIZE_ADDRESS__  // whose shadow memory alone is over any RLIMIT_DATA
  wanted.host_memory_mib = 256;
#endif
  const auto status = run_as_user(wanted);
  EXPECT_EQ(status.exit_code, 0) << status.detail;
  if (status.isolation != Isolation::sandboxed) {
    EXPECT_NE(status.isolation_detail, "");
  }
  EXPECT_EQ(*read_file(directory_ + "/logs/stdout.log"), "65534\nwrote\n");
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
}

TEST_F(OrdinaryUser, has_resource_limits_without_groups_and_everything_ends_all_the_same) {
  LaunchOrder wanted = shell("a",
                             "(setsid sleep 1000 &); (setsid sh -c 'sleep 1000 & sleep 1000' &);"
                             "ulimit -d; exit 4");
  wanted.sandbox = SandboxMode::none;
  wanted.host_memory_mib = 256;
  wanted.cpu_milli = 500;
  const auto status = run_as_user(wanted);
  EXPECT_EQ(status.exit_code, 4) << status.detail;
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
  if (!status.cgroups.empty()) GTEST_SKIP() << "this user may make control groups";
  EXPECT_EQ(status.memory_limit, LimitBy::rlimit);
  EXPECT_EQ(status.pids_limit, LimitBy::rlimit);
  EXPECT_EQ(status.cpu_limit, LimitBy::nothing);
  EXPECT_THAT(status.isolation_detail, HasSubstr("no control group limits CPU"));
  EXPECT_EQ(*read_file(directory_ + "/logs/stdout.log"), "262144\n");
}

TEST_F(OrdinaryUser, a_fork_bomb_ends_at_the_resource_limit) {
  LaunchOrder wanted = shell("a",
                             "i=0; while [ $i -lt 10000 ]; do sleep 1000 & i=$((i+1)); done; "
                             "echo all");
  wanted.sandbox = SandboxMode::none;
  wanted.pids_max = 50;
  run_as_user(wanted);
  EXPECT_EQ(*read_file(directory_ + "/logs/stdout.log"), "");
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
}

TEST_F(NoSandbox, the_guard_is_preloaded_and_isolation_is_advisory) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.sandbox = SandboxMode::none;
  wanted.guard_library = LOAM_MARKING_GUARD;
  const auto status = run(wanted);
  EXPECT_EQ(status.isolation, Isolation::advisory);
  EXPECT_NE(status.isolation_detail, "");
  EXPECT_EQ(output("a", "stderr"), "marking guard\n");
}

TEST_F(NoSandbox, a_missing_slice_page_is_refused_by_name) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.sandbox = SandboxMode::none;
  wanted.slice_page = root_ + "/no-page";
  const auto status = run(wanted);
  EXPECT_EQ(status.phase, Phase::refused);
  EXPECT_THAT(status.detail, HasSubstr(root_ + "/no-page"));
}

TEST_F(NoSandbox, without_a_guard_isolation_is_none) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.sandbox = SandboxMode::none;
  EXPECT_EQ(run(wanted).isolation, Isolation::none);
}

TEST_F(NoSandbox, what_only_a_sandbox_can_give_is_refused_by_name) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.sandbox = SandboxMode::none;
  wanted.mounts = {{"/tmp", "/data", true}};
  EXPECT_THAT(run(wanted).detail, HasSubstr("the mount of /tmp at /data needs a sandbox"));
  wanted = order("b", {"true"});
  wanted.sandbox = SandboxMode::none;
  wanted.network = false;
  EXPECT_THAT(run(wanted).detail, HasSubstr("network needs a sandbox"));
}

TEST_F(NoSandbox, the_probe_is_made_once_and_remembered) {
  const std::string cache = root_ + "/" + attempt_files::sandbox_probe;
  const auto first = probe_sandbox(cache);
  if (first.program.empty()) GTEST_SKIP() << first.trouble;
  const auto text = read_file(cache);
  ASSERT_TRUE(text.ok());
  // A cache that says no is believed; one of another boot or bwrap is not.
  const std::string key = text->substr(0, text->rfind(' ', text->rfind(' ') - 1));
  std::ofstream(cache) << key << " no no\n";
  EXPECT_FALSE(probe_sandbox(cache).works);
  std::ofstream(cache) << "x" << key << " no no\n";
  EXPECT_EQ(probe_sandbox(cache).works, first.works);
  std::ofstream(cache) << "";
  EXPECT_EQ(probe_sandbox(cache).works, first.works);
}

TEST(SandboxCommandLine, later_places_may_lie_inside_earlier_ones_and_the_root_ends_read_only) {
  LaunchOrder order;
  order.attempt = "a";
  order.argv = {"true"};
  order.network = false;
  const auto words =
      sandbox_command(order, {"/l", "/t", "", "/n", "/tmp/w", "/tmp/w/c", "/k", "/o"}).arguments;
  EXPECT_THAT(words, Contains("--unshare-net"));
  EXPECT_THAT(words, Contains("--die-with-parent"));
  EXPECT_THAT(words, Not(Contains("/etc/shadow")));
  EXPECT_THAT(words, Not(Contains("/etc/ld.so.preload")));
  const auto at = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  EXPECT_LT(at("/tmp"), at("/tmp/w"));
  EXPECT_LT(at("/tmp/w"), at("/tmp/w/c"));
  EXPECT_EQ(words[words.size() - 3], "--remount-ro");
  EXPECT_EQ(words[words.size() - 2], "/");
  EXPECT_EQ(words.back(), "--");
}

}  // namespace
}  // namespace loam::node

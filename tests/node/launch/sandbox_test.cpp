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
  LaunchOrder wanted = shell(
      "a", "cat $LOAM_SLICE_PAGE.limits $LOAM_SLICE_PAGE.counters; ls " + root_ + "/pages; "
           "(echo x > $LOAM_SLICE_PAGE.limits) 2> /dev/null; echo w > " + root_ + "/keeper.sock");
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

TEST_F(Sandbox, works_for_an_ordinary_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
  constexpr uid_t nobody = 65534;
  // A user must reach the launcher: a copy below /tmp.
  const std::string home = root_ + "/home";
  std::filesystem::create_directories(home + "/a");
  std::filesystem::copy_file(LOAM_LAUNCH, home + "/loam-launch");
  LaunchOrder wanted = shell("a", "id -u; touch mine && echo wrote");
  wanted.host_memory_mib = 256;
  std::ofstream(home + "/a/order.json") << to_json(wanted);
  ::chmod(root_.c_str(), 0755);
  for (const auto& entry : {home, home + "/a", home + "/a/order.json"}) {
    ASSERT_EQ(::chown(entry.c_str(), nobody, nobody), 0);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(99);
    const std::string launcher = home + "/loam-launch";
    ::execl(launcher.c_str(), "loam-launch", "--foreground", (home + "/a").c_str(), nullptr);
    ::_exit(98);
  }
  int wait_status = 0;
  ASSERT_EQ(::waitpid(child, &wait_status, 0), child);
  EXPECT_EQ(wait_status, 0);
  const auto status = parse_attempt_status(*read_file(home + "/a/status.json"));
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->exit_code, 0) << status->detail;
  if (status->isolation != Isolation::sandboxed) {
    EXPECT_NE(status->isolation_detail, "") << "why not is said";
  }
  EXPECT_EQ(*read_file(home + "/a/logs/stdout.log"), "65534\nwrote\n");
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
      sandbox_command(order, {"/l", "/t", "", "/n", "/tmp/w", "/tmp/w/c", "/k"}).arguments;
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

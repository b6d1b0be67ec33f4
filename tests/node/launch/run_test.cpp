// Programs that run, and programs that cannot.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "node/launch/attempt_fixture.hpp"
#include "node/launch/cgroup.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/launcher_process.hpp"
#include "node/launch/network_meter.hpp"

namespace loam::node {
namespace {

using ::testing::HasSubstr;

class Run : public AttemptTest {};

TEST_F(Run, the_exit_code_and_both_streams_arrive) {
  const auto status = run(shell("a", "echo out; echo err >&2; exit 7"));
  EXPECT_EQ(status.phase, Phase::exited);
  EXPECT_EQ(status.outcome, Outcome::exited);
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_FALSE(status.signal.has_value());
  EXPECT_EQ(output("a"), "out\n");
  EXPECT_EQ(output("a", "stderr"), "err\n");
  EXPECT_EQ(status.stdout_bytes, 4);
  EXPECT_EQ(status.stderr_bytes, 4);
  EXPECT_EQ(status.task, "t1");
  EXPECT_EQ(status.lease, "l1");
  EXPECT_EQ(status.epoch, 1u);
}

TEST_F(Run, times_are_of_this_boot_and_enclose_the_run) {
  const std::int64_t before_ns = boottime_ns();
  const auto status = run(shell("a", "sleep 0.2"));
  EXPECT_EQ(status.boot_id, boot_id());
  EXPECT_GE(status.start_boottime_ns, before_ns);
  EXPECT_LE(status.end_boottime_ns, boottime_ns());
  EXPECT_GE(status.end_boottime_ns - status.start_boottime_ns, 200'000'000);
  EXPECT_GT(status.start_wall_ms, 0);
  EXPECT_GE(status.end_wall_ms, status.start_wall_ms);
}

TEST_F(Run, a_signal_is_told_apart_from_an_exit_code) {
  EXPECT_EQ(run(shell("code", "exit 139")).exit_code, 139);
  const auto status = run(shell("signal", "kill -SEGV $$"));
  EXPECT_EQ(status.outcome, Outcome::signalled);
  EXPECT_EQ(status.signal, 11);
  EXPECT_FALSE(status.exit_code.has_value());
  const auto killed = run(shell("killed", "kill -KILL $$"));
  EXPECT_EQ(killed.outcome, Outcome::signalled);
  EXPECT_EQ(killed.signal, 9);
}

TEST_F(Run, arguments_arrive_as_they_are) {
  const auto status =
      run(order("a", {"printf", "[%s]", "a b", "", "line\nbreak", "$HOME", "'\"\\", "\xc3\xa4"}));
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(output("a"), "[a b][][line\nbreak][$HOME]['\"\\][\xc3\xa4]");
}

TEST_F(Run, the_environment_holds_what_is_promised) {
  LaunchOrder wanted = shell("a",
                             "echo $LOAM_TASK $LOAM_LEASE $LOAM_RESTART $LOAM_RANK/$LOAM_SIZE "
                             "$LOAM_RENDEZVOUS; test -w $LOAM_CHECKPOINT_DIR && test -w . && "
                             "test -w $POCL_CACHE_DIR && test -w $TMPDIR && pwd");
  wanted.restart = 2;
  wanted.rank = 1;
  wanted.size = 3;
  wanted.rendezvous = "n1:29500";
  EXPECT_EQ(run(wanted).exit_code, 0);
  EXPECT_EQ(output("a"), "t1 l1 2 1/3 n1:29500\n" + path("a") + "/work\n");
}

TEST_F(Run, what_the_program_writes_in_its_directories_stays_and_is_measured) {
  const auto status = run(shell("a",
                                "head -c 300000 /dev/zero > result; "
                                "head -c 200000 /dev/zero > $LOAM_CHECKPOINT_DIR/c; "
                                "head -c 400000 /dev/zero > $TMPDIR/scratch"));
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(std::filesystem::file_size(path("a") + "/work/result"), 300000u);
  EXPECT_EQ(std::filesystem::file_size(path("a") + "/checkpoint/c"), 200000u);
  EXPECT_GE(status.usage.work_bytes, 300000);
  EXPECT_GE(status.usage.checkpoint_bytes, 200000);
  EXPECT_LT(status.usage.checkpoint_bytes, 300000);
  EXPECT_TRUE(wait_until([&] { return !std::filesystem::exists(path("a") + "/tmp"); }))
      << "what is temporary goes with the attempt";
}

TEST_F(Run, what_the_program_says_it_made_is_read_at_its_end) {
  const auto made = [&](const char* name, const std::string& script) {
    EXPECT_EQ(run(shell(name, script)).exit_code, 0) << script;
    return supervisor_->output(name);
  };
  EXPECT_EQ(*made("none", "true"), std::nullopt);
  EXPECT_EQ(*made("whole", "echo 1250 > $LOAM_OUTPUT_FILE"), 1'250'000);
  EXPECT_EQ(*made("part", "printf ' 0.125 ' > $LOAM_OUTPUT_FILE"), 125);
  EXPECT_EQ(*made("empty", ": > $LOAM_OUTPUT_FILE"), std::nullopt);
  EXPECT_EQ(*made("last", "echo 1 > $LOAM_OUTPUT_FILE; echo 2 > $LOAM_OUTPUT_FILE"), 2'000);
  EXPECT_FALSE(supervisor_->output("unknown").ok());
}

TEST_F(Run, what_the_program_leaves_instead_of_a_number_is_refused_unread) {
  int count = 0;
  for (const char* script :
       {"echo many > $LOAM_OUTPUT_FILE", "echo -5 > $LOAM_OUTPUT_FILE",
        "echo 1.2345 > $LOAM_OUTPUT_FILE", "echo 1 2 > $LOAM_OUTPUT_FILE",
        "echo 99999999999999999999 > $LOAM_OUTPUT_FILE",
        "head -c 100000 /dev/zero > $LOAM_OUTPUT_FILE", "ln -s /etc/hostname $LOAM_OUTPUT_FILE",
        "mkfifo $LOAM_OUTPUT_FILE", "mkdir $LOAM_OUTPUT_FILE"}) {
    const std::string name = "odd-" + std::to_string(++count);
    EXPECT_EQ(run(shell(name, script)).exit_code, 0) << script;
    const auto output = supervisor_->output(name);
    ASSERT_FALSE(output.ok()) << script;
    EXPECT_EQ(output.error().kind, ErrorKind::invalid_argument) << script;
    EXPECT_THAT(output.error().message, HasSubstr("LOAM_OUTPUT_FILE"));
  }
}

TEST_F(Run, cpu_time_and_memory_are_counted) {
  const auto status = run(shell("a", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"));
  EXPECT_GT(status.usage.user_cpu_ms + status.usage.system_cpu_ms, 0);
  EXPECT_GT(status.usage.max_rss_bytes, 100'000);
}

// Datagrams to an address that nobody has: they leave by the node's own interface.
TEST_F(Run, what_leaves_the_node_is_counted_and_what_stays_is_not) {
  const auto cgroup = AttemptCgroup::make(read_cgroup_mounts(), "network-probe", {});
  const bool counts =
      !cgroup.v2_directory().empty() && NetworkMeter::attach(cgroup.v2_directory()).ok();
  AttemptCgroup::adopt(cgroup.directories()).remove();
  const auto send = [&](const char* name, const std::string& where) {
    return run(order(name, {"bash", "-c",
                            "for i in 1 2 3 4 5; do head -c 1000 /dev/zero > /dev/udp/" + where +
                                "/9; done 2>&1"}));
  };
  const auto stays = send("a", "127.0.0.1");
  if (!counts) {
    EXPECT_FALSE(stays.usage.network_tx_bytes.has_value()) << "nobody counted";
    GTEST_SKIP() << "no network can be counted here";
  }
  EXPECT_EQ(stays.usage.network_tx_bytes, 0) << output("a");
  EXPECT_EQ(stays.usage.network_rx_bytes, 0);
  const auto leaves = send("b", "192.0.2.1");
  if (output("b").find("unreachable") != std::string::npos) GTEST_SKIP() << "no way out of here";
  EXPECT_EQ(leaves.usage.network_tx_bytes, 5 * (1000 + 28)) << "with the headers of IP and UDP";
}

// A node that lacks something just now is not the program's fault: it may be tried again.
TEST_F(Run, what_the_node_lacks_is_no_fault_of_the_program) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.cache_directory = root_ + "/file/cache";
  std::ofstream(root_ + "/file") << "not a directory";
  const auto status = run(wanted);
  EXPECT_EQ(status.phase, Phase::refused);
  EXPECT_EQ(status.outcome, Outcome::unable) << status.detail;
  EXPECT_THAT(status.detail, HasSubstr("/file"));
  EXPECT_EQ(status.start_boottime_ns, 0);
}

TEST_F(Run, a_program_that_does_not_exist_is_refused_with_127) {
  for (const char* program : {"no-such-program-here", "/no/such/program", "./missing"}) {
    const std::string attempt = std::string("a") + std::to_string(std::string(program).size());
    const auto status = run(order(attempt, {program}));
    EXPECT_EQ(status.phase, Phase::refused) << program;
    EXPECT_EQ(status.outcome, Outcome::refused);
    EXPECT_EQ(status.exit_code, 127);
    EXPECT_THAT(status.detail, HasSubstr("program not found"));
    EXPECT_THAT(status.detail, HasSubstr(program));
    EXPECT_EQ(status.start_boottime_ns, 0) << "what never ran has no start to be billed from";
    EXPECT_EQ(status.end_boottime_ns, 0);
  }
}

TEST_F(Run, a_program_that_is_not_executable_is_refused_with_126) {
  LaunchOrder wanted = order("a", {"./data"});
  wanted.working_directory = root_ + "/place";
  std::filesystem::create_directory(wanted.working_directory);
  std::ofstream(wanted.working_directory + "/data") << "no program\n";
  auto status = run(wanted);
  EXPECT_EQ(status.phase, Phase::refused);
  EXPECT_EQ(status.exit_code, 126);
  EXPECT_THAT(status.detail, HasSubstr("not executable: `./data`"));

  ::chmod((wanted.working_directory + "/data").c_str(), 0755);
  wanted.attempt = "b";
  status = run(wanted);
  EXPECT_EQ(status.exit_code, 126) << "neither a program nor a script";

  wanted.attempt = "c";
  wanted.argv = {"data"};
  wanted.environment["PATH"] = wanted.working_directory;
  ::chmod((wanted.working_directory + "/data").c_str(), 0644);
  EXPECT_EQ(run(wanted).exit_code, 126) << "found in PATH, not executable";

  wanted.attempt = "d";
  wanted.argv = {"./"};
  EXPECT_EQ(run(wanted).exit_code, 126) << "a directory";
}

TEST_F(Run, a_script_whose_interpreter_is_missing_says_so) {
  LaunchOrder wanted = order("a", {"./script"});
  wanted.working_directory = root_ + "/place";
  wanted.sandbox = SandboxMode::none;
  std::filesystem::create_directory(wanted.working_directory);
  std::ofstream(wanted.working_directory + "/script") << "#!/no/such/interpreter\n";
  ::chmod((wanted.working_directory + "/script").c_str(), 0755);
  const auto status = run(wanted);
  EXPECT_EQ(status.exit_code, 127);
  EXPECT_EQ(status.phase, Phase::refused);
}

TEST_F(Run, a_working_directory_that_does_not_exist_is_refused_by_name) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.working_directory = root_ + "/nowhere";
  const auto status = run(wanted);
  EXPECT_EQ(status.phase, Phase::refused);
  EXPECT_THAT(status.detail, HasSubstr(root_ + "/nowhere"));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/nowhere"));
}

TEST_F(Run, a_missing_guard_library_is_refused_and_never_left_out) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.guard_library = "/no/such/guard.so";
  const auto status = run(wanted);
  EXPECT_EQ(status.phase, Phase::refused);
  EXPECT_THAT(status.detail, HasSubstr("/no/such/guard.so"));
}

TEST_F(Run, an_order_that_cannot_be_read_is_refused_in_words) {
  const auto refusal = [&](const std::string& attempt, const std::string& text) {
    std::filesystem::create_directory(path(attempt));
    std::ofstream(path(attempt) + "/order.json") << text;
    const auto launched = start_launcher(LOAM_LAUNCH, path(attempt));
    EXPECT_TRUE(launched.ok() && launched->exit_code == 0);
    AttemptStatus status;
    EXPECT_TRUE(wait_until([&] {
      const auto report = supervisor_->status(attempt);
      if (!report || !is_final(report->status.phase)) return false;
      status = report->status;
      return true;
    }));
    EXPECT_EQ(status.phase, Phase::refused);
    return status.detail;
  };
  EXPECT_THAT(refusal("torn", "{\"version\":1,"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("newer", R"({"version":9,"attempt":"newer","argv":["true"]})"),
              HasSubstr("has version 9"));
  EXPECT_THAT(refusal("other", R"({"version":1,"attempt":"x","argv":["true"]})"),
              HasSubstr("is for the attempt x"));
}

TEST_F(Run, a_bad_order_is_not_started) {
  LaunchOrder wanted = order("a", {"true"});
  wanted.attempt = "../escape";
  EXPECT_FALSE(supervisor_->start(wanted).ok());
  wanted = order("b", {});
  EXPECT_FALSE(supervisor_->start(wanted).ok());
  EXPECT_TRUE(supervisor_->attempts().empty());
}

TEST_F(Run, an_unknown_attempt_is_not_found) {
  for (const char* attempt : {"nobody", "../etc", ""}) {
    EXPECT_EQ(supervisor_->status(attempt).error().kind, ErrorKind::not_found);
    EXPECT_EQ(supervisor_->stop(attempt, 0, "").error().kind, ErrorKind::not_found);
    EXPECT_EQ(supervisor_->read_log(attempt, "stdout", 0, 1).error().kind, ErrorKind::not_found);
    EXPECT_TRUE(supervisor_->remove(attempt).ok());
  }
}

TEST(LoamLaunch, says_how_it_is_used) {
  const auto nothing = start_launcher(LOAM_LAUNCH, "--nonsense");
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->exit_code, 2);
  EXPECT_THAT(nothing->words, HasSubstr("usage"));
  const auto missing = start_launcher(LOAM_LAUNCH, "/no/such/directory");
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->exit_code, 1);
  EXPECT_THAT(missing->words, HasSubstr("/no/such/directory"));
  EXPECT_FALSE(start_launcher("/no/such/launcher", "/tmp").ok());
}

}  // namespace
}  // namespace loam::node

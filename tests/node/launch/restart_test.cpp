// The daemon goes and comes back; launchers die; nothing is run twice or forgotten.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/launch/attempt_fixture.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"
#include "node/launch/launcher.hpp"
#include "node/launch/launcher_process.hpp"

namespace loam::node {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class Restart : public AttemptTest {};

TEST_F(Restart, a_running_attempt_is_found_again_and_its_end_is_heard) {
  start(shell("a", "echo ready; while [ ! -e go ]; do sleep 0.02; done; exit 5"));
  const auto before = wait_phase("a", Phase::running);
  restart_supervisor();
  const auto adopted = supervisor_->adopt();
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(*adopted, 1u);
  const auto after = wait_phase("a", Phase::running);
  EXPECT_EQ(after.start_boottime_ns, before.start_boottime_ns);
  EXPECT_EQ(after.program_pid, before.program_pid);
  std::ofstream(path("a") + "/work/go") << "";
  EXPECT_EQ(wait_end("a").exit_code, 5);
}

TEST_F(Restart, an_attempt_that_ended_meanwhile_is_reported_as_it_ended) {
  start(shell("a", "while [ ! -e go ]; do sleep 0.02; done; exit 6"));
  wait_phase("a", Phase::running);
  supervisor_.reset();
  std::ofstream(path("a") + "/work/go") << "";
  ASSERT_TRUE(wait_until([&] {
    const auto text = read_file(path("a") + "/status.json");
    const auto status = text ? parse_attempt_status(*text) : Result<AttemptStatus>(text.error());
    return status && is_final(status->phase);
  }));
  restart_supervisor();
  ASSERT_TRUE(supervisor_->adopt().ok());
  EXPECT_EQ(wait_end("a").exit_code, 6);
}

TEST_F(Restart, a_daemon_killed_by_sigkill_takes_no_attempt_with_it) {
  supervisor_.reset();
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    auto made = Supervisor::create(root_, LOAM_LAUNCH, [](const AttemptReport&) {});
    if (!made || !(*made)->start(shell("a", "while [ ! -e go ]; do sleep 0.02; done")).ok()) {
      ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int wait_status = 0;
  ASSERT_EQ(::waitpid(daemon, &wait_status, 0), daemon);
  ASSERT_TRUE(WIFSIGNALED(wait_status));
  restart_supervisor();
  ASSERT_TRUE(supervisor_->adopt().ok());
  wait_phase("a", Phase::running);
  std::ofstream(path("a") + "/work/go") << "";
  EXPECT_EQ(wait_end("a").exit_code, 0);
}

TEST_F(Restart, starting_the_same_attempt_again_runs_it_once) {
  const auto wanted = shell("a", "echo run >> ran; while [ ! -e go ]; do sleep 0.02; done");
  start(wanted);
  start(wanted);
  wait_phase("a", Phase::running);
  start(wanted);
  restart_supervisor();
  start(wanted);
  wait_phase("a", Phase::running);
  std::ofstream(path("a") + "/work/go") << "";
  wait_end("a");
  restart_supervisor();
  start(wanted);
  EXPECT_EQ(wait_end("a").exit_code, 0) << "the old end is reported again";
  EXPECT_EQ(*read_file(path("a") + "/work/ran"), "run\n");
}

TEST_F(Restart, a_second_launcher_of_the_same_attempt_refuses) {
  start(shell("a", "sleep 1000"));
  wait_phase("a", Phase::running);
  const auto second = start_launcher(LOAM_LAUNCH, path("a"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->exit_code, launch_exit_running);
  EXPECT_THAT(second->words, HasSubstr("another launcher"));
  ASSERT_TRUE(supervisor_->kill("a", "").ok());
  wait_end("a");
  ASSERT_TRUE(wait_until([&] {
    const auto third = start_launcher(LOAM_LAUNCH, path("a"));
    return third && third->exit_code == launch_exit_ended;
  }));
}

TEST_F(Restart, a_launcher_that_dies_is_noticed_and_nothing_of_it_stays) {
  for (const auto mode : {SandboxMode::automatic, SandboxMode::none}) {
    LaunchOrder wanted =
        shell(std::string("a-") + name_of(mode), "(setsid sleep 1000 &); echo ready; sleep 1000");
    wanted.sandbox = mode;
    start(wanted);
    wait_output(wanted.attempt, "ready");
    const auto running = wait_phase(wanted.attempt, Phase::running);
    ASSERT_EQ(::kill(static_cast<pid_t>(running.launcher_pid), SIGKILL), 0);
    const auto status = wait_end(wanted.attempt);
    EXPECT_EQ(status.phase, Phase::lost);
    EXPECT_EQ(status.outcome, Outcome::launcher_lost);
    EXPECT_GE(status.end_boottime_ns, status.start_boottime_ns);
    EXPECT_LE(status.end_boottime_ns, boottime_ns());
    EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
  }
}

TEST_F(Restart, a_launcher_that_died_while_no_daemon_ran_is_found_lost) {
  start(shell("a", "echo ready; sleep 1000"));
  const auto running = wait_phase("a", Phase::running);
  supervisor_.reset();
  ASSERT_EQ(::kill(static_cast<pid_t>(running.launcher_pid), SIGKILL), 0);
  restart_supervisor();
  ASSERT_TRUE(supervisor_->adopt().ok());
  EXPECT_EQ(wait_end("a").phase, Phase::lost);
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
  // Told once more to a later daemon, in the same words.
  restart_supervisor();
  ASSERT_TRUE(supervisor_->adopt().ok());
  EXPECT_EQ(wait_end("a").outcome, Outcome::launcher_lost);
}

TEST_F(Restart, after_a_reboot_time_ends_at_the_last_heartbeat_and_nobody_is_killed) {
  std::filesystem::create_directories(path("a") + "/pulse");
  std::ofstream(path("a") + "/order.json") << to_json(shell("a", "sleep 1000"));
  AttemptStatus status;
  status.attempt = "a";
  status.phase = Phase::running;
  status.boot_id = "an-earlier-boot";
  status.start_boottime_ns = 1'000'000'000;
  status.launcher_pid = ::getpid();  // a pid that now is somebody else's: ours
  status.launcher_start_ticks = 1;
  std::ofstream(path("a") + "/status.json") << to_json(status);
  std::ofstream(path("a") + "/pulse/heartbeat.json")
      << to_json(Heartbeat{"an-earlier-boot", 71'000'000'000, {}});
  ASSERT_TRUE(supervisor_->adopt().ok());
  const auto found = wait_end("a");
  EXPECT_EQ(found.phase, Phase::lost);
  EXPECT_EQ(found.end_boottime_ns, 71'000'000'000);
  EXPECT_EQ(found.boot_id, "an-earlier-boot");
  EXPECT_THAT(found.detail, HasSubstr("node went down"));
}

TEST_F(Restart, an_order_that_was_never_launched_is_told_and_can_be_started) {
  std::filesystem::create_directories(path("a"));
  const auto wanted = shell("a", "exit 2");
  std::ofstream(path("a") + "/order.json") << to_json(wanted);
  ASSERT_TRUE(supervisor_->adopt().ok());
  const auto found = wait_phase("a", Phase::ordered);
  EXPECT_EQ(found.task, "t1");
  EXPECT_EQ(run(wanted).exit_code, 2);
}

TEST_F(Restart, what_is_no_attempt_is_left_alone_and_what_is_unreadable_is_told) {
  std::filesystem::create_directories(root_ + "/not an attempt");
  std::filesystem::create_directories(root_ + "/empty");
  std::ofstream(root_ + "/file") << "x";
  std::filesystem::create_directories(path("newer"));
  std::ofstream(path("newer") + "/order.json") << to_json(shell("newer", "true"));
  std::ofstream(path("newer") + "/status.json")
      << R"({"version":2,"attempt":"newer","phase":"running"})";
  std::vector<Error> trouble;
  const auto adopted = supervisor_->adopt(&trouble);
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(*adopted, 0u);
  ASSERT_EQ(trouble.size(), 1u);
  EXPECT_THAT(trouble[0].message, HasSubstr("version 2"));
  std::filesystem::remove_all(path("newer"));
}

TEST_F(Restart, removing_deletes_what_is_over_and_spares_what_runs) {
  start(shell("a", "sleep 1000"));
  wait_phase("a", Phase::running);
  EXPECT_EQ(supervisor_->remove("a").error().kind, ErrorKind::conflict);
  ASSERT_TRUE(supervisor_->kill("a", "").ok());
  wait_end("a");
  ASSERT_TRUE(supervisor_->remove("a").ok());
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  EXPECT_FALSE(supervisor_->status("a").ok());
}

TEST_F(Restart, the_supervisor_sleeps_while_nothing_happens) {
  start(shell("a", "echo ready; sleep 1000"));
  wait_output("a", "ready");
  wait_phase("a", Phase::running);
  std::uint64_t last = 0;
  ASSERT_TRUE(wait_until([&] {  // until the last event of the start has come
    const auto now = supervisor_->wakeups();
    const bool still = now == last;
    last = now;
    struct timespec rest {
      0, 300'000'000
    };
    ::nanosleep(&rest, nullptr);
    return still && supervisor_->wakeups() == now;
  }));
  struct timespec rest {
    1, 0
  };
  ::nanosleep(&rest, nullptr);
  EXPECT_EQ(supervisor_->wakeups(), last);
}

TEST_F(Restart, usage_of_this_moment_comes_from_the_launcher) {
  start(shell("a", "echo ready; while :; do :; done"));
  wait_output("a", "ready");
  EXPECT_TRUE(wait_until([&] {
    const auto now = supervisor_->status_now("a");
    return now.ok() && now->usage.user_cpu_ms > 20;
  }));
  const auto report = supervisor_->status("a");
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->heartbeat.has_value());
  EXPECT_EQ(report->heartbeat->boot_id, boot_id());
}

}  // namespace
}  // namespace loam::node

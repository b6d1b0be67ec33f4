// Stopping, killing and pausing.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "node/launch/attempt_fixture.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::node {
namespace {

using ::testing::HasSubstr;

class Stop : public AttemptTest {};

TEST_F(Stop, a_task_reads_its_notice_saves_and_leaves_in_its_grace) {
  start(shell("a",
              "trap 'cat $LOAM_NOTICE; echo saved > $LOAM_CHECKPOINT_DIR/state; exit 0' TERM; "
              "echo ready; while :; do sleep 0.05; done"));
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->stop("a", 20'000, "its borrowed quota is reclaimed").ok());
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::stopped);
  EXPECT_EQ(status.exit_code, 0);
  ASSERT_EQ(status.notices.size(), 1u);
  EXPECT_EQ(status.notices[0].action, "stop");
  EXPECT_EQ(status.notices[0].reason, "its borrowed quota is reclaimed");
  EXPECT_EQ(status.notices[0].deadline_boottime_ns - status.notices[0].given_boottime_ns,
            20'000'000'000);
  EXPECT_THAT(output("a"), HasSubstr("\"action\":\"stop\",\"deadline\":\"20"));
  EXPECT_TRUE(read_file(path("a") + "/checkpoint/state").ok());
}

TEST_F(Stop, a_task_that_is_asked_for_lent_memory_is_told_and_goes_on) {
  start(shell("a",
              "echo ready; while [ ! -e ${LOAM_NOTICE%/*}/memory.json ]; do sleep 0.05; done; "
              "cat ${LOAM_NOTICE%/*}/memory.json; [ -e $LOAM_NOTICE ] && echo stopping; exit 7"));
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->ask_for_memory("a", 10'000, 123'456'789).ok());
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::exited);
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_TRUE(status.notices.empty()) << "nothing ends it";
  EXPECT_THAT(output("a"),
              HasSubstr(R"("action":"give_back_memory","bytes":123456789,"deadline":"20)"));
  EXPECT_EQ(output("a").find("stopping"), std::string::npos);
  EXPECT_TRUE(supervisor_->ask_for_memory("a", 10'000, 1).ok()) << "over: nothing to tell";
}

TEST_F(Stop, spot_handlers_read_the_notice_at_the_metadata_address) {
  LaunchOrder wanted = shell("a",
                             "address=${LOAM_METADATA_URL#http://}; ask() { "
                             "exec 3<>/dev/tcp/${address%:*}/${address#*:}; printf 'GET "
                             "/latest/meta-data/spot/instance-action HTTP/1.1\\r\\n\\r\\n' >&3; "
                             "cat <&3; }; "
                             "trap 'ask; exit 0' TERM; ask; echo ready; "
                             "while :; do sleep 0.05; done");
  wanted.argv[0] = "/bin/bash";
  start(wanted);
  wait_output("a", "ready");
  EXPECT_THAT(output("a"), HasSubstr("404 Not Found"));
  ASSERT_TRUE(supervisor_->stop("a", 20'000, "").ok());
  wait_end("a");
  EXPECT_THAT(output("a"), HasSubstr("200 OK"));
  EXPECT_THAT(output("a"), HasSubstr(R"({"action":"terminate","time":"20)"));
}

TEST_F(Stop, a_task_that_ignores_sigterm_is_killed_after_its_grace) {
  start(shell("a", "trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->stop("a", 300, "").ok());
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::killed_after_grace);
  EXPECT_EQ(status.signal, 9);
  EXPECT_GE(status.end_boottime_ns, status.notices.at(0).deadline_boottime_ns);
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
}

TEST_F(Stop, what_a_shell_started_has_its_grace_although_the_shell_dies_at_once) {
  for (const auto mode : {SandboxMode::automatic, SandboxMode::none}) {
    LaunchOrder wanted = shell(std::string("a-") + name_of(mode),
                               "sh -c 'trap \"sleep 0.3; echo saved; exit 0\" TERM; echo ready; "
                               "while :; do sleep 0.05; done'; echo never");
    wanted.sandbox = mode;
    start(wanted);
    wait_output(wanted.attempt, "ready");
    ASSERT_TRUE(supervisor_->stop(wanted.attempt, 20'000, "").ok());
    const auto status = wait_end(wanted.attempt);
    EXPECT_EQ(status.outcome, Outcome::stopped);
    EXPECT_EQ(status.signal, 15) << "of the shell";
    EXPECT_EQ(output(wanted.attempt), "ready\nsaved\n");
  }
}

TEST_F(Stop, children_that_do_not_leave_after_the_shell_are_killed_at_the_end_of_the_grace) {
  start(shell("a", "sh -c \"trap '' TERM; echo ready; while :; do sleep 0.05; done\"; echo never"));
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->stop("a", 500, "").ok());
  const auto status = wait_end("a");
  EXPECT_GE(status.end_boottime_ns, status.notices.at(0).deadline_boottime_ns);
  EXPECT_EQ(status.outcome, Outcome::killed_after_grace);
  EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
}

TEST_F(Stop, a_second_stop_may_shorten_the_grace_and_never_lengthens_it) {
  start(shell("a", "trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->stop("a", 3'600'000, "first").ok());
  wait_phase("a", Phase::stopping);
  ASSERT_TRUE(supervisor_->stop("a", 7'200'000, "later is ignored").ok());
  ASSERT_TRUE(supervisor_->stop("a", 100, "sooner").ok());
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::killed_after_grace);
  ASSERT_EQ(status.notices.size(), 2u);
  EXPECT_EQ(status.notices[1].reason, "sooner");
  EXPECT_TRUE(supervisor_->stop("a", 0, "after the end").ok());
}

TEST_F(Stop, a_stop_before_the_first_instruction_is_not_lost) {
  LaunchOrder wanted = shell("a", "while :; do sleep 0.05; done");
  wanted.grace_ms = 200;
  start(wanted);
  ASSERT_TRUE(supervisor_->stop("a", -1, "at once").ok());
  const auto status = wait_end("a");
  EXPECT_TRUE(status.outcome == Outcome::stopped || status.outcome == Outcome::refused ||
              status.outcome == Outcome::killed_after_grace)
      << name_of(status.outcome);
}

TEST_F(Stop, the_run_limit_is_kept_without_anybody_asking) {
  LaunchOrder wanted = shell("a", "trap 'exit 7' TERM; while :; do sleep 0.05; done");
  wanted.run_limit_ms = 300;
  start(wanted);
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::stopped);
  EXPECT_EQ(status.exit_code, 7);
  ASSERT_EQ(status.notices.size(), 1U);
  EXPECT_EQ(status.notices[0].action, notice_limit);
  EXPECT_GE(status.end_boottime_ns - status.start_boottime_ns, 300'000'000);
}

TEST_F(Stop, who_ends_before_the_run_limit_hears_nothing_of_it) {
  LaunchOrder wanted = shell("a", "exit 3");
  wanted.run_limit_ms = 60'000;
  start(wanted);
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::exited);
  EXPECT_TRUE(status.notices.empty());
}

TEST_F(Stop, killing_takes_no_grace) {
  start(shell("a", "trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  wait_output("a", "ready");
  ASSERT_TRUE(supervisor_->kill("a", "over budget").ok());
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::killed);
  EXPECT_EQ(status.signal, 9);
  EXPECT_EQ(status.notices.at(0).reason, "over budget");
}

TEST_F(Stop, nothing_of_an_attempt_outlives_it) {
  const auto script =
      "(setsid sh -c 'exec >/dev/null 2>&1 </dev/null; sleep 1000' &) ; "
      "nohup sleep 1001 >/dev/null 2>&1 & echo done";
  for (const auto mode : {SandboxMode::automatic, SandboxMode::none}) {
    LaunchOrder wanted = shell(std::string("a-") + name_of(mode), script);
    wanted.sandbox = mode;
    EXPECT_EQ(run(wanted).exit_code, 0);
    EXPECT_EQ(output(wanted.attempt), "done\n");
    EXPECT_TRUE(gone_processes_with("LOAM_TEST_ROOT=" + root_));
  }
}

TEST_F(Stop, a_paused_task_stands_still_and_goes_on) {
  start(shell("a", "i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.01; done"));
  wait_phase("a", Phase::running);
  const std::string counter = path("a") + "/work/count";
  ASSERT_TRUE(wait_until([&] { return read_file(counter).ok(); }));
  const auto paused = supervisor_->pause("a");
  if (!paused.ok() && paused.error().kind == ErrorKind::conflict) {
    GTEST_SKIP() << "no control group to freeze: " << to_text(paused.error());
  }
  ASSERT_TRUE(paused.ok()) << to_text(paused.error());
  ASSERT_TRUE(supervisor_->pause("a").ok()) << "twice is no error";
  auto status = wait_for("a", [](const auto& s) { return s.paused_since_boottime_ns != 0; });
  EXPECT_EQ(status.phase, Phase::running);
  // Freezing takes effect within a moment; then nothing changes any more.
  std::string before;
  ASSERT_TRUE(wait_until([&] {
    const auto now = read_file(counter);
    const bool same = now.ok() && *now == before;
    before = now.ok() ? *now : "";
    struct timespec rest {
      0, 200'000'000
    };
    ::nanosleep(&rest, nullptr);
    return same;
  }));
  ASSERT_TRUE(supervisor_->resume("a").ok());
  ASSERT_TRUE(wait_until([&] { return *read_file(counter) != before; }));
  status = wait_for("a", [](const auto& s) { return s.paused_ns > 0; });
  EXPECT_EQ(status.paused_since_boottime_ns, 0);
  EXPECT_GE(status.paused_ns, 200'000'000);
}

TEST_F(Stop, a_paused_task_can_be_stopped) {
  start(shell("a", "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done"));
  wait_output("a", "ready");
  wait_phase("a", Phase::running);
  const auto paused = supervisor_->pause("a");
  if (!paused.ok()) GTEST_SKIP() << to_text(paused.error());
  ASSERT_TRUE(supervisor_->stop("a", 20'000, "").ok());
  const auto status = wait_end("a");
  EXPECT_EQ(status.outcome, Outcome::stopped);
  EXPECT_EQ(status.exit_code, 4);
  EXPECT_GT(status.paused_ns, 0);
  EXPECT_FALSE(supervisor_->pause("a").ok()) << "over";
}

}  // namespace
}  // namespace loam::node

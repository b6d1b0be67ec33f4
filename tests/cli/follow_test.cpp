// `loam run` from the quote to the exit status.
#include "app/loam/follow.hpp"

#include <signal.h>

#include <chrono>
#include <future>
#include <thread>

#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

using Words = std::vector<std::string>;

// Bounds how long a failing test hangs; no passing test waits it out.
constexpr std::chrono::seconds patience{60};

class RunTest : public DaemonTest {
 protected:
  // Waits until the engine says so of the task.
  void wait_until(const std::function<bool(const engine::State&)>& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (bool holds = false; !holds && std::chrono::steady_clock::now() < end;) {
      daemon.read([&](const engine::State& state, Instant) { holds = condition(state); });
      if (!holds) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::future<Ran> start_run(Words options = {}, Shown shown = {}) {
    Words words{"run", "--tenant", "acme", "--share", "0.5"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "./train"});
    auto ran =
        std::async(std::launch::async, [this, words, shown] { return loam(words, {}, shown); });
    wait_until([](const engine::State& state) {
      return state.tasks.count(TaskId{1}) != 0 && !state.tasks.at(TaskId{1}).leases.empty();
    });
    daemon.start(TaskId{1});
    return ran;
  }
};

TEST_F(RunTest, output_and_exit_status_are_passed_on) {
  daemon.logs[{TaskId{1}, api::LogStream::out}] = "loss 0.5\n";
  daemon.logs[{TaskId{1}, api::LogStream::err}] = "warning\n";
  auto running = start_run();
  daemon.clock.advance(Duration::seconds(5));
  daemon.end(TaskId{1}, 7);
  ASSERT_EQ(running.wait_for(patience), std::future_status::ready);
  const Ran ran = running.get();
  EXPECT_EQ(ran.status, 7);
  EXPECT_EQ(ran.out, "loss 0.5\n");
  EXPECT_NE(ran.err.find("quote: 1.00 USD per hour, at most "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("t1 submitted\n"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("warning\n"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("t1 failed with exit code 7"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);
}

TEST_F(RunTest, quiet_leaves_the_streams_to_the_task) {
  daemon.logs[{TaskId{1}, api::LogStream::err}] = "only this\n";
  auto running = start_run({"--quiet"});
  daemon.end(TaskId{1});
  ASSERT_EQ(running.wait_for(patience), std::future_status::ready);
  const Ran ran = running.get();
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "only this\n");
}

TEST_F(RunTest, json_keeps_standard_output_for_the_document) {
  daemon.logs[{TaskId{1}, api::LogStream::out}] = "loss\n";
  auto running = start_run({"--json", "--quiet"});
  daemon.end(TaskId{1});
  ASSERT_EQ(running.wait_for(patience), std::future_status::ready);
  const Ran ran = running.get();
  EXPECT_TRUE(api::from_json<api::TaskView>(ran.out).ok()) << ran.out;
  EXPECT_EQ(ran.err, "loss\n");
}

TEST_F(RunTest, ctrl_c_once_stops_and_says_so) {
  auto running = start_run();
  ::kill(::getpid(), SIGINT);
  wait_until([](const engine::State& state) {
    return state.tasks.at(TaskId{1}).state == TaskState::stopping;
  });
  daemon.end(TaskId{1}, 143);
  ASSERT_EQ(running.wait_for(patience), std::future_status::ready);
  const Ran ran = running.get();
  EXPECT_EQ(ran.status, 130);
  EXPECT_NE(ran.err.find("stopping t1"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("t1 stopped"), std::string::npos) << ran.err;
}

TEST_F(RunTest, ctrl_c_twice_detaches_and_says_what_becomes_of_the_task) {
  auto running = start_run();
  ::kill(::getpid(), SIGINT);
  wait_until([](const engine::State& state) {
    return state.tasks.at(TaskId{1}).state == TaskState::stopping;
  });
  ::kill(::getpid(), SIGINT);
  ASSERT_EQ(running.wait_for(patience), std::future_status::ready);
  const Ran ran = running.get();
  EXPECT_EQ(ran.status, 123);
  EXPECT_NE(ran.err.find(
                "t1 was asked to stop and ends within its grace period; see it with: loam show t1"),
            std::string::npos)
      << ran.err;
}

TEST(StatusLine, says_where_it_runs_or_why_it_waits) {
  api::TaskView task;
  task.state = "running";
  task.run_ms = 42'000;
  task.device = "n1/0";
  task.share = 0.6;
  task.share_measured = 0.591;
  task.cost = "0.01037";
  task.cost_with_tax = "0.01234";
  task.currency = "USD";
  EXPECT_EQ(status_line(task), "42s  running  60 % of n1/0 (measured 59.1 %)  0.0123 USD");
  task.state = "waiting";
  task.reason = "no room";
  EXPECT_EQ(status_line(task), "42s  waiting: no room");
}

}  // namespace
}  // namespace loam::cli

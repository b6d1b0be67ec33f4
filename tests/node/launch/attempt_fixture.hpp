// What the tests of running attempts share: a directory of attempts, a supervisor, and waiting
// for what it reports. Everything that a test started is ended with it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "node/launch/supervisor.hpp"

namespace loam::node {

class AttemptTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A supervisor as a fresh daemon would have one; the old one goes first.
  void restart_supervisor();

  LaunchOrder order(const std::string& attempt, std::vector<std::string> argv) const;
  LaunchOrder shell(const std::string& attempt, const std::string& script) const;

  void start(const LaunchOrder& order);
  // Waits until a report of the attempt satisfies the wish; fails the test after 100 s.
  AttemptStatus wait_for(const std::string& attempt,
                         const std::function<bool(const AttemptStatus&)>& wish);
  AttemptStatus wait_phase(const std::string& attempt, Phase phase);
  AttemptStatus wait_end(const std::string& attempt);
  // Starts it and waits for its end.
  AttemptStatus run(const LaunchOrder& order);
  // Waits until the program wrote this to its standard output.
  void wait_output(const std::string& attempt, const std::string& text);

  std::string output(const std::string& attempt, const char* stream = "stdout");
  std::string path(const std::string& attempt) const { return root_ + "/" + attempt; }

  std::string root_;
  std::unique_ptr<Supervisor> supervisor_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<AttemptStatus>> reports_;
};

// Processes on this machine that have this variable ("NAME=value") in their environment.
int count_processes_with(const std::string& variable);
// Waits until there are none.
bool gone_processes_with(const std::string& variable);
// The control groups that are left of the attempts below this directory.
std::vector<std::string> leftover_groups(const std::string& root);
bool wait_until(const std::function<bool()>& wish);

}  // namespace loam::node

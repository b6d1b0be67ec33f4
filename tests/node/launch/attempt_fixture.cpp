#include "node/launch/attempt_fixture.hpp"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "node/launch/cgroup.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"
#include "node/launch/leftovers.hpp"

namespace loam::node {

namespace fs = std::filesystem;

void AttemptTest::SetUp() {
  char name[] = "/tmp/loam-attempts-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  root_ = name;
  restart_supervisor();
}

void AttemptTest::TearDown() {
  if (supervisor_) {
    for (const auto& attempt : supervisor_->attempts()) {
      (void)supervisor_->kill(attempt, "end of the test");
      EXPECT_TRUE(wait_until([&] { return supervisor_->remove(attempt).ok(); })) << attempt;
    }
  }
  supervisor_.reset();
  EXPECT_THAT(leftover_groups(root_), ::testing::IsEmpty());
  std::error_code fault;
  fs::remove_all(root_, fault);
}

void AttemptTest::restart_supervisor() {
  supervisor_.reset();
  {
    const std::lock_guard lock(mutex_);
    reports_.clear();
  }
  auto made = Supervisor::create(root_, LOAM_LAUNCH, [this](const AttemptReport& report) {
    const std::lock_guard lock(mutex_);
    reports_[report.attempt].push_back(report.status);
    changed_.notify_all();
  });
  ASSERT_TRUE(made.ok()) << to_text(made.error());
  supervisor_ = std::move(*made);
}

LaunchOrder AttemptTest::order(const std::string& attempt, std::vector<std::string> argv) const {
  LaunchOrder order;
  order.attempt = attempt;
  order.task = "t1";
  order.lease = "l1";
  order.epoch = 1;
  order.argv = std::move(argv);
  order.environment["LOAM_TEST_ROOT"] = root_;
  return order;
}

LaunchOrder AttemptTest::shell(const std::string& attempt, const std::string& script) const {
  return order(attempt, {"sh", "-c", script});
}

void AttemptTest::start(const LaunchOrder& order) {
  const auto started = supervisor_->start(order);
  ASSERT_TRUE(started.ok()) << to_text(started.error());
}

AttemptStatus AttemptTest::wait_for(const std::string& attempt,
                                    const std::function<bool(const AttemptStatus&)>& wish) {
  std::unique_lock lock(mutex_);
  AttemptStatus found;
  const bool came = changed_.wait_for(lock, std::chrono::seconds(100), [&] {
    for (const auto& status : reports_[attempt]) {
      if (!wish(status)) continue;
      found = status;
      return true;
    }
    return false;
  });
  EXPECT_TRUE(came) << attempt << ": last of " << reports_[attempt].size() << " reports: "
                    << (reports_[attempt].empty() ? "" : to_json(reports_[attempt].back()));
  return found;
}

AttemptStatus AttemptTest::wait_phase(const std::string& attempt, Phase phase) {
  return wait_for(attempt, [&](const auto& status) { return status.phase == phase; });
}

AttemptStatus AttemptTest::wait_end(const std::string& attempt) {
  return wait_for(attempt, [](const auto& status) { return is_final(status.phase); });
}

AttemptStatus AttemptTest::run(const LaunchOrder& order) {
  const auto started = supervisor_->start(order);
  EXPECT_TRUE(started.ok()) << to_text(started.error());
  return started.ok() ? wait_end(order.attempt) : AttemptStatus{};
}

std::string AttemptTest::output(const std::string& attempt, const char* stream) {
  const auto chunk = supervisor_->read_log(attempt, stream, 0, 1 << 24);
  EXPECT_TRUE(chunk.ok()) << to_text(chunk.error());
  return chunk.ok() ? chunk->bytes : std::string();
}

void AttemptTest::wait_output(const std::string& attempt, const std::string& text) {
  EXPECT_TRUE(wait_until([&] { return output(attempt).find(text) != std::string::npos; }))
      << "output so far: " << output(attempt) << output(attempt, "stderr");
}

bool wait_until(const std::function<bool()>& wish) {
  const std::int64_t deadline_ns = boottime_ns() + 100'000'000'000;
  while (!wish()) {
    if (boottime_ns() > deadline_ns) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

int count_processes_with(const std::string& variable) {
  int count = 0;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator("/proc", fault)) {
    const auto text = read_file(entry.path().string() + "/environ");
    if (!text) continue;
    const std::string framed = std::string(1, '\0') + *text;
    if (framed.find(std::string(1, '\0') + variable + std::string(1, '\0')) != std::string::npos) {
      ++count;
    }
  }
  return count;
}

bool gone_processes_with(const std::string& variable) {
  return wait_until([&] { return count_processes_with(variable) == 0; });
}

std::vector<std::string> leftover_groups(const std::string& root) {
  const CgroupMounts mounts = read_cgroup_mounts();
  std::vector<std::string> found;
  for (const std::string& mount :
       {mounts.v2, mounts.cpu_v1, mounts.memory_v1, mounts.pids_v1, mounts.freezer_v1}) {
    std::error_code fault;
    if (mount.empty() || !fs::exists(mount + "/loam", fault)) continue;
    for (const auto& entry : fs::directory_iterator(mount + "/loam", fault)) {
      const std::string name = entry.path().filename();
      const std::string attempt = name.substr(0, name.rfind('.'));
      if (cgroup_name(root + "/" + attempt) == name) found.push_back(entry.path());
    }
  }
  return found;
}

}  // namespace loam::node

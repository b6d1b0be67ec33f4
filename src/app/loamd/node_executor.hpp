// The engine's executor on a real node: effects become orders for loam-launch and slice pages for
// the keeper; what the supervisor sees of attempts becomes reports to the engine. Orders are
// carried out on a thread of their own, so that the loop never waits for a process or a disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "api/backend.hpp"
#include "app/loamd/anchored_clock.hpp"
#include "app/loamd/config.hpp"
#include "app/loamd/loop_thread.hpp"
#include "app/loamd/node_devices.hpp"
#include "node/keeper/reports.hpp"
#include "node/keeper/slice_page.hpp"
#include "node/launch/supervisor.hpp"

namespace loam::daemon {

// Who reports for this machine.
inline const Actor node_actor{"loam", "node"};

class NodeExecutor final : public engine::Executor {
 public:
  NodeExecutor(const Config& config, const AnchoredClock& clock);
  ~NodeExecutor() override;

  // Where reports go and devices are known; before anything else. Both must outlive this.
  void connect(LoopThread& loop, const NodeDevices& devices);
  // Starts the supervisor and the keeper, and reports every attempt found from before. Returns
  // when all those reports are posted.
  Result<void> start();
  void stop();

  // Engine side, on the loop's thread: only queues.
  void launch(const engine::State& state, const engine::LaunchEffect& effect) override;
  void stop(const engine::State& state, const engine::StopEffect& effect) override;

  // API side.
  // What a task wrote, its attempts one after the other as one stream; `finished`: no more will
  // come.
  Result<api::LogPiece> read_log(const std::vector<std::string>& attempts, bool finished,
                                 api::LogStream stream, std::int64_t offset,
                                 std::int64_t bytes_max) const;
  std::optional<api::LeaseLive> live(LeaseId lease);
  std::map<DeviceId, double> device_busy();

  // "t17-l23-e1": the directory of an attempt.
  static std::string attempt_name(TaskId task, LeaseId lease, Epoch epoch);

 private:
  struct Sample {
    std::int64_t boottime_ns = 0;
    std::int64_t busy_ns = 0;
  };
  struct LiveLease {
    DeviceId device;
    bool advisory = false;
    std::string isolation_detail;
    std::deque<Sample> samples;
  };

  struct WantedSlice {
    std::string uuid;  // of the device
    std::string name;
    Slice slice;
    ShareMode mode = ShareMode::strict;
    std::optional<MilliDevice> bandwidth;
    node::SliceTurns turns = node::SliceTurns::fixed;
    bool service = false;
    bool spot = false;
    bool instance = false;  // of an endpoint
  };

  void enqueue(std::function<void()> job);
  void work();
  void carry_out(const node::LaunchOrder& order, const std::vector<WantedSlice>& slices,
                 LeaseId lease, Epoch epoch);
  // What the slice page must say; also lifts limits of the order that the slice makes wrong.
  Result<std::vector<node::SliceLimits>> limits_of(const std::vector<WantedSlice>& slices,
                                                   node::LaunchOrder& order) const;
  void on_report(const node::AttemptReport& report);
  void report_end(const node::AttemptReport& report, LeaseId lease, Epoch epoch);
  // What the slice pages counted of it, and what it says it made.
  void put_measures(const node::AttemptReport& report, ReportEnded& ended) const;
  // How long the lease's devices were busy with it so far; none where there is no page of it.
  std::optional<Duration> device_time(LeaseId lease) const;
  void report_refused(LeaseId lease, Epoch epoch, const Error& error);
  // counted: with figures, which the engine may refuse.
  void post_end(const ReportEnded& ended, bool counted = true);
  // What this node keeps of a lease that is over; on the worker's thread.
  void forget(LeaseId lease);
  // What the keeper found out about leases since the last call; on the worker's thread.
  void read_keeper_reports();
  // A keeper that died is started again: without one, no device work of this node goes on. On the
  // worker's thread.
  void keep_keeper();
  void end_idle_keeper() const;
  // The keeper's process, started where there is none.
  Result<pid_t> ensure_keeper() const;
  std::chrono::milliseconds report_pause();
  void heed(const node::KeeperReport& report);
  // Ends the attempt where the report asks for it.
  void end_early(const node::KeeperReport& report, const char* why);
  void report_shortfall(LeaseId id, const node::KeeperReport& report);
  // The attempt of a lease that is there; empty where none is.
  std::string attempt_of(std::string_view lease) const;
  // Leases that run according to the engine and of which nothing is on disk.
  void report_missing();
  void remove_stray_pages();
  // Deletes what is kept of attempts that ended long ago.
  void prune();
  void prune_checkpoints();
  static ServiceReport services_of(const node::Usage& usage, std::int64_t rank);
  // Every hour, what the running attempts hold, move and use; on the worker's thread.
  void report_services();
  Instant instant_of(const node::AttemptStatus& status, std::int64_t boottime_ns) const;

  const Config& config_;
  const AnchoredClock& clock_;
  LoopThread* loop_ = nullptr;
  const NodeDevices* devices_ = nullptr;
  std::unique_ptr<node::Supervisor> supervisor_;
  std::unique_ptr<node::ReportReader> keeper_reports_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point services_due_;
  std::thread worker_;

  std::mutex live_mutex_;
  std::map<LeaseId, LiveLease> live_;
  std::set<std::string> weaknesses_;  // of this node's isolation, each told once
  std::string keeper_trouble_;        // why none could be started again, as last told
};

}  // namespace loam::daemon

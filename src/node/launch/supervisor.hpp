// The node-side supervisor: what the daemon uses to start attempts, to be told what becomes of
// them, and to find them again after it was restarted. The attempts themselves live in loam-launch
// processes that outlive this one; everything known of them is in their directories. Shell: one
// thread that sleeps until something happens (inotify, pidfd), never a timer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "node/launch/log.hpp"
#include "node/launch/order.hpp"
#include "node/launch/status.hpp"

namespace loam::node {

// The present state of one attempt. Reports of one attempt come in order, but the same state may
// come twice and one in between may be missed: act on the state, not on the step.
struct AttemptReport {
  std::string attempt;
  AttemptStatus status;
  // The last proof of life, newer than `status` while the attempt runs.
  std::optional<Heartbeat> heartbeat;
};

class Supervisor {
 public:
  using Callback = std::function<void(const AttemptReport&)>;

  // `root` holds one directory an attempt and is made if it is missing. `launcher` is the file of
  // loam-launch. `callback` is called from the supervisor's own thread, one call at a time; it may
  // call back into the supervisor, but not destroy it. What it does not return from holds up later
  // reports.
  static Result<std::unique_ptr<Supervisor>> create(std::string root, std::string launcher,
                                                    Callback callback);
  // Stops watching. The attempts go on.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Every function below may be called from any thread.

  // Starts the attempt, or does nothing where that attempt was started before, whatever became of
  // it. Returns when its launcher stands alone (some milliseconds); the program's start, or its
  // refusal, comes as a report.
  Result<void> start(const LaunchOrder& order);

  // Notice, SIGTERM, the grace, SIGKILL. `grace_ms` < 0: the order's own. A second stop is no error
  // and can only shorten the grace. No error either where the attempt is over.
  Result<void> stop(std::string_view attempt, std::int64_t grace_ms, std::string_view reason);
  Result<void> kill(std::string_view attempt, std::string_view reason);
  // Tells the task that it is to give back `bytes` of lent device memory within `grace_ms`. No
  // error where the attempt is over.
  Result<void> ask_for_memory(std::string_view attempt, std::int64_t grace_ms, std::int64_t bytes);
  // unsupported where the node has no control group to freeze; conflict where it does not run.
  Result<void> pause(std::string_view attempt);
  Result<void> resume(std::string_view attempt);

  // Looks at every attempt below the root and reports each, whatever its state; call it once after
  // a restart. An attempt whose launcher died gets its leftovers killed and is reported as
  // Phase::lost, its end being the last heartbeat. One whose launcher never began is reported as
  // Phase::ordered: start() it again or remove() it. Returns the number of attempts; what is not an
  // attempt's directory, or is unreadable, comes back in `trouble`.
  Result<std::size_t> adopt(std::vector<Error>* trouble = nullptr);

  // From disk, with the usage of the last heartbeat; not_found for an unknown attempt.
  Result<AttemptReport> status(std::string_view attempt) const;
  // Asks the running launcher for the usage of this moment; from disk where none runs.
  Result<AttemptStatus> status_now(std::string_view attempt) const;
  // What the attempt's program said it made: read_output().
  Result<std::optional<std::int64_t>> output(std::string_view attempt) const;
  std::vector<std::string> attempts() const;

  // Deletes what is kept of an attempt: its directory with logs, and with the working, checkpoint
  // and cache directories that lie in it (directories elsewhere stay). conflict while it runs; no
  // error where it is unknown. A launcher that is just leaving is waited for.
  Result<void> remove(std::string_view attempt);

  // `stream` is "stdout" or "stderr"; see node/launch/log.hpp.
  Result<LogChunk> read_log(std::string_view attempt, std::string_view stream, std::int64_t offset,
                            std::int64_t max_bytes) const;
  Result<LogWatch> watch_logs(std::string_view attempt) const;

  // How often the thread woke up since the start; at rest it stands still.
  std::uint64_t wakeups() const;

 private:
  class Loop;
  explicit Supervisor(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace loam::node

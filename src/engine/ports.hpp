// The ports: all that the engine wants of the outside world. The daemon and the simulator each
// bring their own. Pure declarations.
#pragma once

#include <functional>
#include <span>

#include "domain/command.hpp"
#include "domain/event.hpp"
#include "engine/snapshot.hpp"

namespace loam::engine {

class Clock {
 public:
  virtual ~Clock() = default;
  // Never falls, also not across restarts.
  virtual Instant now() = 0;
};

class Journal {
 public:
  virtual ~Journal() = default;
  // All of `records` or none, durable on return. Sequences continue those already there.
  virtual Result<void> append(std::span<const Record> records) = 0;
  // Calls `each` for every record with a sequence above `after`, in order; stops at its error.
  virtual Result<void> replay(std::uint64_t after,
                              const std::function<Result<void>(const Record&)>& each) = 0;
  // The newest readable snapshot; an empty image (sequence 0) where there is none.
  virtual Result<StateImage> load_snapshot() = 0;
};

// Starts an attempt. May be repeated after a crash: the lease and epoch say whether it is the same.
struct LaunchEffect {
  LeaseId lease;
  Epoch epoch;
  TaskId task;
};
// Asks an attempt to end: notice, SIGTERM, after `grace` SIGKILL. May be repeated.
struct StopEffect {
  LeaseId lease;
  Epoch epoch;
  StopReason reason = StopReason::none;
  Duration grace;
};

// A node stops an attempt by itself so much after its run time limit: while a daemon runs, the
// daemon does it.
inline constexpr Duration node_limit_slack = Duration::seconds(1);

class Executor {
 public:
  virtual ~Executor() = default;
  // `state` is what is durable now, valid during the call only. The lease may be over already:
  // then there is nothing to launch, but a stop must still reach what may be running.
  virtual void launch(const State& state, const LaunchEffect& effect) = 0;
  virtual void stop(const State& state, const StopEffect& effect) = 0;
};

}  // namespace loam::engine

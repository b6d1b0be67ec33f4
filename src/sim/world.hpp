// World: a daemon's engine between a virtual clock, journal and nodes, and the ways to break it.
// One thread, no waiting: time jumps to whatever comes next. Pure.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/loop.hpp"
#include "sim/virtual_clock.hpp"
#include "sim/virtual_executor.hpp"
#include "sim/virtual_journal.hpp"

namespace loam::sim {

class World {
 public:
  // `seed` decides how reports travel. The daemon is up, with an empty journal.
  World(Instant start, std::uint64_t seed);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  VirtualClock& clock() { return clock_; }
  VirtualJournal& journal() { return journal_; }
  VirtualExecutor& executor() { return executor_; }
  bool up() const { return loop_ != nullptr; }
  // Require up().
  const engine::State& state() const { return loop_->state(); }
  bool healthy() const { return loop_->healthy(); }

  // One command as a batch of its own. Answer::error where it had no effect that anybody knows of:
  // the daemon is down, its journal is full, or it died before it answered (then the command may
  // have had its effect, and only the same idempotency key asks safely again).
  engine::Answer ask(Command command, RequestKey key = {});

  // Runs everything due up to and including `true_time`, in order of time; less where it is
  // stuck().
  void advance_to(Instant true_time);
  // It went on deciding without end at one instant.
  bool stuck() const { return stuck_; }
  // True time of the next thing due; never() when nothing will happen by itself.
  Instant next_due() const;

  // What a node says of a device; repeated until a daemon has taken it.
  void report_health(DeviceId device, DeviceHealth health, Instant seen_at, std::string reason);

  // The daemon dies here and now; memory is lost, the journal stays.
  void kill();
  // Repairs the journal, replays it, adopts what runs. Requires !up().
  void start();
  // It dies at the next batch that decides something: after the journal has it, before any answer
  // or effect. It is started again at once.
  void die_before_effects() { die_armed_ = true; }
  std::size_t restarts() const { return restarts_; }
  // What it cost to simulate: batches run so far.
  std::size_t batches() const { return batches_; }

  // Every durable record, once.
  void on_record(std::function<void(const Record&)> listener) { listener_ = std::move(listener); }

 private:
  struct Question {
    Command command;
    RequestKey key;
    std::optional<engine::Answer> answer;  // none: it died before
  };
  void forget_taken_health();
  void run(std::vector<Question>& batch);
  void run_parcels(std::vector<Parcel> parcels);
  void hear(const Record& record);

  VirtualClock clock_;
  VirtualJournal journal_;
  VirtualExecutor executor_;
  std::unique_ptr<engine::Loop> loop_;
  std::function<void(const Record&)> listener_;
  std::vector<ReportDeviceHealth> health_;  // not taken by a daemon yet
  Instant last_run_;
  std::size_t appended_ = 0;          // in this batch
  std::uint64_t heard_sequence_ = 0;  // the last record that the listener was told
  std::size_t restarts_ = 0;
  std::size_t batches_ = 0;
  bool die_armed_ = false;
  bool stuck_ = false;
};

}  // namespace loam::sim

// A real history for the store's tests: commands decided by the engine, their events as records.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/decide.hpp"
#include "engine/state.hpp"
#include "store/journal.hpp"

namespace loam::store {

// A folder of its own; gone with the object.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class History {
 public:
  // 2026-03-02T00:00:00Z and on.
  Instant now{1'772'409'600'000};
  void pass(Duration duration) { now = now + duration; }

  // Decides, evolves and keeps the records; fails the test on a rejection. Returns the subject.
  std::string act(const Command& command, const RequestKey& key = {});
  // Scheduling passes and timers until nothing more happens.
  void settle();

  // The records since the last call.
  std::vector<Record> take();
  const engine::State& state() const { return state_; }

  // One node with two devices, a rate card, tenants acme and beta (10 % discount) with money.
  void found_region();
  TaskId submit(TenantId tenant, const std::string& name, MilliDevice share = {600});
  LeaseId lease_of(TaskId task) const;
  void start(TaskId task);
  void end(TaskId task, std::int64_t exit_code = 0);
  // The node was not able to start it.
  void fail_to_start(TaskId task);
  // Submit, start, run for `run`, end: one whole task.
  TaskId whole_task(TenantId tenant, const std::string& name, Duration run);
  // Every event type at least once, but for those of scheduling().
  void everything();
  // After everything(): a rate card with windows, tiers, tax and spot; a budget that is passed,
  // asked for, approved and removed; a credit note.
  void money();
  // Queues and classes; a promise that is not kept; a node that is marked.
  void scheduling();
  // A commitment that covers, one that ends unpaid, and a shortfall.
  void commitments();
  void payments();  // refunds, reversals, lost work, a cancelled commitment
  void tokens();
  // A tenant whose months are of another zone and are closed unasked; versions of a model.
  void months();
  // Who sells; money committed; a run that says what it made; a task that goes on otherwise.
  void sellers();
  // One that moves, is used in part, charged hour by hour, and ends with its time.
  void reservations();
  // Spot with a deadline: turned to on demand, at risk, then looking for spot again.
  void spot_deadlines();
  // One that makes room for another and goes on elsewhere.
  void moves();

 private:
  engine::State state_;
  std::vector<Record> records_;
};

inline constexpr TenantId acme{1};
inline constexpr TenantId beta{2};

Money usd(std::string_view amount);

// The journal in `folder`, or none and the test fails.
std::unique_ptr<SqliteJournal> open_good(const std::string& folder);

// Changes the file behind the store's back.
void run_sql(const std::string& path, const std::string& sql);

}  // namespace loam::store

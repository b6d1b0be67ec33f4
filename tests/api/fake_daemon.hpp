// A Backend for tests over a real engine loop: journal and history in memory, an executor that
// only takes notes, a clock that the test moves. Thread-safe as far as Backend is.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "api/backend.hpp"
#include "billing/calendar.hpp"
#include "engine/loop.hpp"
#include "engine/snapshot.hpp"

namespace loam::api::testing {

class ManualClock final : public engine::Clock {
 public:
  Instant now() override { return {ms_.load()}; }
  void advance(Duration length) { ms_ += length.ms; }

 private:
  // 2026-03-02T00:00:00Z
  std::atomic<std::int64_t> ms_ = 1'772'409'600'000;
};

class MemoryJournal final : public engine::Journal {
 public:
  Result<void> append(std::span<const Record> records) override;
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const Record&)>& each) override;
  Result<engine::StateImage> load_snapshot() override { return engine::StateImage{}; }

  bool full = false;  // the disk
  std::vector<Record> records;
};

class NotingExecutor final : public engine::Executor {
 public:
  void launch(const engine::State&, const engine::LaunchEffect& effect) override {
    launched.push_back(effect);
  }
  void stop(const engine::State&, const engine::StopEffect& effect) override {
    stopped.push_back(effect);
  }
  std::vector<engine::LaunchEffect> launched;
  std::vector<engine::StopEffect> stopped;
};

class FakeDaemon final : public Backend {
 public:
  FakeDaemon();

  // What the tests do to it.
  ManualClock clock;
  MemoryJournal journal;
  NotingExecutor executor;
  std::map<std::pair<TaskId, LogStream>, std::string> logs;
  std::set<std::string> mounts_refused;
  std::set<std::string> mounts_of_operators;  // which a tenant itself may not have
  std::vector<RefusedDevice> refused;
  std::map<LeaseId, LeaseLive> measured;
  std::int64_t log_start = 0;  // bytes before it are rotated away
  std::function<void(const Record&)> on_record;

  engine::Answer run(Command command);
  // A node with one device "gpu-1" (n1/0) of 100 CE and 80 GiB, tenants acme and beta with money,
  // and a price of 0.02 USD.
  void furnish();
  // The newest attempt of a task began, or ended so.
  void start(TaskId task);
  void end(TaskId task, std::int64_t exit_code = 0);
  // It used so much of its device's time, and says what it made (thousandths).
  void end(TaskId task, Duration device_time, std::optional<std::int64_t> output);

  // Backend.
  void post(Command command, Actor actor, RequestKey key,
            std::function<void(const engine::Answer&)> reply) override;
  void read(const std::function<void(const engine::State&, Instant)>& look) override;
  Result<std::vector<TaskRecord>> tasks(const TaskFilter& filter) override;
  Result<std::optional<TaskRecord>> task(TaskId id) override;
  Result<std::vector<LeaseUse>> leases(const LeaseFilter& filter) override;
  Result<std::vector<CapacityPiece>> capacity(Instant from, Instant to) override;
  Result<void> usage(TenantId tenant, Instant from, Instant to, const EachUsage& each) override;
  Result<std::vector<AdjustmentRecord>> adjustments(TenantId tenant, Instant from,
                                                    Instant to) override;
  Result<std::vector<ReservationRecord>> reservations(std::optional<TenantId> tenant) override;
  Result<std::vector<TransactionRecord>> transactions(TenantId tenant, TransactionId before,
                                                      std::int64_t limit) override;
  Result<std::vector<InvoiceRecord>> invoices(std::optional<TenantId> tenant, InvoiceId before,
                                              std::int64_t limit) override;
  Result<std::optional<InvoiceRecord>> invoice(InvoiceId id) override;
  Result<std::vector<CreditNoteRecord>> credit_notes(const CreditNoteFilter& filter) override;
  Result<std::vector<SpotPriceRecord>> spot_prices(Currency currency, Instant from, Instant to,
                                                   std::int64_t limit) override;
  Result<std::vector<BudgetNotice>> budget_notices(const std::string& budget,
                                                   std::int64_t limit) override;
  Result<Party> buyer(TenantId tenant, Instant at) override;
  Result<void> set_buyer(TenantId tenant, const Party& party, Instant now) override;
  Result<void> channel_allowed(const std::string& channel) override;
  Result<LogPiece> read_log(TaskId task, LogStream stream, std::int64_t offset,
                            std::int64_t bytes_max) override;
  Result<void> discover() override { return {}; }
  std::vector<RefusedDevice> refused_devices() override { return refused; }
  Result<void> calibrate(const std::string& uuid,
                         const std::function<void(double, const std::string&)>& progress) override;
  std::optional<LeaseLive> live(LeaseId lease) override;
  std::map<DeviceId, double> device_busy() override { return {{DeviceId{1}, 0.5}}; }
  Result<void> mount_allowed(const std::string& tenant, bool by_operator,
                             const Mount& mount) override;
  Result<BackupDone> backup(const std::string& path) override;
  Result<std::string> reload() override { return std::string("nothing changed"); }
  bool journal_healthy() override { return !journal.full; }
  Counters counters() override { return {commands_, commands_, 0, 0}; }
  std::string version() override { return "0.0.0-test"; }
  Instant started_at() override { return {1'772'409'600'000}; }

 private:
  void project(const Record& record);
  void project_besides(const Record& record);
  // What is charged or given back besides usage; of the line's own lease where it has one.
  AdjustmentRecord& adjust(const Record& record, TenantId tenant, const billing::Period& period,
                           const AdjustmentLine& line);

  std::recursive_mutex mutex_;  // a reply reads
  engine::Loop loop_;
  std::int64_t commands_ = 0;
  std::map<TaskId, TaskRecord> tasks_;
  std::map<LeaseId, TaskId> task_of_;
  std::map<LeaseId, Isolation> isolation_of_;
  // What was measured of a lease since it was last told: in `period`, its devices were so busy.
  struct Measure {
    billing::Period period;
    Duration device_time;
  };
  // Adds it: up to `to` its devices were so busy in all.
  void measure(LeaseId lease, Instant to, Duration device_time);
  std::string region_of(LeaseId lease) const;  // empty: nobody knows
  // A device is in service from then on, or no more.
  void serve(DeviceId device, Instant at);
  // What of the lease in a time was measured, and its devices busy in it.
  std::pair<Duration, Duration> measured_in(LeaseId lease, const billing::Period& period) const;
  std::map<LeaseId, LeaseUse> leases_;
  std::map<LeaseId, std::vector<Measure>> measures_;
  std::map<TaskId, Instant> queued_;
  std::map<DeviceId, std::map<Instant, MilliCe>> capacity_;  // steps
  std::vector<UsageRecord> usage_;
  std::vector<TransactionRecord> transactions_;
  std::vector<std::pair<TenantId, AdjustmentRecord>> adjustments_;
  std::map<CommitmentId, std::map<std::string, std::string>> commitment_tags_;
  std::map<ReservationId, std::pair<ReservationEnd, std::string>> reservation_ends_;
  std::vector<InvoiceRecord> invoices_;
  std::vector<CreditNoteRecord> credit_notes_;
  std::vector<SpotPriceRecord> spot_prices_;  // of one currency, newest first
  std::vector<BudgetNotice> notices_;
  std::map<std::pair<TenantId, Instant>, Party> buyers_;
  std::optional<std::pair<Duration, std::optional<std::int64_t>>> ends_with_;
};

}  // namespace loam::api::testing

// The API's port to this daemon: commands to the loop, questions to the store, logs and live
// figures to the executor. Wiring only.
#pragma once

#include <atomic>
#include <string>

#include "api/auth.hpp"
#include "api/backend.hpp"
#include "app/loamd/config.hpp"
#include "app/loamd/loop_thread.hpp"
#include "app/loamd/node_devices.hpp"
#include "app/loamd/node_executor.hpp"
#include "store/buyers.hpp"
#include "store/journal.hpp"
#include "store/queries.hpp"

namespace loam::daemon {

class DaemonBackend final : public api::Backend {
 public:
  // All must outlive this.
  struct Parts {
    const Config& config;
    std::string config_path;  // empty: none was given
    LoopThread& loop;
    store::SqliteJournal& journal;
    NodeDevices& devices;
    NodeExecutor& executor;
    api::Authenticator& authenticator;
    store::BuyerStore& buyers;
    Instant started_at;
  };
  explicit DaemonBackend(Parts parts);

  void post(Command command, Actor actor, RequestKey key,
            std::function<void(const engine::Answer&)> reply) override;
  void read(const std::function<void(const engine::State&, Instant now)>& look) override;

  Result<std::vector<api::TaskRecord>> tasks(const api::TaskFilter& filter) override;
  Result<std::optional<api::TaskRecord>> task(TaskId id) override;
  Result<std::vector<api::LeaseUse>> leases(const api::LeaseFilter& filter) override;
  Result<std::vector<api::CapacityPiece>> capacity(Instant from, Instant to) override;
  Result<void> usage(TenantId tenant, Instant from, Instant to, const EachUsage& each) override;
  Result<std::vector<api::TransactionRecord>> transactions(TenantId tenant, TransactionId before,
                                                           std::int64_t limit) override;
  Result<std::vector<api::InvoiceRecord>> invoices(std::optional<TenantId> tenant, InvoiceId before,
                                                   std::int64_t limit) override;
  Result<std::optional<api::InvoiceRecord>> invoice(InvoiceId id) override;
  Result<std::vector<api::SpotPriceRecord>> spot_prices(Currency currency, Instant from, Instant to,
                                                        std::int64_t limit) override;
  Result<std::vector<api::CreditNoteRecord>> credit_notes(
      const api::CreditNoteFilter& filter) override;
  Result<std::vector<api::AdjustmentRecord>> adjustments(TenantId tenant, Instant from,
                                                         Instant to) override;
  Result<std::vector<api::ReservationRecord>> reservations(std::optional<TenantId> tenant) override;
  Result<std::vector<BudgetNotice>> budget_notices(const std::string& budget,
                                                   std::int64_t limit) override;
  Result<api::Party> buyer(TenantId tenant, Instant at) override;
  Result<void> set_buyer(TenantId tenant, const api::Party& party, Instant now) override;
  Result<void> channel_allowed(const std::string& channel) override;

  Result<api::LogPiece> read_log(TaskId task, api::LogStream stream, std::int64_t offset,
                                 std::int64_t bytes_max) override;

  Result<void> discover() override { return parts_.devices.discover(); }
  std::vector<api::RefusedDevice> refused_devices() override { return parts_.devices.refused(); }
  std::map<std::string, std::string> device_notes() override { return parts_.devices.notes(); }
  Result<void> calibrate(
      const std::string& uuid,
      const std::function<void(double fraction, const std::string& step)>& progress) override {
    return parts_.devices.calibrate(uuid, progress);
  }
  std::optional<api::LeaseLive> live(LeaseId lease) override { return parts_.executor.live(lease); }
  std::map<DeviceId, double> device_busy() override { return parts_.executor.device_busy(); }

  Result<void> mount_allowed(const std::string& tenant, bool by_operator,
                             const Mount& mount) override;
  Result<api::BackupDone> backup(const std::string& path) override;
  Result<std::string> reload() override;

  bool journal_healthy() override { return parts_.loop.healthy(); }
  api::Counters counters() override;
  std::string version() override;
  Instant started_at() override { return parts_.started_at; }

 private:
  Parts parts_;
  store::Queries queries_;
  std::atomic<std::int64_t> commands_ = 0;
};

// The configuration's users as the authenticator wants them.
Result<std::map<std::uint32_t, api::UidGrant>> grants_of(const Config& config);

}  // namespace loam::daemon

// The typed client of the HTTP API, for the command line: blocking, one connection. Problem
// documents come back as Error with their next step.
//
// Every write carries an idempotency key (a fresh random one where the caller names none), so
// that a connection that breaks in the middle is tried again without a second effect.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/json.hpp"  // to_json(), for --json
#include "api/money_types.hpp"
#include "api/types.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "http/client.hpp"

namespace loam::api {

inline constexpr const char* default_socket_path = "/run/loam/loamd.sock";

struct ConnectOptions {
  // "/path/to.sock", "127.0.0.1:7100", "http://host:7100"; empty: $LOAM_SOCKET, else the default
  // path.
  std::string address;
  std::string token;  // empty: $LOAM_TOKEN; needed over TCP
  http::ClientOptions http;
};

struct TaskQuery {
  std::string tenant;
  std::string state;  // one or several, with commas: "waiting,running"
  std::string name;
  std::string after;
  std::optional<std::int64_t> limit;  // of one page, at most 500; default 100
};

struct LeaseQuery {
  std::string tenant;
  std::string task;
  std::string from;  // those that ran in [from, to); empty: all
  std::string to;
  std::string after;
  std::optional<std::int64_t> limit;  // of one page, at most 500; default 100
};

// A piece of a log, as bytes.
struct LogChunk {
  std::string stream;  // stdout, stderr
  std::int64_t offset = 0;
  std::int64_t next_offset = 0;
  std::string bytes;
  bool truncated = false;
  bool ended = false;
};

struct WatchOptions {
  bool logs = false;  // the task's output too, both streams in the order they are seen
  std::int64_t stdout_offset = 0;
  std::int64_t stderr_offset = 0;
  // For how long a lost daemon is waited for; the stream goes on from where it was.
  Duration reconnect_for = Duration::seconds(60);
};

struct WatchEvents {
  // At once, on every change of state and about once a second while it runs; last with state
  // "finished". All output of a finished task comes before that.
  std::function<void(const TaskView&)> on_task;
  std::function<void(const LogChunk&)> on_log;
  std::function<void(const Error&)> on_lost;  // the daemon is gone; trying again
};

class Client {
 public:
  // Does not connect yet. Errors: an address that cannot be read.
  static Result<Client> make(const ConnectOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // The next write carries `key`, those after it `key`/2, `key`/3, …: the same calls again have no
  // second effect. Empty: each write has a random key of its own.
  void use_key(std::string key);

  // unavailable, with the address, where no daemon listens.
  Result<void> connect();

  Result<HealthView> health();
  Result<WhoAmIView> whoami();

  Result<QuoteView> quote(const TaskRequest& request);
  Result<TaskView> submit(const TaskRequest& request, const std::string& key = {});
  Result<TaskPage> tasks(const TaskQuery& query = {});
  Result<TaskView> task(const std::string& id);
  Result<LeasePage> leases(const LeaseQuery& query);
  Result<TaskView> stop(const std::string& id) { return act(id, "/stop", {}); }
  Result<TaskView> pause(const std::string& id) { return act(id, "/pause", {}); }
  // `model`: by which it goes on; empty: as before.
  Result<TaskView> resume(const std::string& id, const std::string& model = {}) {
    return act(id, "/resume", model);
  }
  // One piece from `offset` on; call again with next_offset while it gives bytes.
  Result<LogChunk> logs(const std::string& id, const std::string& stream, std::int64_t offset);
  // One stream as it grows, until the task ends, `on_chunk` says false, or it is cancelled.
  Result<void> follow_logs(const std::string& id, const std::string& stream, std::int64_t offset,
                           const std::function<bool(const LogChunk&)>& on_chunk,
                           const http::Canceller* canceller = nullptr);
  // Until the task has finished, or it is cancelled; gives the last view seen.
  Result<TaskView> watch(const std::string& id, const WatchOptions& options,
                         const WatchEvents& events, const http::Canceller* canceller = nullptr);

  Result<DeviceList> devices();
  Result<DeviceList> discover();
  // Empty texts: the beginning; now.
  Result<CapacityList> capacity(const std::string& from, const std::string& to);
  // By id, UUID or name. Takes as long as the measurement.
  Result<DeviceView> calibrate(const std::string& device,
                               const std::function<void(const ProgressView&)>& progress,
                               const http::Canceller* canceller = nullptr);
  Result<DeviceView> drain(const std::string& device);
  Result<DeviceView> undrain(const std::string& device);

  Result<TenantList> tenants();
  Result<TenantView> tenant(const std::string& name);
  Result<TenantView> create_tenant(const TenantRequest& request, const std::string& key = {});
  Result<TenantView> change_tenant(const std::string& name, const TenantPatch& patch,
                                   const std::string& key = {});
  Result<TenantView> pay_out(const std::string& name, const TopUpRequest& request,
                             const std::string& key = {});
  // A payment, by its number in the ledger.
  Result<TenantView> reverse(const std::string& id, const ReverseRequest& request,
                             const std::string& key = {});
  Result<TenantView> top_up(const std::string& name, const TopUpRequest& request,
                            const std::string& key = {});

  // Who the tenant is on its invoices.
  Result<PartyView> buyer(const std::string& name);
  Result<PartyView> set_buyer(const std::string& name, const PartyRequest& party);

  Result<RateList> rates();
  Result<SpotPriceList> spot_prices(const std::string& currency, const std::string& from,
                                    const std::string& to);
  Result<RateView> publish_rate(const RateRequest& request, const std::string& key = {});

  // Empty texts: the member's own tenant; the beginning; now.
  Result<BillView> bill(const std::string& tenant, const std::string& from = {},
                        const std::string& to = {});
  // Of all tenants where none is named. `bucket` and `zone` as GET /v1/bills has them.
  Result<BillList> bills(const std::string& tenant, const std::string& from, const std::string& to,
                         const std::string& bucket, const std::string& zone);
  Result<InvoiceList> invoices(const std::string& tenant = {}, const std::string& after = {});
  Result<InvoiceView> invoice(const std::string& id);
  Result<InvoiceView> issue_invoice(const InvoiceRequest& request, const std::string& key = {});
  Result<CreditNoteView> credit_note(const std::string& id);
  Result<CreditNoteView> credit_invoice(const std::string& id, const CreditRequest& request,
                                        const std::string& key = {});

  Result<CommitmentList> commitments();
  Result<CommitmentView> cancel_commitment(const std::string& id, const CancelRequest& request,
                                           const std::string& key = {});
  Result<CommitmentView> buy_commitment(const CommitmentRequest& request,
                                        const std::string& key = {});
  Result<ReservationList> reservations();
  Result<ReservationQuoteView> quote_reservation(const ReservationRequest& request);
  Result<ReservationView> make_reservation(const ReservationRequest& request,
                                           const std::string& key = {});
  Result<ReservationView> cancel_reservation(const std::string& id, const CancelRequest& request,
                                             const std::string& key = {});
  // Safe to repeat: a sequence that was recorded changes nothing.
  Result<TokenUsageView> record_tokens(const TokenUsageRequest& request);
  Result<TokenUsageView> token_source(const std::string& source);
  Result<BudgetList> budgets();
  Result<BudgetView> budget(const std::string& name);
  Result<BudgetView> set_budget(const BudgetRequest& request, const std::string& key = {});
  Result<BudgetView> remove_budget(const std::string& name, const std::string& key = {});
  Result<BudgetView> answer_budget(const std::string& name, const BudgetAnswer& answer,
                                   const std::string& key = {});
  Result<LedgerView> ledger(const std::string& tenant, const std::string& after = {});

  Result<TokenList> tokens();
  Result<TokenView> create_token(const TokenRequest& request);
  Result<TokenView> revoke_token(const std::string& name);

  Result<BackupView> backup(const std::string& path);
  Result<ReloadView> reload();
  Result<TopView> top();
  // About once a second until `on_view` says false or it is cancelled.
  Result<void> follow_top(const std::function<bool(const TopView&)>& on_view,
                          const http::Canceller* canceller = nullptr);

  Result<std::string> openapi();  // the JSON text
  Result<std::string> metrics();  // Prometheus text

 private:
  Result<TaskView> act(const std::string& id, const char* verb, const std::string& model);
  struct Core;
  explicit Client(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace loam::api

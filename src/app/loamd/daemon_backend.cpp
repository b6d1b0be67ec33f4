#include "app/loamd/daemon_backend.hpp"

#include <spdlog/spdlog.h>

#include <boost/describe/enum_to_string.hpp>
#include <filesystem>

#include "app/loamd/notifier.hpp"
#include "store/backup.hpp"

namespace loam::daemon {
namespace {

std::optional<Instant> known(Instant instant) {
  if (instant == Instant::never()) return std::nullopt;
  return instant;
}

api::LeaseRecord to_record(const store::LeaseRow& row) {
  api::LeaseRecord record;
  record.id = row.id;
  record.ce = row.ce;
  record.billable_ce = row.billable_ce;
  record.isolation = boost::describe::enum_to_string(row.isolation, "software");
  for (const store::SliceRow& slice : row.slices)
    record.slices.push_back({slice.device, slice.share, slice.memory});
  record.started_at = known(row.started_at);
  record.ended_at = known(row.ended_at);
  record.measured = row.measured;
  record.device_time = row.device_time;
  return record;
}

api::TaskRecord to_record(const store::TaskDetail& detail) {
  const store::TaskRow& row = detail.task;
  api::TaskRecord record;
  record.id = row.id;
  record.tenant = row.tenant;
  record.spec = detail.spec;
  record.spec.purchase_model = row.purchase_model;  // it may have been changed since
  record.output = row.output;
  record.state = row.state;
  record.outcome = row.outcome;
  record.exit_code = row.exit_code.value_or(0);
  record.reason = row.reason;
  record.submitted_at = row.submitted_at;
  record.started_at = known(row.started_at);
  record.finished_at = known(row.finished_at);
  record.attempts = row.attempts;
  record.run_time = row.run_time;
  record.billed_time = row.billed_time;
  record.list = row.list;
  record.net = row.net;
  record.tax = row.tax;
  if (!detail.leases.empty()) record.lease = to_record(detail.leases.back());
  return record;
}

}  // namespace

Result<std::map<std::uint32_t, api::UidGrant>> grants_of(const Config& config) {
  std::map<std::uint32_t, api::UidGrant> grants;
  for (const UserAccess& user : config.users) {
    LOAM_TRY(role, api::parse_role(user.role));
    grants[static_cast<std::uint32_t>(user.uid)] = {role, user.tenant};
  }
  return grants;
}

DaemonBackend::DaemonBackend(Parts parts)
    : parts_(std::move(parts)), queries_(parts_.journal.path()) {}

void DaemonBackend::post(Command command, Actor actor, RequestKey key,
                         std::function<void(const engine::Answer&)> reply) {
  ++commands_;
  parts_.loop.post({std::move(command), std::move(actor), std::move(key), std::move(reply)});
}

void DaemonBackend::read(const std::function<void(const engine::State&, Instant now)>& look) {
  parts_.loop.read(look);
}

Result<std::vector<api::TaskRecord>> DaemonBackend::tasks(const api::TaskFilter& filter) {
  store::TaskFilter wanted;
  wanted.tenant = filter.tenant;
  wanted.states = filter.states;
  wanted.name_prefix = filter.name;
  std::vector<api::TaskRecord> records;
  TaskId before = filter.before;
  // The store finds names by prefix, the API means whole names: a page may hold fewer than asked,
  // so go on until it is full.
  do {
    LOAM_TRY(page, queries_.list_tasks(wanted, before, filter.limit));
    std::erase_if(page.tasks, [&](const store::TaskRow& row) {
      return !filter.name.empty() && row.name != filter.name;
    });
    const auto room = static_cast<std::size_t>(filter.limit) - records.size();
    if (page.tasks.size() > room) page.tasks.resize(room);
    LOAM_TRY(details, queries_.details(page.tasks));
    for (const store::TaskDetail& detail : details) records.push_back(to_record(detail));
    before = page.next;
  } while (before.valid() && static_cast<std::int64_t>(records.size()) < filter.limit);
  return records;
}

Result<std::optional<api::TaskRecord>> DaemonBackend::task(TaskId id) {
  const auto detail = queries_.task(id);
  if (detail) return std::optional(to_record(*detail));
  if (detail.error().kind == ErrorKind::not_found) return std::optional<api::TaskRecord>();
  return detail.error();
}

Result<std::vector<api::LeaseUse>> DaemonBackend::leases(const api::LeaseFilter& filter) {
  LOAM_TRY(rows, queries_.leases({filter.tenant, filter.tasks, filter.from, filter.to},
                                 filter.before, filter.limit));
  std::vector<api::LeaseUse> uses;
  for (store::LeaseUseRow& row : rows) {
    const store::LeaseRow& lease = row.lease;
    uses.push_back({to_record(lease), lease.task, row.tenant, std::move(row.task_name),
                    lease.queued_at, lease.granted_at, lease.stop_reason, lease.outcome, row.net,
                    lease.output});
  }
  return uses;
}

Result<std::vector<api::CapacityPiece>> DaemonBackend::capacity(Instant from, Instant to) {
  LOAM_TRY(rows, queries_.capacity(from, to));
  std::vector<api::CapacityPiece> pieces;
  for (store::CapacityRow& row : rows)
    pieces.push_back({std::move(row.name), row.from, row.to, row.ce});
  return pieces;
}

Result<void> DaemonBackend::usage(TenantId tenant, Instant from, Instant to,
                                  const EachUsage& each) {
  return queries_.usage_between(tenant, from, to, each);
}

Result<std::vector<api::AdjustmentRecord>> DaemonBackend::adjustments(TenantId tenant, Instant from,
                                                                      Instant to) {
  LOAM_TRY(rows, queries_.adjustments(tenant, from, to));
  std::vector<api::AdjustmentRecord> records;
  for (store::AdjustmentRow& row : rows)
    records.push_back({row.from, row.to, row.commitment, row.lease, std::move(row.line),
                       row.sequence, row.reservation, row.task, std::move(row.tags),
                       std::move(row.region)});
  return records;
}

Result<std::vector<api::ReservationRecord>> DaemonBackend::reservations(
    std::optional<TenantId> tenant) {
  LOAM_TRY(rows, queries_.reservations(tenant.value_or(TenantId{})));
  std::vector<api::ReservationRecord> records;
  for (store::ReservationRow& row : rows)
    records.push_back(
        {std::move(row.reservation), std::move(row.devices), row.end, std::move(row.reason)});
  return records;
}

Result<std::vector<api::TransactionRecord>> DaemonBackend::transactions(TenantId tenant,
                                                                        TransactionId before,
                                                                        std::int64_t limit) {
  LOAM_TRY(rows, queries_.transactions(tenant, before, limit));
  std::vector<api::TransactionRecord> records;
  for (store::TransactionRow& row : rows) records.push_back({row.at, std::move(row.transaction)});
  return records;
}

Result<std::vector<api::InvoiceRecord>> DaemonBackend::invoices(std::optional<TenantId> tenant,
                                                                InvoiceId before,
                                                                std::int64_t limit) {
  store::InvoiceFilter filter;
  filter.tenant = tenant.value_or(TenantId{});
  filter.before = before;
  filter.limit = limit;
  LOAM_TRY(rows, queries_.invoices(filter));
  std::vector<api::InvoiceRecord> records;
  for (store::InvoiceRow& row : rows)
    records.push_back({row.issued_at, std::move(row.invoice), row.usage_upto, row.sequence});
  return records;
}

Result<std::optional<api::InvoiceRecord>> DaemonBackend::invoice(InvoiceId id) {
  store::InvoiceFilter filter;
  filter.only = id;
  LOAM_TRY(rows, queries_.invoices(filter));
  if (rows.empty()) return std::optional<api::InvoiceRecord>();
  store::InvoiceRow& row = rows.front();
  return std::optional(
      api::InvoiceRecord{row.issued_at, std::move(row.invoice), row.usage_upto, row.sequence});
}

Result<std::vector<api::CreditNoteRecord>> DaemonBackend::credit_notes(
    const api::CreditNoteFilter& filter) {
  LOAM_TRY(rows, queries_.credit_notes({filter.tenant, filter.invoice, filter.only}));
  std::vector<api::CreditNoteRecord> records;
  for (store::CreditNoteRow& row : rows) records.push_back({row.issued_at, std::move(row.note)});
  return records;
}

Result<std::vector<api::SpotPriceRecord>> DaemonBackend::spot_prices(Currency currency,
                                                                     Instant from, Instant to,
                                                                     std::int64_t limit) {
  LOAM_TRY(rows, queries_.spot_prices(currency, from, to, limit));
  std::vector<api::SpotPriceRecord> records;
  for (const store::SpotPriceRow& row : rows)
    records.push_back({row.from, row.price, row.supply, row.demand});
  return records;
}

Result<std::vector<BudgetNotice>> DaemonBackend::budget_notices(const std::string& budget,
                                                                std::int64_t limit) {
  LOAM_TRY(rows, queries_.budget_notices(budget, limit));
  std::vector<BudgetNotice> notices;
  for (store::BudgetNoticeRow& row : rows) notices.push_back(std::move(row.notice));
  return notices;
}

Result<api::Party> DaemonBackend::buyer(TenantId tenant, Instant at) {
  LOAM_TRY(buyer, parts_.buyers.at(tenant, at));
  return api::Party{buyer.name, buyer.address, buyer.tax_id};
}

Result<void> DaemonBackend::set_buyer(TenantId tenant, const api::Party& party, Instant now) {
  if (party.empty()) return parts_.buyers.forget(tenant);
  return parts_.buyers.set(tenant, {party.name, party.address, party.tax_id}, now);
}

Result<void> DaemonBackend::channel_allowed(const std::string& channel) {
  return check_channel(channel, parts_.config.notify);
}

Result<api::LogPiece> DaemonBackend::read_log(TaskId task, api::LogStream stream,
                                              std::int64_t offset, std::int64_t bytes_max) {
  LOAM_TRY(detail, queries_.task(task));
  std::vector<std::string> attempts;
  for (const store::LeaseRow& lease : detail.leases) {
    attempts.push_back(NodeExecutor::attempt_name(task, lease.id, lease.epoch));
  }
  const bool finished = detail.task.state == TaskState::finished;
  return parts_.executor.read_log(attempts, finished, stream, offset, bytes_max);
}

Result<void> DaemonBackend::mount_allowed(const std::string& tenant, bool by_operator,
                                          const Mount& mount) {
  namespace fs = std::filesystem;
  std::error_code fault;
  const fs::path source = fs::weakly_canonical(mount.source, fault);
  std::vector<std::string> folders = parts_.config.mounts;
  if (by_operator) {
    folders.insert(folders.end(), parts_.config.operator_mounts.begin(),
                   parts_.config.operator_mounts.end());
  }
  for (const std::string& folder : folders) {
    const fs::path allowed = fs::weakly_canonical(folder, fault);
    const fs::path relative = source.lexically_relative(allowed);
    if (!fault && !relative.empty() && *relative.begin() != "..") return {};
  }
  return Error{ErrorKind::permission_denied,
               "the tenant " + tenant + " may not mount '" + mount.source + "' on this node",
               "ask the operator to list its folder under 'mounts' in loamd's settings"};
}

Result<api::BackupDone> DaemonBackend::backup(const std::string& path) {
  LOAM_TRY(report, store::back_up(parts_.journal.path(), path));
  std::error_code fault;
  api::BackupDone done;
  done.bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, fault));
  done.sequence = static_cast<std::int64_t>(report.records);
  return done;
}

Result<std::string> DaemonBackend::reload() {
  if (parts_.config_path.empty()) {
    return Error{ErrorKind::conflict, "loamd was started without a settings file",
                 "start it with --config FILE"};
  }
  LOAM_TRY(fresh, load_config(parts_.config_path));
  LOAM_TRY(grants, grants_of(fresh));
  // What the file says of spilling takes a restart; until then nothing that is lent twice could.
  if (fresh.scheduling.oversubscription.memory_permille > 1000 && !parts_.config.spill_memory) {
    return Error{ErrorKind::conflict,
                 "oversubscription.memory needs spill_memory, which is off in this loamd",
                 "restart it, so that spill_memory = true is in force"};
  }
  parts_.authenticator.set_grants(std::move(grants));
  parts_.loop.post_until_durable(SetScheduling{fresh.scheduling}, Actor{"loam", "settings"});
  parts_.loop.post_until_durable(SetSeller{fresh.seller}, Actor{"loam", "settings"});
  spdlog::set_level(spdlog::level::from_str(fresh.log_level));
  return std::string(
      "users, queues, the seller and log level are in force; other settings take a restart of "
      "loamd");
}

api::Counters DaemonBackend::counters() {
  api::Counters counters;
  counters.commands = commands_;
  std::error_code fault;
  for (const char* part : {"", "-wal"}) {
    const auto bytes = std::filesystem::file_size(parts_.journal.path() + part, fault);
    if (!fault) counters.journal_bytes += static_cast<std::int64_t>(bytes);
  }
  counters.batches = parts_.loop.batches();
  counters.journal_failures = parts_.loop.failures();
  return counters;
}

std::string DaemonBackend::version() {
  return LOAM_VERSION;
}

}  // namespace loam::daemon

// Questions about leases and what devices could give, answered from the projections.
#include <limits>
#include <map>

#include "store/lease_rows.hpp"
#include "store/measure_tables.hpp"
#include "store/query_reading.hpp"

namespace loam::store {
namespace {

Result<SliceRow> read_slice(const Statement& statement) {
  Columns columns(statement);
  SliceRow row;
  row.device = columns.id<DeviceId>();
  row.name = columns.text();
  row.device_type = columns.text();
  row.share = columns.quantity<MilliDeviceUnit>();
  row.memory = columns.quantity<MebibytesUnit>();
  LOAM_CHECK(columns.done("a slice"));
  return row;
}

// Of what was measured, that in [from, to), which are SQL.
std::string lease_columns(std::string_view from, std::string_view to) {
  return "id, task_id, epoch, milli_ce, billable_milli_ce, isolation, granted_ms, started_ms, "
         "stop_at_ms, ended_ms, stop_reason, memory_peak_mib, rank, outcome, exit_code, reason, "
         "queued_ms, output_milli, " +
         measured_ms_sql("leases.id", from, to) + ", " + busy_ms_sql("leases.id", from, to);
}
std::string all_lease_columns() {
  return lease_columns("0", std::to_string(std::numeric_limits<std::int64_t>::max()));
}

LeaseRow lease_in(Columns& columns) {
  LeaseRow row;
  row.id = columns.id<LeaseId>();
  row.task = columns.id<TaskId>();
  row.epoch = Epoch{static_cast<std::uint32_t>(columns.integer())};
  row.ce = columns.quantity<MilliCeUnit>();
  row.billable_ce = columns.quantity<MilliCeUnit>();
  row.isolation = columns.enumerator<Isolation>();
  row.granted_at = columns.instant();
  row.started_at = columns.instant();
  row.stop_at = columns.instant();
  row.ended_at = columns.instant();
  row.stop_reason = columns.enumerator<StopReason>();
  row.memory_peak = columns.optional<Mebibytes>();
  row.rank = columns.integer();
  row.outcome = columns.enumerator<TaskOutcome>();
  row.exit_code = columns.optional_integer();
  row.reason = columns.text();
  row.queued_at = columns.instant();
  row.output = columns.optional_integer();
  row.measured = columns.duration();
  row.device_time = columns.duration();
  return row;
}

Result<LeaseRow> read_lease(const Statement& statement) {
  Columns columns(statement);
  LeaseRow row = lease_in(columns);
  LOAM_CHECK(columns.done("lease " + row.id.text()));
  return row;
}

Result<LeaseUseRow> read_lease_use(const Statement& statement) {
  Columns columns(statement);
  LeaseUseRow row;
  row.lease = lease_in(columns);
  row.tenant = columns.id<TenantId>();
  row.task_name = columns.text();
  row.net = Money::zero(columns.currency());
  LOAM_CHECK(columns.done("lease " + row.lease.id.text()));
  return row;
}

// In one query for all of them.
Result<void> put_slices(Database& database, const std::vector<LeaseRow*>& leases) {
  if (leases.empty()) return {};
  std::string ids;
  std::map<LeaseId, LeaseRow*> by_id;
  for (LeaseRow* lease : leases) {
    ids += (ids.empty() ? "[" : ",") + std::to_string(lease->id.value);
    by_id[lease->id] = lease;
  }
  ids += "]";
  LOAM_TRY(slices,
           database.prepare(
               "SELECT s.device_id, n.name || '/' || d.node_index, d.type, s.milli_device, "
               "s.memory_mib, s.lease_id FROM slices s JOIN devices d ON d.id = s.device_id "
               "JOIN nodes n ON n.id = d.node_id WHERE s.lease_id IN "
               "(SELECT value FROM json_each(?)) ORDER BY s.lease_id, s.position"));
  slices.bind_all(std::string_view(ids));
  while (true) {
    LOAM_TRY(more, slices.step());
    if (!more) return {};
    LOAM_TRY(slice, read_slice(slices));
    constexpr int lease_column = 5;
    by_id.at(LeaseId{static_cast<std::uint64_t>(slices.integer(lease_column))})
        ->slices.push_back(std::move(slice));
  }
}

Result<std::vector<LeaseRow>> with_slices(Database& database, Statement& query) {
  LOAM_TRY(leases, read_all(query, read_lease));
  std::vector<LeaseRow*> all;
  for (LeaseRow& lease : leases) all.push_back(&lease);
  LOAM_CHECK(put_slices(database, all));
  return leases;
}

// What the usage records of each come to.
Result<void> put_costs(Database& database, std::vector<LeaseUseRow>& rows) {
  std::string tasks;
  std::map<LeaseId, LeaseUseRow*> by_id;
  for (LeaseUseRow& row : rows) {
    tasks += (tasks.empty() ? "[" : ",") + std::to_string(row.lease.task.value);
    by_id[row.lease.id] = &row;
  }
  tasks += tasks.empty() ? "[]" : "]";
  LOAM_TRY(usage, database.prepare("SELECT lease_id, currency, net FROM usage WHERE task_id IN "
                                   "(SELECT value FROM json_each(?))"));
  usage.bind_all(std::string_view(tasks));
  while (true) {
    LOAM_TRY(more, usage.step());
    if (!more) return {};
    Columns columns(usage);
    const auto row = by_id.find(columns.id<LeaseId>());
    const Money net = columns.money(columns.currency());
    LOAM_CHECK(columns.done("usage"));
    if (row != by_id.end()) row->second->net += net;
  }
}

}  // namespace

Result<std::vector<LeaseRow>> leases_of(Database& database, TaskId task) {
  LOAM_TRY(query, database.prepare("SELECT " + all_lease_columns() +
                                   " FROM leases WHERE task_id = ? ORDER BY id"));
  query.bind_all(number(task));
  return with_slices(database, query);
}

Result<std::vector<LeaseRow>> last_leases_of(Database& database, const std::string& ids) {
  LOAM_TRY(query, database.prepare("SELECT " + all_lease_columns() +
                                   " FROM leases WHERE id IN (SELECT lease_id FROM tasks WHERE id "
                                   "IN (SELECT value FROM json_each(?))) ORDER BY id"));
  query.bind_all(std::string_view(ids));
  return with_slices(database, query);
}

Result<std::vector<LeaseUseRow>> Queries::leases(const LeaseFilter& filter, LeaseId before,
                                                 std::int64_t limit) {
  if (limit < 1 || limit > page_max)
    return invalid("a page of " + std::to_string(limit) + " leases", "ask for 1 to 1000");
  std::string sql = "SELECT " + lease_columns("?1", "?2") +
                    ", tenant_id, (SELECT name FROM tasks WHERE tasks.id = leases.task_id), "
                    "(SELECT currency FROM tenants WHERE tenants.id = leases.tenant_id) "
                    "FROM leases WHERE 1 ";
  const bool timed = filter.from != Instant{} || filter.to != Instant::never();
  std::string tasks;
  for (const TaskId task : filter.tasks)
    tasks += (tasks.empty() ? "[" : ",") + std::to_string(task.value);
  if (timed) sql += "AND started_ms < ?2 AND (ended_ms IS NULL OR ended_ms > ?1) ";
  if (before.valid()) sql += "AND id < ?3 ";
  if (filter.tenant) sql += "AND tenant_id = ?4 ";
  if (!tasks.empty()) sql += "AND task_id IN (SELECT value FROM json_each(?5)) ";
  tasks += "]";
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(sql + "ORDER BY id DESC LIMIT ?6"));
  query.bind(1, filter.from.ms);
  query.bind(2, filter.to.ms);  // never() is the last that there is
  if (before.valid()) query.bind(3, number(before));
  if (filter.tenant) query.bind(4, number(*filter.tenant));
  if (!filter.tasks.empty()) query.bind(5, std::string_view(tasks));
  query.bind(6, limit);
  LOAM_TRY(rows, read_all(query, read_lease_use));
  std::vector<LeaseRow*> all;
  for (LeaseUseRow& row : rows) all.push_back(&row.lease);
  LOAM_CHECK(put_slices(*database, all));
  LOAM_CHECK(put_costs(*database, rows));
  return rows;
}

Result<std::vector<CapacityRow>> Queries::capacity(Instant from, Instant to) {
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query,
           database->prepare(
               "SELECT c.device_id, n.name || '/' || d.node_index, max(c.from_ms, ?1), "
               "min(c.until_ms, ?2), c.milli_ce FROM (SELECT device_id, from_ms, milli_ce, "
               "lead(from_ms, 1, ?2) OVER (PARTITION BY device_id ORDER BY from_ms) AS until_ms "
               "FROM capacity) c JOIN devices d ON d.id = c.device_id JOIN nodes n ON "
               "n.id = d.node_id WHERE c.from_ms < ?2 AND c.until_ms > ?1 AND c.milli_ce > 0 "
               "ORDER BY c.device_id, c.from_ms"));
  query.bind_all(from.ms, to.ms);
  return read_all(query, [](const Statement& statement) -> Result<CapacityRow> {
    Columns columns(statement);
    CapacityRow row;
    row.device = columns.id<DeviceId>();
    row.name = columns.text();
    row.from = columns.instant();
    row.to = columns.instant();
    row.ce = columns.quantity<MilliCeUnit>();
    LOAM_CHECK(columns.done("the capacity of " + row.name));
    return row;
  });
}

}  // namespace loam::store

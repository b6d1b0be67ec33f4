#include "store/queries.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <limits>
#include <map>

#include "domain/event_codec.hpp"
#include "store/journal_reader.hpp"
#include "store/lease_rows.hpp"
#include "store/measure_tables.hpp"
#include "store/query_reading.hpp"

namespace loam::store {

namespace {

// As many as ask at once (api::ApiOptions::workers): a connection that is opened anew has to read
// the schema and parse its queries.
constexpr std::size_t idle_connections_max = 32;
constexpr std::string_view task_columns =
    "t.id, t.tenant_id, n.name, t.name, t.state, t.outcome, t.exit_code, t.reason, t.project, "
    "t.environment, t.model, t.purchase_model, t.tariff, t.service_class, t.asked_milli_ce, "
    "t.asked_milli_device, t.asked_memory_mib, t.limit_ms, t.submitted_ms, t.started_ms, "
    "t.finished_ms, t.attempts, t.lease_id, "
    "(SELECT group_concat(dn.name || '/' || d.node_index, ', ') FROM slices s JOIN devices d ON "
    "d.id = s.device_id JOIN nodes dn ON dn.id = d.node_id WHERE s.lease_id = t.lease_id), "
    "t.run_ms, t.billed_ms, t.currency, t.list, t.discount, t.net, t.tax, t.submitted_by, "
    "(SELECT l.isolation FROM leases l WHERE l.id = t.lease_id), t.output_milli "
    "FROM tasks t JOIN tenants n ON n.id = t.tenant_id ";

Result<TaskRow> read_task(const Statement& statement) {
  Columns columns(statement);
  TaskRow row;
  row.id = columns.id<TaskId>();
  row.tenant = columns.id<TenantId>();
  row.tenant_name = columns.text();
  row.name = columns.text();
  row.state = columns.enumerator<TaskState>();
  row.outcome = columns.enumerator<TaskOutcome>();
  row.exit_code = columns.optional_integer();
  row.reason = columns.text();
  row.project = columns.text();
  row.environment = columns.text();
  row.model = columns.text();
  row.purchase_model = columns.enumerator<PurchaseModel>();
  row.tariff = columns.enumerator<Tariff>();
  row.service_class = columns.text();
  row.ce = columns.optional<MilliCe>();
  row.share = columns.optional<MilliDevice>();
  row.memory = columns.optional<Mebibytes>();
  row.limit = columns.duration();
  row.submitted_at = columns.instant();
  row.started_at = columns.instant();
  row.finished_at = columns.instant();
  row.attempts = columns.integer();
  row.lease = columns.id<LeaseId>();
  row.device = columns.text();
  row.run_time = columns.duration();
  row.billed_time = columns.duration();
  const Currency currency = columns.currency();
  row.list = columns.money(currency);
  row.discount = columns.money(currency);
  row.net = columns.money(currency);
  row.tax = columns.money(currency);
  row.submitted_by = columns.text();
  if (columns.is_null()) {
    columns.skip();
  } else {
    row.isolation = columns.enumerator<Isolation>();
  }
  row.output = columns.optional_integer();
  LOAM_CHECK(columns.done("task " + row.id.text()));
  return row;
}

std::string tasks_sql(const TaskFilter& filter, bool after) {
  std::string sql = "SELECT " + std::string(task_columns) + "WHERE 1 ";
  if (after) sql += "AND t.id < ?1 ";
  if (filter.tenant) sql += "AND t.tenant_id = ?2 ";
  if (!filter.name_prefix.empty()) sql += "AND substr(t.name, 1, length(?3)) = ?3 ";
  if (filter.since) sql += "AND t.submitted_ms >= ?4 ";
  if (!filter.states.empty()) {
    bool alive = true;
    std::string names;
    for (const TaskState state : filter.states) {
      alive = alive && state != TaskState::finished;
      names += (names.empty() ? "'" : ", '") +
               std::string(boost::describe::enum_to_string(state, "?")) + "'";
    }
    sql += "AND t.state IN (" + names + ") ";
    // Says in the index's own words that the small index of live tasks will do.
    if (alive) sql += "AND t.state <> 'finished' ";
  }
  return sql + "ORDER BY t.id DESC LIMIT ?5";
}

Result<TaskSpec> decoded(const Statement& row, int column, TaskId task) {
  LOAM_TRY(event, decode(EncodedEvent{std::string(row.text(column)),
                                      static_cast<int>(row.integer(column + 1)),
                                      std::string(row.text(column + 2))}));
  if (const auto* accepted = std::get_if<TaskAccepted>(&event); accepted && accepted->task == task)
    return *accepted->spec;
  return Error{ErrorKind::corrupt, "the journal does not hold the acceptance of " + task.text(),
               "run `loam verify`"};
}

// The specification as the journal holds it.
Result<TaskSpec> spec_of(Database& database, TaskId task) {
  LOAM_TRY(query, database.prepare("SELECT j.type, j.version, j.payload FROM tasks t "
                                   "JOIN journal j ON j.seq = t.accepted_seq WHERE t.id = ?"));
  query.bind_all(number(task));
  LOAM_TRY(there, query.step());
  if (there) return decoded(query, 0, task);
  return Error{ErrorKind::corrupt, "the journal does not hold the acceptance of " + task.text(),
               "run `loam verify`"};
}

// What a page of tasks has besides its rows, each in one query.
Result<std::map<TaskId, TaskSpec>> specs_of(Database& database, const std::string& ids) {
  LOAM_TRY(query, database.prepare(
                      "SELECT t.id, j.type, j.version, j.payload FROM tasks t JOIN journal j ON "
                      "j.seq = t.accepted_seq WHERE t.id IN (SELECT value FROM json_each(?))"));
  query.bind_all(std::string_view(ids));
  std::map<TaskId, TaskSpec> specs;
  while (true) {
    LOAM_TRY(more, query.step());
    if (!more) return specs;
    const TaskId id{static_cast<std::uint64_t>(query.integer(0))};
    LOAM_TRY(spec, decoded(query, 1, id));
    specs.emplace(id, std::move(spec));
  }
}

Result<UsageRecord> read_usage(const Statement& statement) {
  Columns columns(statement);
  UsageRecord record;
  record.id = columns.id<UsageId>();
  record.lease = columns.id<LeaseId>();
  record.task = columns.id<TaskId>();
  record.tenant = columns.id<TenantId>();
  record.from = columns.instant();
  record.to = columns.instant();
  record.billable_ce = columns.quantity<MilliCeUnit>();
  record.memory = columns.quantity<MebibytesUnit>();
  record.card = columns.id<RateCardId>();
  record.purchase_model = columns.enumerator<PurchaseModel>();
  record.tariff = columns.enumerator<Tariff>();
  record.window = columns.text();
  record.billed = columns.duration();
  record.tasks = columns.integer();
  record.tier_month = columns.instant();
  const Currency currency = columns.currency();
  record.unit_price = columns.money(currency);
  record.list = columns.money(currency);
  record.net = columns.money(currency);
  record.list_residue = columns.integer();
  record.net_residue = columns.integer();
  record.month_end = columns.instant();
  LOAM_CHECK(columns.done("usage " + record.id.text()));
  return record;
}

constexpr std::string_view usage_columns =
    "u.id, u.lease_id, u.task_id, u.tenant_id, u.from_ms, u.to_ms, u.billable_milli_ce, "
    "u.memory_mib, u.rate_card_id, u.purchase_model, u.tariff, u.price_window, u.billed_ms, "
    "u.tasks, u.tier_month_ms, u.currency, u.unit_price, u.list, u.net, u.list_residue, "
    "u.net_residue, u.month_end_ms, "
    "l.isolation, l.region";
constexpr std::string_view usage_tables = " FROM usage u JOIN leases l ON l.id = u.lease_id ";
constexpr int isolation_column = 22;

// With what was measured in the record's time.
std::string usage_columns_and_facts() {
  const char *from = "min(u.from_ms, u.to_ms)", *to = "max(u.from_ms, u.to_ms)";
  return std::string(usage_columns) + ", " + measured_ms_sql("u.lease_id", from, to) + ", " +
         busy_ms_sql("u.lease_id", from, to) + std::string(usage_tables);
}

Result<UsageFacts> read_facts(const Statement& statement) {
  Columns columns(statement, isolation_column);
  UsageFacts facts;
  facts.isolation = columns.enumerator<Isolation>();
  facts.region = columns.text();
  facts.measured = columns.duration();
  facts.device_time = columns.duration();
  LOAM_CHECK(columns.done("what is known of usage"));
  return facts;
}

// Adds a record to the line it belongs to: the last one, or a new one.
void add_to_bill(Bill& bill, const UsageRecord& record, Isolation isolation) {
  const bool same = !bill.lines.empty() && bill.lines.back().task == record.task &&
                    bill.lines.back().unit_price == record.unit_price &&
                    bill.lines.back().billable_ce == record.billable_ce &&
                    bill.lines.back().purchase_model == record.purchase_model &&
                    bill.lines.back().isolation == isolation;
  const Money zero = Money::zero(bill.currency);
  if (!same)
    bill.lines.push_back({record.task,
                          {},
                          {},
                          {},
                          {},
                          record.purchase_model,
                          record.billable_ce,
                          Duration{},
                          record.unit_price,
                          zero,
                          zero,
                          zero,
                          isolation});
  BillLine& line = bill.lines.back();
  const Money discount = record.list - record.net;
  line.length += record.length();
  line.list += record.list;
  line.discount += discount;
  line.net += record.net;
  bill.length += record.length();
  bill.list += record.list;
  bill.discount += discount;
  bill.net += record.net;
}

Result<void> name_lines(Database& database, Bill& bill) {
  LOAM_TRY(query,
           database.prepare("SELECT name, project, environment, model FROM tasks WHERE id = ?"));
  for (std::size_t i = 0; i < bill.lines.size(); ++i) {
    BillLine& line = bill.lines[i];
    if (i > 0 && bill.lines[i - 1].task == line.task) {
      const BillLine& before = bill.lines[i - 1];
      line.name = before.name;
      line.project = before.project;
      line.environment = before.environment;
      line.model = before.model;
      continue;
    }
    query.bind_all(number(line.task));
    LOAM_TRY(there, query.step());
    if (there) {
      Columns columns(query);
      line.name = columns.text();
      line.project = columns.text();
      line.environment = columns.text();
      line.model = columns.text();
    }
    query.reset();
  }
  return {};
}

Result<void> prove_lines(Database& database, Bill& bill) {
  LOAM_TRY(query, database.prepare(
                      "SELECT (SELECT coalesce(sum(ended_ms - started_ms), 0) FROM leases "
                      "WHERE task_id = ?1 AND ended_ms IS NOT NULL AND started_ms IS NOT NULL), "
                      "(SELECT coalesce(sum(to_ms - from_ms), 0) FROM usage WHERE task_id = ?1), "
                      "EXISTS(SELECT 1 FROM leases WHERE task_id = ?1 AND ended_ms IS NULL)"));
  for (const BillLine& line : bill.lines) {
    if (!bill.proof.empty() && bill.proof.back().task == line.task) continue;
    query.bind_all(number(line.task));
    LOAM_CHECK(query.step());
    Columns columns(query);
    BilledTime proof;
    proof.task = line.task;
    proof.run_time = columns.duration();
    proof.billed_time = columns.duration();
    proof.attempt_open = columns.integer() != 0;
    bill.proof.push_back(proof);
    query.reset();
  }
  return {};
}

// The currency of a tenant's usage is its own; a tenant unknown here has an empty bill.
Result<Currency> currency_of(Database& database, TenantId tenant) {
  LOAM_TRY(query, database.prepare("SELECT currency FROM tenants WHERE id = ?"));
  query.bind_all(number(tenant));
  LOAM_TRY(there, query.step());
  if (!there) return Currency();
  Columns columns(query);
  const Currency currency = columns.currency();
  LOAM_CHECK(columns.done(tenant.text()));
  return currency;
}

}  // namespace

Queries::Queries(std::string path) : path_(std::move(path)) {}
Queries::~Queries() = default;

Result<Database> Queries::connect() {
  {
    const std::lock_guard hold(guard_);
    if (!idle_.empty()) {
      Database database = std::move(idle_.back());
      idle_.pop_back();
      return database;
    }
  }
  return Database::open(path_, OpenMode::read_only);
}

void Queries::give_back(Database database) {
  const std::lock_guard hold(guard_);
  if (idle_.size() < idle_connections_max) idle_.push_back(std::move(database));
}

Result<TaskPage> Queries::list_tasks(const TaskFilter& filter, TaskId after, std::int64_t limit) {
  if (limit < 1 || limit > page_max)
    return invalid("a page of " + std::to_string(limit) + " tasks", "ask for 1 to 1000");
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(tasks_sql(filter, after.valid())));
  if (after.valid()) query.bind(1, number(after));
  if (filter.tenant) query.bind(2, number(*filter.tenant));
  if (!filter.name_prefix.empty()) query.bind(3, std::string_view(filter.name_prefix));
  if (filter.since) query.bind(4, filter.since->ms);
  // One more than asked: whether there is a next page.
  query.bind(5, limit + 1);
  LOAM_TRY(tasks, read_all(query, read_task));
  TaskPage page{std::move(tasks), {}};
  if (static_cast<std::int64_t>(page.tasks.size()) > limit) {
    page.tasks.pop_back();
    page.next = page.tasks.back().id;
  }
  return page;
}

Result<std::vector<TaskDetail>> Queries::details(const std::vector<TaskRow>& rows) {
  std::vector<TaskDetail> details;
  if (rows.empty()) return details;
  std::string ids;
  for (const TaskRow& row : rows) ids += (ids.empty() ? "[" : ",") + std::to_string(row.id.value);
  ids += "]";
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(specs, specs_of(*database, ids));
  LOAM_TRY(leases, last_leases_of(*database, ids));
  std::map<TaskId, LeaseRow> last;
  for (LeaseRow& lease : leases) last.insert_or_assign(lease.task, std::move(lease));
  for (const TaskRow& row : rows) {
    const auto spec = specs.find(row.id);
    if (spec == specs.end()) {
      return Error{ErrorKind::corrupt,
                   "the journal does not hold the acceptance of " + row.id.text(),
                   "run `loam verify`"};
    }
    TaskDetail& detail = details.emplace_back(TaskDetail{row, std::move(spec->second), {}});
    if (const auto lease = last.find(row.id); lease != last.end())
      detail.leases.push_back(std::move(lease->second));
  }
  return details;
}

Result<TaskDetail> Queries::task(TaskId id) {
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare("SELECT " + std::string(task_columns) + "WHERE t.id = ?"));
  query.bind_all(number(id));
  LOAM_TRY(there, query.step());
  if (!there)
    return Error{ErrorKind::not_found, "there is no task " + id.text(),
                 "see the tasks with `loam ps --all`"};
  LOAM_TRY(row, read_task(query));
  LOAM_TRY(spec, spec_of(*database, id));
  LOAM_TRY(leases, leases_of(*database, id));
  return TaskDetail{std::move(row), std::move(spec), std::move(leases)};
}

Result<std::vector<UsageRecord>> Queries::usage(TaskId id) {
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query,
           database->prepare("SELECT " + std::string(usage_columns) + std::string(usage_tables) +
                             "WHERE u.task_id = ? ORDER BY u.id"));
  query.bind_all(number(id));
  return read_all(query, read_usage);
}

Result<Bill> Queries::bill(TenantId tenant, Instant from, Instant to) {
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(currency, currency_of(*database, tenant));
  Bill bill;
  bill.tenant = tenant;
  bill.currency = currency;
  bill.list = bill.discount = bill.net = Money::zero(currency);
  LOAM_TRY(query,
           database->prepare("SELECT " + std::string(usage_columns) + std::string(usage_tables) +
                             "WHERE u.tenant_id = ? AND u.from_ms >= ? AND "
                             "u.from_ms < ? ORDER BY u.task_id, u.from_ms, u.id"));
  query.bind_all(number(tenant), from.ms, to.ms);
  while (true) {
    LOAM_TRY(more, query.step());
    if (!more) break;
    LOAM_TRY(record, read_usage(query));
    if (record.net.currency() != currency)
      return Error{ErrorKind::corrupt,
                   "usage " + record.id.text() + " is in " +
                       std::string(record.net.currency().code()) + ", its tenant pays in " +
                       std::string(currency.code()),
                   "run `loam verify`"};
    Columns isolation(query, isolation_column);
    add_to_bill(bill, record, isolation.enumerator<Isolation>());
    LOAM_CHECK(isolation.done("lease " + record.lease.text()));
  }
  LOAM_CHECK(name_lines(*database, bill));
  LOAM_CHECK(prove_lines(*database, bill));
  return bill;
}

Result<void> Queries::usage_between(TenantId tenant, Instant from, Instant to,
                                    const EachUsage& each) {
  constexpr std::int64_t longest_ms = Duration::hours(8 * 24).ms;
  constexpr std::int64_t last_ms = std::numeric_limits<std::int64_t>::max();
  LOAM_TRY(database, Borrowed::take(*this));
  // The first two bounds are for the index; records that take back run backwards.
  LOAM_TRY(query,
           database->prepare("SELECT " + usage_columns_and_facts() +
                             "WHERE u.tenant_id = ?1 AND u.from_ms >= ?2 AND u.from_ms < ?3 AND "
                             "CASE WHEN u.from_ms = u.to_ms THEN u.from_ms >= ?4 AND u.from_ms < "
                             "?5 ELSE max(u.from_ms, u.to_ms) > ?4 AND min(u.from_ms, u.to_ms) < "
                             "?5 END ORDER BY u.id"));
  query.bind_all(number(tenant), from.ms - longest_ms,
                 to.ms > last_ms - longest_ms ? last_ms : to.ms + longest_ms, from.ms, to.ms);
  while (true) {
    LOAM_TRY(more, query.step());
    if (!more) return {};
    LOAM_TRY(record, read_usage(query));
    LOAM_TRY(facts, read_facts(query));
    each(record, facts);
  }
}

}  // namespace loam::store

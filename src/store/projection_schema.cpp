// The projections' tables and views as SQL. Conventions: ids are integers (what people see,
// "t17", is in the views), times are milliseconds since 1970 UTC (text in the views), money is
// canonical decimal text with its currency in a column of its own, absent values are NULL.
#include "store/measure_tables.hpp"
#include "store/schema.hpp"

namespace loam::store {

namespace {

constexpr const char* tables_sql = R"sql(
CREATE TABLE nodes(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  region TEXT NOT NULL,
  milli_cpu INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  attached_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE devices(
  id INTEGER PRIMARY KEY,
  node_id INTEGER NOT NULL,
  node_index INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  type TEXT NOT NULL,
  backend TEXT NOT NULL,
  driver_version TEXT NOT NULL,
  memory_mib INTEGER NOT NULL,
  factors_source TEXT NOT NULL,
  general_milli_ce INTEGER NOT NULL,
  train_milli_ce INTEGER NOT NULL,
  prefill_milli_ce INTEGER NOT NULL,
  decode_milli_ce INTEGER NOT NULL,
  health TEXT NOT NULL,
  health_reason TEXT NOT NULL,
  draining INTEGER NOT NULL,
  attached_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE tenants(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  payment TEXT NOT NULL,
  currency TEXT NOT NULL,
  credit_limit TEXT NOT NULL,
  discount_basis_points INTEGER NOT NULL,
  quota_milli_ce INTEGER,
  quota_memory_mib INTEGER,
  quota_tasks INTEGER,
  quota_queued INTEGER,
  created_ms INTEGER NOT NULL,
  billing_zone TEXT NOT NULL,
  invoicing TEXT NOT NULL
) STRICT;

CREATE TABLE rate_cards(
  id INTEGER PRIMARY KEY,
  effective_from_ms INTEGER NOT NULL,
  currency TEXT NOT NULL,
  on_demand TEXT NOT NULL,
  milli_ce_per_gib INTEGER NOT NULL,
  terms TEXT NOT NULL,
  published_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE tasks(
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  outcome TEXT NOT NULL,
  exit_code INTEGER,
  reason TEXT NOT NULL,
  project TEXT NOT NULL,
  environment TEXT NOT NULL,
  model TEXT NOT NULL,
  purchase_model TEXT NOT NULL,
  tariff TEXT NOT NULL,
  service_class TEXT NOT NULL,
  asked_milli_ce INTEGER,
  asked_milli_device INTEGER,
  asked_memory_mib INTEGER,
  devices INTEGER NOT NULL,
  limit_ms INTEGER NOT NULL,
  submitted_ms INTEGER NOT NULL,
  started_ms INTEGER,
  finished_ms INTEGER,
  lease_id INTEGER,
  attempts INTEGER NOT NULL,
  run_ms INTEGER NOT NULL,
  billed_ms INTEGER NOT NULL,
  currency TEXT NOT NULL,
  list TEXT NOT NULL,
  discount TEXT NOT NULL,
  net TEXT NOT NULL,
  tax TEXT NOT NULL,
  submitted_by TEXT NOT NULL,
  accepted_seq INTEGER NOT NULL,
  model_version TEXT NOT NULL,
  task_group TEXT NOT NULL,
  output_milli INTEGER,
  reservation_id INTEGER,
  queued_ms INTEGER NOT NULL
) STRICT;
-- Newest first within a tenant; the name is there so that a search by name need not visit the rows.
CREATE INDEX tasks_by_tenant ON tasks(tenant_id, id, name);
CREATE INDEX tasks_alive ON tasks(id) WHERE state <> 'finished';

CREATE TABLE leases(
  id INTEGER PRIMARY KEY,
  task_id INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  milli_ce INTEGER NOT NULL,
  billable_milli_ce INTEGER NOT NULL,
  isolation TEXT NOT NULL,
  granted_ms INTEGER NOT NULL,
  started_ms INTEGER,
  stop_at_ms INTEGER,
  ended_ms INTEGER,
  stop_reason TEXT NOT NULL,
  device_time_ms INTEGER,
  memory_peak_mib INTEGER,
  rank INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  exit_code INTEGER,
  reason TEXT NOT NULL,
  queued_ms INTEGER NOT NULL,
  output_milli INTEGER,
  region TEXT NOT NULL
) STRICT;
CREATE INDEX leases_by_task ON leases(task_id);

CREATE TABLE measures(
  lease_id INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  device_time_ms INTEGER NOT NULL,
  PRIMARY KEY(lease_id, to_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE capacity(
  device_id INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  milli_ce INTEGER NOT NULL,
  PRIMARY KEY(device_id, from_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE slices(
  lease_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  device_id INTEGER NOT NULL,
  milli_device INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  PRIMARY KEY(lease_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage(
  id INTEGER PRIMARY KEY,
  lease_id INTEGER NOT NULL,
  task_id INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  billable_milli_ce INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  rate_card_id INTEGER NOT NULL,
  purchase_model TEXT NOT NULL,
  tariff TEXT NOT NULL,
  price_window TEXT NOT NULL,
  billed_ms INTEGER NOT NULL,
  tasks INTEGER NOT NULL,
  tier_month_ms INTEGER NOT NULL,
  currency TEXT NOT NULL,
  unit_price TEXT NOT NULL,
  list TEXT NOT NULL,
  discount TEXT NOT NULL,
  net TEXT NOT NULL,
  list_residue INTEGER NOT NULL,
  net_residue INTEGER NOT NULL,
  month_end_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_by_task ON usage(task_id);
CREATE INDEX usage_by_tenant ON usage(tenant_id, from_ms);

CREATE TABLE transactions(
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  tenant_id INTEGER NOT NULL,
  task_id INTEGER,
  reverses_id INTEGER,
  note TEXT NOT NULL
) STRICT;
CREATE INDEX transactions_by_tenant ON transactions(tenant_id);

CREATE TABLE postings(
  transaction_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  account TEXT NOT NULL,
  kind TEXT NOT NULL,
  tenant_id INTEGER,
  currency TEXT NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY(transaction_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE invoices(
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  currency TEXT NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  issued_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  usage_upto INTEGER NOT NULL,
  subtotal TEXT NOT NULL,
  total TEXT NOT NULL,
  rounding TEXT NOT NULL,
  months_to_ms INTEGER NOT NULL,
  seller TEXT NOT NULL,
  seller_address TEXT NOT NULL,
  seller_tax_id TEXT NOT NULL,
  payment_terms TEXT NOT NULL,
  due TEXT,
  due_ms INTEGER
) STRICT;
CREATE INDEX invoices_by_tenant ON invoices(tenant_id);

CREATE TABLE invoice_lines(
  invoice_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  kind TEXT NOT NULL,
  project TEXT NOT NULL,
  environment TEXT NOT NULL,
  model TEXT NOT NULL,
  purchase_model TEXT NOT NULL,
  tariff TEXT NOT NULL,
  price_window TEXT NOT NULL,
  per_task INTEGER NOT NULL,
  unit_price TEXT NOT NULL,
  milli_ce_ms INTEGER NOT NULL,
  tasks INTEGER NOT NULL,
  list TEXT NOT NULL,
  net TEXT NOT NULL,
  payable TEXT NOT NULL,
  model_version TEXT NOT NULL,
  PRIMARY KEY(invoice_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE invoice_taxes(
  invoice_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  parts_per_million INTEGER NOT NULL,
  base TEXT NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY(invoice_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE credit_notes(
  id INTEGER PRIMARY KEY,
  invoice_id INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL,
  currency TEXT NOT NULL,
  issued_ms INTEGER NOT NULL,
  net TEXT NOT NULL,
  tax TEXT NOT NULL,
  total TEXT NOT NULL,
  reason TEXT NOT NULL
) STRICT;
CREATE INDEX credit_notes_by_invoice ON credit_notes(invoice_id);
CREATE INDEX credit_notes_by_tenant ON credit_notes(tenant_id);

CREATE TABLE credit_note_taxes(
  note_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  parts_per_million INTEGER NOT NULL,
  base TEXT NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY(note_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE commitments(
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  project TEXT NOT NULL,
  environment TEXT NOT NULL,
  model TEXT NOT NULL,
  milli_ce INTEGER NOT NULL,
  months INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  bought_ms INTEGER NOT NULL,
  rate_card_id INTEGER NOT NULL,
  currency TEXT NOT NULL,
  unit_price TEXT NOT NULL,
  fees INTEGER NOT NULL,
  fees_charged INTEGER NOT NULL,
  ended_ms INTEGER,
  reason TEXT NOT NULL,
  model_version TEXT NOT NULL,
  spend TEXT NOT NULL,
  tags TEXT NOT NULL
) STRICT;
CREATE INDEX commitments_by_tenant ON commitments(tenant_id);

CREATE TABLE reservations(
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  project TEXT NOT NULL,
  environment TEXT NOT NULL,
  model TEXT NOT NULL,
  model_version TEXT NOT NULL,
  tariff TEXT NOT NULL,
  billable_milli_ce INTEGER NOT NULL,
  isolation TEXT NOT NULL,
  devices TEXT NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  made_ms INTEGER NOT NULL,
  charged_to_ms INTEGER NOT NULL,
  currency TEXT NOT NULL,
  held TEXT NOT NULL,
  ended_ms INTEGER,
  ended_as TEXT,
  reason TEXT NOT NULL,
  tags TEXT NOT NULL,
  region TEXT NOT NULL
) STRICT;
CREATE INDEX reservations_by_tenant ON reservations(tenant_id);

CREATE TABLE adjustments(
  seq INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  tenant_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  commitment_id INTEGER,
  lease_id INTEGER,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  project TEXT NOT NULL,
  environment TEXT NOT NULL,
  model TEXT NOT NULL,
  purchase_model TEXT NOT NULL,
  tariff TEXT NOT NULL,
  price_window TEXT NOT NULL,
  rate_card_id INTEGER NOT NULL,
  currency TEXT NOT NULL,
  unit_price TEXT NOT NULL,
  milli_ce_ms INTEGER NOT NULL,
  list TEXT NOT NULL,
  net TEXT NOT NULL,
  model_version TEXT NOT NULL,
  month_end_ms INTEGER NOT NULL,
  task_id INTEGER,
  reservation_id INTEGER,
  tags TEXT,
  region TEXT NOT NULL,
  PRIMARY KEY(seq, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX adjustments_by_tenant ON adjustments(tenant_id, from_ms);

CREATE TABLE spot_prices(
  currency TEXT NOT NULL,
  from_ms INTEGER NOT NULL,
  price TEXT NOT NULL,
  supply_milli_ce INTEGER NOT NULL,
  demand_milli_ce INTEGER NOT NULL,
  PRIMARY KEY(currency, from_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget_notices(
  seq INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  budget TEXT NOT NULL,
  kind TEXT NOT NULL,
  currency TEXT NOT NULL,
  spent TEXT NOT NULL,
  spending_limit TEXT NOT NULL,
  words TEXT NOT NULL
) STRICT;
)sql";

// `@NAME@` is the UTC text of the column NAME_ms.
constexpr const char* views_sql = R"sql(
CREATE VIEW charges AS
SELECT id AS usage_id, task_id, tenant_id, billable_milli_ce, to_ms - from_ms AS length_ms,
       billed_ms, tasks, purchase_model, tariff, price_window, unit_price, currency, list, discount, net
FROM usage;

CREATE VIEW v_devices AS
SELECT 'd' || d.id AS device, n.name || '/' || d.node_index AS name, d.type, d.backend, d.uuid,
       n.region, d.memory_mib, d.general_milli_ce / 1000.0 AS ce, d.factors_source, d.health,
       d.health_reason, d.draining
FROM devices d JOIN nodes n ON n.id = d.node_id;

CREATE VIEW v_capacity AS
SELECT n.name || '/' || d.node_index AS device, @c.from@ AS "from", c.milli_ce / 1000.0 AS ce
FROM capacity c JOIN devices d ON d.id = c.device_id JOIN nodes n ON n.id = d.node_id;

CREATE VIEW v_tasks AS
SELECT 't' || t.id AS task, n.name AS tenant, t.name, t.state, t.outcome, t.exit_code, t.reason,
       t.project, t.environment, t.model, t.model_version, t.task_group, t.purchase_model,
       @t.submitted@ AS submitted, @t.started@ AS started, @t.finished@ AS finished,
       t.limit_ms / 1000.0 AS limit_s, t.asked_milli_ce / 1000.0 AS ce,
       t.asked_milli_device / 1000.0 AS share, t.attempts, t.run_ms / 1000.0 AS run_s,
       t.billed_ms / 1000.0 AS billed_s, t.net, t.tax, t.currency, t.submitted_by,
       t.output_milli / 1000.0 AS output, 'rsv-' || t.reservation_id AS reservation
FROM tasks t JOIN tenants n ON n.id = t.tenant_id;

CREATE VIEW v_leases AS
SELECT 'l' || l.id AS lease, 't' || l.task_id AS task, n.name AS tenant, l.epoch,
       l.milli_ce / 1000.0 AS ce, l.billable_milli_ce / 1000.0 AS billable_ce, l.isolation,
       @l.granted@ AS granted, @l.started@ AS started, @l.ended@ AS ended, l.stop_reason,
       l.rank, l.outcome, l.exit_code, l.reason,
       l.device_time_ms / 1000.0 AS device_time_s, l.memory_peak_mib,
       (SELECT group_concat(dn.name || '/' || d.node_index || ' ' || s.milli_device / 1000.0, ', ')
        FROM slices s JOIN devices d ON d.id = s.device_id JOIN nodes dn ON dn.id = d.node_id
        WHERE s.lease_id = l.id) AS slices
FROM leases l JOIN tenants n ON n.id = l.tenant_id;

CREATE VIEW v_bill AS
SELECT n.name AS tenant, 't' || t.id AS task, t.name, t.project, t.environment, t.model,
       t.model_version, t.run_ms / 1000.0 AS run_s, t.billed_ms / 1000.0 AS billed_s, t.list, t.discount, t.net,
       t.tax, t.currency
FROM tasks t JOIN tenants n ON n.id = t.tenant_id WHERE t.billed_ms > 0;

CREATE VIEW v_transactions AS
SELECT 'x' || x.id AS "transaction", @x.at@ AS at, x.kind, n.name AS tenant,
       't' || x.task_id AS task, 'x' || x.reverses_id AS reverses, x.note, p.account, p.amount, p.currency
FROM transactions x JOIN postings p ON p.transaction_id = x.id
JOIN tenants n ON n.id = x.tenant_id;

CREATE VIEW v_invoices AS
SELECT 'inv-' || i.id AS invoice, n.name AS tenant, @i.from@ AS "from", @i.to@ AS "to",
       @i.issued@ AS issued, l.kind, l.project, l.environment, l.model, l.model_version, l.purchase_model,
       l.tariff, l.price_window, l.unit_price, CASE WHEN l.kind LIKE '%token%' THEN 0.0 ELSE
       l.milli_ce_ms / 3600000000.0 END AS ce_hours, l.tasks,
       CASE WHEN l.kind LIKE '%token%' THEN l.milli_ce_ms ELSE 0 END AS tokens, l.list,
       l.net, l.payable, i.subtotal, i.total, i.rounding, i.currency
FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id JOIN tenants n ON n.id = i.tenant_id;
)sql";

constexpr ProjectionTable tables[] = {
    {"nodes", "id"},
    {"devices", "id"},
    {"tenants", "id"},
    {"rate_cards", "id"},
    {"tasks", "id"},
    {"leases", "id"},
    {"slices", "lease_id, position"},
    {"measures", "lease_id, to_ms"},
    {"capacity", "device_id, from_ms"},
    {"usage", "id"},
    {"transactions", "id"},
    {"postings", "transaction_id, position"},
    {"invoices", "id"},
    {"invoice_lines", "invoice_id, position"},
    {"invoice_taxes", "invoice_id, position"},
    {"credit_notes", "id"},
    {"credit_note_taxes", "note_id, position"},
    {"commitments", "id"},
    {"reservations", "id"},
    {"adjustments", "seq, position"},
    {"spot_prices", "currency, from_ms"},
    {"budget_notices", "seq"},
};

// With the share of its devices' time that was measured in its own.
std::string usage_view() {
  const char *from = "min(u.from_ms, u.to_ms)", *to = "max(u.from_ms, u.to_ms)";
  return R"sql(
CREATE VIEW v_usage AS
SELECT 'u' || u.id AS usage, 't' || u.task_id AS task, 'l' || u.lease_id AS lease,
       n.name AS tenant, @u.from@ AS "from", @u.to@ AS "to",
       (u.to_ms - u.from_ms) / 1000.0 AS length_s, u.billable_milli_ce / 1000.0 AS billable_ce,
       u.memory_mib, 'r' || u.rate_card_id AS rate_card, u.purchase_model, u.tariff, u.price_window,
       u.billed_ms / 1000.0 AS billed_s, u.tasks, u.unit_price, u.list,
       u.discount, u.net, u.currency, 1.0 * )sql" +
         busy_ms_sql("u.lease_id", from, to) + " / nullif(" +
         measured_ms_sql("u.lease_id", from, to) + R"sql(, 0) AS share_measured
FROM usage u JOIN tenants n ON n.id = u.tenant_id;
)sql";
}

std::string with_times(std::string_view sql) {
  std::string out;
  while (true) {
    const std::size_t open = sql.find('@');
    if (open == std::string_view::npos) return out += sql;
    const std::size_t close = sql.find('@', open + 1);
    LOAM_ASSERT(close != std::string_view::npos);
    out += sql.substr(0, open);
    out += "strftime('%Y-%m-%dT%H:%M:%fZ', ";
    out += sql.substr(open + 1, close - open - 1);
    out += "_ms / 1000.0, 'unixepoch')";
    sql.remove_prefix(close + 1);
  }
}

}  // namespace

std::span<const ProjectionTable> projection_tables() {
  return tables;
}

Result<void> create_projections(Database& database) {
  LOAM_CHECK(database.execute(tables_sql));
  return database.execute(with_times(views_sql + usage_view()));
}

Result<void> drop_projections(Database& database) {
  std::string sql;
  {
    LOAM_TRY(found, database.prepare(
                        "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') AND "
                        "name NOT IN ('journal', 'meta', 'snapshots', 'snapshot_parts') AND "
                        "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC, name"));
    while (true) {
      LOAM_TRY(row, found.step());
      if (!row) break;
      sql += "DROP " + std::string(found.text(0)) + " \"" + std::string(found.text(1)) + "\";";
    }
  }
  return database.execute(sql);
}

}  // namespace loam::store

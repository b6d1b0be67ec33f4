// Questions about invoices and the ledger, answered from the projections.
#include "domain/event_codec.hpp"
#include "store/query_reading.hpp"
#include "store/tags.hpp"

namespace loam::store {
namespace {

Result<InvoiceRow> read_invoice(const Statement& statement) {
  Columns columns(statement);
  InvoiceRow row;
  row.invoice.id = columns.id<InvoiceId>();
  row.invoice.tenant = columns.id<TenantId>();
  row.invoice.currency = columns.currency();
  row.invoice.from = columns.instant();
  row.invoice.to = columns.instant();
  row.issued_at = columns.instant();
  row.sequence = static_cast<std::uint64_t>(columns.integer());
  row.usage_upto = columns.id<UsageId>();
  row.invoice.subtotal = columns.money(row.invoice.currency);
  row.invoice.total = columns.money(row.invoice.currency);
  row.invoice.rounding = columns.money(row.invoice.currency);
  row.invoice.months_to = columns.instant();
  row.invoice.seller.name = columns.text();
  row.invoice.seller.address = columns.text();
  row.invoice.seller.tax_id = columns.text();
  row.invoice.seller.terms = columns.text();
  if (columns.is_null()) {
    columns.skip();
  } else {
    row.invoice.due = columns.money(row.invoice.currency);
  }
  if (const auto due_ms = columns.optional_integer()) row.invoice.due_at = Instant{*due_ms};
  LOAM_CHECK(columns.done("invoice " + row.invoice.id.text()));
  return row;
}

Result<InvoiceLine> read_line(const Statement& statement, Currency currency) {
  Columns columns(statement);
  InvoiceLine line;
  line.key.kind = columns.enumerator<InvoiceLineKind>();
  line.key.project = columns.text();
  line.key.environment = columns.text();
  line.key.model = columns.text();
  line.key.purchase_model = columns.enumerator<PurchaseModel>();
  line.key.tariff = columns.enumerator<Tariff>();
  line.key.window = columns.text();
  line.key.per_task = columns.integer() != 0;
  line.key.unit_price = columns.money(currency);
  line.milli_ce_ms = columns.integer();
  line.tasks = columns.integer();
  line.list = columns.money(currency);
  line.net = columns.money(currency);
  line.payable = columns.money(currency);
  line.key.model_version = columns.text();
  LOAM_CHECK(columns.done("an invoice line"));
  return line;
}

Result<TaxLine> read_tax(const Statement& statement, Currency currency) {
  Columns columns(statement);
  TaxLine tax;
  tax.name = columns.text();
  tax.parts_per_million = columns.integer();
  tax.base = columns.money(currency);
  tax.amount = columns.money(currency);
  LOAM_CHECK(columns.done("an invoice tax"));
  return tax;
}

Result<TransactionRow> read_transaction(const Statement& statement) {
  Columns columns(statement);
  TransactionRow row;
  row.transaction.id = columns.id<TransactionId>();
  row.at = columns.instant();
  row.transaction.kind = columns.enumerator<TransactionKind>();
  row.transaction.tenant = columns.id<TenantId>();
  row.transaction.task = columns.id<TaskId>();
  row.transaction.reverses = columns.id<TransactionId>();
  row.transaction.note = columns.text();
  LOAM_CHECK(columns.done("transaction " + row.transaction.id.text()));
  return row;
}

Result<Posting> read_posting(const Statement& statement) {
  Columns columns(statement);
  Posting posting;
  posting.account.kind = columns.enumerator<AccountKind>();
  posting.account.tenant = columns.id<TenantId>();
  posting.account.currency = columns.currency();
  posting.amount = columns.money(posting.account.currency);
  LOAM_CHECK(columns.done("a posting"));
  return posting;
}

}  // namespace

Result<std::vector<InvoiceRow>> Queries::invoices(const InvoiceFilter& filter) {
  if (filter.limit < 1 || filter.limit > page_max)
    return invalid("a page of " + std::to_string(filter.limit) + " invoices", "ask for 1 to 1000");
  const auto optional_number = [](auto id) {
    return id.valid() ? std::optional(number(id)) : std::optional<std::int64_t>();
  };
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query,
           database->prepare(
               "SELECT id, tenant_id, currency, from_ms, to_ms, issued_ms, seq, usage_upto, "
               "subtotal, total, rounding, months_to_ms, seller, seller_address, "
               "seller_tax_id, payment_terms, due, due_ms FROM invoices WHERE (?1 IS NULL OR "
               "tenant_id = ?1) "
               "AND (?2 IS NULL OR id < ?2) AND (?3 IS NULL OR id = ?3) "
               "ORDER BY id DESC LIMIT ?4"));
  query.bind_all(optional_number(filter.tenant), optional_number(filter.before),
                 optional_number(filter.only), filter.limit);
  LOAM_TRY(rows, read_all(query, read_invoice));
  LOAM_TRY(lines, database->prepare(
                      "SELECT kind, project, environment, model, purchase_model, tariff, "
                      "price_window, per_task, unit_price, milli_ce_ms, tasks, list, net, payable, "
                      "model_version FROM invoice_lines WHERE invoice_id = ? ORDER BY position"));
  LOAM_TRY(taxes, database->prepare("SELECT name, parts_per_million, base, amount FROM "
                                    "invoice_taxes WHERE invoice_id = ? ORDER BY position"));
  for (InvoiceRow& row : rows) {
    lines.bind_all(number(row.invoice.id));
    LOAM_TRY(found, read_all(lines, [&](const Statement& statement) {
               return read_line(statement, row.invoice.currency);
             }));
    row.invoice.lines = std::move(found);
    lines.reset();
    taxes.bind_all(number(row.invoice.id));
    LOAM_TRY(taxed, read_all(taxes, [&](const Statement& statement) {
               return read_tax(statement, row.invoice.currency);
             }));
    row.invoice.taxes = std::move(taxed);
    taxes.reset();
  }
  return rows;
}

Result<std::vector<AdjustmentRow>> Queries::adjustments(TenantId tenant, Instant from, Instant to) {
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(
                      "SELECT a.from_ms, a.to_ms, a.commitment_id, a.lease_id, a.kind, a.project, "
                      "a.environment, a.model, a.purchase_model, a.tariff, a.price_window, "
                      "a.rate_card_id, a.currency, a.unit_price, a.milli_ce_ms, a.list, a.net, "
                      "a.seq, a.model_version, a.month_end_ms, a.reservation_id, a.task_id, "
                      "a.region, "
                      "CASE WHEN a.task_id IS NULL THEN coalesce(a.tags, c.tags, r.tags) END "
                      "FROM adjustments a LEFT JOIN commitments c ON c.id = a.commitment_id "
                      "LEFT JOIN reservations r ON r.id = a.reservation_id "
                      "WHERE a.tenant_id = ? AND a.from_ms >= ? AND a.from_ms < ? "
                      "ORDER BY a.from_ms, a.seq, a.position"));
  query.bind_all(number(tenant), from.ms, to.ms);
  return read_all(query, [](const Statement& statement) -> Result<AdjustmentRow> {
    Columns columns(statement);
    AdjustmentRow row;
    row.from = columns.instant();
    row.to = columns.instant();
    row.commitment = columns.id<CommitmentId>();
    row.lease = columns.id<LeaseId>();
    LineKey& key = row.line.key;
    key.kind = columns.enumerator<InvoiceLineKind>();
    key.project = columns.text();
    key.environment = columns.text();
    key.model = columns.text();
    key.purchase_model = columns.enumerator<PurchaseModel>();
    key.tariff = columns.enumerator<Tariff>();
    key.window = columns.text();
    row.line.card = columns.id<RateCardId>();
    const Currency currency = columns.currency();
    key.unit_price = columns.money(currency);
    row.line.milli_ce_ms = columns.integer();
    row.line.list = columns.money(currency);
    row.line.net = columns.money(currency);
    row.sequence = static_cast<std::uint64_t>(columns.integer());
    key.model_version = columns.text();
    row.line.month_end = columns.instant();
    row.reservation = columns.id<ReservationId>();
    row.task = columns.id<TaskId>();
    row.region = columns.text();
    if (!columns.is_null()) {
      LOAM_TRY(tags, read_tags(columns.text()));
      row.tags = std::move(tags);
    }
    LOAM_CHECK(columns.done("an adjustment"));
    return row;
  });
}

Result<std::vector<ReservationRow>> Queries::reservations(TenantId tenant) {
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query,
           database->prepare(
               "SELECT id, tenant_id, project, environment, model, model_version, tariff, "
               "billable_milli_ce, isolation, devices, from_ms, to_ms, made_ms, charged_to_ms, "
               "currency, held, ended_ms, ended_as, reason, tags FROM reservations WHERE ?1 IS "
               "NULL OR "
               "tenant_id = ?1 ORDER BY id"));
  query.bind_all(tenant.valid() ? std::optional(number(tenant)) : std::optional<std::int64_t>());
  return read_all(query, [](const Statement& statement) -> Result<ReservationRow> {
    Columns columns(statement);
    ReservationRow row;
    Reservation& r = row.reservation;
    r.id = columns.id<ReservationId>();
    r.tenant = columns.id<TenantId>();
    r.order.attribution.project = columns.text();
    r.order.attribution.environment = columns.text();
    r.order.attribution.model = columns.text();
    r.order.attribution.model_version = columns.text();
    r.order.tariff = columns.enumerator<Tariff>();
    r.billable_ce = columns.quantity<MilliCeUnit>();
    r.isolation = columns.enumerator<Isolation>();
    row.devices = columns.text();
    r.order.from = columns.instant();
    r.order.to = columns.instant();
    row.made_at = columns.instant();
    r.charged_to = columns.instant();
    const Currency currency = columns.currency();
    r.held = columns.money(currency);
    if (const auto ended_ms = columns.optional_integer()) r.ended_at = Instant{*ended_ms};
    if (columns.is_null()) {
      columns.skip();
    } else {
      row.end = columns.enumerator<ReservationEnd>();
    }
    row.reason = columns.text();
    LOAM_TRY(tags, read_tags(columns.text()));
    r.order.attribution.tags = std::move(tags);
    LOAM_CHECK(columns.done("reservation " + r.id.text()));
    return row;
  });
}

Result<std::vector<CreditNoteRow>> Queries::credit_notes(const CreditNoteFilter& filter) {
  const auto optional_number = [](auto id) {
    return id.valid() ? std::optional(number(id)) : std::optional<std::int64_t>();
  };
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(
                      "SELECT id, invoice_id, tenant_id, currency, issued_ms, net, total, "
                      "reason FROM credit_notes WHERE (?1 IS NULL OR tenant_id = ?1) AND (?2 IS "
                      "NULL OR invoice_id = ?2) AND (?3 IS NULL OR id = ?3) ORDER BY id"));
  query.bind_all(optional_number(filter.tenant), optional_number(filter.invoice),
                 optional_number(filter.only));
  LOAM_TRY(taxes, database->prepare("SELECT name, parts_per_million, base, amount FROM "
                                    "credit_note_taxes WHERE note_id = ? ORDER BY position"));
  return read_all(query, [&](const Statement& statement) -> Result<CreditNoteRow> {
    Columns columns(statement);
    CreditNoteRow row;
    row.note.id = columns.id<CreditNoteId>();
    row.note.invoice = columns.id<InvoiceId>();
    row.note.tenant = columns.id<TenantId>();
    const Currency currency = row.note.currency = columns.currency();
    row.issued_at = columns.instant();
    row.note.net = columns.money(currency);
    row.note.total = columns.money(currency);
    row.note.reason = columns.text();
    LOAM_CHECK(columns.done("credit note " + row.note.id.text()));
    taxes.bind_all(number(row.note.id));
    LOAM_TRY(taxed, read_all(taxes, [&](const Statement& tax) { return read_tax(tax, currency); }));
    row.note.taxes = std::move(taxed);
    taxes.reset();
    return row;
  });
}

Result<std::vector<SpotPriceRow>> Queries::spot_prices(Currency currency, Instant from, Instant to,
                                                       std::int64_t limit) {
  if (limit < 1 || limit > page_max)
    return invalid("a page of " + std::to_string(limit) + " prices", "ask for 1 to 1000");
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(
                      "SELECT from_ms, price, supply_milli_ce, demand_milli_ce FROM spot_prices "
                      "WHERE currency = ?1 AND from_ms < ?3 AND from_ms >= coalesce((SELECT "
                      "max(from_ms) FROM spot_prices WHERE currency = ?1 AND from_ms <= ?2), ?2) "
                      "ORDER BY from_ms DESC LIMIT ?4"));
  query.bind_all(currency.code(), from.ms, to.ms, limit);
  return read_all(query, [&](const Statement& statement) -> Result<SpotPriceRow> {
    Columns columns(statement);
    SpotPriceRow row;
    row.from = columns.instant();
    row.price = columns.money(currency);
    row.supply = columns.quantity<MilliCeUnit>();
    row.demand = columns.quantity<MilliCeUnit>();
    LOAM_CHECK(columns.done("a spot price"));
    return row;
  });
}

Result<std::vector<BudgetNoticeRow>> Queries::budget_notices(const std::string& budget,
                                                             std::int64_t limit) {
  if (limit < 1 || limit > page_max)
    return invalid("a page of " + std::to_string(limit) + " notices", "ask for 1 to 1000");
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(
                      "SELECT at_ms, budget, kind, currency, spent, spending_limit, words FROM "
                      "budget_notices WHERE budget = ? ORDER BY seq DESC LIMIT ?"));
  query.bind_all(std::string_view(budget), limit);
  return read_all(query, [](const Statement& statement) -> Result<BudgetNoticeRow> {
    Columns columns(statement);
    BudgetNoticeRow row;
    row.notice.at = columns.instant();
    row.notice.budget = columns.text();
    row.notice.kind = columns.enumerator<BudgetNoticeKind>();
    const Currency currency = columns.currency();
    row.notice.spent = columns.money(currency);
    row.notice.limit = columns.money(currency);
    row.notice.words = columns.text();
    LOAM_CHECK(columns.done("a notice of budget " + row.notice.budget));
    return row;
  });
}

Result<std::vector<TransactionRow>> Queries::transactions(TenantId tenant, TransactionId after,
                                                          std::int64_t limit) {
  if (limit < 1 || limit > page_max)
    return invalid("a page of " + std::to_string(limit) + " transactions", "ask for 1 to 1000");
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(
      query,
      database->prepare(
          "SELECT id, at_ms, kind, tenant_id, task_id, reverses_id, note FROM transactions WHERE "
          "tenant_id = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3"));
  query.bind_all(number(tenant),
                 after.valid() ? std::optional(number(after)) : std::optional<std::int64_t>(),
                 limit);
  LOAM_TRY(rows, read_all(query, read_transaction));
  LOAM_TRY(postings, database->prepare("SELECT kind, tenant_id, currency, amount FROM postings "
                                       "WHERE transaction_id = ? ORDER BY position"));
  for (TransactionRow& row : rows) {
    postings.bind_all(number(row.transaction.id));
    LOAM_TRY(found, read_all(postings, read_posting));
    row.transaction.postings = std::move(found);
    postings.reset();
  }
  return rows;
}

Result<std::vector<Record>> Queries::records(std::uint64_t after,
                                             const std::vector<std::string>& types) {
  std::string names;
  for (const std::string& type : types) names += (names.empty() ? "[\"" : ",\"") + type + "\"";
  names += names.empty() ? "[]" : "]";
  LOAM_TRY(database, Borrowed::take(*this));
  LOAM_TRY(query, database->prepare(
                      "SELECT seq, at_ms, issuer, subject, type, version, payload FROM journal "
                      "WHERE seq > ? AND type IN (SELECT value FROM json_each(?)) ORDER BY seq"));
  query.bind_all(static_cast<std::int64_t>(after), std::string_view(names));
  return read_all(query, [](const Statement& row) -> Result<Record> {
    LOAM_TRY(event, decode(EncodedEvent{std::string(row.text(4)), static_cast<int>(row.integer(5)),
                                        std::string(row.text(6))}));
    return Record{static_cast<std::uint64_t>(row.integer(0)), row.instant(1),
                  Actor{std::string(row.text(2)), std::string(row.text(3))}, std::move(event)};
  });
}

}  // namespace loam::store

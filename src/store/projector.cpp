#include "store/projector.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <map>
#include <set>
#include <type_traits>

#include "billing/lease_rating.hpp"
#include "billing/price_table.hpp"
#include "store/measure_tables.hpp"
#include "store/schema.hpp"
#include "store/tags.hpp"

namespace loam::store {

namespace {

template <class Enum>
std::string_view name(Enum value) {
  return boost::describe::enum_to_string(value, "?");
}
template <class Tag>
std::int64_t number(Id<Tag> id) {
  return static_cast<std::int64_t>(id.value);
}
template <class Tag>
std::optional<std::int64_t> number_if(Id<Tag> id) {
  if (!id.valid()) return std::nullopt;
  return number(id);
}
template <class Unit>
std::optional<std::int64_t> value_if(const std::optional<Quantity<Unit>>& quantity) {
  if (!quantity) return std::nullopt;
  return quantity->value;
}
template <class Event, class... Of>
concept OneOf = (std::is_same_v<Event, Of> || ...);

}  // namespace

// One statement a member, in the order of the list below.
#define LOAM_PROJECTOR_STATEMENTS(X)                                                               \
  X(put_node,                                                                                      \
    "INSERT INTO nodes VALUES(?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET name=excluded.name, "     \
    "region=excluded.region, milli_cpu=excluded.milli_cpu, memory_mib=excluded.memory_mib")        \
  X(put_device,                                                                                    \
    "INSERT INTO devices VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,'healthy','',0,?) ON CONFLICT(id) DO "   \
    "UPDATE SET node_id=excluded.node_id, node_index=excluded.node_index, uuid=excluded.uuid, "    \
    "type=excluded.type, backend=excluded.backend, driver_version=excluded.driver_version, "       \
    "memory_mib=excluded.memory_mib, factors_source=excluded.factors_source, "                     \
    "general_milli_ce=excluded.general_milli_ce, train_milli_ce=excluded.train_milli_ce, "         \
    "prefill_milli_ce=excluded.prefill_milli_ce, decode_milli_ce=excluded.decode_milli_ce, "       \
    "health='healthy', health_reason=''")                                                          \
  X(set_health, "UPDATE devices SET health=?2, health_reason=?3 WHERE id=?1")                      \
  X(set_draining, "UPDATE devices SET draining=?2 WHERE id=?1")                                    \
  X(put_tenant,                                                                                    \
    "INSERT INTO tenants VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET "         \
    "name=excluded.name, payment=excluded.payment, currency=excluded.currency, "                   \
    "credit_limit=excluded.credit_limit, discount_basis_points=excluded.discount_basis_points, "   \
    "quota_milli_ce=excluded.quota_milli_ce, quota_memory_mib=excluded.quota_memory_mib, "         \
    "quota_tasks=excluded.quota_tasks, quota_queued=excluded.quota_queued, "                       \
    "billing_zone=excluded.billing_zone, invoicing=excluded.invoicing")                            \
  X(insert_card, "INSERT INTO rate_cards VALUES(?,?,?,?,?,?,?)")                                   \
  X(insert_task,                                                                                   \
    "INSERT INTO tasks VALUES(?1,?2,?3,'waiting','none',NULL,'',?4,?5,?6,?7,?8,?9,?10,?11,?12,"    \
    "?13,?14,?15,NULL,NULL,NULL,0,0,0,(SELECT currency FROM tenants WHERE id=?2),'0','0','0',"     \
    "'0',?16,?17,?18,?19,NULL,?20,max(?15,?21))")                                                  \
  X(grant_task, "UPDATE tasks SET state='starting', lease_id=?2, attempts=?3 WHERE id=?1")         \
  X(start_task,                                                                                    \
    "UPDATE tasks SET state=CASE WHEN state='starting' AND NOT EXISTS(SELECT 1 FROM leases l "     \
    "WHERE l.task_id=tasks.id AND l.started_ms IS NULL AND l.ended_ms IS NULL) "                   \
    "THEN 'running' ELSE state END, started_ms=coalesce(started_ms, ?2) "                          \
    "WHERE id=(SELECT task_id FROM leases WHERE id=?1)")                                           \
  X(stop_task,                                                                                     \
    "UPDATE tasks SET state='stopping' WHERE id=(SELECT task_id FROM leases WHERE id=?1)")         \
  X(rate_task,                                                                                     \
    "UPDATE tasks SET billed_ms=billed_ms+?3, list=money_add(list,?4), "                           \
    "discount=money_add(discount,?5), net=money_add(net,?6), tax=money_add(tax,?7) "               \
    "WHERE id=?1 AND currency=?2")                                                                 \
  X(end_task,                                                                                      \
    "UPDATE tasks SET run_ms=run_ms+(SELECT coalesce(?2-started_ms, 0) FROM leases WHERE id=?1), " \
    "output_milli=CASE WHEN ?3 IS NULL THEN output_milli ELSE coalesce(output_milli, 0)+?3 END "   \
    "WHERE id=(SELECT task_id FROM leases WHERE id=?1)")                                           \
  X(set_state, "UPDATE tasks SET state=?2, reason=?3 WHERE id=?1")                                 \
  X(requeue_task, "UPDATE tasks SET state='waiting', reason=?2, queued_ms=?3 WHERE id=?1")         \
  X(set_model, "UPDATE tasks SET purchase_model=?2 WHERE id=?1")                                   \
  X(finish_task,                                                                                   \
    "UPDATE tasks SET state='finished', outcome=?2, "                                              \
    "exit_code=CASE WHEN started_ms IS NULL THEN NULL ELSE ?3 END, reason=?4, finished_ms=?5 "     \
    "WHERE id=?1")                                                                                 \
  X(insert_lease,                                                                                  \
    "INSERT INTO leases SELECT ?1,?2,tenant_id,?3,?4,?5,?6,?7,NULL,NULL,NULL,'none',NULL,NULL,?8," \
    "'none',NULL,'',queued_ms,NULL,coalesce((SELECT n.region FROM devices d JOIN nodes n ON "      \
    "n.id=d.node_id WHERE d.id=?9), '') FROM tasks WHERE id=?2")                                   \
  X(start_lease, "UPDATE leases SET started_ms=?2, stop_at_ms=?3, isolation=?4 WHERE id=?1")       \
  X(stop_lease, "UPDATE leases SET stop_reason=?2 WHERE id=?1")                                    \
  X(end_lease,                                                                                     \
    "UPDATE leases SET ended_ms=?2, device_time_ms=max(coalesce(device_time_ms, 0), ?3), "         \
    "memory_peak_mib=?4, outcome=?5, "                                                             \
    "exit_code=CASE WHEN started_ms IS NULL THEN NULL ELSE ?6 END, reason=?7, output_milli=?8 "    \
    "WHERE id=?1")                                                                                 \
  X(measure_lease,                                                                                 \
    "UPDATE leases SET device_time_ms=max(coalesce(device_time_ms, 0), ?2) WHERE id=?1")           \
  X(insert_slice, "INSERT INTO slices VALUES(?,?,?,?,?)")                                          \
  X(insert_usage, "INSERT INTO usage VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")       \
  X(insert_transaction, "INSERT INTO transactions VALUES(?,?,?,?,?,?,?)")                          \
  X(insert_posting, "INSERT INTO postings VALUES(?,?,?,?,?,?,?)")                                  \
  X(insert_invoice,                                                                                \
    "INSERT INTO invoices VALUES(?,?,?,?,?,?,?,"                                                   \
    "(SELECT coalesce(max(id), 0) FROM usage),?,?,?,?,?,?,?,?,?,?)")                               \
  X(card_terms, "SELECT terms FROM rate_cards WHERE id=?")                                         \
  X(insert_line, "INSERT INTO invoice_lines VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")            \
  X(insert_tax, "INSERT INTO invoice_taxes VALUES(?,?,?,?,?,?)")                                   \
  X(insert_note, "INSERT INTO credit_notes VALUES(?,?,?,?,?,?,?,?,?)")                             \
  X(insert_note_tax, "INSERT INTO credit_note_taxes VALUES(?,?,?,?,?,?)")                          \
  X(insert_commitment,                                                                             \
    "INSERT INTO commitments VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,NULL,'',?,?,?)")                 \
  X(charge_commitment, "UPDATE commitments SET fees_charged=?2 WHERE id=?1")                       \
  X(end_commitment, "UPDATE commitments SET ended_ms=?2, reason=?3 WHERE id=?1")                   \
  X(insert_adjustment,                                                                             \
    "INSERT INTO adjustments VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,"   \
    "?18,?19,?20,?21,?22,?23,coalesce(?24,(SELECT task_id FROM leases WHERE id=?7)),?25,?26,"      \
    "coalesce((SELECT region FROM leases WHERE id=coalesce(?7,(SELECT lease_id FROM tasks WHERE "  \
    "id=?24))),(SELECT region FROM reservations WHERE id=?25),''))")                               \
  X(device_name,                                                                                   \
    "SELECT n.name || '/' || d.node_index, n.region FROM devices d JOIN nodes n ON "               \
    "n.id=d.node_id WHERE d.id=?")                                                                 \
  X(insert_reservation,                                                                            \
    "INSERT INTO reservations VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,NULL,NULL,'',?,?)")           \
  X(move_reservation, "UPDATE reservations SET devices=?2, reason=?3, region=?4 WHERE id=?1")      \
  X(charge_reservation,                                                                            \
    "UPDATE reservations SET charged_to_ms=max(charged_to_ms, ?2) WHERE id=?1")                    \
  X(end_reservation, "UPDATE reservations SET ended_ms=?2, ended_as=?3, reason=?4 WHERE id=?1")    \
  X(hold_reservation, "UPDATE reservations SET held=?2 WHERE id=?1")                               \
  X(pay_reserved,                                                                                  \
    "UPDATE reservations SET held=money_add(held,?2) WHERE id=(SELECT reservation_id FROM tasks "  \
    "WHERE id=?1 AND purchase_model='reservation') AND charged_to_ms < min(coalesce(ended_ms, "    \
    "to_ms), to_ms)")                                                                              \
  X(insert_spot, "INSERT INTO spot_prices VALUES(?,?,?,?,?)")                                      \
  X(insert_notice, "INSERT INTO budget_notices VALUES(?,?,?,?,?,?,?,?)")                           \
  X(set_mark, "UPDATE meta SET value=?2 WHERE key=?1")

// Whose an adjustment is, as far as it is told. The lease may be the line's own, and its task is
// known here; tags are of what has neither task nor commitment nor reservation.
struct LineOf {
  CommitmentId commitment{};
  LeaseId lease{};
  TaskId task{};
  ReservationId reservation{};
  std::optional<std::string> tags{};
};

struct Projector::Statements {
  explicit Statements(Database& owner) : database(owner) {}

#define LOAM_DECLARE_STATEMENT(member, sql) Statement member;
  LOAM_PROJECTOR_STATEMENTS(LOAM_DECLARE_STATEMENT)
#undef LOAM_DECLARE_STATEMENT

  Result<void> prepare_all() {
    LOAM_CHECK(add_money_functions(database));
#define LOAM_PREPARE_STATEMENT(member, sql)    \
  {                                            \
    LOAM_TRY(prepared, database.prepare(sql)); \
    member = std::move(prepared);              \
  }
    LOAM_PROJECTOR_STATEMENTS(LOAM_PREPARE_STATEMENT)
#undef LOAM_PREPARE_STATEMENT
    return measures.prepare(database);
  }

  // An update of a row that must be there: an event about a thing that was never made is damage.
  template <class... T>
  Result<void> update(Statement& statement, const std::string& what, const T&... values) {
    LOAM_CHECK(statement.run(values...));
    if (database.changes() == 1) return {};
    return Error{ErrorKind::corrupt, "the projections hold no row for " + what,
                 "check the journal with `loam verify`"};
  }

  Result<void> on(const Record& record, const NodeAttached& e) {
    return put_node.run(number(e.node), std::string_view(e.name), std::string_view(e.region),
                        e.cpu.value, e.memory.value, record.at);
  }

  Result<void> on(const Record& record, const DeviceAttached& e) {
    const DeviceFacts& facts = e.facts;
    LOAM_CHECK(put_device.run(number(e.device), number(e.node), static_cast<std::int64_t>(e.index),
                              std::string_view(facts.uuid), std::string_view(facts.type),
                              name(facts.backend), std::string_view(facts.driver_version),
                              facts.memory.value, std::string_view(facts.factors_source),
                              facts.factors.general.value, facts.factors.train.value,
                              facts.factors.prefill.value, facts.factors.decode.value, record.at));
    return measures.changed(e.device, record.at);
  }

  Result<void> on(const Record& record, const DeviceHealthChanged& e) {
    LOAM_CHECK(update(set_health, e.device.text(), number(e.device), name(e.health),
                      std::string_view(e.reason)));
    // What is lost gave nothing since its last sign of life.
    const bool lost = e.health == DeviceHealth::lost;
    return measures.changed(e.device, lost ? std::min(e.seen_at, record.at) : record.at);
  }

  Result<void> on(const Record& record, const DeviceDrainChanged& e) {
    LOAM_CHECK(update(set_draining, e.device.text(), number(e.device), std::int64_t{e.draining}));
    return measures.changed(e.device, record.at);
  }

  Result<void> on(const Record& record, const TokensUsed& e) {
    std::int64_t position = 0;
    for (const AdjustmentLine& line : e.charged)
      LOAM_CHECK(put(record, e.use.caller, ++position, line, e.use.from, e.use.to,
                     {.tags = tags_text(e.use.tags)}));
    for (const AdjustmentLine& line : e.earned)
      LOAM_CHECK(put(record, e.use.owner, ++position, line, e.use.from, e.use.to,
                     {.tags = tags_text(e.use.owner_tags)}));
    return {};
  }
  Result<void> put(const Record& record, TenantId tenant, const TenantSpec& spec) {
    const std::string limit = amount_text(spec.credit_limit);
    return put_tenant.run(number(tenant), std::string_view(spec.name), name(spec.payment),
                          spec.currency.code(), std::string_view(limit), spec.discount.value,
                          value_if(spec.quota.ce), value_if(spec.quota.memory), spec.quota.tasks,
                          spec.quota.queued, record.at, std::string_view(spec.billing_zone),
                          name(spec.invoicing));
  }
  Result<void> on(const Record& record, const TenantCreated& e) {
    return put(record, e.tenant, e.spec);
  }
  Result<void> on(const Record& record, const TenantChanged& e) {
    return put(record, e.tenant, e.spec);
  }

  Result<void> on(const Record& record, const RateCardPublished& e) {
    const std::string price = amount_text(e.card.on_demand);
    const std::string terms = billing::to_json(e.card.terms);
    return insert_card.run(number(e.card.id), e.card.effective_from, e.card.currency.code(),
                           std::string_view(price), e.card.ce_per_gibibyte.value,
                           std::string_view(terms), record.at);
  }

  Result<void> on(const Record& record, const TransactionPosted& e) {
    const Transaction& transaction = e.transaction;
    LOAM_CHECK(insert_transaction.run(number(transaction.id), record.at, name(transaction.kind),
                                      number(transaction.tenant), number_if(transaction.task),
                                      number_if(transaction.reverses),
                                      std::string_view(transaction.note)));
    std::int64_t position = 0;
    for (const Posting& posting : transaction.postings) {
      const std::string account = to_text(posting.account);
      const std::string amount = amount_text(posting.amount);
      LOAM_CHECK(insert_posting.run(number(transaction.id), ++position, std::string_view(account),
                                    name(posting.account.kind), number_if(posting.account.tenant),
                                    posting.amount.currency().code(), std::string_view(amount)));
      // Of a task on a reservation that is not charged to its end: from what is held for that.
      if (posting.account.kind == AccountKind::held && transaction.task.valid())
        LOAM_CHECK(pay_reserved.run(number(transaction.task), std::string_view(amount)));
    }
    return {};
  }

  Result<void> on(const Record& record, const TaskAccepted& e) {
    const TaskSpec& spec = *e.spec;
    const std::string actor = record.actor.issuer + ":" + record.actor.subject;
    return insert_task.run(
        number(e.task), number(e.tenant), std::string_view(spec.name),
        std::string_view(spec.attribution.project), std::string_view(spec.attribution.environment),
        std::string_view(spec.attribution.model), name(spec.purchase_model), name(spec.tariff),
        std::string_view(spec.service_class), value_if(spec.request.ce),
        value_if(spec.request.share), value_if(spec.request.memory), spec.request.devices,
        spec.limit.ms, record.at, std::string_view(actor),
        static_cast<std::int64_t>(record.sequence),
        std::string_view(spec.attribution.model_version), std::string_view(spec.group),
        number_if(spec.reservation), e.not_before.ms);
  }

  Result<void> on(const Record& record, const LeaseGranted& e) {
    LOAM_CHECK(update(insert_lease, e.task.text(), number(e.lease), number(e.task),
                      static_cast<std::int64_t>(e.epoch.value), e.ce.value, e.billable_ce.value,
                      name(e.isolation), record.at, e.rank,
                      number_if(e.slices.empty() ? DeviceId{} : e.slices.front().device)));
    std::int64_t position = 0;
    for (const Slice& slice : e.slices)
      LOAM_CHECK(insert_slice.run(number(e.lease), ++position, number(slice.device),
                                  slice.share.value, slice.memory.value));
    return update(grant_task, e.task.text(), number(e.task), number(e.lease),
                  static_cast<std::int64_t>(e.epoch.value));
  }

  Result<void> on(const Record&, const AttemptStarted& e) {
    LOAM_CHECK(update(start_lease, e.lease.text(), number(e.lease), e.started_at, e.stop_at,
                      name(e.isolation)));
    return update(start_task, e.lease.text(), number(e.lease), e.started_at);
  }

  Result<void> on(const Record&, const StopRequested& e) {
    LOAM_CHECK(update(stop_lease, e.lease.text(), number(e.lease), name(e.reason)));
    return update(stop_task, e.lease.text(), number(e.lease));
  }

  Result<void> on(const Record&, const UsageRated& e) {
    const UsageRecord& r = e.record;
    const std::string unit_price = amount_text(r.unit_price);
    const std::string list = amount_text(r.list);
    const std::string discount = amount_text(r.list - r.net);
    const std::string net = amount_text(r.net);
    LOAM_CHECK(insert_usage.run(
        number(r.id), number(r.lease), number(r.task), number(r.tenant), r.from, r.to,
        r.billable_ce.value, r.memory.value, number(r.card), name(r.purchase_model), name(r.tariff),
        std::string_view(r.window), r.billed.ms, r.tasks, r.tier_month, r.net.currency().code(),
        std::string_view(unit_price), std::string_view(list), std::string_view(discount),
        std::string_view(net), r.list_residue, r.net_residue, r.month_end));
    LOAM_TRY(taxed, tax_of(r));
    const std::string tax = amount_text(taxed);
    return update(rate_task, r.task.text() + " in " + std::string(r.net.currency().code()),
                  number(r.task), r.net.currency().code(), r.length().ms, std::string_view(list),
                  std::string_view(discount), std::string_view(net), std::string_view(tax));
  }

  // As it was charged: by the taxes of the card that priced the record.
  Result<Money> tax_of(const UsageRecord& record) {
    auto known = taxed_by.find(record.card);
    if (known == taxed_by.end()) {
      PriceTerms terms;
      card_terms.bind_all(number(record.card));
      LOAM_TRY(there, card_terms.step());
      if (there) {
        LOAM_TRY(read, billing::read_price_terms(card_terms.text(0)));
        terms.taxes = std::move(read.taxes);
      }
      card_terms.reset();
      known = taxed_by.emplace(record.card, std::move(terms)).first;
    }
    return billing::tax_on(known->second, record.net);
  }

  Result<void> on(const Record&, const LeaseEnded& e) {
    LOAM_CHECK(measures.measured(e));
    LOAM_CHECK(update(end_lease, e.lease.text(), number(e.lease), e.ended_at, e.device_time.ms,
                      e.memory_peak.value, name(e.verdict.outcome), e.verdict.exit_code,
                      std::string_view(e.verdict.reason), e.output));
    LOAM_CHECK(measures.left(e.lease, e.ended_at));
    return update(end_task, e.lease.text(), number(e.lease), e.ended_at, e.output);
  }

  Result<void> on(const Record& record, const TaskRequeued& e) {
    if (e.purchase_model)
      LOAM_CHECK(update(set_model, e.task.text(), number(e.task), name(*e.purchase_model)));
    return update(requeue_task, e.task.text(), number(e.task), std::string_view(e.reason),
                  record.at);
  }

  Result<void> on(const Record&, const TaskPaused& e) {
    return update(set_state, e.task.text(), number(e.task), name(TaskState::paused),
                  std::string_view());
  }

  Result<void> on(const Record& record, const TaskFinished& e) {
    return update(finish_task, e.task.text(), number(e.task), name(e.outcome), e.exit_code,
                  std::string_view(e.reason), record.at);
  }

  Result<void> on(const Record& record, const InvoiceIssued& e) {
    const Invoice& invoice = e.invoice;
    const std::string subtotal = amount_text(invoice.subtotal);
    const std::string total = amount_text(invoice.total);
    const std::string rounding = amount_text(invoice.rounding);
    const auto due = invoice.due ? std::optional(amount_text(*invoice.due)) : std::nullopt;
    LOAM_CHECK(insert_invoice.run(
        number(invoice.id), number(invoice.tenant), invoice.currency.code(), invoice.from,
        invoice.to, record.at, static_cast<std::int64_t>(record.sequence),
        std::string_view(subtotal), std::string_view(total), std::string_view(rounding),
        invoice.months_to, std::string_view(invoice.seller.name),
        std::string_view(invoice.seller.address), std::string_view(invoice.seller.tax_id),
        std::string_view(invoice.seller.terms), due, invoice.due_at));
    std::int64_t position = 0;
    for (const InvoiceLine& line : invoice.lines) {
      const std::string unit_price = amount_text(line.key.unit_price);
      const std::string list = amount_text(line.list);
      const std::string net = amount_text(line.net);
      const std::string payable = amount_text(line.payable);
      LOAM_CHECK(insert_line.run(
          number(invoice.id), ++position, name(line.key.kind), std::string_view(line.key.project),
          std::string_view(line.key.environment), std::string_view(line.key.model),
          name(line.key.purchase_model), name(line.key.tariff), std::string_view(line.key.window),
          std::int64_t{line.key.per_task}, std::string_view(unit_price), line.milli_ce_ms,
          line.tasks, std::string_view(list), std::string_view(net), std::string_view(payable),
          std::string_view(line.key.model_version)));
    }
    position = 0;
    for (const TaxLine& tax : invoice.taxes) {
      const std::string base = amount_text(tax.base);
      const std::string amount = amount_text(tax.amount);
      LOAM_CHECK(insert_tax.run(number(invoice.id), ++position, std::string_view(tax.name),
                                tax.parts_per_million, std::string_view(base),
                                std::string_view(amount)));
    }
    return {};
  }

  Result<void> on(const Record& record, const CreditNoteIssued& e) {
    const CreditNote& note = e.note;
    const std::string net = amount_text(note.net);
    const std::string tax = amount_text(note.total - note.net);
    const std::string total = amount_text(note.total);
    LOAM_CHECK(insert_note.run(number(note.id), number(note.invoice), number(note.tenant),
                               note.currency.code(), record.at, std::string_view(net),
                               std::string_view(tax), std::string_view(total),
                               std::string_view(note.reason)));
    std::int64_t position = 0;
    for (const TaxLine& line : note.taxes) {
      const std::string base = amount_text(line.base);
      const std::string amount = amount_text(line.amount);
      LOAM_CHECK(insert_note_tax.run(number(note.id), ++position, std::string_view(line.name),
                                     line.parts_per_million, std::string_view(base),
                                     std::string_view(amount)));
    }
    return {};
  }
  Result<void> on(const Record& record, const SpotPriceMoved& e) {
    const std::string price = amount_text(e.price);
    return insert_spot.run(e.currency.code(), record.at, std::string_view(price), e.supply.value,
                           e.demand.value);
  }
  Result<void> on(const Record& record, const BudgetNoticed& e) {
    const BudgetNotice& notice = e.notice;
    const std::string spent = amount_text(notice.spent);
    const std::string limit = amount_text(notice.limit);
    return insert_notice.run(static_cast<std::int64_t>(record.sequence), record.at,
                             std::string_view(notice.budget), name(notice.kind),
                             notice.spent.currency().code(), std::string_view(spent),
                             std::string_view(limit), std::string_view(notice.words));
  }

  Result<void> on(const Record& record, const CommitmentBought& e) {
    const Commitment& c = e.commitment;
    const std::string unit_price = amount_text(c.terms.unit_price);
    const std::string spend = amount_text(c.terms.spend);
    return insert_commitment.run(
        number(c.id), number(c.tenant), std::string_view(c.attribution.project),
        std::string_view(c.attribution.environment), std::string_view(c.attribution.model),
        c.terms.ce.value, c.terms.months, c.terms.from, c.terms.to, record.at, number(c.terms.card),
        c.terms.unit_price.currency().code(), std::string_view(unit_price),
        static_cast<std::int64_t>(c.terms.fees.size()),
        std::string_view(c.attribution.model_version), std::string_view(spend),
        std::string_view(tags_text(c.attribution.tags)));
  }
  Result<void> on(const Record& record, const CommitmentCharged& e) {
    LOAM_CHECK(put(record, e.tenant, 1, e.line, e.from, e.to, {.commitment = e.commitment}));
    return update(charge_commitment, e.commitment.text(), number(e.commitment), e.fee + 1);
  }
  Result<void> on(const Record&, const CommitmentEnded& e) {
    return update(end_commitment, e.commitment.text(), number(e.commitment), e.at,
                  std::string_view(e.reason));
  }
  Result<void> on(const Record& record, const UseCovered& e) {
    std::int64_t position = 0;
    for (const AdjustmentLine& line : e.lines)
      LOAM_CHECK(put(record, e.tenant, ++position, line, e.hour, e.hour + Duration::hours(1), {}));
    return {};
  }

  // "n1/0 0.6, n1/1 1": the devices and how much of each.
  struct Places {
    std::string devices;  // "n1/0 0.6, n1/1 1"
    std::string region;   // of all of them; empty where they are in several
  };
  Result<Places> places_of(const std::vector<PromisedMember>& members) {
    Places places;
    std::set<std::string> regions;
    for (const PromisedMember& member : members) {
      for (const PromisedSlice& slice : member.slices) {
        device_name.bind_all(number(slice.device));
        LOAM_TRY(there, device_name.step());
        const std::string device = there ? std::string(device_name.text(0)) : slice.device.text();
        regions.insert(there ? std::string(device_name.text(1)) : std::string());
        device_name.reset();
        places.devices += (places.devices.empty() ? "" : ", ") + device + " " +
                          decimal_text(slice.share.value, 3);
      }
    }
    if (regions.size() == 1) places.region = *regions.begin();
    return places;
  }
  Result<void> on(const Record& record, const ReservationMade& e) {
    const Reservation& r = e.reservation;
    const Attribution& who = r.order.attribution;
    const std::string held = amount_text(r.held);
    LOAM_TRY(places, places_of(r.members));
    return insert_reservation.run(
        number(r.id), number(r.tenant), std::string_view(who.project),
        std::string_view(who.environment), std::string_view(who.model),
        std::string_view(who.model_version), name(r.order.tariff), r.billable_ce.value,
        name(r.isolation), std::string_view(places.devices), r.order.from, r.order.to, record.at,
        r.charged_to, r.held.currency().code(), std::string_view(held),
        std::string_view(tags_text(who.tags)), std::string_view(places.region));
  }
  Result<void> on(const Record&, const ReservationMoved& e) {
    LOAM_TRY(places, places_of(e.members));
    return update(move_reservation, e.reservation.text(), number(e.reservation),
                  std::string_view(places.devices), std::string_view(e.reason),
                  std::string_view(places.region));
  }
  Result<void> on(const Record& record, const ReservationCharged& e) {
    std::int64_t position = 0;
    for (const AdjustmentLine& line : e.lines)
      LOAM_CHECK(
          put(record, e.tenant, ++position, line, e.from, e.to, {.reservation = e.reservation}));
    return update(charge_reservation, e.reservation.text(), number(e.reservation), e.to);
  }
  Result<void> on(const Record&, const ReservationEnded& e) {
    return update(end_reservation, e.reservation.text(), number(e.reservation), e.at, name(e.end),
                  std::string_view(e.reason));
  }
  Result<void> on(const Record&, const ReservationHeld& e) {
    const std::string held = amount_text(e.held);
    return update(hold_reservation, e.reservation.text(), number(e.reservation),
                  std::string_view(held));
  }

  Result<void> on(const Record& record, const ShortfallCredited& e) {
    return put(record, e.tenant, 1, e.line, e.from, e.to, {.lease = e.lease, .task = e.task});
  }
  Result<void> put(const Record& record, TenantId tenant, std::int64_t position,
                   const AdjustmentLine& line, Instant from, Instant to, const LineOf& of) {
    const std::string unit_price = amount_text(line.key.unit_price);
    const std::string list = amount_text(line.list);
    const std::string net = amount_text(line.net);
    return insert_adjustment.run(
        static_cast<std::int64_t>(record.sequence), position, record.at, number(tenant),
        name(line.key.kind), number_if(of.commitment),
        number_if(of.lease.valid() ? of.lease : line.lease), from, to,
        std::string_view(line.key.project), std::string_view(line.key.environment),
        std::string_view(line.key.model), name(line.key.purchase_model), name(line.key.tariff),
        std::string_view(line.key.window), number(line.card), line.net.currency().code(),
        std::string_view(unit_price), line.milli_ce_ms, std::string_view(list),
        std::string_view(net), std::string_view(line.key.model_version), line.month_end,
        number_if(of.task), number_if(of.reservation), of.tags);
  }
  Result<void> on(const Record& record, const ServicesUsed& e) {
    std::int64_t position = 0;
    for (const AdjustmentLine& line : e.lines)
      LOAM_CHECK(put(record, e.tenant, ++position, line, e.from, e.to,
                     {.lease = e.lease, .task = e.task}));
    if (!e.lease.valid() || !e.device_time) return {};
    LOAM_CHECK(measures.measured(e));
    return update(measure_lease, e.lease.text(), number(e.lease), e.device_time->ms);
  }
  Result<void> on(const Record& record, const LostWorkCredited& e) {
    return put(record, e.tenant, 1, e.line, e.from, e.to, {.lease = e.lease, .task = e.task});
  }
  // What lives in the state and its snapshots alone: nobody asks the tables for it.
  template <OneOf<HoldsReviewed, BudgetSet, BudgetRemoved, BudgetApproved, RequestRecorded,
                  RequestsForgotten, SchedulingSet, TaskPromised, PromiseDropped, NodeMarked,
                  SellerSet, SpotPlanned, SpotSighted, MoveBegun>
                Event>
  Result<void> on(const Record&, const Event&) {
    return {};
  }
  Result<void> on(const Record&, const TaskLate& e) {
    return update(set_model, e.task.text(), number(e.task), name(e.purchase_model));
  }
  Result<void> on(const Record&, const DeadlineNoticed& e) {
    return update(set_model, e.task.text(), number(e.task), name(PurchaseModel::on_demand));
  }

  Database& database;
  MeasureTables measures;
  std::map<RateCardId, PriceTerms> taxed_by;  // of cards, their taxes alone
};

Projector::Projector(std::unique_ptr<Statements> statements) : statements_(std::move(statements)) {}
Projector::Projector(Projector&&) noexcept = default;
Projector& Projector::operator=(Projector&&) noexcept = default;
Projector::~Projector() = default;

Result<Projector> Projector::prepare(Database& database) {
  auto statements = std::make_unique<Statements>(database);
  LOAM_CHECK(statements->prepare_all());
  return Projector(std::move(statements));
}

Result<void> Projector::apply(const Record& record) {
  return std::visit([&](const auto& event) { return statements_->on(record, event); },
                    record.event);
}

Result<void> Projector::mark(std::uint64_t sequence) {
  const std::string text = std::to_string(sequence);
  return statements_->set_mark.run(meta_key::projection_sequence, std::string_view(text));
}

}  // namespace loam::store

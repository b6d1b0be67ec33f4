#include "sim/story.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <set>

#include "billing/attribution.hpp"

namespace loam::sim {
namespace {

template <class E>
std::string text_of(E value) {
  return boost::describe::enum_to_string(value, "?");
}

Line line_of(std::vector<Word> words) {
  Line line;
  line.indented = true;
  line.words = std::move(words);
  return line;
}

Line money_line(std::string name, Money amount) {
  return line_of({plain(std::move(name)), plain(amount_text(amount)),
                  plain(std::string(amount.currency().code()))});
}

constexpr int ce_second_decimals = 6;  // milli-CE × ms

}  // namespace

std::vector<Word> canonical(std::vector<Word> words) {
  if (words.size() < 3 || words[0].text != "finish" || !words[2].key.empty()) return words;
  const std::string& outcome = words[2].text;
  if (outcome == "succeeded") {
    words.erase(words.begin() + 2);
  } else if (outcome == "failed" || outcome == "refused" || outcome == "device_lost") {
    words[0].text = "fail";
  }
  return words;
}

Word plain(std::string text) {
  return {{}, std::move(text), 1};
}
Word attribute(std::string key, std::string text) {
  return {std::move(key), std::move(text), 1};
}

void Story::add(Instant at, std::vector<Word> words, bool aside) {
  happenings_.push_back({at, std::move(words), aside, false});
}

TaskId Story::task_named(const std::string& name) const {
  const auto found = task_ids_.find(name);
  return found == task_ids_.end() ? TaskId{} : found->second;
}

Story::LastLease Story::last_lease(TaskId task) const {
  const auto found = leases_.find(task);
  return found == leases_.end() ? LastLease{} : found->second;
}

std::string Story::name_of(TaskId task) const {
  const auto found = task_names_.find(task);
  return found == task_names_.end() ? task.text() : found->second;
}

TenantId Story::tenant_named(const std::string& name) const {
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (tenants_[i].name == name) return TenantId{i + 1};
  }
  return TenantId{};
}

std::string Story::device_named(DeviceId device) const {
  return devices_.at(device.value - 1);
}

void Story::hear(const Record& record, Instant true_time) {
  if (const auto* node = std::get_if<NodeAttached>(&record.event)) {
    nodes_.push_back(node->name);
  } else if (const auto* device = std::get_if<DeviceAttached>(&record.event)) {
    if (device->device.value > devices_.size()) devices_.resize(device->device.value);
    devices_[device->device.value - 1] =
        nodes_.at(device->node.value - 1) + "/" + std::to_string(device->index);
  } else if (const auto* tenant = std::get_if<TenantCreated>(&record.event)) {
    tenants_.push_back(tenant->spec);
  } else if (const auto* task = std::get_if<TaskAccepted>(&record.event)) {
    task_ids_[task->spec->name] = task->task;
    task_names_[task->task] = task->spec->name;
  } else if (const auto* usage = std::get_if<UsageRated>(&record.event)) {
    usage_.push_back(usage->record);
  } else if (const auto* posted = std::get_if<TransactionPosted>(&record.event)) {
    const TransactionKind kind = posted->transaction.kind;
    if (kind == TransactionKind::top_up || kind == TransactionKind::payout)
      payments_[posted->transaction.tenant] = posted->transaction.id;
    for (const Posting& posting : posted->transaction.postings) {
      Account account = posting.account;
      // By tenant, so that a ledger can say what a tenant was charged.
      if (account.kind != AccountKind::cash) account.tenant = posted->transaction.tenant;
      const auto [sum, fresh] = balances_.try_emplace(account, posting.amount);
      if (!fresh) sum->second += posting.amount;
    }
  }
  std::visit([&](const auto& event) { tell(event, true_time); }, record.event);
}

const std::string& Story::tenant_name(TenantId tenant) const {
  return tenants_.at(tenant.value - 1).name;
}

// Commitments and shortfalls: what is charged or given back besides usage.
void Story::tell(const CommitmentBought& event, Instant at) {
  const CommitmentTerms& terms = event.commitment.terms;
  add(at,
      {plain("commitment"), plain(tenant_name(event.commitment.tenant)), plain("bought"),
       attribute("id", event.commitment.id.text()), attribute("ce", to_text(terms.ce)),
       attribute("spend", amount_text(terms.spend)), attribute("from", to_text(terms.from)),
       attribute("to", to_text(terms.to))},
      false);
}

void Story::tell(const CommitmentCharged& event, Instant at) {
  adjustments_.emplace_back(event.tenant, event.line);
  add(at,
      {plain("commitment"), plain(tenant_name(event.tenant)), plain("charged"),
       attribute("id", event.commitment.text()), attribute("net", amount_text(event.line.net))},
      false);
}

void Story::tell(const ServicesUsed& event, Instant at) {
  for (const AdjustmentLine& line : event.lines) adjustments_.emplace_back(event.tenant, line);
  std::vector<Word> words{plain("services"), plain(task_names_.at(event.task))};
  words.push_back(attribute("for", to_text(event.to - event.from)));
  if (event.use.storage_mib_ms > 0)
    words.push_back(attribute("mib_seconds", decimal_text(event.use.storage_mib_ms, 3)));
  if (const std::int64_t bytes = event.use.received_bytes + event.use.sent_bytes; bytes > 0)
    words.push_back(attribute("bytes", std::to_string(bytes)));
  if (event.kept.value > 0) words.push_back(attribute("kept", to_text(event.kept)));
  if (event.backed_up.value > 0) words.push_back(attribute("backed_up", to_text(event.backed_up)));
  if (event.device_time) words.push_back(attribute("busy", to_text(*event.device_time)));
  add(at, std::move(words), false);
}

void Story::tell(const CommitmentEnded& event, Instant at) {
  add(at,
      {plain("commitment"), plain(tenant_name(event.tenant)), plain("ended"),
       attribute("id", event.commitment.text()), attribute("at", to_text(event.at))},
      false);
}

void Story::tell(const UseCovered& event, Instant at) {
  Money net = Money::zero(tenants_.at(event.tenant.value - 1).currency);
  for (const AdjustmentLine& line : event.lines) {
    adjustments_.emplace_back(event.tenant, line);
    net += line.net;
  }
  add(at,
      {plain("covered"), plain(tenant_name(event.tenant)), attribute("hour", to_text(event.hour)),
       attribute("net", amount_text(net))},
      true);
}

// "n1/0,n1/1": each once, in the order of its members.
std::string Story::devices_of(const std::vector<PromisedMember>& members) const {
  std::set<DeviceId> seen;
  std::string names;
  for (const PromisedMember& member : members) {
    for (const PromisedSlice& slice : member.slices) {
      if (seen.insert(slice.device).second)
        names += (names.empty() ? "" : ",") + device_named(slice.device);
    }
  }
  return names;
}

void Story::tell(const ReservationMade& event, Instant at) {
  const Reservation& reservation = event.reservation;
  add(at,
      {plain("reserve"), plain(tenant_name(reservation.tenant)), plain("made"), plain("on"),
       plain(devices_of(reservation.members)), attribute("id", reservation.id.text()),
       attribute("ce", to_text(reservation.billable_ce)),
       attribute("from", to_text(reservation.order.from - start_)),
       attribute("to", to_text(reservation.order.to - start_)),
       attribute("held", amount_text(reservation.held))},
      false);
}

void Story::tell(const ReservationMoved& event, Instant at) {
  add(at,
      {plain("reserve"), plain(tenant_name(event.tenant)), plain("moved"), plain("on"),
       plain(devices_of(event.members)), attribute("id", event.reservation.text()),
       attribute("reason", event.reason)},
      false);
}

void Story::tell(const ReservationCharged& event, Instant at) {
  if (event.lines.empty()) return;
  Money net = Money::zero(tenants_.at(event.tenant.value - 1).currency);
  Int128 unused = 0;
  Int128 beyond = 0;
  for (const AdjustmentLine& line : event.lines) {
    adjustments_.emplace_back(event.tenant, line);
    net += line.net;
    (line.key.kind == InvoiceLineKind::unused ? unused : beyond) += line.milli_ce_ms;
  }
  const auto ce_seconds = [](Int128 milli_ce_ms) {
    return decimal_text(static_cast<std::int64_t>(milli_ce_ms), ce_second_decimals);
  };
  add(at,
      {plain("reserve"), plain(tenant_name(event.tenant)), plain("charged"),
       attribute("id", event.reservation.text()), attribute("from", to_text(event.from - start_)),
       attribute("to", to_text(event.to - start_)), attribute("unused", ce_seconds(unused)),
       attribute("beyond", ce_seconds(-beyond)), attribute("net", amount_text(net))},
      true);
}

void Story::tell(const ReservationEnded& event, Instant at) {
  add(at,
      {plain("reserve"), plain(tenant_name(event.tenant)), plain("ended"),
       plain(text_of(event.end)), attribute("id", event.reservation.text()),
       attribute("at", to_text(event.at - start_)), attribute("reason", event.reason)},
      false);
}

void Story::tell(const ShortfallCredited& event, Instant at) {
  adjustments_.emplace_back(event.tenant, event.line);
  add(at,
      {plain("shortfall"), plain(name_of(event.task)),
       attribute("from", to_text(event.from - start_)), attribute("to", to_text(event.to - start_)),
       attribute("net", amount_text(event.line.net))},
      false);
}

void Story::tell(const LostWorkCredited& event, Instant at) {
  adjustments_.emplace_back(event.tenant, event.line);
  add(at,
      {plain("lost_work"), plain(name_of(event.task)), plain(text_of(event.cause)),
       attribute("from", to_text(event.from - start_)), attribute("to", to_text(event.to - start_)),
       attribute("net", amount_text(event.line.net))},
      false);
}

// Money that goes out of a wallet, or a payment that is turned round; the rest is in the ledger.
void Story::tell(const TransactionPosted& event, Instant at) {
  const Transaction& transaction = event.transaction;
  if (transaction.kind != TransactionKind::payout && transaction.kind != TransactionKind::reversal)
    return;
  add(at,
      {plain(text_of(transaction.kind)), plain(tenant_name(transaction.tenant)),
       attribute("id", transaction.id.text()),
       attribute("amount", amount_text(transaction.postings.back().amount))},
      false);
}

void Story::tell(const LeaseGranted& event, Instant at) {
  leases_[event.task] = {event.lease, event.epoch};
  tasks_[event.lease] = event.task;
  const Slice& slice = event.slices.front();
  std::vector<Word> words{
      plain("start"),
      plain(name_of(event.task)),
      plain("on"),
      plain(device_named(slice.device)),
      attribute("share", to_text(slice.share)),
      attribute("memory", to_text(slice.memory)),
      attribute("ce", to_text(event.ce)),
      attribute("billable", to_text(event.billable_ce)),
      attribute("isolation", text_of(event.isolation)),
      attribute("epoch", std::to_string(event.epoch.value)),
      attribute("promised", to_text(slice.promised())),
      attribute("memory_promised", to_text(slice.memory_promised())),
  };
  if (event.slices.size() > 1) {
    std::string devices;
    for (const Slice& one : event.slices)
      devices += (devices.empty() ? "" : ",") + device_named(one.device);
    words.push_back(attribute("devices", devices));
  }
  add(at, std::move(words), false);
}

void Story::tell(const AttemptStarted& event, Instant at) {
  add(at, {plain("run"), plain(name_of(tasks_.at(event.lease)))}, true);
}

void Story::tell(const StopRequested& event, Instant at) {
  add(at, {plain("stop"), plain(name_of(tasks_.at(event.lease))), plain(text_of(event.reason))},
      true);
}

void Story::tell(const TaskPromised& event, Instant at) {
  const bool leaving = event.leaving;
  add(at,
      {plain(leaving ? "clear" : "plan"), plain(name_of(event.task)), plain("at"),
       plain(to_text(event.start - start_))},
      !leaving);
}

void Story::tell(const NodeMarked& event, Instant at) {
  const bool off = event.until == Instant{};
  std::vector<Word> words{plain(off ? "unmark" : "mark"), plain(nodes_.at(event.node.value - 1))};
  if (!off) words.push_back(attribute("until", to_text(event.until - start_)));
  add(at, std::move(words), true);
}

void Story::tell(const PromiseDropped& event, Instant at) {
  add(at, {plain("drop"), plain(name_of(event.task))}, false);
}

void Story::tell(const MoveBegun& event, Instant at) {
  add(at,
      {plain("move"), plain(name_of(event.task)), plain("to"), plain(devices_of(event.members)),
       attribute("for", name_of(event.asker)), attribute("lost", to_text(event.lost))},
      false);
}

void Story::tell(const TaskRequeued& event, Instant at) {
  const bool resumed = event.cause == RequeueCause::resumed;
  std::vector<Word> words{plain(resumed ? "resume" : "requeue"), plain(name_of(event.task))};
  if (event.cause != RequeueCause::resumed && event.cause != RequeueCause::lost)
    words.push_back(plain(text_of(event.cause)));
  if (event.purchase_model) words.push_back(attribute("purchase", text_of(*event.purchase_model)));
  add(at, std::move(words), false);
}

void Story::tell(const TaskLate& event, Instant at) {
  std::vector<Word> words{plain("late"), plain(name_of(event.task)), plain(text_of(event.kind))};
  if (event.kind == LateStepKind::larger_queue) words.push_back(attribute("queue", event.queue));
  if (event.kind == LateStepKind::split)
    words.push_back(attribute("parts", std::to_string(event.parts)));
  add(at, std::move(words), false);
}

void Story::quoted(Instant at, const std::string& tenant, const engine::QuoteAnswer& answer) {
  if (answer.reject) {
    add(at,
        {plain("reject"), plain("quote"), plain(text_of(answer.reject->code)),
         attribute("message", answer.reject->message)},
        false);
    return;
  }
  const engine::Quote& quote = *answer.quote;
  const auto after = [&](const std::optional<Instant>& instant) {
    return instant ? to_text(*instant - start_) : "-";
  };
  std::vector<Word> words{
      {plain("quote"), plain(tenant), attribute("device", quote.device),
       attribute("share", to_text(quote.share)), attribute("memory", to_text(quote.memory)),
       attribute("ce", to_text(quote.ce)), attribute("billable", to_text(quote.billable_ce)),
       attribute("price", amount_text(quote.unit_price)),
       attribute("per_hour", amount_text(quote.per_hour)),
       attribute("at_most", amount_text(quote.at_most)),
       attribute("starts_now", quote.starts_now ? "yes" : "no"),
       attribute("room_by", after(quote.room_by)), attribute("turns", after(quote.turns_at)),
       attribute("best", amount_text(quote.best)),
       attribute("expected", amount_text(quote.expected)),
       attribute("worst", amount_text(quote.worst)),
       attribute("isolation", text_of(quote.isolation))}};
  if (!quote.takes.empty()) words.push_back(attribute("takes", quote.takes));
  if (!quote.promise.empty()) words.push_back(attribute("promise", quote.promise));
  add(at, std::move(words), true);
}

void Story::tell(const DeadlineNoticed& event, Instant at) {
  add(at, {plain("deadline"), plain(name_of(event.task)), plain(text_of(event.kind))}, false);
}

void Story::tell(const TaskPaused& event, Instant at) {
  add(at, {plain("pause"), plain(name_of(event.task))}, false);
}

void Story::tell(const TaskFinished& event, Instant at) {
  const TaskOutcome outcome = event.outcome;
  const bool failed = outcome == TaskOutcome::failed || outcome == TaskOutcome::refused ||
                      outcome == TaskOutcome::device_lost;
  std::vector<Word> words{plain(failed ? "fail" : "finish"), plain(name_of(event.task))};
  if (outcome != TaskOutcome::succeeded) words.push_back(plain(text_of(outcome)));
  words.push_back(attribute("exit", std::to_string(event.exit_code)));
  words.push_back(attribute("reason", event.reason));
  add(at, std::move(words), false);
}

void Story::tell(const SpotPriceMoved& event, Instant at) {
  add(at,
      {plain("spot"), plain(amount_text(event.price)), plain(std::string(event.currency.code()))},
      true);
}

void Story::tell(const BudgetNoticed& event, Instant at) {
  add(at,
      {plain("budget"), plain(event.notice.budget), plain(text_of(event.notice.kind)),
       attribute("spent", amount_text(event.notice.spent)),
       attribute("limit", amount_text(event.notice.limit))},
      false);
}

void Story::tell(const CreditNoteIssued& event, Instant at) {
  add(at,
      {plain("credit"), plain(tenants_.at(event.note.tenant.value - 1).name),
       attribute("id", event.note.id.text()), attribute("total", amount_text(event.note.total))},
      false);
}

void Story::tell(const InvoiceIssued& event, Instant at) {
  invoices_[event.invoice.tenant] = event.invoice;
  add(at,
      {plain("invoice"), plain(tenants_.at(event.invoice.tenant.value - 1).name),
       attribute("id", event.invoice.id.text()),
       attribute("total", amount_text(event.invoice.total))},
      false);
}

std::vector<Line> Story::bill_of(TenantId tenant) const {
  std::vector<Line> lines;
  Money total = Money::zero(tenants_.at(tenant.value - 1).currency);
  for (const UsageRecord& usage : usage_) {
    if (usage.tenant != tenant) continue;
    total += usage.net;
    const bool back = usage.to < usage.from;
    const Duration length = back ? usage.from - usage.to : usage.to - usage.from;
    std::vector<Word> words{plain("usage"), plain(name_of(usage.task)),
                            attribute("from", to_text((back ? usage.to : usage.from) - start_)),
                            attribute("for", (back ? "-" : "") + to_text(length))};
    if (usage.billed != usage.to - usage.from && usage.tasks == 0) {
      const bool less = usage.billed.ms < 0;
      words.push_back(attribute(
          "billed",
          (less ? "-" : "") + to_text(Duration{less ? -usage.billed.ms : usage.billed.ms})));
    }
    if (!usage.window.empty()) words.push_back(attribute("window", usage.window));
    if (usage.purchase_model != PurchaseModel::on_demand)
      words.push_back(attribute("model", text_of(usage.purchase_model)));
    words.push_back(attribute("ce", to_text(usage.billable_ce)));
    words.push_back(attribute("price", amount_text(usage.unit_price)));
    words.push_back(attribute("list", amount_text(usage.list)));
    words.push_back(attribute("net", amount_text(usage.net)));
    lines.push_back(line_of(std::move(words)));
  }
  for (const auto& [of, adjustment] : adjustments_) {
    if (of != tenant) continue;
    total += adjustment.net;
    const InvoiceLineKind kind = adjustment.key.kind;
    const Word quantity =
        counts_held(kind) ? attribute("mib_seconds", decimal_text(adjustment.milli_ce_ms, 3))
        : kind == InvoiceLineKind::network
            ? attribute("bytes", std::to_string(adjustment.milli_ce_ms))
            : attribute("ce_seconds", decimal_text(adjustment.milli_ce_ms, ce_second_decimals));
    lines.push_back(line_of({plain(text_of(kind)),
                             plain(adjustment.key.project + "/" + adjustment.key.environment),
                             attribute("price", amount_text(adjustment.key.unit_price)), quantity,
                             attribute("net", amount_text(adjustment.net))}));
  }
  lines.push_back(money_line("total", total));
  return lines;
}

std::vector<Line> Story::ledger_of(TenantId tenant) const {
  const Currency currency = tenants_.at(tenant.value - 1).currency;
  const auto balance = [&](AccountKind kind) {
    const auto found = balances_.find({kind, tenant, currency});
    return found == balances_.end() ? Money::zero(currency) : found->second;
  };
  std::vector<Line> lines{money_line("wallet", balance(AccountKind::wallet)),
                          money_line("held", balance(AccountKind::held)),
                          money_line("charged", balance(AccountKind::revenue))};
  for (const AccountKind kind : {AccountKind::tax, AccountKind::rounding}) {
    if (const Money amount = balance(kind); !amount.is_zero())
      lines.push_back(money_line(text_of(kind), amount));
  }
  return lines;
}

TransactionId Story::last_payment(TenantId tenant) const {
  const auto found = payments_.find(tenant);
  return found == payments_.end() ? TransactionId{} : found->second;
}

InvoiceId Story::last_invoice(TenantId tenant) const {
  const auto found = invoices_.find(tenant);
  return found == invoices_.end() ? InvoiceId{} : found->second.id;
}

std::vector<Line> Story::issued_to(TenantId tenant) const {
  std::vector<Line> lines;
  const auto found = invoices_.find(tenant);
  if (found == invoices_.end()) return lines;
  // Of an invoice that ends with a month.
  if (found->second.to == found->second.months_to) {
    lines.push_back(line_of({plain("over"), attribute("from", to_text(found->second.from)),
                             attribute("to", to_text(found->second.to))}));
  }
  for (const InvoiceLine& line : found->second.lines) {
    lines.push_back(
        line_of({plain(line.key.kind == InvoiceLineKind::usage ? "line" : text_of(line.key.kind)),
                 plain(line.key.project + "/" + line.key.environment),
                 plain(text_of(line.key.purchase_model)),
                 attribute("model", billing::model_name(line.key.model, line.key.model_version)),
                 attribute("price", amount_text(line.key.unit_price)),
                 attribute("ce_seconds", decimal_text(line.milli_ce_ms, ce_second_decimals)),
                 attribute("net", amount_text(line.net)),
                 attribute("payable", amount_text(line.payable))}));
  }
  for (const TaxLine& tax : found->second.taxes) {
    lines.push_back(
        line_of({plain("tax"), plain(tax.name), attribute("base", amount_text(tax.base)),
                 attribute("amount", amount_text(tax.amount))}));
  }
  lines.push_back(money_line("total", found->second.total));
  return lines;
}

}  // namespace loam::sim

#include "sim/story.hpp"

#include <boost/describe/enum_to_string.hpp>

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
    task_ids_[task->spec.name] = task->task;
    task_names_[task->task] = task->spec.name;
  } else if (const auto* usage = std::get_if<UsageRated>(&record.event)) {
    usage_.push_back(usage->record);
  } else if (const auto* posted = std::get_if<TransactionPosted>(&record.event)) {
    for (const Posting& posting : posted->transaction.postings) {
      Account account = posting.account;
      // Revenue by tenant, so that a ledger can say what a tenant was charged.
      if (account.kind == AccountKind::revenue) account.tenant = posted->transaction.tenant;
      const auto [sum, fresh] = balances_.try_emplace(account, posting.amount);
      if (!fresh) sum->second += posting.amount;
    }
  }
  tell(record.event, true_time);
  tell_adjustment(record.event, true_time);
}

const std::string& Story::tenant_name(TenantId tenant) const {
  return tenants_.at(tenant.value - 1).name;
}

// Commitments and shortfalls: what is charged or given back besides usage.
void Story::tell_adjustment(const Event& event, Instant at) {
  if (const auto* bought = std::get_if<CommitmentBought>(&event)) {
    const CommitmentTerms& terms = bought->commitment.terms;
    add(at,
        {plain("commitment"), plain(tenant_name(bought->commitment.tenant)), plain("bought"),
         attribute("id", bought->commitment.id.text()), attribute("ce", to_text(terms.ce)),
         attribute("from", to_text(terms.from)), attribute("to", to_text(terms.to))},
        false);
  } else if (const auto* charged = std::get_if<CommitmentCharged>(&event)) {
    adjustments_.emplace_back(charged->tenant, charged->line);
    add(at,
        {plain("commitment"), plain(tenant_name(charged->tenant)), plain("charged"),
         attribute("id", charged->commitment.text()),
         attribute("net", amount_text(charged->line.net))},
        false);
  } else if (const auto* ended = std::get_if<CommitmentEnded>(&event)) {
    add(at,
        {plain("commitment"), plain(tenant_name(ended->tenant)), plain("ended"),
         attribute("id", ended->commitment.text()), attribute("at", to_text(ended->at))},
        false);
  } else if (const auto* covered = std::get_if<UseCovered>(&event)) {
    Money net = Money::zero(tenants_.at(covered->tenant.value - 1).currency);
    for (const AdjustmentLine& line : covered->lines) {
      adjustments_.emplace_back(covered->tenant, line);
      net += line.net;
    }
    add(at,
        {plain("covered"), plain(tenant_name(covered->tenant)),
         attribute("hour", to_text(covered->hour)), attribute("net", amount_text(net))},
        true);
  } else if (const auto* credited = std::get_if<ShortfallCredited>(&event)) {
    adjustments_.emplace_back(credited->tenant, credited->line);
    add(at,
        {plain("shortfall"), plain(name_of(credited->task)),
         attribute("from", to_text(credited->from - start_)),
         attribute("to", to_text(credited->to - start_)),
         attribute("net", amount_text(credited->line.net))},
        false);
  }
}

void Story::tell(const Event& event, Instant at) {
  if (const auto* granted = std::get_if<LeaseGranted>(&event)) {
    leases_[granted->task] = {granted->lease, granted->epoch};
    tasks_[granted->lease] = granted->task;
    const Slice& slice = granted->slices.front();
    add(at,
        {plain("start"), plain(name_of(granted->task)), plain("on"),
         plain(device_named(slice.device)), attribute("share", to_text(slice.share)),
         attribute("memory", to_text(slice.memory)), attribute("ce", to_text(granted->ce)),
         attribute("billable", to_text(granted->billable_ce)),
         attribute("isolation", text_of(granted->isolation)),
         attribute("epoch", std::to_string(granted->epoch.value))},
        false);
  } else if (const auto* started = std::get_if<AttemptStarted>(&event)) {
    add(at, {plain("run"), plain(name_of(tasks_.at(started->lease)))}, true);
  } else if (const auto* stop = std::get_if<StopRequested>(&event)) {
    add(at, {plain("stop"), plain(name_of(tasks_.at(stop->lease))), plain(text_of(stop->reason))},
        true);
  } else if (const auto* requeued = std::get_if<TaskRequeued>(&event)) {
    const bool resumed = requeued->cause == RequeueCause::resumed;
    add(at, {plain(resumed ? "resume" : "requeue"), plain(name_of(requeued->task))}, false);
  } else if (const auto* paused = std::get_if<TaskPaused>(&event)) {
    add(at, {plain("pause"), plain(name_of(paused->task))}, false);
  } else if (const auto* finished = std::get_if<TaskFinished>(&event)) {
    const TaskOutcome outcome = finished->outcome;
    const bool failed = outcome == TaskOutcome::failed || outcome == TaskOutcome::refused ||
                        outcome == TaskOutcome::device_lost;
    std::vector<Word> words{plain(failed ? "fail" : "finish"), plain(name_of(finished->task))};
    if (outcome != TaskOutcome::succeeded) words.push_back(plain(text_of(outcome)));
    words.push_back(attribute("exit", std::to_string(finished->exit_code)));
    words.push_back(attribute("reason", finished->reason));
    add(at, std::move(words), false);
  } else if (const auto* moved = std::get_if<SpotPriceMoved>(&event)) {
    add(at,
        {plain("spot"), plain(amount_text(moved->price)),
         plain(std::string(moved->currency.code()))},
        true);
  } else if (const auto* noticed = std::get_if<BudgetNoticed>(&event)) {
    add(at,
        {plain("budget"), plain(noticed->notice.budget), plain(text_of(noticed->notice.kind)),
         attribute("spent", amount_text(noticed->notice.spent)),
         attribute("limit", amount_text(noticed->notice.limit))},
        false);
  } else if (const auto* credited = std::get_if<CreditNoteIssued>(&event)) {
    add(at,
        {plain("credit"), plain(tenants_.at(credited->note.tenant.value - 1).name),
         attribute("id", credited->note.id.text()),
         attribute("total", amount_text(credited->note.total))},
        false);
  } else if (const auto* issued = std::get_if<InvoiceIssued>(&event)) {
    invoices_[issued->invoice.tenant] = issued->invoice;
    add(at,
        {plain("invoice"), plain(tenants_.at(issued->invoice.tenant.value - 1).name),
         attribute("id", issued->invoice.id.text()),
         attribute("total", amount_text(issued->invoice.total))},
        false);
  }
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
    lines.push_back(
        line_of({plain(text_of(adjustment.key.kind)),
                 plain(adjustment.key.project + "/" + adjustment.key.environment),
                 attribute("price", amount_text(adjustment.key.unit_price)),
                 attribute("ce_seconds", decimal_text(adjustment.milli_ce_ms, ce_second_decimals)),
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
  return {money_line("wallet", balance(AccountKind::wallet)),
          money_line("held", balance(AccountKind::held)),
          money_line("charged", balance(AccountKind::revenue))};
}

InvoiceId Story::last_invoice(TenantId tenant) const {
  const auto found = invoices_.find(tenant);
  return found == invoices_.end() ? InvoiceId{} : found->second.id;
}

std::vector<Line> Story::issued_to(TenantId tenant) const {
  std::vector<Line> lines;
  const auto found = invoices_.find(tenant);
  if (found == invoices_.end()) return lines;
  for (const InvoiceLine& line : found->second.lines) {
    lines.push_back(
        line_of({plain(line.key.kind == InvoiceLineKind::usage ? "line" : text_of(line.key.kind)),
                 plain(line.key.project + "/" + line.key.environment),
                 plain(text_of(line.key.purchase_model)), attribute("model", line.key.model),
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

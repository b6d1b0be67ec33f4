#include "app/loam/bill.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "app/loam/human.hpp"
#include "app/loam/table.hpp"
#include "base/money.hpp"
#include "billing/attribution.hpp"

namespace loam::cli {
namespace {

// One column of a table: amounts with as many decimals each, so that points align.
template <class Rows, class Amount>
std::vector<std::string> amounts(const Rows& rows, Amount amount, const std::string& total,
                                 const std::string& currency) {
  std::vector<std::string> column;
  for (const auto& row : rows) column.push_back(amount(row));
  if (!total.empty()) column.push_back(total);
  return money_column(column, currency);
}

// "13 s" where the seconds are whole.
std::string units_text(std::int64_t ms) {
  std::string text = exact_seconds(ms);
  constexpr std::string_view whole = ".000 s";
  if (text.ends_with(whole)) text.replace(text.size() - whole.size(), whole.size(), " s");
  return text;
}

bool begun_units_differ(const api::BillLine& line) {
  return line.tasks == 0 && line.units_ms != line.billed_ms;
}

std::string proof(const api::BillView& bill) {
  std::int64_t units_ms = 0;
  bool differ = false;
  for (const api::BillLine& line : bill.lines) {
    units_ms += line.tasks == 0 ? line.units_ms : 0;
    differ |= begun_units_differ(line);
  }
  std::string text = "billed " + exact_seconds(bill.billed_ms);
  text += bill.billed_ms == bill.run_ms ? " = " : ", ";
  text += "run " + exact_seconds(bill.run_ms);
  if (differ) text += ", priced as " + units_text(units_ms) + " in the units begun";
  if (bill.billed_equals_run) return text + ": every finished task is billed what it ran";
  const bool any_finished = std::any_of(bill.lines.begin(), bill.lines.end(),
                                        [](const auto& line) { return line.state == "finished"; });
  if (!any_finished) return text + ": no finished task yet";
  if (bill.whole_tasks == 0) return text + ": no finished task is here from beginning to end";
  return text + ": they DIFFER for finished tasks; tell your operator";
}

// As `loam ps` says it: how a finished task ended.
const std::string& state_of(const api::BillLine& line) {
  return line.state == "finished" ? line.outcome : line.state;
}

std::string of_what(const api::AdjustmentView& each) {
  if (each.kind == "credit_note") return each.note + " of " + each.invoice;
  if (each.kind == "rounding") return each.invoice;
  if (each.kind.ends_with("_tokens") || each.kind == "token_income") return each.model;
  for (const std::string* of : {&each.commitment, &each.reservation, &each.task}) {
    if (!of->empty()) return *of;
  }
  return each.lease;
}

// What is charged or given back, in words where its name says too little.
std::string kind_words(const std::string& kind, bool reserved) {
  if (kind == "unused") return "reserved, not used";
  return kind == "covered" && reserved ? "more than reserved" : kind;
}

std::string gib_words(const std::string& kind, const std::string& gib) {
  return gib + (is_held(kind) ? " GiB-hours" : " GiB");
}

std::string quantity_of(const api::AdjustmentView& each) {
  if (each.kind.ends_with("_tokens") || each.kind == "token_income")
    return std::to_string(each.tokens) + " tokens";
  if (!each.gib.empty()) return gib_words(each.kind, each.gib);
  return each.kind == "credit" || each.of_document() ? "" : each.ce_hours;
}

// Fees of commitments, what they cover, what was reserved and not used, and what else was given
// back: the total counts them.
std::string adjustments_text(const api::BillView& bill, bool colour, std::size_t width) {
  if (bill.adjustments.empty()) return "";
  Table table({{"BESIDES"},
               {"FROM (UTC)"},
               {"TO (UTC)"},
               {"PROJECT"},
               {"OF"},
               {"QUANTITY", Align::right},
               {"NET", Align::right}});
  const auto nets = amounts(
      bill.adjustments, [](const api::AdjustmentView& a) { return a.net; }, bill.total,
      bill.currency);
  std::size_t i = 0;
  for (const api::AdjustmentView& each : bill.adjustments) {
    table.add({kind_words(each.kind, !each.reservation.empty()), instant_text(each.from),
               each.to == each.from ? "" : instant_text(each.to), each.project, of_what(each),
               quantity_of(each), nets[i++]});
  }
  table.add({Cell("total", Style::bold), "", "", "", "", "", Cell(nets[i], Style::bold)});
  return table.text(colour, width) + "\n";
}

// From the total on: what the ledger took.
std::string taxes_text(const api::BillView& bill, bool colour, std::size_t width) {
  if (bill.taxes.empty()) return "";
  Table table({{"TAX"}, {"ON", Align::right}, {"AMOUNT", Align::right}});
  using Tax = api::TaxLineView;
  const auto bases = amounts(
      bill.taxes, [](const Tax& tax) { return tax.base; }, "", bill.currency);
  const auto sums = amounts(
      bill.taxes, [](const Tax& tax) { return tax.amount; }, bill.total_with_tax, bill.currency);
  for (std::size_t i = 0; i < bill.taxes.size(); ++i)
    table.add({bill.taxes[i].name + " " + bill.taxes[i].percent + " %", bases[i], sums[i]});
  table.add({Cell("total with tax", Style::bold), "", Cell(sums.back(), Style::bold)});
  return table.text(colour, width) + "\n";
}

// "on_demand", "on_demand night", "spot", "reservation rsv-1".
std::string terms_of(const api::BillLine& line) {
  std::string text = line.purchase_model;
  for (const std::string& more : {line.reservation, line.window})
    text += (more.empty() ? "" : " ") + more;
  return line.tariff == "flat" || !line.window.empty() ? text : text + " " + line.tariff;
}

std::string billed_text(const api::BillLine& line) {
  return line.tasks != 0 ? count_of(line.tasks, "task") : units_text(line.units_ms);
}

}  // namespace

std::string bill_text(const api::BillView& bill, bool colour, std::size_t width) {
  std::string text = styled("Bill of " + printable(bill.tenant), Style::bold, colour) + "  " +
                     (bill.from.empty() ? "until " : instant_text(bill.from) + " to ") +
                     instant_text(bill.to) + " UTC, amounts in " + printable(bill.currency) +
                     "\n\n";
  const auto& lines = bill.lines;
  const auto any = [&](auto is) { return std::any_of(lines.begin(), lines.end(), is); };
  using Line = api::BillLine;
  const bool units = any([](const Line& l) { return l.tasks != 0 || begun_units_differ(l); });
  const bool terms = any([](const Line& l) { return terms_of(l) != "on_demand"; });
  const bool by_task = any([](const Line& l) { return l.tasks != 0; });
  const bool models = any([](const Line& l) { return !l.model.empty(); });
  const bool groups = any([](const Line& l) { return !l.group.empty(); });
  const bool regions = any([&](const Line& l) { return l.region != lines.front().region; });
  std::vector<Column> columns{{"TASK"}, {"NAME", Align::left, true}, {"STATE"}, {"ISOLATION"}};
  if (groups) columns.push_back({"GROUP"});
  if (models) columns.push_back({"MODEL"});
  if (regions) columns.push_back({"REGION"});
  if (terms) columns.push_back({"TERMS"});
  columns.push_back({"CE", Align::right});
  columns.push_back({"DURATION", Align::right});
  if (units) columns.push_back({"BILLED", Align::right});
  columns.push_back({by_task ? "A CE-HOUR, TASK" : "A CE-HOUR", Align::right});
  for (const char* title : {"LIST", "DISCOUNT", "TOTAL"}) columns.push_back({title, Align::right});
  Table table(columns);
  const auto& code = bill.currency;
  const auto prices = amounts(
      lines, [](const Line& l) { return l.unit_price; }, "", code);
  const auto lists = amounts(
      lines, [](const Line& l) { return l.list; }, bill.list, code);
  const auto less = amounts(
      lines, [](const Line& l) { return l.discount; }, bill.discount, code);
  const auto nets = amounts(
      lines, [](const Line& l) { return l.net; }, bill.total, code);
  std::size_t i = 0;
  for (const Line& line : lines) {
    std::vector<Cell> cells{line.task, line.name, state_of(line), line.isolation};
    if (groups) cells.emplace_back(line.group);
    if (models) cells.emplace_back(billing::model_name(line.model, line.model_version));
    if (regions) cells.emplace_back(line.region);
    if (terms) cells.emplace_back(terms_of(line));
    cells.emplace_back(line.ce);
    cells.emplace_back(exact_seconds(line.billed_ms));
    if (units) cells.emplace_back(billed_text(line));
    for (const auto* column : {&prices, &lists, &less, &nets}) cells.emplace_back((*column)[i]);
    table.add(std::move(cells));
    ++i;
  }
  // With adjustments the total is theirs too, and stands below them.
  const bool all = bill.adjustments.empty();
  std::vector<Cell> cells{Cell(all ? "total" : "all tasks", Style::bold), "", "", ""};
  for (const bool there : {groups, models, regions, terms}) {
    if (there) cells.emplace_back("");
  }
  cells.emplace_back("");
  cells.emplace_back(exact_seconds(bill.billed_ms));
  if (units) cells.emplace_back("");
  cells.emplace_back("");
  cells.emplace_back(lists[i]);
  cells.emplace_back(less[i]);
  cells.emplace_back(Cell(all ? nets[i] : std::string(), Style::bold));
  table.add(std::move(cells));
  text += table.text(colour, width) + "\n";
  text += adjustments_text(bill, colour, width);
  text += taxes_text(bill, colour, width);
  return text + styled(proof(bill), bill.billed_equals_run ? Style::good : Style::bad, colour) +
         "\n";
}

std::string bills_text(const api::BillList& list, bool colour, std::size_t width) {
  Table table({{"TENANT"},
               {"TASKS", Align::right},
               {"DURATION", Align::right},
               {"TOTAL", Align::right},
               {"TAX", Align::right},
               {"WITH TAX", Align::right},
               {""}});
  std::map<std::string, std::vector<const api::BillView*>> by_currency;
  for (const api::BillView& bill : list.bills) by_currency[bill.currency].push_back(&bill);
  for (const auto& [code, bills] : by_currency) {
    const auto currency = Currency::parse(code);
    const Money zero = Money::zero(currency ? *currency : Currency());
    const auto amount = [&](const std::string& text) {
      const auto read = Money::parse(text, zero.currency());
      return read ? *read : zero;
    };
    std::vector<std::string> totals, taxes, wholes;
    Money total = zero, whole = zero;
    for (const api::BillView* bill : bills) {
      const Money net = amount(bill->total), with_tax = amount(bill->total_with_tax);
      totals.push_back(amount_text(net));
      taxes.push_back(amount_text(with_tax - net));
      wholes.push_back(amount_text(with_tax));
      total += net;
      whole += with_tax;
    }
    totals.push_back(amount_text(total));
    taxes.push_back(amount_text(whole - total));
    wholes.push_back(amount_text(whole));
    const auto nets = money_column(totals, code), off = money_column(taxes, code),
               gross = money_column(wholes, code);
    for (std::size_t i = 0; i < bills.size(); ++i) {
      std::set<std::string> tasks;
      for (const api::BillLine& line : bills[i]->lines) tasks.insert(line.task);
      table.add({bills[i]->tenant, std::to_string(tasks.size()), exact_seconds(bills[i]->billed_ms),
                 nets[i], off[i], gross[i], code});
    }
    table.add({Cell("total", Style::bold), "", "", nets.back(), off.back(),
               Cell(gross.back(), Style::bold), code});
  }
  return styled("Bills", Style::bold, colour) + "  " + instant_text(list.from) + " to " +
         instant_text(list.to) + " UTC\n\n" + table.text(colour, width);
}

namespace {

// "on_demand", "on_demand night", "correction: on_demand", "reserved, not used".
std::string line_terms(const api::InvoiceLineView& line) {
  if (!line.gib.empty()) return line.kind;
  std::string text = kind_words(line.kind, line.purchase_model == "reservation");
  if (text == line.kind) text = (text == "usage" ? "" : text + ": ") + line.purchase_model;
  return line.window.empty() ? text : text + " " + line.window;
}

}  // namespace

std::string invoice_text(const api::InvoiceView& invoice, bool colour, std::size_t width) {
  std::string text = styled("Invoice " + printable(invoice.id), Style::bold, colour) + " to " +
                     printable(invoice.tenant) + "  " + instant_text(invoice.from) + " to " +
                     instant_text(invoice.to) + " UTC, amounts in " + printable(invoice.currency) +
                     "\n\n";
  Table table({{"PROJECT"},
               {"ENVIRONMENT"},
               {"MODEL", Align::left, true},
               {"TERMS"},
               {"QUANTITY", Align::right},
               {"UNIT PRICE", Align::right},
               {"LIST", Align::right},
               {"NET", Align::right},
               {"PAYABLE", Align::right}});
  using Line = api::InvoiceLineView;
  const auto& code = invoice.currency;
  const auto prices = amounts(
      invoice.lines, [](const Line& l) { return l.unit_price; }, "", code);
  const auto lists = amounts(
      invoice.lines, [](const Line& l) { return l.list; }, "", code);
  const auto nets = amounts(
      invoice.lines, [](const Line& l) { return l.net; }, "", code);
  std::vector<std::string> last;
  for (const Line& line : invoice.lines) last.push_back(line.payable);
  if (!invoice.taxes.empty()) last.push_back(invoice.subtotal);
  for (const api::TaxLineView& tax : invoice.taxes) last.push_back(tax.amount);
  last.push_back(invoice.total);
  const auto payable = money_column(last, code);
  std::size_t i = 0;
  for (const Line& line : invoice.lines) {
    table.add({line.project, line.environment, billing::model_name(line.model, line.model_version),
               line_terms(line),
               line.tasks != 0     ? count_of(line.tasks, "task")
               : line.tokens != 0  ? std::to_string(line.tokens) + " tokens"
               : !line.gib.empty() ? gib_words(line.kind, line.gib)
                                   : line.ce_hours,
               prices[i], lists[i], nets[i], payable[i]});
    ++i;
  }
  if (!invoice.taxes.empty()) table.add({"subtotal", "", "", "", "", "", "", "", payable[i++]});
  for (const api::TaxLineView& tax : invoice.taxes)
    table.add({tax.name + " " + tax.percent + " %", "", "", "", "", "", "", "", payable[i++]});
  table.add(
      {Cell("total", Style::bold), "", "", "", "", "", "", "", Cell(payable[i], Style::bold)});
  text += table.text(colour, width);
  for (const api::CreditNoteView& note : invoice.credits) {
    text += note.id + " of " + instant_text(note.issued_at) + " gives back " +
            money_exact(note.total, code) + " " + printable(code) + ": " + printable(note.reason) +
            "\n";
  }
  return text;
}

std::string credit_note_text(const api::CreditNoteView& note, bool colour, std::size_t width) {
  std::string text = styled("Credit note " + printable(note.id), Style::bold, colour) + " to " +
                     printable(note.tenant) + "  of " + instant_text(note.issued_at) +
                     " UTC, over " + printable(note.invoice) + ", amounts in " +
                     printable(note.currency) + "\n\n";
  std::vector<std::string> all{note.net};
  for (const api::TaxLineView& tax : note.taxes) all.push_back(tax.amount);
  all.push_back(note.total);
  const auto column = money_column(all, note.currency);
  Table table({{"GIVEN BACK", Align::left, true}, {"AMOUNT", Align::right}});
  table.add({note.reason, column.front()});
  for (std::size_t i = 0; i < note.taxes.size(); ++i)
    table.add({note.taxes[i].name + " " + note.taxes[i].percent + " %", column[i + 1]});
  table.add({Cell("total", Style::bold), Cell(column.back(), Style::bold)});
  return text + table.text(colour, width);
}

std::string ledger_text(const api::LedgerView& ledger, bool colour, std::size_t width) {
  const auto& code = ledger.currency;
  std::string text = styled("Ledger of " + printable(ledger.tenant), Style::bold, colour) +
                     "  wallet " + money_exact(ledger.wallet, code) + ", held " +
                     money_exact(ledger.held, code) + " " + printable(code) + "\n\n";
  Table table({{"ID"},
               {"AT (UTC)"},
               {"KIND"},
               {"TASK"},
               {"ACCOUNT"},
               {"AMOUNT", Align::right},
               {"NOTE", Align::left, true}});
  std::vector<std::string> all;
  for (const auto& entry : ledger.entries) {
    for (const auto& posting : entry.postings) all.push_back(posting.amount);
  }
  const auto column = money_column(all, code);
  std::size_t i = 0;
  for (const auto& entry : ledger.entries) {
    bool first = true;
    for (const auto& posting : entry.postings) {
      table.add({first ? entry.id : "", first ? instant_text(entry.at) : "",
                 first ? entry.kind : "", first ? entry.task : "", posting.account, column[i++],
                 first ? entry.note : ""});
      first = false;
    }
  }
  return text + table.text(colour, width);
}

}  // namespace loam::cli

#include "app/loam/bill.hpp"

#include <algorithm>

#include "app/loam/human.hpp"
#include "app/loam/table.hpp"

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

std::string proof(const api::BillView& bill) {
  std::string text = "billed " + exact_seconds(bill.billed_ms);
  text += bill.billed_ms == bill.run_ms ? " = " : ", ";
  text += "run " + exact_seconds(bill.run_ms);
  if (bill.billed_equals_run) return text + ": every finished task is billed what it ran";
  const bool any_finished = std::any_of(bill.lines.begin(), bill.lines.end(),
                                        [](const auto& line) { return line.state == "finished"; });
  if (!any_finished) return text + ": no finished task yet";
  return text + ": they DIFFER for finished tasks; tell your operator";
}

// As `loam ps` says it: how a finished task ended.
const std::string& state_of(const api::BillLine& line) {
  return line.state == "finished" ? line.outcome : line.state;
}

// Fees of commitments, what they cover and what else was given back: the total counts them.
std::string adjustments_text(const api::BillView& bill, bool colour, std::size_t width) {
  if (bill.adjustments.empty()) return "";
  Table table({{"BESIDES"},
               {"FROM (UTC)"},
               {"TO (UTC)"},
               {"PROJECT"},
               {"OF"},
               {"CE-HOURS", Align::right},
               {"NET", Align::right}});
  const auto nets = amounts(
      bill.adjustments, [](const api::AdjustmentView& a) { return a.net; }, bill.total,
      bill.currency);
  std::size_t i = 0;
  for (const api::AdjustmentView& each : bill.adjustments) {
    const bool tokens = each.kind.ends_with("_tokens") || each.kind == "token_income";
    table.add({each.kind, instant_text(each.from), instant_text(each.to), each.project,
               tokens ? each.model : each.commitment + each.lease,
               tokens                  ? std::to_string(each.tokens) + " tokens"
               : each.kind == "credit" ? ""
                                       : each.ce_hours,
               nets[i++]});
  }
  table.add({Cell("total", Style::bold), "", "", "", "", "", Cell(nets[i], Style::bold)});
  return table.text(colour, width) + "\n";
}

}  // namespace

std::string bill_text(const api::BillView& bill, bool colour, std::size_t width) {
  std::string text = styled("Bill of " + printable(bill.tenant), Style::bold, colour) + "  " +
                     (bill.from.empty() ? "until " : instant_text(bill.from) + " to ") +
                     instant_text(bill.to) + " UTC, amounts in " + printable(bill.currency) +
                     "\n\n";
  Table table({{"TASK"},
               {"NAME", Align::left, true},
               {"STATE"},
               {"CE", Align::right},
               {"DURATION", Align::right},
               {"A CE-HOUR", Align::right},
               {"LIST", Align::right},
               {"DISCOUNT", Align::right},
               {"TOTAL", Align::right}});
  using Line = api::BillLine;
  const auto& code = bill.currency;
  const auto prices = amounts(
      bill.lines, [](const Line& l) { return l.unit_price; }, "", code);
  const auto lists = amounts(
      bill.lines, [](const Line& l) { return l.list; }, bill.list, code);
  const auto less = amounts(
      bill.lines, [](const Line& l) { return l.discount; }, bill.discount, code);
  const auto nets = amounts(
      bill.lines, [](const Line& l) { return l.net; }, bill.total, code);
  std::size_t i = 0;
  for (const Line& line : bill.lines) {
    table.add({line.task, line.name, state_of(line), line.ce, exact_seconds(line.billed_ms),
               prices[i], lists[i], less[i], nets[i]});
    ++i;
  }
  // With adjustments the total is theirs too, and stands below them.
  const bool all = bill.adjustments.empty();
  table.add({Cell(all ? "total" : "all tasks", Style::bold), "", "", "",
             exact_seconds(bill.billed_ms), "", lists[i], less[i],
             Cell(all ? nets[i] : std::string(), Style::bold)});
  text += table.text(colour, width) + "\n";
  text += adjustments_text(bill, colour, width);
  return text + styled(proof(bill), bill.billed_equals_run ? Style::good : Style::bad, colour) +
         "\n";
}

namespace {

// "on_demand", "on_demand night", "correction: on_demand".
std::string terms_of(const api::InvoiceLineView& line) {
  std::string text = line.kind == "usage" ? "" : line.kind + ": ";
  text += line.purchase_model;
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
               {"CE-HOURS", Align::right},
               {"A CE-HOUR", Align::right},
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
    table.add({line.project, line.environment, line.model, terms_of(line),
               line.tasks != 0    ? count_of(line.tasks, "task")
               : line.tokens != 0 ? std::to_string(line.tokens) + " tokens"
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

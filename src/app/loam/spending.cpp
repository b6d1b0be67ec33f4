#include "app/loam/spending.hpp"

#include <algorithm>
#include <boost/describe/enum_from_string.hpp>
#include <charconv>
#include <map>
#include <set>

#include "app/loam/human.hpp"
#include "app/loam/table.hpp"
#include "billing/csv.hpp"
#include "billing/record_parts.hpp"

namespace loam::cli {
namespace {

Error not_understood(const std::string& what) {
  return {ErrorKind::corrupt, "the daemon's answer has " + what, "use a loam of its version"};
}

Result<PurchaseModel> model_of(const std::string& text) {
  PurchaseModel model{};
  if (!boost::describe::enum_from_string(text.c_str(), model))
    return not_understood("the purchase model '" + text + "'");
  return model;
}

Result<billing::LineKind> line_kind_of(const std::string& text) {
  using Kind = billing::LineKind;
  for (const Kind kind :
       {Kind::usage, Kind::correction, Kind::credit, Kind::fee, Kind::covered, Kind::unused}) {
    if (text == billing::name_of(kind)) return kind;
  }
  if (text == "token_income") return Kind::credit;
  if (text.ends_with("_tokens") || is_held(text) || text == "network") return Kind::usage;
  return not_understood("an invoice line of the kind '" + text + "'");
}

// As `loam cost --by meter` names it.
std::string meter_of(const std::string& adjustment) {
  if (adjustment.ends_with("_tokens")) return "tokens";
  if (adjustment == "unused") return "reservation_unused";
  return adjustment == "fee" ? "commitment_fee" : adjustment;
}

std::optional<TaskId> task_of(const api::BillLine& line) {
  return TaskId::parse(line.task);
}

}  // namespace

Result<billing::Zone> zone_of(const api::BillView& bill) {
  if (bill.billing_zone.empty()) return billing::Zone();
  return billing::Zone::open(bill.billing_zone);
}

Result<std::vector<billing::CostRow>> cost_rows(const std::vector<BucketBill>& bills) {
  std::vector<billing::CostRow> rows;
  for (const BucketBill& each : bills) {
    LOAM_TRY(currency, Currency::parse(each.bill.currency));
    for (const api::BillLine& line : each.bill.lines) {
      billing::CostRow row;
      row.from = each.period.from;
      row.to = each.period.to;
      row.tenant = each.bill.tenant;
      row.who = who_of(line);
      row.group = line.group;
      row.task = line.task;
      LOAM_TRY(model, model_of(line.purchase_model));
      LOAM_TRY(net, Money::parse(line.net, currency));
      row.purchase_model = model;
      row.net = net;
      rows.push_back(std::move(row));
    }
    for (const api::AdjustmentView& adjustment : each.bill.adjustments) {
      billing::CostRow row;
      row.from = each.period.from;
      row.to = each.period.to;
      row.tenant = each.bill.tenant;
      row.who = who_of(adjustment);
      row.group = adjustment.group;
      row.task = adjustment.task;
      if (adjustment.of_document()) {
        row.who.project = row.who.environment = "(none)";
      } else {
        LOAM_TRY(model, model_of(adjustment.purchase_model));
        row.purchase_model = model;
      }
      LOAM_TRY(net, Money::parse(adjustment.net, currency));
      row.meter = meter_of(adjustment.kind);
      row.net = net;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Result<std::vector<billing::FocusRow>> focus_rows(const std::vector<BucketBill>& bills,
                                                  const std::string& issuer) {
  std::vector<billing::FocusRow> rows;
  for (const BucketBill& each : bills) {
    LOAM_TRY(currency, Currency::parse(each.bill.currency));
    LOAM_TRY(zone, zone_of(each.bill));
    for (const api::BillLine& line : each.bill.lines) {
      // Taken back within the bucket.
      if (line.units_ms == 0 && line.tasks == 0 && line.net == "0") continue;
      billing::Charge charge;
      LOAM_TRY(price, Money::parse(line.unit_price, currency));
      LOAM_TRY(list, Money::parse(line.list, currency));
      LOAM_TRY(net, Money::parse(line.net, currency));
      LOAM_TRY(model, model_of(line.purchase_model));
      LOAM_TRY(ce, parse_ce(line.ce));
      LOAM_TRY(from, parse_instant(line.used_from));
      LOAM_TRY(to, parse_instant(line.used_to));
      charge.from = from;
      charge.to = to;
      const bool per_task = line.tasks != 0;
      charge.quantity =
          per_task ? Int128{line.tasks} : static_cast<Int128>(ce.value) * line.units_ms;
      charge.unit_price = price;
      charge.list = list;
      charge.net = net;
      billing::Usage usage;
      usage.task = task_of(line).value_or(TaskId{});
      usage.terms.purchase_model = model;
      usage.who = who_of(line);
      const Granularity granularity = per_task ? Granularity::task : Granularity::exact;
      billing::FocusRow row = billing::focus_usage(charge, usage, granularity, line.group);
      row.issuer = issuer;
      row.billing_account_id = row.billing_account_name = each.bill.tenant;
      row.billing_period = billing::month_of(zone, each.period.from);
      put_price(line, "compute", row);
      LOAM_TRY(off, parse_decimal(line.discount_percent, 2, 10'000, "discount in %"));
      row.discount = BasisPoints{off};
      if (!line.invoice.empty()) row.invoice_id = line.invoice;
      row.correction = line.correction || line.units_ms < 0 || line.tasks < 0;
      if (!line.region.empty()) row.region_id = line.region;
      if (!line.name.empty()) row.resource_name = line.name;
      if (!line.reservation.empty()) {
        row.reservation_id = line.reservation;
        row.reservation_status = "Used";
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Result<void> add_focus_documents(const std::vector<BucketBill>& bills, const std::string& issuer,
                                 std::vector<billing::FocusRow>& rows) {
  std::map<std::string, Money> billed;  // by invoice
  for (const billing::FocusRow& row : rows) {
    if (!row.invoice_id) continue;
    const Money zero = Money::zero(row.billed.currency());
    billed.try_emplace(*row.invoice_id, zero).first->second += row.billed;
  }
  for (const BucketBill& each : bills) {
    LOAM_TRY(currency, Currency::parse(each.bill.currency));
    LOAM_TRY(zone, zone_of(each.bill));
    const auto add = [&](billing::FocusRow row) -> billing::FocusRow& {
      row.issuer = issuer;
      row.billing_account_id = row.billing_account_name = each.bill.tenant;
      row.billing_period = billing::month_of(zone, row.charge_period.from);
      rows.push_back(std::move(row));
      return rows.back();
    };
    for (const api::BilledInvoice& invoice : each.bill.invoices) {
      LOAM_TRY(from, parse_instant(invoice.from));
      LOAM_TRY(to, parse_instant(invoice.to));
      LOAM_TRY(net, Money::parse(invoice.net, currency));
      LOAM_TRY(subtotal, Money::parse(invoice.subtotal, currency));
      LOAM_TRY(total, Money::parse(invoice.total, currency));
      const billing::Period period{from, to};
      for (const api::TaxLineView& tax : invoice.taxes) {
        LOAM_TRY(amount, Money::parse(tax.amount, currency));
        add(billing::focus_tax(tax.name, tax.percent, amount, invoice.id, period));
      }
      auto& rounding = add(billing::focus_rounding(subtotal - net, invoice.id, period));
      const auto sum = billed.find(invoice.id);
      if (sum != billed.end() && sum->second == net) rounding.invoice_total = total;
    }
    for (const api::CreditNoteView& note : each.bill.credit_notes) {
      LOAM_TRY(at, parse_instant(note.issued_at));
      LOAM_TRY(net, Money::parse(note.net, currency));
      const billing::Period moment{at, at};
      add(billing::focus_credit_note(note.id, note.reason, -net, note.invoice, moment));
      for (const api::TaxLineView& tax : note.taxes) {
        LOAM_TRY(amount, Money::parse(tax.amount, currency));
        add(billing::focus_tax(tax.name, tax.percent, -amount, note.invoice, moment)).correction =
            true;
      }
    }
  }
  return {};
}

Result<BucketBills> buckets_of(api::BillList list) {
  BucketBills all;
  std::vector<BucketBill>& bills = all.bills;
  LOAM_TRY(begin, parse_instant(list.from));
  LOAM_TRY(end, parse_instant(list.to));
  all.period = {begin, std::max(end, begin + Duration{1})};
  for (api::BillView& bill : list.bills) {
    LOAM_TRY(from, parse_instant(bill.from));
    LOAM_TRY(to, parse_instant(bill.to));
    bills.push_back({{from, std::max(to, from + Duration{1})}, std::move(bill)});
  }
  return all;
}

void add_empty_bills(const std::vector<api::CommitmentView>& commitments,
                     const std::vector<billing::Period>& buckets, std::vector<BucketBill>& bills) {
  std::set<std::pair<std::string, Instant>> there;
  std::map<std::string, std::string> zones;
  for (const BucketBill& each : bills) {
    there.emplace(each.bill.tenant, each.period.from);
    zones[each.bill.tenant] = each.bill.billing_zone;
  }
  for (const api::CommitmentView& commitment : commitments) {
    for (const billing::Period& bucket : buckets) {
      if (!there.emplace(commitment.tenant, bucket.from).second) continue;
      api::BillView bill;
      bill.tenant = commitment.tenant;
      bill.currency = commitment.currency;
      bill.billing_zone = zones[commitment.tenant];
      bills.push_back({bucket, std::move(bill)});
    }
  }
}

std::string cost_text(const std::vector<billing::CostLine>& lines, const billing::CostQuery& query,
                      Currency currency, bool colour, std::size_t width) {
  const bool timed = query.bucket != billing::Bucket::none;
  std::vector<Column> columns;
  if (timed) columns.push_back({"FROM"});
  for (const std::string& name : query.group_by) {
    std::string title = name;
    for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    columns.push_back({title, Align::left, true});
  }
  const std::string code(currency.code());
  columns.push_back({"COST " + code, Align::right});
  std::vector<std::string> amounts;
  Money total = Money::zero(currency);
  for (const billing::CostLine& line : lines) {
    amounts.push_back(amount_text(line.net));
    total += line.net;
  }
  amounts.push_back(amount_text(total));
  const std::vector<std::string> shown = money_column(amounts, code);
  Table table(columns);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<Cell> cells;
    if (timed) cells.emplace_back(lines[i].bucket);
    for (const std::string& group : lines[i].groups) cells.emplace_back(group);
    cells.emplace_back(shown[i]);
    table.add(std::move(cells));
  }
  if (columns.size() > 1) {
    std::vector<Cell> cells(columns.size(), Cell(""));
    cells.front() = Cell("total", Style::bold);
    cells.back() = Cell(shown.back(), Style::bold);
    table.add(std::move(cells));
  } else if (lines.empty()) {
    table.add({Cell(shown.back())});
  }
  return table.text(colour, width);
}

std::string cost_json(const std::vector<billing::CostLine>& lines, const billing::CostQuery& query,
                      Currency currency) {
  Money total = Money::zero(currency);
  std::string text = "{\"currency\":" + billing::json_string(currency.code()) + ",\"lines\":[";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += i == 0 ? "{" : ",{";
    if (query.bucket != billing::Bucket::none)
      text += "\"from\":" + billing::json_string(lines[i].bucket) + ",";
    for (std::size_t g = 0; g < query.group_by.size(); ++g)
      text += billing::json_string(query.group_by[g]) + ":" +
              billing::json_string(lines[i].groups[g]) + ",";
    text += "\"cost\":" + billing::json_string(amount_text(lines[i].net)) + "}";
    total += lines[i].net;
  }
  return text + "],\"total\":" + billing::json_string(amount_text(total)) + "}";
}

namespace {

// Where the rate card takes less than the price for what was not used.
std::string unused_share(const billing::DocumentLine& line) {
  constexpr std::int64_t whole = 10'000;
  const Money full =
      line.unit_price.times_ratio(line.quantity, Money::units_per_one, Rounding::half_even);
  const auto off = billing::discount_of(full, line.list);
  if (!off || off->value == 0) return {};
  return ", at " + decimal_text(whole - off->value, 2) + " % of the price";
}

Result<billing::DocumentLine> document_line(const api::InvoiceLineView& line, Currency currency) {
  billing::DocumentLine made;
  made.project = line.project;
  made.environment = line.environment;
  made.model = billing::model_name(line.model, line.model_version);
  LOAM_TRY(kind, line_kind_of(line.kind));
  made.kind = kind;
  made.description = line.purchase_model + " compute";
  if (line.kind == "fee") made.description = "commitment, by the CE-hour of its period";
  if (line.kind == "unused") made.description = "reserved, not used";
  if (line.kind == "covered" && line.purchase_model == "reservation")
    made.description = "more than was reserved";
  if (line.tokens != 0) {
    made.description = line.kind == "token_income" ? "others' tokens" : line.kind;
    made.description += ", price of a million";
  } else if (!line.gib.empty()) {
    made.description = line.kind;
  } else if (made.kind == billing::LineKind::credit)
    made.description += ", less than promised or lost";
  std::replace(made.description.begin(), made.description.end(), '_', ' ');
  if (!line.window.empty()) made.description += ", " + line.window;
  made.unit = line.tasks != 0          ? "Tasks"
              : line.tokens != 0       ? "Tokens"
              : is_held(line.kind)     ? "GiB-Hours"
              : line.kind == "network" ? "GiB"
                                       : "CE-Hours";
  LOAM_TRY(quantity, Money::parse(line.tasks != 0     ? std::to_string(line.tasks)
                                  : line.tokens != 0  ? std::to_string(line.tokens)
                                  : !line.gib.empty() ? line.gib
                                                      : line.ce_hours,
                                  currency));
  LOAM_TRY(price, Money::parse(line.unit_price, currency));
  LOAM_TRY(list, Money::parse(line.list, currency));
  LOAM_TRY(net, Money::parse(line.net, currency));
  LOAM_TRY(payable, Money::parse(line.payable, currency));
  made.quantity = quantity.units();
  made.unit_price = price;
  made.list = list;
  made.net = net;
  made.payable = payable;
  if (made.kind == billing::LineKind::unused) made.description += unused_share(made);
  return made;
}

}  // namespace

Result<billing::Document> document_of(const api::InvoiceView& invoice) {
  billing::Document document;
  LOAM_TRY(currency, Currency::parse(invoice.currency));
  LOAM_TRY(from, parse_instant(invoice.from));
  LOAM_TRY(to, parse_instant(invoice.to));
  LOAM_TRY(issued_at, parse_instant(invoice.issued_at));
  LOAM_TRY(subtotal, Money::parse(invoice.subtotal, currency));
  LOAM_TRY(total, Money::parse(invoice.total, currency));
  const auto id = InvoiceId::parse(invoice.id);
  if (!id) return not_understood("the invoice '" + invoice.id + "'");
  document.number = id->value;
  document.tenant = TenantId::parse(invoice.tenant_id).value_or(TenantId{});
  document.tenant_name = invoice.tenant;
  document.currency = currency;
  document.period = {from, to};
  document.issued_at = issued_at;
  document.subtotal = subtotal;
  document.total = total;
  document.seller = {invoice.seller.name, invoice.seller.address, invoice.seller.tax_id};
  document.buyer = {invoice.buyer.name, invoice.buyer.address, invoice.buyer.tax_id};
  document.terms = invoice.terms;
  if (invoice.due) {
    LOAM_TRY(due, Money::parse(*invoice.due, currency));
    document.due = due;
  }
  if (invoice.due_at) {
    LOAM_TRY(due_at, parse_instant(*invoice.due_at));
    document.due_at = due_at;
  }
  for (const api::TaxLineView& tax : invoice.taxes) {
    LOAM_TRY(share, parse_decimal(tax.percent, 4, 1'000'000, "tax in %"));
    LOAM_TRY(base, Money::parse(tax.base, currency));
    LOAM_TRY(amount, Money::parse(tax.amount, currency));
    document.taxes.push_back({tax.name, share, base, amount});
  }
  for (const api::InvoiceLineView& line : invoice.lines) {
    LOAM_TRY(made, document_line(line, currency));
    document.lines.push_back(std::move(made));
  }
  return document;
}

Result<billing::Document> document_of(const api::CreditNoteView& note,
                                      const api::InvoiceView& invoice) {
  LOAM_TRY(document, document_of(invoice));
  const auto id = CreditNoteId::parse(note.id);
  if (!id) return not_understood("the credit note '" + note.id + "'");
  const Currency currency = document.currency;
  document.kind = billing::DocumentKind::credit_note;
  document.corrects = document.number;
  document.number = id->value;
  document.reason = note.reason;
  document.terms.clear();  // what it gives back is in the wallet
  document.due.reset();
  document.due_at.reset();
  LOAM_TRY(issued_at, parse_instant(note.issued_at));
  LOAM_TRY(net, Money::parse(note.net, currency));
  LOAM_TRY(total, Money::parse(note.total, currency));
  document.issued_at = issued_at;
  billing::DocumentLine line;
  line.kind = billing::LineKind::credit;
  line.description = note.reason;
  line.unit_price = Money::zero(currency);
  line.list = line.net = line.payable = -net;
  document.lines = {line};
  document.subtotal = -net;
  document.total = -total;
  document.taxes.clear();
  for (const api::TaxLineView& tax : note.taxes) {
    LOAM_TRY(share, parse_decimal(tax.percent, 4, 1'000'000, "tax in %"));
    LOAM_TRY(base, Money::parse(tax.base, currency));
    LOAM_TRY(amount, Money::parse(tax.amount, currency));
    document.taxes.push_back({tax.name, share, -base, -amount});
  }
  return document;
}

}  // namespace loam::cli

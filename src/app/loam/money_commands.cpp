// bill, invoice issue, list and show, ledger.
#include <algorithm>
#include <fstream>

#include "app/loam/bill.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/invoice_pdf.hpp"
#include "app/loam/session.hpp"
#include "app/loam/spending.hpp"
#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

// The caller's own tenant where none is named, as the daemon has it.
std::string tenant_of(const Session& session, const Arguments& arguments) {
  const std::string named = arguments.operand(0);
  return named.empty() ? session.tenant() : named;
}

// The instants of --month in the zone that the tenant is billed by; an empty name: the only tenant
// that the caller sees.
Result<billing::Period> month_of(api::Client& client, const std::string& tenant,
                                 const std::string& month) {
  std::string zone_name = "UTC";
  LOAM_TRY(list, client.tenants());
  for (const api::TenantView& each : list.tenants) {
    if (each.name == tenant || (tenant.empty() && list.tenants.size() == 1))
      zone_name = each.billing_zone;
  }
  LOAM_TRY(zone, billing::Zone::open(zone_name));
  return billing::parse_month(zone, month);
}

Result<int> run_bill(Session& session, const Arguments& arguments) {
  LOAM_TRY(from, instant_or_day(arguments, "from"));
  LOAM_TRY(to, instant_or_day(arguments, "to"));
  const std::string tenant = tenant_of(session, arguments);
  if (arguments.has("all") && !arguments.operand(0).empty())
    return invalid("both a tenant, " + tenant + ", and --all are given", "give one of them");
  const bool by_month = arguments.has("month");
  if (by_month && (arguments.has("from") || arguments.has("to")))
    return invalid("both --month and --from or --to are given", "give one of them");
  LOAM_TRY(client, session.client());
  bool all = arguments.has("all");
  if (!all && tenant.empty()) {
    // An operator who names nobody means everybody.
    LOAM_TRY(tenants, client->tenants());
    all = tenants.tenants.size() > 1;
  }
  if (all && by_month)
    return invalid("months are each tenant's own", "name a tenant, or give --from and --to");
  if (by_month) {
    LOAM_TRY(month, month_of(*client, tenant, arguments.text("month")));
    from = to_text(month.from);
    to = to_text(month.to);
  }
  if (all) {
    LOAM_TRY(list, client->bills("", from, to, "none", "UTC"));
    if (session.json()) return session.print_json(list);
    session.out() << bills_text(list, session.console().colour, session.width());
    return 0;
  }
  LOAM_TRY(bill, client->bill(tenant, from, to));
  if (session.json()) return session.print_json(bill);
  session.out() << bill_text(bill, session.console().colour, session.width());
  return 0;
}

std::optional<std::string> month_in(const Arguments& arguments) {
  if (!arguments.has("month")) return std::nullopt;
  return arguments.text("month");
}

// One after the other; who has nothing to be invoiced, or not yet, is told with the reason.
Result<int> issue_all(Session& session, const Arguments& arguments) {
  if (!arguments.operands.empty())
    return invalid("--all and '" + arguments.operand(0) + "' do not go together",
                   "say one of them");
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->tenants());
  Table table(
      {{"TENANT"}, {"INVOICE"}, {"TOTAL", Align::right}, {""}, {"NOTE", Align::left, true}});
  api::InvoiceList issued;
  for (const api::TenantView& tenant : list.tenants) {
    auto invoice = client->issue_invoice({tenant.name, month_in(arguments)});
    if (invoice) {
      table.add({tenant.name, invoice->id, money_exact(invoice->total, invoice->currency),
                 invoice->currency, ""});
      issued.invoices.push_back(std::move(*invoice));
      continue;
    }
    if (invoice.error().kind != ErrorKind::conflict) return invoice.error();
    table.add({tenant.name, "", "", "", invoice.error().message});
  }
  if (session.json()) return session.print_json(issued);
  session.out() << session.text_of(table);
  return 0;
}

Result<int> print_invoice(Session& session, const api::InvoiceView& invoice) {
  if (session.json()) return session.print_json(invoice);
  session.out() << invoice_text(invoice, session.console().colour, session.width());
  LOAM_TRY(document, document_of(invoice));
  if (document.due) session.out() << "due " << billing::due_text(document) << "\n";
  return 0;
}

Result<int> run_invoice_issue(Session& session, const Arguments& arguments) {
  if (arguments.has("all")) return issue_all(session, arguments);
  if (arguments.operands.empty()) return invalid("no tenant is named", "name one, or say --all");
  LOAM_TRY(client, session.client());
  LOAM_TRY(invoice, client->issue_invoice({arguments.operand(0), month_in(arguments)}));
  return print_invoice(session, invoice);
}

Result<int> run_invoice_list(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->invoices(tenant_of(session, arguments), arguments.text("after")));
  if (session.json()) return session.print_json(list);
  if (list.invoices.empty()) {
    session.say("no invoices; issue one with: loam invoice issue TENANT");
    return 0;
  }
  Table table({{"ID"},
               {"TENANT"},
               {"FROM (UTC)"},
               {"TO (UTC)"},
               {"ISSUED (UTC)"},
               {"TOTAL", Align::right},
               {"CREDITED", Align::right},
               {""}});
  for (const api::InvoiceView& invoice : list.invoices) {
    table.add({invoice.id, invoice.tenant, instant_text(invoice.from), instant_text(invoice.to),
               instant_text(invoice.issued_at), money_exact(invoice.total, invoice.currency),
               invoice.credited == "0" ? "" : money_exact(invoice.credited, invoice.currency),
               invoice.currency});
  }
  session.out() << session.text_of(table);
  if (!list.next.empty()) session.say("more: loam invoice list --after " + list.next);
  return 0;
}

// An invoice or credit note for others: a file to send, or bytes for a pipe.
Result<int> render(Session& session, const Arguments& arguments, billing::Document document) {
  document.issuer = arguments.text("issuer");
  if (!document.issuer.empty() && !document.seller.name.empty()) {
    return invalid(billing::number_text(document) + " names who sold: " + document.seller.name,
                   "leave --issuer out: what was issued does not change");
  }
  const std::string format = arguments.text("format", "text");
  std::string bytes;
  if (format == "pdf") {
    LOAM_TRY(pdf, invoice_pdf(document, pdf_fonts(arguments.text("font"))));
    bytes = std::move(pdf.bytes);
    if (pdf.letters_missing > 0) {
      session.say("note: " + count_of(pdf.letters_missing, "letter") +
                  " that no font here has are shown as '?': install fonts-dejavu-core, or name a "
                  "TrueType font with --font FILE");
    }
  } else {
    bytes = format == "csv"    ? billing::to_csv(document)
            : format == "json" ? billing::to_json(document) + "\n"
                               : billing::to_plain_text(document);
  }
  if (!arguments.has("output")) {
    if (format == "pdf" && session.console().out_is_terminal)
      return invalid("a PDF is not for a terminal", "write it to a file with --output FILE");
    session.out() << bytes;
    return 0;
  }
  const std::string path = arguments.text("output");
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file)
    return Error{ErrorKind::unavailable, "the file '" + path + "' cannot be written",
                 "check the folder"};
  session.say(billing::number_text(document) + " is in " + printable(path));
  return 0;
}

Result<int> run_invoice_show(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  const bool rendered = arguments.has("format") || arguments.has("output");
  if (arguments.operand(0).starts_with("cn-")) {
    LOAM_TRY(note, client->credit_note(arguments.operand(0)));
    if (rendered) {
      LOAM_TRY(of, client->invoice(note.invoice));
      LOAM_TRY(document, document_of(note, of));
      return render(session, arguments, std::move(document));
    }
    if (session.json()) return session.print_json(note);
    session.out() << credit_note_text(note, session.console().colour, session.width());
    return 0;
  }
  LOAM_TRY(invoice, client->invoice(arguments.operand(0)));
  if (rendered) {
    LOAM_TRY(document, document_of(invoice));
    return render(session, arguments, std::move(document));
  }
  return print_invoice(session, invoice);
}

Result<int> run_invoice_credit(Session& session, const Arguments& arguments) {
  api::CreditRequest request;
  if (arguments.has("amount")) request.amount = arguments.text("amount");
  request.reason = arguments.text("reason");
  if (request.reason.empty())
    return invalid("a credit note says why", "give it with --reason \"…\"");
  LOAM_TRY(client, session.client());
  LOAM_TRY(note, client->credit_invoice(arguments.operand(0), request));
  if (session.json()) return session.print_json(note);
  session.say(note.id + " gives back " + money_exact(note.total, note.currency) + " " +
              note.currency + " of " + note.invoice +
              (note.tax == "0" ? "" : ", of it tax " + money_exact(note.tax, note.currency)));
  return 0;
}

Result<int> run_ledger_reverse(Session& session, const Arguments& arguments) {
  const std::string id = arguments.operand(0);
  if (arguments.text("note").empty())
    return invalid("a reversal says why", "give it with --note \"typed twice\"");
  LOAM_TRY(client, session.client());
  LOAM_TRY(tenant, client->reverse(id, {arguments.text("note")}));
  if (session.json()) return session.print_json(tenant);
  session.say(id + " is turned round; the wallet of " + tenant.name + " has " +
              money_exact(tenant.wallet, tenant.currency) + " " + tenant.currency);
  return 0;
}

Result<int> run_ledger(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(ledger, client->ledger(tenant_of(session, arguments), arguments.text("after")));
  if (session.json()) return session.print_json(ledger);
  session.out() << ledger_text(ledger, session.console().colour, session.width());
  if (!ledger.next.empty())
    session.say("more: loam ledger " + ledger.tenant + " --after " + ledger.next);
  return 0;
}

const OptionGroup paging{"Which",
                         {{"--after", "MARK", "the page that follows, as the page before says"}}};

std::vector<Command> invoice_commands() {
  const Operand maybe_tenant{"TENANT", "default: LOAM_TENANT, else the caller's own",
                             Operand::Kind::maybe, "@tenant"};
  return {
      {"invoice issue",
       "Issue an invoice over what has not been invoiced yet",
       "Of a month: what belongs to later ones stays open. Months are those of the tenant's\n"
       "billing zone (loam tenant set NAME --billing-zone ZONE); those of tenants that are "
       "invoiced\n"
       "monthly are closed an hour after they end by themselves.",
       "loam invoice issue acme\nloam invoice issue acme --month 2026-03\n"
       "loam invoice issue --all --month 2026-03",
       {{"TENANT", "a tenant", Operand::Kind::maybe, "@tenant"}},
       {{"Which",
         {{"--month", "MONTH", "up to its end, such as 2026-03; default: all that was charged"},
          {"--all", "", "of all tenants", Kind::flag}}}},
       run_invoice_issue,
       true},
      {"invoice list",
       "The invoices, newest first",
       "",
       "loam invoice list acme",
       {maybe_tenant},
       {paging},
       run_invoice_list},
      {"invoice show",
       "One invoice with its lines, or one credit note",
       "With --format or --output as a document to send.",
       "loam invoice show inv-1\nloam invoice show inv-1 --format pdf --output inv-1.pdf\n"
       "loam invoice show cn-1",
       {{"ID", "an invoice, or a credit note: cn-1", Operand::Kind::one, "@invoice"}},
       {{"Output",
         {{"--format", "FORMAT", "default: text", Kind::value, "text csv json pdf"},
          {"--issuer", "NAME", "who sells, where the invoice does not say"},
          {"--font", "FILE", "TrueType, for letters of a PDF beyond Latin-1", Kind::value, "@path"},
          {"--output", "FILE", "write it there", Kind::value, "@path"}}}},
       run_invoice_show},
      {"invoice credit",
       "Give back a part of an invoice, or what is left of it, as a credit note",
       "The money and its tax go to the tenant's wallet. An invoice itself never changes.",
       "loam invoice credit inv-3 --amount 12.50 --reason \"delivered 75 % of 8.00\"\n"
       "loam invoice credit inv-3 --reason \"billed to the wrong tenant\"",
       {{"ID", "an invoice, as the list shows it", Operand::Kind::one, "@invoice"}},
       {{"What",
         {{"--amount", "AMOUNT", "before tax; default: all that is left"},
          {"--reason", "TEXT", "why, as the note says it"}}}},
       run_invoice_credit,
       true},
      {"ledger",
       "Every movement of a tenant's money, newest first",
       "",
       "loam ledger acme",
       {maybe_tenant},
       {paging},
       run_ledger},
      {"ledger reverse",
       "Turn a payment round that did not happen, or was written down wrong",
       "A top-up or a refund, once each, by its number in the ledger. The wallet may fall below\n"
       "zero by it: what was bought with the money is owed, and no task starts until it is paid.",
       "loam ledger reverse x12 --note 'typed twice'",
       {{"ID", "an entry, as the ledger shows it"}},
       {{"How", {{"--note", "TEXT", "why; required"}}}},
       run_ledger_reverse,
       true},
  };
}

}  // namespace

std::vector<Command> money_commands() {
  const Operand maybe_tenant{"TENANT", "default: LOAM_TENANT, else the caller's own",
                             Operand::Kind::maybe, "@tenant"};
  std::vector<Command> commands{
      {"bill",
       "What a tenant's tasks cost, line by line",
       "Ends with the proof that billed seconds are run seconds. A day begins at midnight UTC.\n"
       "Of all tenants: a line each, and the total.",
       "loam bill acme\nloam bill acme --month 2026-03\n"
       "loam bill acme --from 2026-03-01 --to 2026-04-01\nloam bill --all",
       {maybe_tenant},
       {{"What", {{"--all", "", "of all tenants, whatever LOAM_TENANT says", Kind::flag}}},
        {"When",
         {{"--month", "MONTH", "of the tenant's billing zone, such as 2026-03"},
          {"--from", "INSTANT", "from then on; default: the beginning"},
          {"--to", "INSTANT", "before then; default: now"}}}},
       run_bill},
  };
  for (Command& command : invoice_commands()) commands.push_back(std::move(command));
  return commands;
}

}  // namespace loam::cli

// The shapes of the HTTP API that are about money: rates, bills, invoices, ledgers, budgets.
// Amounts are exact decimal text. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/commitment_types.hpp"
#include "api/reservation_types.hpp"
#include "domain/price.hpp"

namespace loam::api {

struct RateRequest {
  std::string currency = "USD";
  std::string on_demand;  // per CE-hour
  std::optional<std::string> ce_per_gibibyte;
  std::optional<std::string> effective_from;  // default: now
  PriceTerms terms;                           // what else the card says
};
BOOST_DESCRIBE_STRUCT(RateRequest, (),
                      (currency, on_demand, ce_per_gibibyte, effective_from, terms))

struct RateView {
  std::string id;
  std::string currency;
  std::string on_demand;
  std::string ce_per_gibibyte;
  std::string effective_from;
  PriceTerms terms;
};
BOOST_DESCRIBE_STRUCT(RateView, (),
                      (id, currency, on_demand, ce_per_gibibyte, effective_from, terms))

struct TaxLineView {
  std::string name;
  std::string percent;
  std::string base;
  std::string amount;
};
BOOST_DESCRIBE_STRUCT(TaxLineView, (), (name, percent, base, amount))

struct CreditNoteView {
  std::string id;
  std::string invoice;
  std::string tenant;
  std::string tenant_id;
  std::string currency;
  std::string issued_at;
  std::string net;
  std::string tax;
  std::string total;
  std::string reason;
  std::vector<TaxLineView> taxes;  // `tax`, by tax
};
BOOST_DESCRIBE_STRUCT(CreditNoteView, (),
                      (id, invoice, tenant, tenant_id, currency, issued_at, net, tax, total, reason,
                       taxes))

// One task on a bill, at one price.
struct BillLine {
  std::string task;
  std::string name;
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::string group;
  std::string state;
  std::string outcome;    // none until finished
  std::string ce;         // billable
  std::string used_from;  // UTC instants: of its first and last usage record here
  std::string used_to;
  std::int64_t run_ms = 0;     // what the launcher measured
  std::int64_t billed_ms = 0;  // what the usage records add up to
  std::int64_t units_ms = 0;   // the same in the units begun that the card bills by
  std::int64_t tasks = 0;      // priced once a run: how many; then the unit price is a task's
  std::string unit_price;
  std::string discount_percent;
  std::string list;
  std::string discount;
  std::string net;
  std::string purchase_model;
  std::string tariff;
  std::string window;  // of the card's, where the price depends on it
  std::string isolation;
  std::string invoice;  // that it is on; empty: not invoiced yet
  std::map<std::string, std::string> tags;
  std::string reservation;  // on which it ran
  std::string region;       // in which
  bool correction = false;  // of a month that was invoiced before it was told
  // Of its devices' time, added up, over what of its own was measured; absent where nobody did.
  std::optional<double> share_measured;
};
BOOST_DESCRIBE_STRUCT(BillLine, (),
                      (task, name, project, environment, model, model_version, group, state,
                       outcome, ce, used_from, used_to, run_ms, billed_ms, units_ms, tasks,
                       unit_price, discount_percent, list, discount, net, purchase_model, tariff,
                       window, isolation, invoice, tags, reservation, region, correction,
                       share_measured))

// An invoice that was issued in the time of a bill.
struct BilledInvoice {
  std::string id;
  std::string from;
  std::string to;
  std::string issued_at;
  std::string net;       // exact, of its lines
  std::string subtotal;  // payable
  std::vector<TaxLineView> taxes;
  std::string total;
};
BOOST_DESCRIBE_STRUCT(BilledInvoice, (), (id, from, to, issued_at, net, subtotal, taxes, total))

// What belongs to [from, to): a record across a bound is cut there, by time.
struct BillView {
  std::string tenant;
  std::string currency;
  std::string from;
  std::string to;
  std::vector<BillLine> lines;
  std::vector<AdjustmentView> adjustments;  // in order of time; `total` counts them
  std::int64_t run_ms = 0;
  std::int64_t billed_ms = 0;
  std::string list;
  std::string discount;
  std::string total;               // before tax
  std::vector<TaxLineView> taxes;  // as the ledger has them: exact, not rounded to be paid
  std::string total_with_tax;
  std::string billing_zone;                  // whose months the tenant's invoices are of
  std::string seller;                        // by name, as on an invoice issued now; may be empty
  bool billed_equals_run = false;            // of the tasks below, where there are any
  std::int64_t whole_tasks = 0;              // finished, and with their every second on this bill
  std::vector<BilledInvoice> invoices;       // issued in this time
  std::vector<CreditNoteView> credit_notes;  // likewise; adjustments too
};
BOOST_DESCRIBE_STRUCT(BillView, (),
                      (tenant, currency, from, to, lines, adjustments, run_ms, billed_ms, list,
                       discount, total, taxes, total_with_tax, billing_zone, seller,
                       billed_equals_run, whole_tasks, invoices, credit_notes))

// GET /v1/bills: of one tenant or of all, cut into buckets of time.
struct BillList {
  std::string from;
  std::string to;
  std::vector<BillView> bills;  // by tenant, then by time; those with nothing on them left out
};
BOOST_DESCRIBE_STRUCT(BillList, (), (from, to, bills))

struct TopUpRequest {
  std::string amount;  // decimal, in the tenant's currency
  std::string note;
};
BOOST_DESCRIBE_STRUCT(TopUpRequest, (), (amount, note))

// POST /v1/ledger/{id}/reverse.
struct ReverseRequest {
  std::string note;  // why
};
BOOST_DESCRIBE_STRUCT(ReverseRequest, (), (note))

struct RateList {
  std::vector<RateView> rates;  // in order of publication
};
BOOST_DESCRIBE_STRUCT(RateList, (), (rates))

// GET /v1/rates/spot: the prices that spot has had, and has now.
struct SpotPriceView {
  std::string from;
  std::string to;         // empty: it holds now
  std::string price;      // per CE-hour
  std::string supply_ce;  // what firm leases left
  std::string demand_ce;  // what spot held and waited for
};
BOOST_DESCRIBE_STRUCT(SpotPriceView, (), (from, to, price, supply_ce, demand_ce))

struct SpotPriceList {
  std::string currency;
  std::string on_demand;              // of the card in force
  std::vector<SpotPriceView> prices;  // newest first; none: spot is not sold
};
BOOST_DESCRIBE_STRUCT(SpotPriceList, (), (currency, on_demand, prices))

struct InvoiceRequest {
  std::string tenant;
  // "2026-03" of its billing zone: what belongs to later months stays open. Default: all that was
  // charged so far.
  std::optional<std::string> month;
};
BOOST_DESCRIBE_STRUCT(InvoiceRequest, (), (tenant, month))

struct InvoiceLineView {
  std::string kind;  // usage, correction, or as AdjustmentView has them
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::string purchase_model;
  std::string tariff;
  std::string window;
  std::string unit_price;  // per CE-hour, task, million tokens, GiB-hour or GiB
  std::string ce_hours;    // rounded to 6 decimals, for people; the amounts are exact
  std::int64_t tasks = 0;
  std::int64_t tokens = 0;
  std::string gib;  // GiB-hours of storage, GiB of network; empty for others
  std::string list;
  std::string net;
  std::string payable;
};
BOOST_DESCRIBE_STRUCT(InvoiceLineView, (),
                      (kind, project, environment, model, model_version, purchase_model, tariff,
                       window, unit_price, ce_hours, tasks, tokens, gib, list, net, payable))

// POST /v1/invoices/{id}/credit.
struct CreditRequest {
  std::optional<std::string> amount;  // before tax; default: all that is left
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(CreditRequest, (), (amount, reason))

// Who sells, or who pays. Lines of the address are separated by newlines.
struct PartyView {
  std::string name;
  std::string address;
  std::string tax_id;
};
BOOST_DESCRIBE_STRUCT(PartyView, (), (name, address, tax_id))

// PUT /v1/tenants/{name}/buyer: who a tenant is on its invoices from now on. All empty: forgets
// whoever it was, on invoices already issued too.
struct PartyRequest {
  std::string name;
  std::string address;
  std::string tax_id;
};
BOOST_DESCRIBE_STRUCT(PartyRequest, (), (name, address, tax_id))

struct InvoiceView {
  std::string id;
  std::string tenant;
  std::string tenant_id;
  std::string currency;
  std::string from;
  std::string to;
  std::string issued_at;
  std::vector<InvoiceLineView> lines;
  std::string subtotal;
  std::vector<TaxLineView> taxes;
  std::string total;
  std::string rounding;                 // total less what was charged with tax; posted at issue
  std::string credited;                 // of the total, given back since
  std::vector<CreditNoteView> credits;  // likewise, one by one; only where one invoice is shown
  PartyView seller;                     // as it was when it was issued; empty: nobody was named
  PartyView buyer;                      // likewise; empty: nobody is known, or it was forgotten
  std::string terms;                    // of payment, in the seller's words
  std::optional<std::string> due;       // what the wallet does not cover; absent: nobody said
  std::optional<std::string> due_at;
};
BOOST_DESCRIBE_STRUCT(InvoiceView, (),
                      (id, tenant, tenant_id, currency, from, to, issued_at, lines, subtotal, taxes,
                       total, rounding, credited, credits, seller, buyer, terms, due, due_at))

struct InvoiceList {
  std::vector<InvoiceView> invoices;  // newest first
  std::string next;                   // pass as ?after= for the following page; empty at the end
};
BOOST_DESCRIBE_STRUCT(InvoiceList, (), (invoices, next))

struct PostingView {
  std::string account;  // wallet, held, revenue, tax, rounding, cash
  std::string amount;   // signed; those of one entry sum to zero
};
BOOST_DESCRIBE_STRUCT(PostingView, (), (account, amount))

struct LedgerEntry {
  std::string id;
  std::string at;
  std::string kind;
  std::string task;      // empty for a top-up
  std::string reverses;  // the entry that this one turns round; mostly empty
  std::string note;
  std::vector<PostingView> postings;
};
BOOST_DESCRIBE_STRUCT(LedgerEntry, (), (id, at, kind, task, reverses, note, postings))

struct LedgerView {
  std::string tenant;
  std::string currency;
  std::string wallet;
  std::string held;
  std::vector<LedgerEntry> entries;  // newest first
  std::string next;                  // pass as ?after= for the following page; empty at the end
};
BOOST_DESCRIBE_STRUCT(LedgerView, (), (tenant, currency, wallet, held, entries, next))

// POST /v1/budgets: a new budget, or other terms for the one of that name.
struct BudgetRequest {
  std::string name;
  std::string tenant;
  std::optional<std::string> project;
  std::optional<std::string> environment;
  std::optional<std::string> model;
  std::string monthly;  // in the tenant's currency
  std::string zone = "UTC";
  std::string remind_percent = "80";
  std::string limit_percent = "100";
  std::string approve_percent = "120";
  std::string running = "let_run";    // or stop: what becomes of running tasks at the limit
  std::string approval_wait = "24h";  // after which an unanswered request expires
  std::vector<std::string> channels;  // http://HOST:PORT/PATH, command:/PATH
};
BOOST_DESCRIBE_STRUCT(BudgetRequest, (),
                      (name, tenant, project, environment, model, monthly, zone, remind_percent,
                       limit_percent, approve_percent, running, approval_wait, channels))

// POST /v1/budgets/{name}/answer: to its open request for approval.
struct BudgetAnswer {
  bool approve = false;
  std::optional<std::string> until;  // UTC instant; with approve
  std::optional<std::string> limit;  // the new limit of the month; with approve
};
BOOST_DESCRIBE_STRUCT(BudgetAnswer, (), (approve, until, limit))

struct BudgetNoticeView {
  std::string at;
  std::string kind;
  std::string spent;
  std::string limit;
  std::string words;
};
BOOST_DESCRIBE_STRUCT(BudgetNoticeView, (), (at, kind, spent, limit, words))

struct BudgetView {
  std::string name;
  std::string tenant;
  std::optional<std::string> project;
  std::optional<std::string> environment;
  std::optional<std::string> model;
  std::string currency;
  std::string monthly;
  std::string zone;
  std::string remind_percent;
  std::string limit_percent;
  std::string approve_percent;
  std::string running;
  std::string approval_wait;
  std::vector<std::string> channels;
  std::string spent;     // this month, taxes included
  std::string reserved;  // held for its tasks
  std::string available;
  std::string limit;  // in force
  bool request_open = false;
  std::optional<std::string> approved_by;
  std::optional<std::string> approved_until;
  std::vector<BudgetNoticeView> notices;  // newest first; only where one budget is shown
};
BOOST_DESCRIBE_STRUCT(BudgetView, (),
                      (name, tenant, project, environment, model, currency, monthly, zone,
                       remind_percent, limit_percent, approve_percent, running, approval_wait,
                       channels, spent, reserved, available, limit, request_open, approved_by,
                       approved_until, notices))

struct BudgetList {
  std::vector<BudgetView> budgets;  // by name
};
BOOST_DESCRIBE_STRUCT(BudgetList, (), (budgets))

}  // namespace loam::api

#include "engine/months.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "engine/commitments.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"

namespace loam::engine {
namespace {

// The hour that ends at or after `at` is metered then, and what commitments cover of it given back.
Instant metered_by(Instant at) {
  const std::int64_t hour = metering_interval.ms;
  return Instant{(at.ms + hour - 1) / hour * hour} + metering_slack + metering_slack;
}

// The end of the first month that is open; of what belongs to no month in particular: of the month
// that the tenant's next invoice begins in.
Instant first_end(const State& state, TenantId tenant, const billing::OpenCharges& open) {
  const auto first = open.months.upper_bound(Instant{});
  return first != open.months.end() ? first->first : month_end(state, tenant, open.from);
}

Instant due_of(const State& state, TenantId tenant) {
  if (state.tenant(tenant).spec.invoicing != Invoicing::monthly) return Instant::never();
  const auto open = state.open_charges.find(tenant);
  if (open == state.open_charges.end() || open->second.empty()) return Instant::never();
  return first_end(state, tenant, open->second) + invoice_slack;
}

// Who sells, and what is left to pay: what the wallet, less what the invoice rounds, does not
// cover.
void put_terms(const State& state, Instant now, Money rounded, Invoice& invoice) {
  const Currency currency = invoice.currency;
  const Money balance = state.accounts.balance(billing::wallet_of(invoice.tenant, currency)) +
                        state.accounts.balance(billing::held_of(invoice.tenant, currency)) -
                        rounded;
  const Money zero = Money::zero(currency);
  const Money owed = std::max(-balance, zero).rounded(Rounding::up);
  invoice.seller = state.seller;
  invoice.due = std::min(owed, std::max(invoice.total, zero));
  if (!invoice.due->is_zero())
    invoice.due_at = now + Duration::hours(24 * state.seller.due_after_days);
}

// What was charged was exact. The rest to the payable unit is posted with the invoice, so that the
// ledger has moved by the invoice's total, and the account of taxes by its taxes.
InvoiceId issue(Draft& draft, TenantId tenant, billing::InvoicePeriod period) {
  const State& state = draft.state();
  const billing::OpenCharges& open = state.open_charges.at(tenant);
  const InvoiceId id{draft.next().invoice++};
  const Currency currency = state.tenant(tenant).spec.currency;
  const Money spare = std::max(available(state, tenant), Money::zero(currency));
  Invoice invoice = billing::close(open, id, tenant, currency, period, spare);
  const Money tax = invoice.total - invoice.subtotal - open.tax_to(period.months_to, currency);
  const Money net = invoice.rounding - tax;
  if (!net.is_zero() || !tax.is_zero()) {
    draft.add(TransactionPosted{
        billing::rounding(TransactionId{draft.next().transaction++}, tenant, net, tax, id.text())});
  }
  put_terms(state, draft.now(), net + tax, invoice);
  draft.add(InvoiceIssued{std::move(invoice)});
  return id;
}

std::optional<Reject> fault_of(const State& state, Instant now, const Tenant& tenant,
                               const billing::OpenCharges* open, Instant to) {
  const billing::Zone& zone = state.zones.at(tenant.spec.billing_zone);
  if (billing::month_of(zone, to).from != to) {
    return Reject{RejectCode::invalid_argument,
                  to_text(to) + " is not the end of a month in " + zone.name(),
                  "give a month of the tenant's billing zone"};
  }
  const std::string month = billing::month_text(zone, to - Duration{1});
  if (open != nullptr && open->follows_invoice && to <= open->from) {
    return Reject{RejectCode::wrong_state,
                  tenant.spec.name + " was invoiced up to " + to_text(open->from) +
                      " already, which is all of " + month,
                  "what is told of it later is a correction on the next invoice"};
  }
  if (now < metered_by(to)) {
    return Reject{RejectCode::wrong_state,
                  month + " of " + tenant.spec.name + " ends at " + to_text(to) +
                      " and is metered by " + to_text(metered_by(to)),
                  "ask for it then, or issue an invoice over what was charged so far"};
  }
  return std::nullopt;
}

}  // namespace

Instant month_end(const State& state, TenantId tenant, Instant at) {
  return billing::month_of(state.zones.at(state.tenant(tenant).spec.billing_zone), at).to;
}

Instant month_before(const State& state, TenantId tenant, Instant at) {
  return billing::month_of(state.zones.at(state.tenant(tenant).spec.billing_zone), at - Duration{1})
      .from;
}

bool close_month(Draft& draft) {
  const State& state = draft.state();
  if (state.invoice_dues.empty() || state.invoice_dues.begin()->first > draft.now()) return false;
  const TenantId tenant = state.invoice_dues.begin()->second;
  const billing::OpenCharges& open = state.open_charges.at(tenant);
  Instant end = first_end(state, tenant, open);
  // What belongs to no month in particular may be of any up to now.
  if (open.months.upper_bound(Instant{}) == open.months.end())
    end = std::max(end, month_before(state, tenant, draft.now() - invoice_slack + Duration{1}));
  draft.subject(issue(draft, tenant, {end, end}).text());
  return true;
}

Result<void> check_zone(const TenantSpec& spec) {
  const auto zone = billing::Zone::open(spec.billing_zone);
  if (zone.ok()) return {};
  return Error{ErrorKind::unavailable,
               "the billing zone of " + spec.name + " cannot be used here: " + zone.error().message,
               "install the machine's time zone files (Debian package tzdata), then start again"};
}

void note_zone(State& state, const TenantSpec& spec) {
  if (state.zones.contains(spec.billing_zone)) return;
  auto zone = billing::Zone::open(spec.billing_zone);
  LOAM_ASSERT(zone.ok());
  state.zones.emplace(spec.billing_zone, std::move(*zone));
}

void set_invoice_due(State& state, TenantId tenant) {
  const Instant due = due_of(state, tenant);
  const auto [known, fresh] = state.invoice_due_of.try_emplace(tenant, Instant::never());
  if (due == known->second) return;
  if (known->second != Instant::never()) state.invoice_dues.erase({known->second, tenant});
  if (due != Instant::never()) state.invoice_dues.insert({due, tenant});
  known->second = due;
}

void index_months(State& state) {
  for (const Tenant& tenant : state.tenants) note_zone(state, tenant.spec);
  for (const Tenant& tenant : state.tenants) set_invoice_due(state, tenant.id);
}

Decision decide_on(const State& state, Instant now, const IssueInvoice& asked) {
  if (!asked.tenant.valid() || asked.tenant.value > state.tenants.size()) {
    return Draft::rejected({RejectCode::no_such_tenant, "there is no " + asked.tenant.text(),
                            "see the tenants with: loam tenant list"});
  }
  const Tenant& tenant = state.tenant(asked.tenant);
  const auto found = state.open_charges.find(asked.tenant);
  const billing::OpenCharges* open = found == state.open_charges.end() ? nullptr : &found->second;
  if (asked.to) {
    if (auto reject = fault_of(state, now, tenant, open, *asked.to))
      return Draft::rejected(std::move(*reject));
  }
  if (open == nullptr || open->empty() || (asked.to && open->empty_to(*asked.to))) {
    return Draft::rejected({RejectCode::nothing_to_invoice,
                            "nothing was charged to " + tenant.spec.name +
                                (asked.to ? " up to " + to_text(*asked.to) : "") +
                                " since its last invoice",
                            "usage is charged when a task ends and at every full hour"});
  }
  billing::InvoicePeriod period{now, std::max(now, open->months.rbegin()->first)};
  if (asked.to) period = {*asked.to, *asked.to};
  Draft draft(state, now);
  draft.subject(issue(draft, asked.tenant, period).text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const SetSeller& asked) {
  constexpr std::size_t text_max = 1000;
  constexpr std::int64_t days_max = 3650;
  const Seller& seller = asked.seller;
  const auto bad = [](std::string message, std::string next_step) {
    return Draft::rejected(
        {RejectCode::invalid_argument, std::move(message), std::move(next_step)});
  };
  for (const std::string* text : {&seller.name, &seller.address, &seller.tax_id, &seller.terms}) {
    if (text->size() > text_max)
      return bad("the seller has a text of " + std::to_string(text->size()) + " bytes",
                 "the most is " + std::to_string(text_max));
  }
  if (seller.due_after_days < 0 || seller.due_after_days > days_max) {
    return bad("invoices would be due after " + std::to_string(seller.due_after_days) + " days",
               "use 0 to " + std::to_string(days_max));
  }
  Draft draft(state, now);
  draft.subject("seller");
  if (!(seller == state.seller)) draft.add(SellerSet{seller});
  return draft.done();
}

}  // namespace loam::engine

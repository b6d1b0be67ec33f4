// The auditor's books of prices and documents: rules 8, 9 and 10. It prices by code of its own.
#include <algorithm>

#include "sim/auditor.hpp"

namespace loam::sim {

namespace {

bool matches(const Price& price, const TaskSpec& spec, PurchaseModel model, Isolation isolation) {
  const Isolation sold =
      isolation == Isolation::hardware ? Isolation::hardware : Isolation::software;
  return price.purchase_model == model && price.tariff == spec.tariff &&
         (!price.work_class || *price.work_class == spec.request.work_class) &&
         (!price.isolation || *price.isolation == sold) &&
         (price.service_class.empty() || price.service_class == spec.service_class);
}

bool sells(const RateCard& card, const TaskSpec& spec, PurchaseModel model, Isolation isolation) {
  if (model == PurchaseModel::spot) return card.terms.spot.sold;
  if (model == PurchaseModel::on_demand && spec.tariff == Tariff::flat) return true;
  return std::any_of(card.terms.prices.begin(), card.terms.prices.end(),
                     [&](const Price& price) { return matches(price, spec, model, isolation); });
}

}  // namespace

// The last card at or before `instant` that sells what the lease is billed by: what is sold no more
// keeps its price.
const RateCard* Auditor::card_for(const LeaseBook& book, const TaskBook& owner, Currency currency,
                                  Instant instant) const {
  const RateCard* in_force = nullptr;
  for (const RateCard& card : cards_) {
    if (card.currency != currency || card.effective_from > instant) continue;
    if (!sells(card, owner.spec, book.purchase_model, book.isolation)) continue;
    if (in_force == nullptr || card.effective_from >= in_force->effective_from) in_force = &card;
  }
  return in_force;
}

// The unit price is one that the card has for such a lease.
void Auditor::check_price(const LeaseBook& book, const TaskBook& owner, const UsageRecord& usage,
                          const RateCard& card) {
  if (book.purchase_model == PurchaseModel::spot) {
    const auto share = [&](BasisPoints part) {
      return card.on_demand.times_ratio(part.value, 10'000, Rounding::half_even);
    };
    if (usage.unit_price < share(card.terms.spot.floor) ||
        usage.unit_price > share(card.terms.spot.ceiling))
      fail(8, usage.id.text() + " has a spot price outside of the card's bounds");
    return;
  }
  bool told = false;
  for (const Price& price : card.terms.prices) {
    if (!matches(price, owner.spec, book.purchase_model, book.isolation)) continue;
    told = true;
    if (price.window != usage.window && !price.window.empty()) continue;
    for (const Tier& tier : price.tiers) {
      if (tier.price == usage.unit_price) return;
    }
  }
  const bool general = book.purchase_model == PurchaseModel::on_demand &&
                       owner.spec.tariff == Tariff::flat && usage.unit_price == card.on_demand;
  if (!general || (told && usage.tier_month != Instant{}))
    fail(8, usage.id.text() + " has the price " + to_text(usage.unit_price) +
                ", which its card does not have for it");
}

namespace {

// The most specific price: of a work class before an isolation level, that before a service class.
const Price* price_for(const RateCard& card, const TaskSpec& spec, PurchaseModel model,
                       Isolation isolation, const std::string& window) {
  const auto rank = [](const Price& price) {
    return std::tuple(price.work_class.has_value(), price.isolation.has_value(),
                      !price.service_class.empty());
  };
  const Price* best = nullptr;
  for (const Price& price : card.terms.prices) {
    if (price.window != window || !matches(price, spec, model, isolation)) continue;
    if (best == nullptr || rank(price) > rank(*best)) best = &price;
  }
  return best;
}

// What milli-CE × ms from the month's first on are worth.
Int128 worth_in_tiers(const Price& price, Int128 quantity) {
  constexpr Int128 hour_ms = 3'600'000;
  Int128 worth = 0;
  for (std::size_t i = 0; i < price.tiers.size(); ++i) {
    const Int128 above = price.tiers[i].above_milli_ce_hours * hour_ms;
    if (i > 0 && quantity <= above) break;  // exactly at its bound the lower tier still holds
    const Int128 units = price.tiers[i].price.units();
    if (price.tier_mode == TierMode::volume) {
      worth = units * quantity;
      continue;
    }
    const bool last = i + 1 == price.tiers.size();
    const Int128 top = last ? quantity : price.tiers[i + 1].above_milli_ce_hours * hour_ms;
    worth += units * (std::min(quantity, top) - above);
  }
  return worth;
}

}  // namespace

// Price × CE × time of a record; in tiers, what it moves the tenant's month by.
Int128 Auditor::worth_of(const LeaseBook& book, const TaskBook& owner, const UsageRecord& usage,
                         const RateCard& card) {
  const bool per_task = card.terms.granularity == Granularity::task;
  const Int128 quantity = per_task ? Int128{usage.tasks} * 1000 * 3'600'000
                                   : static_cast<Int128>(book.billable.value) * usage.billed.ms;
  if (usage.tier_month == Instant{}) return usage.unit_price.units() * quantity;
  const Price* price =
      price_for(card, owner.spec, book.purchase_model, book.isolation, usage.window);
  if (price == nullptr || price->tiers.size() < 2) {
    fail(8, usage.id.text() + " counts in tiers that its card does not have for it");
    return 0;
  }
  Int128& used = in_tiers_[{book.tenant, book.purchase_model, usage.tier_month}];
  const Int128 before = std::max<Int128>(0, used);
  used += quantity;
  return worth_in_tiers(*price, std::max<Int128>(0, used)) - worth_in_tiers(*price, before);
}

// The lease's records must come to what its time is worth, divided and rounded once.
void Auditor::check_rating(LeaseBook& book, const TaskBook& owner, const UsageRecord& usage,
                           const RateCard& card) {
  check_price(book, owner, usage, card);
  const TenantBook& tenant = tenants_.at(book.tenant.value - 1);
  std::int64_t off_bp = tenant.spec.discount.value;
  for (const Discount& discount : card.terms.discounts) {
    if (!discount.purchase_model || *discount.purchase_model == book.purchase_model)
      off_bp += discount.off.value;
  }
  const bool given_back = usage.from == usage.to && usage.billed.ms < 0;
  book.given_back = book.given_back || given_back;
  book.net += usage.net;
  if (card.terms.granularity == Granularity::exact && !given_back &&
      usage.billed != usage.to - usage.from)
    fail(8, usage.id.text() + " bills " + to_text(usage.billed) + " of a time without units");
  const Int128 divisor = static_cast<Int128>(1000) * 3'600'000 * 10'000;
  book.worth += worth_of(book, owner, usage, card) * std::max<std::int64_t>(0, 10'000 - off_bp);
  const Int128 off = book.net.units() * divisor - book.worth;
  if (!book.given_back && (off * 2 > divisor || -off * 2 > divisor)) {
    fail(8, usage.id.text() + " brings its lease to " + to_text(book.net) +
                ", which is not what the time is worth");
  }
}

void Auditor::on(const Record& record, const UsageRated& event) {
  const UsageRecord& usage = event.record;
  LeaseBook* book = lease(usage.lease, 8);
  TaskBook* owner = task(usage.task, 8);
  if (book == nullptr || owner == nullptr) return;
  if (usage.id <= last_usage_) fail(8, usage.id.text() + " was given out before");
  last_usage_ = usage.id;
  if (!book->started_at) {
    fail(8, usage.lease.text() + " never started and is billed");
    return;
  }
  if (usage.from != book->rated_until ||
      (usage.to == usage.from && usage.billed.ms == 0 && usage.tasks == 0)) {
    fail(8, usage.id.text() + " begins at " + to_text(usage.from) + " where " +
                to_text(book->rated_until) + " was rated");
  }
  if (usage.to > record.at) fail(8, usage.id.text() + " bills the future");
  if (usage.to < *book->started_at) fail(8, usage.id.text() + " goes back before the start");
  if (usage.billable_ce != book->billable) fail(8, usage.id.text() + " bills another amount of CE");
  // A correction runs backwards: it begins where rating stood and ends earlier. What has no length
  // prices units that were begun, at whatever price they reach into.
  const Instant inside = std::min(usage.from, usage.to);
  const Currency currency = usage.net.currency();
  const RateCard* card = card_for(*book, *owner, currency, inside);
  const bool no_length = usage.from == usage.to;
  if (no_length && usage.card.valid() && usage.card.value <= cards_.size())
    card = &cards_[usage.card.value - 1];
  if (card == nullptr || card->id != usage.card) {
    fail(8, usage.id.text() + " is not priced by the card in force at " + to_text(inside));
    return;
  }
  const RateCard* at_end =
      card_for(*book, *owner, currency, std::max(usage.from, usage.to) - Duration{1});
  if (!no_length && at_end != card) fail(8, usage.id.text() + " runs over a change of price");
  book->rated_until = usage.to;
  book->billed += usage.to - usage.from;
  owner->rated += usage.net;
  TenantBook& tenant = tenants_.at(book->tenant.value - 1);
  note_reserved_use(*book, usage);
  check_month(tenant, usage);
  owe(tenant, usage.card, usage.net, usage.month_end);
  if (book->purchase_model == PurchaseModel::on_demand) {
    // From the tenant's first record on: what a correction takes back may be older than any
    // commitment.
    Money& used = covers_[book->tenant].used;
    if (used.is_zero()) used = Money::zero(currency);
    used += usage.net;
  }
  check_rating(*book, *owner, usage, *card);
}

// Taxes are taken charge by charge, each rounded once.
void Auditor::owe(TenantBook& tenant, RateCardId card, Money net, Instant month_end) {
  const Money zero = Money::zero(tenant.spec.currency);
  tenant.uninvoiced.try_emplace(month_end, zero).first->second += net;
  std::int64_t rate = 0;
  if (card.valid() && card.value <= cards_.size()) {
    for (const Tax& tax : cards_[card.value - 1].terms.taxes) rate += tax.parts_per_million;
  }
  tenant.due.try_emplace(month_end, zero).first->second +=
      net + net.times_ratio(rate, 1'000'000, Rounding::half_even);
}

void Auditor::owe(TenantId tenant, const AdjustmentLine& line) {
  owe(tenants_.at(tenant.value - 1), line.card, line.net, line.month_end);
}

// It lies in one month: in that of its tenant's which ends first after its beginning.
void Auditor::check_month(TenantBook& tenant, const UsageRecord& usage) {
  if (usage.month_end == Instant{}) return;
  const Instant begin = std::min(usage.from, usage.to);
  const Instant end = std::max(usage.from, usage.to);
  if (end > usage.month_end || usage.month_end - begin > Duration::hours(24 * 32))
    fail(9,
         usage.id.text() + " does not lie in the month that ends at " + to_text(usage.month_end));
  const auto known = tenant.uninvoiced.upper_bound(begin);
  if (begin != end && known != tenant.uninvoiced.end() && known->first < usage.month_end)
    fail(9, usage.id.text() + " lies in the month that ends at " + to_text(known->first));
}

void Auditor::on(const Record&, const InvoiceIssued& event) {
  const Invoice& invoice = event.invoice;
  if (invoice.id.value != last_invoice_.value + 1) fail(10, invoice.id.text() + " leaves a gap");
  last_invoice_ = invoice.id;
  TenantBook& tenant = tenants_.at(invoice.tenant.value - 1);
  Money net = Money::zero(invoice.currency);
  Money payable = Money::zero(invoice.currency);
  Int128 unit = 1;
  for (int i = invoice.currency.exponent(); i < Money::decimals; ++i) unit *= 10;
  for (const InvoiceLine& line : invoice.lines) {
    net += line.net;
    payable += line.payable;
    const Int128 off = line.net.units() - line.payable.units();
    if (off >= unit || -off >= unit || line.payable.units() % unit != 0) {
      fail(9, invoice.id.text() + " has a line of " + to_text(line.net) + " payable as " +
                  to_text(line.payable));
    }
  }
  Money total = payable;
  for (const TaxLine& tax : invoice.taxes) total += tax.amount;
  if (payable != invoice.subtotal || total != invoice.total) {
    fail(9, invoice.id.text() + " totals " + to_text(invoice.total) + " over lines of " +
                to_text(payable) + " and taxes of " + to_text(total - payable));
  }
  // It takes in the months that end by then, all of them, and nothing of later ones.
  Money charged = Money::zero(invoice.currency);
  Money stays = charged;
  for (auto& [end, amount] : tenant.uninvoiced) {
    if (end > invoice.months_to) continue;
    charged += amount;
    amount = Money::zero(invoice.currency);
  }
  for (auto& [end, amount] : tenant.due) {
    if (end > invoice.months_to) {
      stays += amount;
    } else {
      amount = Money::zero(invoice.currency);
    }
  }
  if (invoice.months_to < invoice.to)
    fail(9, invoice.id.text() + " ends after the months that it takes in");
  if (net != charged) {
    fail(9, invoice.id.text() + " bills " + to_text(net) + " where " + to_text(charged) +
                " was charged");
  }
  if (tenant.owed - stays != invoice.total) {
    fail(9, invoice.id.text() + " totals " + to_text(invoice.total) +
                " where the ledger moved by " + to_text(tenant.owed - stays));
  }
  tenant.owed = stays;
  to_give_back_.emplace(invoice.id, invoice.total);
}

void Auditor::on(const Record&, const CreditNoteIssued& event) {
  const CreditNote& note = event.note;
  if (note.id.value != last_note_.value + 1) fail(10, note.id.text() + " leaves a gap");
  last_note_ = note.id;
  Money total = note.net;
  for (const TaxLine& tax : note.taxes) total += tax.amount;
  if (total != note.total) fail(9, note.id.text() + " is not the sum of its parts");
  const auto left = to_give_back_.find(note.invoice);
  if (left == to_give_back_.end() || note.total > left->second) {
    fail(9, note.id.text() + " gives back " + to_text(note.total) + ", more than its invoice has");
    return;
  }
  left->second -= note.total;
  tenants_.at(note.tenant.value - 1).owed += note.total;  // what is posted next is not of the open
}

// What goes out was free of the wallet, and a payment is turned round once, as a whole.
void Auditor::check_payment(const Transaction& transaction, TenantBook& tenant) {
  const Currency currency = tenant.spec.currency;
  Money paid_in = Money::zero(currency);
  for (const Posting& posting : transaction.postings) {
    if (posting.account.kind == AccountKind::wallet) paid_in += posting.amount;
  }
  const auto found = balances_.find({AccountKind::wallet, transaction.tenant, currency});
  const Money wallet = found == balances_.end() ? Money::zero(currency) : found->second;
  switch (transaction.kind) {
    case TransactionKind::top_up:
    case TransactionKind::payout:
      payments_[transaction.id] = paid_in;
      if (paid_in.is_negative() && wallet.is_negative())
        fail(9, transaction.id.text() + " pays out more than was in the wallet");
      return;
    case TransactionKind::reversal: {
      const auto original = payments_.find(transaction.reverses);
      if (original == payments_.end() || original->second != -paid_in) {
        fail(9, transaction.id.text() + " reverses what was not paid, or not like this");
        return;
      }
      payments_.erase(original);
      // What was bought with it is owed.
      const Money floor = -(tenant.spec.credit_limit + tenant.overrun);
      if (wallet < floor) tenant.overrun += floor - wallet;
      return;
    }
    default:
      return;
  }
}

void Auditor::on(const Record& record, const SpotPriceMoved& event) {
  const auto [moved, first] = spot_moved_at_.try_emplace(event.currency, record.at);
  if (!first && record.at - moved->second < Duration::minutes(1))
    fail(8, "the price of spot moved twice within a minute");
  moved->second = record.at;
  const RateCard* card = card_at(event.currency, record.at);
  if (card == nullptr || !card->terms.spot.sold ||
      event.price.units() * 100 < card->on_demand.units() * 15 || event.price > card->on_demand)
    fail(8, "spot at " + to_text(event.price) + " is outside of 15 to 100 % of on demand");
}

}  // namespace loam::sim

#include "engine/snapshot.hpp"

#include "base/assert.hpp"
#include "domain/json_codec.hpp"
#include "engine/expiry.hpp"
#include "engine/scheduling.hpp"
#include "engine/service_books.hpp"

namespace loam::engine {

namespace {

// Money's text serves as that of a wide whole number.
std::string text_of(Int128 number) {
  return to_text(Money(number, Currency()));
}
Int128 number_of(const std::string& text) {
  const auto money = Money::parse_text(text);
  LOAM_ASSERT(money.ok());
  return money->units();
}

std::vector<CoverHourImage> images_of(const CoverHours& hours) {
  std::vector<CoverHourImage> images;
  for (const auto& [start, hour] : hours)
    images.push_back({start, hour.pieces, hour.given, hour.due});
  return images;
}
CoverHours hours_of(std::vector<CoverHourImage> images) {
  CoverHours hours;
  for (CoverHourImage& hour : images)
    hours[hour.start] = {std::move(hour.pieces), std::move(hour.given), hour.due};
  return hours;
}

void save_money(const State& state, StateImage& image) {
  for (const auto& table : state.rates.all()) image.rate_cards.push_back(table->card());
  for (const auto& [tenant, counters] : state.tiers) {
    for (const auto& [key, used] : counters.used())
      image.tiers.push_back({tenant, key.first, key.second, text_of(used)});
  }
  for (const auto& [account, amount] : state.accounts.balances())
    image.balances.push_back({account, amount});
  for (const auto& [tenant, open] : state.open_charges) {
    OpenChargesImage& charges = image.open_charges.emplace_back();
    charges.tenant = tenant;
    charges.from = open.from;
    charges.follows_invoice = open.follows_invoice;
    for (const auto& [end, month] : open.months) {
      MonthImage& of = charges.months.emplace_back();
      of.end = end;
      for (const auto& [key, sum] : month.lines) {
        of.lines.push_back(
            {key, sum.milli_ce_ms, sum.tasks, sum.list, sum.net, Money::zero(sum.net.currency())});
      }
      for (const auto& [tax, base] : month.taxed) of.taxed.push_back({tax.first, tax.second, base});
      of.tax = month.tax;
    }
  }
  for (const auto& [id, standing] : state.invoices) image.invoices.push_back(standing);
  for (const auto& [id, payment] : state.payments) image.payments.push_back(payment);
  for (const Currency currency : state.rates.currencies()) {
    const billing::SpotSeries* series = state.rates.spot(currency);
    if (series == nullptr) continue;
    for (const billing::SpotSeries::Move& move : series->moves())
      image.spot.push_back({currency, move.from, move.price});
  }
  for (const auto& [currency, after] : state.reviews) image.reviews.push_back({currency, after});
  image.budgets = state.budgets.images();
  image.spent = state.budgets.spent().images();
  for (const auto& [tenant, book] : state.commitment_books)
    image.commitments.push_back({tenant, book.commitments, images_of(book.hours)});
  for (const auto& [id, book] : state.reservations)
    image.reservations.push_back({book.reservation, images_of(book.hours)});
  for (const auto& [budget, task] : state.ending) image.ending.push_back({budget, task});
  for (const auto& [tenant, use] : state.month_uses)
    image.month_uses.push_back({tenant, use.until, text_of(use.milli_ce_ms)});
  for (const auto& [task, ce] : state.spot_waiting) image.spot_waiting.push_back({task, ce});
  for (const auto& [source, last] : state.token_sources)
    image.token_sources.push_back({source, last});
}

void restore_money(State& state, StateImage& image) {
  for (RateCard& card : image.rate_cards) {
    auto table = billing::PriceTable::compile(std::move(card));
    LOAM_ASSERT(table.ok());
    const Result<void> added = state.rates.add(std::move(*table));
    LOAM_ASSERT(added.ok());
  }
  for (const TierImage& tier : image.tiers)
    state.tiers[tier.tenant].add(tier.purchase_model, tier.month, number_of(tier.milli_ce_ms));
  for (const BalanceImage& balance : image.balances)
    state.accounts.restore(balance.account, balance.amount);
  for (OpenChargesImage& charges : image.open_charges) {
    billing::OpenCharges& open = state.open_charges[charges.tenant];
    open.from = charges.from;
    open.follows_invoice = charges.follows_invoice;
    for (MonthImage& of : charges.months) {
      billing::MonthCharges& month = open.months[of.end];
      for (InvoiceLine& line : of.lines)
        month.lines.emplace(line.key,
                            billing::OpenLine{line.milli_ce_ms, line.tasks, line.list, line.net});
      for (TaxedImage& tax : of.taxed)
        month.taxed.emplace(std::pair(std::move(tax.name), tax.parts_per_million), tax.base);
      month.tax = of.tax;
    }
  }
  for (InvoiceStanding& standing : image.invoices) {
    const InvoiceId id = standing.id;
    state.invoices.emplace(id, std::move(standing));
  }
  for (const Payment& payment : image.payments) state.payments.emplace(payment.id, payment);
  for (const SpotImage& move : image.spot)
    state.rates.move_spot(move.currency, move.from, move.price);
  for (const ReviewImage& review : image.reviews) state.reviews[review.currency] = review.after;
  for (billing::BudgetImage& budget : image.budgets) {
    const Result<void> restored = state.budgets.restore(std::move(budget));
    LOAM_ASSERT(restored.ok());
  }
  state.budgets.restore(std::move(image.spent));
  for (CommitmentBookImage& of : image.commitments) {
    CommitmentBook& book = state.commitment_books[of.tenant];
    book.commitments = std::move(of.commitments);
    book.hours = hours_of(std::move(of.hours));
  }
  for (ReservationBookImage& of : image.reservations) {
    ReservationBook& book = state.reservations[of.reservation.id];
    book.reservation = std::move(of.reservation);
    book.hours = hours_of(std::move(of.hours));
  }
  index_dues(state);
  index_months(state);
  for (EndingImage& ending : image.ending)
    state.ending.insert({std::move(ending.budget), ending.task});
  for (TokenSourceImage& source : image.token_sources)
    state.token_sources[std::move(source.source)] = source.sequence;
  for (const MonthUseImage& month : image.month_uses)
    state.month_uses[month.tenant] = {month.until, number_of(month.milli_ce_ms)};
  for (const WantedImage& wanted : image.spot_waiting) {
    state.spot_waiting[wanted.task] = wanted.ce;
    state.market.wanted += wanted.ce;
  }
}

}  // namespace

StateImage image_of(const State& state) {
  StateImage image;
  image.sequence = static_cast<std::int64_t>(state.sequence);
  image.now = state.now;
  image.next_task = static_cast<std::int64_t>(state.next.task);
  image.next_lease = static_cast<std::int64_t>(state.next.lease);
  image.next_usage = static_cast<std::int64_t>(state.next.usage);
  image.next_transaction = static_cast<std::int64_t>(state.next.transaction);
  image.next_invoice = static_cast<std::int64_t>(state.next.invoice);
  image.next_credit_note = static_cast<std::int64_t>(state.next.credit_note);
  image.next_commitment = static_cast<std::int64_t>(state.next.commitment);
  image.next_reservation = static_cast<std::int64_t>(state.next.reservation);
  image.nodes = state.nodes;
  image.devices = state.devices;
  image.tenants = state.tenants;
  save_money(state, image);
  image.tasks.reserve(state.tasks.size());
  for (const auto& [id, task] : state.tasks) image.tasks.push_back(task);
  image.leases.reserve(state.leases.size());
  for (const auto& [id, lease] : state.leases) image.leases.push_back(lease);
  image.requests.reserve(state.requests.size());
  for (const auto& [key, request] : state.requests) {
    image.requests.push_back(
        {key.first, key.second, request.fingerprint, request.subject, request.at});
  }
  for (const auto& [id, plan] : state.spot_plans) image.spot_plans.push_back(plan);
  for (const auto& [tenant, uses] : state.run_uses) {
    for (const auto& [name, runs] : uses) image.run_uses.push_back({tenant, name, runs});
  }
  image.settings = state.settings;
  image.seller = state.seller;
  image.scheduler = state.scheduler.image();
  return image;
}

State state_of(StateImage image) {
  State state;
  state.sequence = static_cast<std::uint64_t>(image.sequence);
  state.now = image.now;
  state.next.task = static_cast<std::uint64_t>(image.next_task);
  state.next.lease = static_cast<std::uint64_t>(image.next_lease);
  state.next.usage = static_cast<std::uint64_t>(image.next_usage);
  state.next.transaction = static_cast<std::uint64_t>(image.next_transaction);
  state.next.invoice = static_cast<std::uint64_t>(image.next_invoice);
  state.next.credit_note = static_cast<std::uint64_t>(image.next_credit_note);
  state.next.commitment = static_cast<std::uint64_t>(image.next_commitment);
  state.next.reservation = static_cast<std::uint64_t>(image.next_reservation);
  state.nodes = std::move(image.nodes);
  state.devices = std::move(image.devices);
  state.tenants = std::move(image.tenants);
  restore_money(state, image);
  // From here on: the indexes.
  for (const Node& node : state.nodes) {
    state.node_by_name[node.name] = node.id;
    state.pool.refresh(figures_of(node));
    count_capacity(state, node, +1);
    if (node.marked()) state.marked.insert({node.marked_until, node.id});
  }
  for (const Tenant& tenant : state.tenants) state.tenant_by_name[tenant.spec.name] = tenant.id;
  apply_settings(state, image.settings);
  state.seller = std::move(image.seller);
  for (const Tenant& tenant : state.tenants) apply_tenant(state, tenant);
  for (const auto& [tenant, use] : state.month_uses) set_month(state, tenant);
  for (const Device& device : state.devices) {
    state.device_by_uuid[device.facts->uuid] = device.id;
    refresh_pool(state, device);
    state.kinds.note(device.id, device.facts->type);
    count_capacity(state, device, +1);
    if (device.health == DeviceHealth::lost && device.leases > 0)
      state.lost_in_use.insert(device.id);
    if (device.health == DeviceHealth::healthy && !device.draining)
      state.market.ready += device.facts->factors.general;
  }
  for (Lease& lease : image.leases) {
    for (const Slice& slice : lease.slices) state.leases_by_device[slice.device].insert(lease.id);
    if (const Instant due = next_due(lease); due != Instant::never())
      state.timers.insert({due, lease.id});
    (lease.purchase_model == PurchaseModel::spot ? state.market.spot : state.market.firm) +=
        lease.ce;
    state.leases.emplace(lease.id, std::move(lease));
  }
  for (Task& task : image.tasks) {
    Task& restored = state.tasks.emplace(task.id, std::move(task)).first->second;
    const Instant kept_from = restored.kept_from;
    restored.kept_from = Instant::never();
    if (kept_from != Instant::never()) begin_keeping(state, restored, kept_from);
  }
  state.scheduler.restore(std::move(image.scheduler));
  index_reservations(state);
  for (const SpotPlan& plan : image.spot_plans) state.spot_plans.emplace(plan.task, plan);
  index_spot(state);
  for (RunUsesImage& of : image.run_uses)
    state.run_uses[of.tenant][std::move(of.name)] = std::move(of.runs);
  count_late(state);
  count_expiries(state);
  for (RequestImage& request : image.requests) {
    const std::pair key{request.scope, request.key};
    state.requests_by_age.insert({request.at, key});
    state.requests[key] = {request.fingerprint, request.subject, request.at};
  }
  return state;
}

Result<void> check_card(const RateCard& card) {
  const auto table = billing::PriceTable::compile(card);
  if (table.ok()) return {};
  return Error{ErrorKind::unavailable,
               "the rate card " + card.id.text() + " cannot be used here: " + table.error().message,
               "install the machine's time zone files (Debian package tzdata), then start again"};
}

Result<void> check_cards(const StateImage& image) {
  for (const RateCard& card : image.rate_cards) LOAM_CHECK(check_card(card));
  for (const Tenant& tenant : image.tenants) LOAM_CHECK(check_zone(tenant.spec));
  return {};
}

std::string encode(const StateImage& image) {
  return json::to_document(image);
}

Result<StateImage> decode_image(std::string_view text, int version) {
  if (version != snapshot_version) {
    return Error{ErrorKind::unsupported,
                 "a snapshot of version " + std::to_string(version) + " is not known",
                 version < snapshot_version ? "its journal is replayed instead"
                                            : "run the newer loam that wrote it"};
  }
  return json::from_document<StateImage>(text, json::Missing::is_error, ErrorKind::corrupt);
}

std::uint64_t digest(const State& state) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : encode(image_of(state))) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace loam::engine

#include "engine/state.hpp"

#include <algorithm>
#include <charconv>

#include "engine/scheduling.hpp"
#include "engine/service_books.hpp"

namespace loam::engine {

State::State() {
  apply_settings(*this, SchedulingSettings{});
}

const Task* State::find_task(TaskId id) const {
  const auto found = tasks.find(id);
  return found == tasks.end() ? nullptr : &found->second;
}

const Lease* State::find_lease(LeaseId id) const {
  const auto found = leases.find(id);
  return found == leases.end() ? nullptr : &found->second;
}

const Device* State::find_device(std::string_view name) const {
  if (const auto found = device_by_uuid.find(std::string(name)); found != device_by_uuid.end()) {
    return &device(found->second);
  }
  const std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return nullptr;
  const auto found = node_by_name.find(name.substr(0, slash));
  if (found == node_by_name.end()) return nullptr;
  std::size_t index = 0;
  const std::string_view digits = name.substr(slash + 1);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const std::vector<DeviceId>& on_node = node(found->second).devices;
  if (fault != std::errc{} || end != digits.data() + digits.size() || index >= on_node.size())
    return nullptr;
  return &device(on_node[index]);
}

const Tenant* State::find_tenant(std::string_view name) const {
  const auto found = tenant_by_name.find(name);
  return found == tenant_by_name.end() ? nullptr : &tenant(found->second);
}

const billing::TierCounters& State::tiers_of(TenantId tenant) const {
  static const billing::TierCounters none;
  const auto found = tiers.find(tenant);
  return found == tiers.end() ? none : found->second;
}

billing::SpotMarket Market::spot_market() const {
  return {std::max(MilliCe{0}, ready - firm), spot + wanted};
}

namespace {

// When the price of spot may next move: a minute after its last move where it would, and at the
// next card.
Instant spot_due(const State& state, Instant now) {
  Instant due = Instant::never();
  for (const Currency currency : state.rates.currencies()) {
    due = std::min(due, state.rates.next_change(currency, now));
    const billing::PriceTable* table = state.rates.at(currency, now);
    if (table == nullptr || !table->terms().spot.sold) continue;
    const billing::SpotSeries* series = state.rates.spot(currency);
    if (series == nullptr) return now;
    const Money price = billing::spot_price(table->terms().spot, table->card().on_demand,
                                            state.market.spot_market());
    const billing::SpotSeries::Move& last = series->moves().back();
    if (price != last.price) due = std::min(due, last.from + billing::spot_move_min);
  }
  return due;
}

}  // namespace

Instant next_due(const State& state, Instant now) {
  Instant due = state.timers.empty() ? Instant::never() : state.timers.begin()->first;
  if (state.rates.sells_spot()) due = std::min(due, spot_due(state, now));
  if (!state.budgets.empty()) due = std::min(due, state.budgets.next_due(now));
  // A new month lets those start who had used up the last one.
  for (const TenantId id : state.month_limited) {
    const auto use = state.month_uses.find(id);
    if (use != state.month_uses.end() && use->second.until > state.now &&
        state.tenant(id).tasks_waiting > 0)
      due = std::min(due, use->second.until);
  }
  due = std::min(due, kept_due(state));
  if (!state.late_due.empty()) due = std::min(due, state.late_due.begin()->first);
  if (!state.expiries.empty()) due = std::min(due, state.expiries.begin()->first);
  if (!state.spot_dues.empty()) due = std::min(due, state.spot_dues.begin()->first);
  if (!state.commitment_dues.empty()) due = std::min(due, state.commitment_dues.begin()->first);
  if (!state.reservation_dues.empty()) due = std::min(due, state.reservation_dues.begin()->first);
  if (!state.invoice_dues.empty()) due = std::min(due, state.invoice_dues.begin()->first);
  return due;
}

Instant next_due(const Lease& lease) {
  if (!lease.started()) return Instant::never();
  const std::int64_t hour = metering_interval.ms;
  const Instant boundary{(lease.billed_until.ms / hour + 1) * hour};
  // A report of an end just before the boundary must come first, or time would be billed that was
  // not run.
  const Instant metering = boundary + metering_slack;
  return lease.stopping == StopReason::none ? std::min(metering, lease.stop_at) : metering;
}

}  // namespace loam::engine

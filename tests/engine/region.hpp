// A region under a test's hand: commands one after the other on a state, with the clock set by the
// test, and the short words of money and rate cards.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/random.hpp"
#include "billing/accounts.hpp"
#include "engine/decide.hpp"
#include "engine/queries.hpp"
#include "engine/snapshot.hpp"

namespace loam::engine {

inline const Currency usd("USD");
inline constexpr Duration hour = Duration::hours(1);
inline constexpr TenantId acme{1};                  // the first that is created
inline constexpr Instant start{1'772'323'200'000};  // 2026-03-01T00:00:00Z, a Sunday

inline Money money(const char* amount) {
  return *Money::parse(amount, usd);
}

inline Price price(Tariff tariff, const char* window, const char* amount) {
  Price made;
  made.tariff = tariff;
  made.window = window;
  made.tiers = {{0, money(amount)}};
  return made;
}

inline PriceTerms day_and_night() {
  PriceTerms terms;
  terms.zone = "Europe/Berlin";
  terms.windows = {{"day", {}, "", Duration::hours(8), Duration::hours(20)},
                   {"night", {}, "", Duration::hours(20), Duration::hours(8)}};
  terms.prices = {price(Tariff::time_of_day, "day", "3"), price(Tariff::time_of_day, "night", "1")};
  return terms;
}

// Commands one after the other on a state, with the clock in hand.
class Region {
 public:
  Region() {
    DeviceFacts facts;
    facts.uuid = "gpu-0";
    facts.type = "A100";
    facts.memory = Mebibytes{81'920};
    facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
    act(AttachNode{"n1", "", MilliCpu{}, Mebibytes{}});
    act(AttachDevice{"n1", facts});
    TenantSpec tenant;
    tenant.name = "acme";
    tenant.payment = PaymentMode::prepaid;
    tenant.currency = usd;
    tenant.credit_limit = Money::zero(usd);
    tenant.discount = BasisPoints{500};
    act(CreateTenant{tenant});
    act(TopUp{TenantId{1}, money("100000"), ""});
  }

  Decision act(const Command& command) {
    Decision decision = decide(state, now, command);
    for (const Event& event : decision.events)
      evolve(state, Record{state.sequence + 1, now, Actor{"test", "me"}, event});
    if (on_decision) on_decision(decision);
    return decision;
  }
  void settle() {
    while (!act(TimePassed{}).events.empty()) {
    }
    while (!act(SchedulePass{}).events.empty()) {
    }
  }
  void go(Instant to) {
    while (next_due(state, now) <= to) {
      now = std::max(now, next_due(state, now));
      settle();
    }
    now = to;
    settle();
  }
  Decision publish(PriceTerms terms, const char* on_demand = "2", Instant from = {}) {
    RateCard card;
    card.on_demand = money(on_demand);
    card.terms = std::move(terms);
    card.effective_from = from;
    return act(PublishRateCard{card});
  }
  static TaskSpec spec() {
    TaskSpec made;
    made.command = {"true"};
    made.request.share = MilliDevice{300};
    made.request.memory = Mebibytes{1024};
    made.limit = Duration::hours(30);
    return made;
  }
  Money revenue() const { return state.accounts.balance(billing::revenue_in(usd)); }
  Money wallet() const { return state.accounts.balance(billing::wallet_of(TenantId{1}, usd)); }
  Money held() const { return state.accounts.balance(billing::held_of(TenantId{1}, usd)); }

  State state;
  Instant now = start;
  std::function<void(const Decision&)> on_decision;  // what a test keeps of each
};

}  // namespace loam::engine

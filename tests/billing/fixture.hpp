// Short words for billing tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "billing/rater.hpp"

namespace loam::billing {

inline const Currency usd("USD");

inline Money money(const char* amount, Currency currency = usd) {
  return Money::parse(amount, currency).value();
}
inline Instant at(const char* text) {
  return parse_instant(text).value();
}
inline Date day(const char* text) {
  return parse_date(text).value();
}
inline Duration hm(int hours, int minutes = 0) {
  return Duration::minutes(hours * 60 + minutes);
}

inline RateCard card(const char* price, const char* from = "1970-01-01T00:00:00Z",
                     std::uint64_t id = 1) {
  RateCard made;
  made.id = RateCardId{id};
  made.effective_from = at(from);
  made.on_demand = money(price);
  return made;
}

inline Tables tables_of(const RateCard& card, PriceTerms terms = {}) {
  Tables tables;
  auto table = PriceTable::compile(card, std::move(terms));
  EXPECT_TRUE(table.ok()) << to_text(table.error());
  EXPECT_TRUE(tables.add(std::move(*table)).ok());
  return tables;
}

inline Window window(const char* name, Duration from, Duration to,
                     std::vector<std::int64_t> weekdays = {}) {
  return {name, std::move(weekdays), "", from, to};
}

inline Price by_time(const char* window, const char* amount) {
  Price price;
  price.tariff = Tariff::time_of_day;
  price.window = window;
  price.tiers = {{0, money(amount)}};
  return price;
}

inline Usage usage(const char* id, Instant from, Instant to, std::int64_t milli_ce) {
  Usage made;
  made.id = id;
  made.lease = LeaseId{1};
  made.tenant = TenantId{1};
  made.from = made.run_from = from;
  made.to = to;
  made.billable_ce = MilliCe{milli_ce};
  return made;
}

inline Amount rated(const Tables& tables, const Usage& usage, BasisPoints discount = {0}) {
  std::vector<Charge> charges;
  const auto done = Rater(tables, {usd, discount}).rate(usage, charges);
  EXPECT_TRUE(done.ok()) << to_text(done.error());
  return total_of(charges, usd);
}

// The reason of a refusal; empty where there is none.
template <class T>
std::string refusal(const Result<T>& result) {
  return result.ok() ? "" : to_text(result.error());
}

}  // namespace loam::billing

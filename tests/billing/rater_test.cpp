// The rules of rating one by one. The whole of it against an independent slow rater is in
// reference_test.
#include "billing/fixture.hpp"
#include "billing/quotes.hpp"

namespace loam::billing {
namespace {

TEST(Rater, splitting_a_record_changes_no_more_than_one_rounding_a_piece) {
  const Tables tables = tables_of(card("0.0237"));
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Instant from{1'740'000'000'000 + random.between(0, 100'000'000)};
    const Instant to = from + Duration{random.between(10, 100'000'000)};
    const Usage whole = usage("w", from, to, random.between(1, 100'000));
    Money sum = Money::zero(usd);
    int pieces = 0;
    for (Instant cut = from; cut < to; ++pieces) {
      const Instant end = std::min(to, cut + Duration{random.between(1, 30'000'000)});
      Usage piece = whole;
      piece.from = cut;
      piece.to = end;
      sum += rated(tables, piece).net;
      cut = end;
    }
    const Int128 off = sum.units() - rated(tables, whole).net.units();
    EXPECT_LE(off < 0 ? -off : off, pieces) << "seed " << seed;
  }
}

TEST(Rater, more_time_or_more_compute_never_costs_less) {
  PriceTerms terms;
  terms.windows = {window("a", hm(0), hm(9)), window("b", hm(9), hm(0))};
  terms.prices = {by_time("a", "0"), by_time("b", "2.5")};
  terms.prices[1].tiers.push_back({1'000, money("0.5")});
  const Tables tables = tables_of(card("1"), terms);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Instant from{1'740'000'000'000 + random.between(0, 100'000'000)};
    Usage record = usage("w", from, from + Duration{random.between(1, 90'000'000)},
                         random.between(1, 100'000));
    record.terms.tariff = random.chance(500) ? Tariff::flat : Tariff::time_of_day;
    const Money before = rated(tables, record).net;
    Usage longer = record, wider = record;
    longer.to = longer.to + Duration{random.between(1, 50'000'000)};
    wider.billable_ce += MilliCe{random.between(1, 50'000)};
    EXPECT_GE(rated(tables, longer).net, before) << "seed " << seed;
    EXPECT_GE(rated(tables, wider).net, before) << "seed " << seed;
  }
}

TEST(Rater, begun_units_are_billed_whole_and_once) {
  PriceTerms terms;
  terms.granularity = Granularity::minute;
  const Tables tables = tables_of(card("60"), terms);
  const Instant start = at("2025-03-01T00:00:10Z");
  EXPECT_EQ(rated(tables, usage("u", start, start + Duration{1}, 1000)).net, money("1"));
  EXPECT_EQ(rated(tables, usage("u", start, start + Duration::seconds(60), 1000)).net, money("1"));
  EXPECT_EQ(rated(tables, usage("u", start, start + Duration::seconds(61), 1000)).net, money("2"));
  // Cut anywhere, the minutes of the run stay the same.
  Usage first = usage("a", start, start + Duration::seconds(90), 1000);
  Usage second = usage("b", start + Duration::seconds(90), start + Duration::seconds(110), 1000);
  second.run_from = start;
  EXPECT_EQ(rated(tables, first).net, money("2"));
  EXPECT_EQ(rated(tables, second).net, money("0"));
}

TEST(Rater, a_price_per_task_is_charged_when_the_run_begins) {
  PriceTerms terms;
  terms.granularity = Granularity::task;
  const Tables tables = tables_of(card("5"), terms);
  const Instant start = at("2025-03-01T00:00:00Z");
  Usage first = usage("a", start, start + hm(1), 70'000);
  Usage second = usage("b", start + hm(1), start + hm(3), 70'000);
  second.run_from = start;
  EXPECT_EQ(rated(tables, first, {1000}).net, money("4.5"));
  EXPECT_EQ(rated(tables, second).net, money("0"));
}

TEST(Rater, graduated_tiers_count_on_through_the_month_and_start_anew_in_the_next) {
  PriceTerms terms;
  terms.zone = "America/New_York";
  Price tiered;
  tiered.tiers = {{0, money("2")}, {1'000, money("1")}};  // the first CE-hour at 2
  terms.prices = {tiered};
  const Tables tables = tables_of(card("2"), terms);
  const Rater rater(tables, {usd, {0}});
  TierCounters counters;
  std::vector<Charge> charges;
  const auto add = [&](const char* from, int hours) {
    charges.clear();
    EXPECT_TRUE(
        rater.rate(usage("u", at(from), at(from) + hm(hours), 1000), charges, &counters).ok());
    return total_of(charges, usd).net;
  };
  EXPECT_EQ(add("2025-03-05T00:00:00Z", 2), money("3"));
  EXPECT_EQ(add("2025-03-06T00:00:00Z", 2), money("2"));
  EXPECT_EQ(add("2025-04-01T03:00:00Z", 2), money("3"));  // an hour of March, then April's first
  EXPECT_EQ(charges.size(), 2u);
}

TEST(Rater, storage_backups_and_network_have_rates_of_their_own) {
  PriceTerms terms;
  terms.services = {money("0.10"), money("0.05"), money("0.02")};
  const Tables tables = tables_of(card("1"), terms);
  Usage record = usage("u", at("2025-03-01T00:00:00Z"), at("2025-03-01T02:00:00Z"), 0);
  record.storage_mib_ms = 10 * 1024 * 7'200'000LL;
  record.backup_mib_ms = 512 * 7'200'000LL;
  record.network_bytes = std::int64_t{3} << 29;
  std::vector<Charge> charges;
  ASSERT_TRUE(Rater(tables, {usd, {0}}).rate(record, charges).ok());
  ASSERT_EQ(charges.size(), 4u);
  EXPECT_EQ(charges[1].net, money("2"));
  EXPECT_EQ(charges[2].net, money("0.05"));
  EXPECT_EQ(charges[3].net, money("0.03"));
}

TEST(Rater, what_is_held_over_a_change_of_prices_is_split_to_the_last_unit) {
  PriceTerms before, after;
  before.services.storage = money("0.10");
  after.services = {money("0.30"), std::nullopt, money("0.02")};
  RateCard second = card("1");
  second.id = RateCardId{2};
  second.effective_from = at("2025-03-01T01:00:00Z");
  Tables tables = tables_of(card("1"), before);
  ASSERT_TRUE(tables.add(*PriceTable::compile(second, after)).ok());
  Usage record = usage("u", at("2025-03-01T00:00:00Z"), at("2025-03-01T03:00:00Z"), 5000);
  record.storage_mib_ms = 1024 * 10'800'000LL + 1;  // one more than parts evenly
  record.network_bytes = std::int64_t{1} << 30;     // priced when it begins: not sold then
  std::vector<Charge> charges;
  ASSERT_TRUE(Rater(tables, {usd, {0}}).rate_services(record, charges).ok());
  ASSERT_EQ(charges.size(), 2u) << "and no compute";
  EXPECT_EQ(static_cast<std::int64_t>(charges[0].quantity + charges[1].quantity),
            record.storage_mib_ms);
  EXPECT_EQ(charges[0].net, money("0.1"));
  EXPECT_EQ(to_text(charges[1].net + charges[0].net).substr(0, 3), "0.7");
}

TEST(Rater, discounts_add_up_to_at_most_the_whole) {
  PriceTerms terms;
  terms.discounts = {{"spring", {2000}, {}}, {"reserved", {9000}, PurchaseModel::reservation}};
  const Tables tables = tables_of(card("10"), terms);
  const Usage hour = usage("u", at("2025-03-01T00:00:00Z"), at("2025-03-01T01:00:00Z"), 1000);
  EXPECT_EQ(rated(tables, hour).net, money("8"));
  EXPECT_EQ(rated(tables, hour, {3000}).net, money("5"));
  EXPECT_EQ(rated(tables, hour, {9000}).net, money("0"));
  EXPECT_EQ(rated(tables, hour, {9000}).list, money("10"));
}

TEST(Rater, absurd_sizes_are_exact_too) {
  RateCard dear = card("1");
  dear.on_demand = Money(Int128{1'000'000'000'000'000} * Money::units_per_one, usd);
  const Tables tables = tables_of(dear);
  // 10^9 CE for a whole year at 10^15: only the limit of Money itself ends it.
  const Usage record =
      usage("u", at("2025-03-01T00:00:00Z"), at("2025-03-01T01:00:00Z"), 10'000'000'000);
  EXPECT_EQ(rated(tables, record).net.units(), dear.on_demand.units() * 10'000'000);
}

TEST(Rater, what_is_not_sold_or_has_no_price_is_refused_and_nothing_charged) {
  const Tables tables = tables_of(card("1", "2025-01-01T00:00:00Z"));
  const Rater rater(tables, {usd, {0}});
  std::vector<Charge> charges;
  EXPECT_NE(
      refusal(rater.rate(usage("u", at("2024-12-31T23:00:00Z"), at("2025-01-01T01:00:00Z"), 1),
                         charges))
          .find("no price in USD"),
      std::string::npos);
  Usage reserved = usage("u", at("2025-02-01T00:00:00Z"), at("2025-02-01T01:00:00Z"), 1);
  reserved.terms.purchase_model = PurchaseModel::reservation;
  EXPECT_NE(refusal(rater.rate(reserved, charges)).find("does not sell reservation"),
            std::string::npos);
  EXPECT_TRUE(charges.empty());
  EXPECT_FALSE(
      Rater(tables, {Currency("EUR"), {0}})
          .rate(usage("u", at("2025-02-01T00:00:00Z"), at("2025-02-01T01:00:00Z"), 1), charges)
          .ok());
}

TEST(Rater, a_record_that_is_refused_moves_no_tier) {
  PriceTerms terms;
  Price reserved;
  reserved.purchase_model = PurchaseModel::reservation;
  reserved.tiers = {{0, money("2")}, {1'000, money("1")}};
  terms.prices = {reserved};
  Tables tables = tables_of(card("1"), terms);
  ASSERT_TRUE(tables.add(*PriceTable::compile(card("1", "2025-03-02T00:00:00Z", 2))).ok());
  const Rater rater(tables, {usd, {0}});
  TierCounters counters;
  std::vector<Charge> charges;
  Usage across = usage("a", at("2025-03-01T20:00:00Z"), at("2025-03-02T01:00:00Z"), 1000);
  across.terms.purchase_model = PurchaseModel::reservation;
  EXPECT_FALSE(rater.rate(across, charges, &counters).ok());
  EXPECT_TRUE(charges.empty());
  Usage inside = across;
  inside.to = at("2025-03-01T22:00:00Z");
  ASSERT_TRUE(rater.rate(inside, charges, &counters).ok());
  EXPECT_EQ(total_of(charges, usd).net, money("3"));
}

TEST(Quote, a_task_that_runs_as_quoted_costs_what_the_quote_said) {
  PriceTerms terms;
  terms.zone = "Europe/Berlin";
  terms.windows = {window("day", hm(8), hm(20)), window("night", hm(20), hm(8))};
  terms.prices = {by_time("day", "2"), by_time("night", "0.5")};
  const Tables tables = tables_of(card("1"), terms);
  QuoteRequest request;
  request.terms.tariff = Tariff::time_of_day;
  request.ce = MilliCe{25'000};
  request.start = at("2025-03-30T00:30:00Z");
  request.expected = hm(9, 17);
  request.longest = hm(12);
  const PriceQuote quoted = *quote(tables, {usd, {500}}, request);
  Usage ran = usage("u", request.start, request.start + request.expected, 25'000);
  ran.terms = request.terms;
  EXPECT_EQ(rated(tables, ran, {500}).net, quoted.expected);
  EXPECT_LE(quoted.best, quoted.expected);
  EXPECT_GE(quoted.worst, quoted.expected);
  EXPECT_NE(quoted.rule.find("Europe/Berlin"), std::string::npos);
  request.terms = {};
  request.terms.purchase_model = PurchaseModel::spot;
  EXPECT_FALSE(quote(tables, {usd, {0}}, request).ok());
  terms.spot.sold = true;
  Tables with_spot = tables_of(card("1"), terms);
  EXPECT_FALSE(quote(with_spot, {usd, {0}}, request).ok());  // no price was made yet
  with_spot.move_spot(usd, request.start, money("0.3"));
  const PriceQuote spot = *quote(with_spot, {usd, {0}}, request);
  EXPECT_LT(spot.best, spot.expected);
  EXPECT_NE(spot.rule.find("displace"), std::string::npos);
}

}  // namespace
}  // namespace loam::billing

// Purchase models: covering conserves every milli-CE and millisecond; fees by the day; spot.
#include "billing/purchase.hpp"

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

const Instant start = parse_instant("2025-03-01T00:00:00Z").value();

Int128 area(MilliCe ce, const Period& period) {
  return static_cast<Int128>(ce.value) * (period.to - period.from).ms;
}

TEST(Cover, covered_and_unused_add_up_to_the_right_and_covered_and_rest_to_usage) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<Usage> usages;
    Int128 used = 0;
    for (std::uint64_t i = 0; i < 1 + random.below(12); ++i) {
      const Instant from = start + Duration{random.between(0, 1000)};
      usages.push_back(usage(("u" + std::to_string(i)).c_str(), from,
                             from + Duration{random.between(1, 1000)}, random.between(0, 50)));
      used += area(usages.back().billable_ce, {usages.back().from, usages.back().to});
    }
    const CapacityRight right{
        "c", {start + Duration{200}, start + Duration{1500}}, MilliCe{random.between(0, 100)}};
    const Coverage coverage = cover(usages, right);
    Int128 covered = 0, rest = 0, unused = 0;
    std::vector<std::int64_t> tiled(usages.size(), 0);
    for (const CoveredPiece& piece : coverage.pieces) {
      covered += area(piece.covered, piece.period);
      rest += area(piece.rest, piece.period);
      tiled[piece.usage] += (piece.period.to - piece.period.from).ms;
    }
    for (const UnusedPiece& piece : coverage.unused) unused += area(piece.ce, piece.period);
    EXPECT_TRUE(covered + rest == used) << "seed " << seed;
    EXPECT_TRUE(covered + unused == area(right.ce, right.period)) << "seed " << seed;
    for (std::size_t i = 0; i < usages.size(); ++i)
      EXPECT_EQ(tiled[i], usages[i].length().ms) << "seed " << seed;
  }
}

TEST(Cover, the_rest_falls_to_on_demand) {
  // 10 CE committed; 6 CE for two hours and 8 CE in the second: 4 CE-hours are not covered.
  const std::vector<Usage> usages{usage("a", start, start + hm(2), 6000),
                                  usage("b", start + hm(1), start + hm(2), 8000)};
  const Coverage coverage = cover(usages, {"c", {start, start + hm(2)}, MilliCe{10'000}});
  ASSERT_EQ(coverage.pieces.size(), 2u);
  EXPECT_EQ(coverage.pieces[0].rest, MilliCe{0});
  EXPECT_EQ(coverage.pieces[1].covered, MilliCe{4000});
  EXPECT_EQ(coverage.pieces[1].rest, MilliCe{4000});
  ASSERT_EQ(coverage.unused.size(), 1u);
  EXPECT_EQ(coverage.unused[0].ce, MilliCe{4000});
}

TEST(CommitmentPlan, periods_follow_the_anchor_through_short_months) {
  const CommitmentPlan monthly{
      "m", day("2025-01-31"), 1, day("2025-01-31"), day("2025-05-15"), money("310"), {}};
  const auto lines = fees(monthly);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(to_text(lines[1].from), "2025-02-28");
  EXPECT_EQ(to_text(lines[2].from), "2025-03-31");
  EXPECT_EQ(lines[0].amount, money("310"));
  EXPECT_EQ(lines[3].days, 15);            // 30 April to 15 May
  EXPECT_EQ(lines[3].days_of_period, 31);  // to 31 May
  EXPECT_EQ(lines[3].amount, money("150"));
  CommitmentPlan never = monthly;
  never.ends = never.starts;
  EXPECT_TRUE(fees(never).empty());
  never.ends = day("2024-12-01");
  EXPECT_TRUE(fees(never).empty());
}

TEST(Spot, never_undercuts_the_floor_nor_passes_the_ceiling_and_rises_with_demand) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Money on_demand(random.between(1, 3'000'000'000'000), usd);
    const SpotTerms terms{{random.between(1500, 5000)}, {random.between(5000, 10'000)}};
    const SpotMarket market{MilliCe{random.between(0, 1'000'000)},
                            MilliCe{random.between(0, 1'500'000)}};
    const Money price = spot_price(terms, on_demand, market);
    EXPECT_TRUE(price.units() * 10'000 >= on_demand.units() * 1500) << "seed " << seed;
    EXPECT_LE(price, on_demand) << "seed " << seed;
    const SpotMarket busier{market.supply, market.demand + MilliCe{random.between(0, 100'000)}};
    EXPECT_GE(spot_price(terms, on_demand, busier), price) << "seed " << seed;
  }
  EXPECT_EQ(spot_price({}, money("2"), {MilliCe{1000}, MilliCe{0}}), money("0.30"));
  EXPECT_EQ(spot_price({}, money("2"), {MilliCe{1000}, MilliCe{500}}), money("1.15"));
  EXPECT_EQ(spot_price({}, money("2"), {MilliCe{0}, MilliCe{0}}), money("2"));
}

TEST(Spot, another_card_binds_the_price_at_once) {
  SpotTerms terms;
  terms.floor = BasisPoints{5'000};
  terms.ceiling = BasisPoints{8'000};
  EXPECT_EQ(within(money("0.15"), terms, money("10")), money("5"));
  EXPECT_EQ(within(money("6"), terms, money("10")), money("6"));
  EXPECT_EQ(within(money("0.15"), terms, money("0.1")), money("0.08"));
  EXPECT_EQ(within(money("0.15"), terms, money("0")), money("0"));
}

// Rating: every stretch of spot is within the bounds of its card, whatever moved when.
TEST(Spot, no_stretch_is_rated_outside_of_its_cards_bounds) {
  PriceTerms dear, cheap;
  dear.spot.sold = cheap.spot.sold = true;
  dear.spot.floor = BasisPoints{5'000};
  cheap.spot.ceiling = BasisPoints{2'000};
  Tables tables = tables_of(card("1.00"), dear);
  RateCard second = card("10.00", "2025-03-01T00:10:00Z", 2),
           third = card("0.10", "2025-03-01T00:20:00Z", 3);
  second.terms = dear;
  third.terms = cheap;
  ASSERT_TRUE(tables.add(*PriceTable::compile(second)).ok());
  ASSERT_TRUE(tables.add(*PriceTable::compile(third)).ok());
  tables.move_spot(usd, at("2025-03-01T00:00:00Z"), money("0.60"));
  Usage run = usage("s", at("2025-03-01T00:00:00Z"), at("2025-03-01T00:30:00Z"), 1000);
  run.terms.purchase_model = PurchaseModel::spot;
  std::vector<Charge> charges;
  ASSERT_TRUE(Rater(tables, {usd, {0}}).rate(run, charges).ok());
  ASSERT_EQ(charges.size(), 3u);
  EXPECT_EQ(charges[0].unit_price, money("0.60"));
  EXPECT_EQ(charges[1].unit_price, money("5"));
  EXPECT_EQ(charges[2].unit_price, money("0.02"));
}

TEST(Spot, the_price_moves_at_most_once_a_minute) {
  SpotSeries series;
  const SpotMarket calm{MilliCe{1000}, MilliCe{0}}, busy{MilliCe{1000}, MilliCe{1000}};
  EXPECT_TRUE(series.offer(start, {}, money("2"), calm));
  EXPECT_FALSE(series.offer(start + Duration::seconds(59), {}, money("2"), busy));
  EXPECT_FALSE(series.offer(start + Duration::seconds(60), {}, money("2"), calm));
  EXPECT_TRUE(series.offer(start + Duration::seconds(61), {}, money("2"), busy));
  PriceTerms terms;
  terms.spot.sold = true;
  Tables tables = tables_of(card("2"), terms);
  for (const SpotSeries::Move& move : series.moves()) tables.move_spot(usd, move.from, move.price);
  Usage record = usage("u", start + Duration::seconds(1), start + Duration::seconds(121), 30'000);
  record.terms.purchase_model = PurchaseModel::spot;
  std::vector<Charge> charges;
  ASSERT_TRUE(Rater(tables, {usd, {0}}).rate(record, charges).ok());
  ASSERT_EQ(charges.size(), 2u);
  EXPECT_EQ(charges[0].net, money("0.15"));  // a minute of 30 CE at 0.30
  EXPECT_EQ(charges[1].net, money("1.00"));
}

TEST(Spot, an_interrupted_piece_is_billed_by_the_rule) {
  EXPECT_EQ(billed_when_interrupted(InterruptionRule::ran, hm(0, 59)), hm(0, 59));
  EXPECT_EQ(billed_when_interrupted(InterruptionRule::free, hm(9)), hm(0));
  EXPECT_EQ(billed_when_interrupted(InterruptionRule::first_hour_free, hm(0, 59)), hm(0));
  EXPECT_EQ(billed_when_interrupted(InterruptionRule::first_hour_free, hm(1)), hm(1));
}

TEST(Hybrid, critical_tasks_are_on_demand_and_auxiliary_ones_fall_back_when_spot_is_tight) {
  const SpotMarket roomy{MilliCe{100'000}, MilliCe{10'000}},
      full{MilliCe{100'000}, MilliCe{95'000}};
  const auto model = [&](GroupRole role, const SpotMarket& market, const char* spot) {
    return hybrid_model(role, MilliCe{20'000}, market, money(spot), money("2"), {8000});
  };
  EXPECT_EQ(model(GroupRole::critical, roomy, "0.4"), PurchaseModel::on_demand);
  EXPECT_EQ(model(GroupRole::auxiliary, roomy, "0.4"), PurchaseModel::spot);
  EXPECT_EQ(model(GroupRole::auxiliary, full, "0.4"), PurchaseModel::on_demand);
  EXPECT_EQ(model(GroupRole::auxiliary, roomy, "1.6"), PurchaseModel::on_demand);
}

}  // namespace
}  // namespace loam::billing

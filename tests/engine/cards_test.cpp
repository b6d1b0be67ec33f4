// Rate cards in the engine: what is quoted is what is billed, whatever the card says; cards that
// cannot be used are refused with the reason; what is sold no more keeps its price.
#include "engine/region.hpp"

namespace loam::engine {
namespace {

TEST(Cards, what_runs_as_quoted_costs_what_the_quote_said_whatever_the_card_says) {
  const Granularity units[] = {Granularity::exact, Granularity::second, Granularity::minute,
                               Granularity::hour, Granularity::task};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Region region;
    PriceTerms terms = day_and_night();
    terms.granularity = units[random.below(5)];
    const bool per_task = terms.granularity == Granularity::task;
    if (!per_task && random.chance(500))
      terms.prices.front().tiers.push_back({random.between(1, 100'000), money("0.7")});
    if (random.chance(500)) terms.taxes = {{"VAT", 190'000}};
    if (random.chance(300)) terms.discounts = {{"spring", {700}, {}}};
    ASSERT_FALSE(region.publish(terms).reject) << seed;
    region.now = start + Duration{random.between(0, 48LL * 3'600'000)};
    TaskSpec spec = Region::spec();
    spec.tariff = random.chance(700) ? Tariff::time_of_day : Tariff::flat;
    const Duration run{random.between(1, 30LL * 3'600'000)};
    const QuoteAnswer quoted = quote(region.state, region.now, TenantId{1}, spec, run);
    ASSERT_TRUE(quoted.quote) << seed << " " << quoted.reject->message;
    EXPECT_LE(quoted.quote->best, quoted.quote->expected) << seed;
    EXPECT_GE(quoted.quote->worst, quoted.quote->expected) << seed;
    EXPECT_GE(quoted.quote->at_most, quoted.quote->worst) << seed;
    const Instant began = region.now;
    ASSERT_FALSE(region.act(SubmitTask{TenantId{1}, spec}).reject) << seed;
    EXPECT_EQ(region.held(), quoted.quote->at_most) << seed;
    region.settle();
    region.act(ReportStarted{LeaseId{1}, Epoch{1}, began});
    region.go(began + run);
    // Told some time later: what was billed beyond the end is taken back.
    region.go(began + run + Duration{random.between(0, 5'000'000)});
    ReportEnded ended;
    ended.lease = LeaseId{1};
    ended.epoch = Epoch{1};
    ended.started_at = began;
    ended.ended_at = began + run;
    region.act(ended);
    EXPECT_EQ(region.revenue(), quoted.quote->expected) << "seed " << seed;
    EXPECT_TRUE(region.held().is_zero()) << seed;
    EXPECT_EQ(digest(state_of(image_of(region.state))), digest(region.state)) << seed;
  }
}

TEST(Cards, a_task_stopped_at_its_limit_never_costs_more_than_was_set_aside) {
  for (const Granularity unit : {Granularity::exact, Granularity::minute, Granularity::hour}) {
    Region region;
    PriceTerms terms = day_and_night();
    terms.granularity = unit;
    terms.taxes = {{"VAT", 190'000}};
    ASSERT_FALSE(region.publish(terms).reject);
    region.now = start + Duration::minutes(30);
    TaskSpec spec = Region::spec();
    spec.tariff = Tariff::time_of_day;
    spec.limit = Duration::minutes(90);
    const Money most = quote(region.state, region.now, TenantId{1}, spec).quote->at_most;
    const Money before = region.wallet();
    region.act(SubmitTask{TenantId{1}, spec});
    region.settle();
    region.act(ReportStarted{LeaseId{1}, Epoch{1}, region.now});
    region.go(region.now + spec.limit);
    ASSERT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::limit);
    region.now = region.now + spec.grace;
    ReportEnded ended;
    ended.lease = LeaseId{1};
    ended.epoch = Epoch{1};
    ended.started_at = start + Duration::minutes(30);
    ended.ended_at = region.now;
    region.act(ended);
    EXPECT_LE(before - region.wallet(), most);
    EXPECT_GT(before - region.wallet(), Money::zero(usd));
  }
}

TEST(Cards, a_card_that_cannot_be_used_is_refused_with_the_reason_and_nothing_is_published) {
  Region region;
  const auto reason = [&](PriceTerms terms, const char* on_demand = "2", Instant from = {}) {
    const Decision decision = region.publish(std::move(terms), on_demand, from);
    EXPECT_TRUE(decision.reject.has_value());
    EXPECT_TRUE(region.state.rates.all().empty());
    return decision.reject ? decision.reject->message : std::string();
  };
  PriceTerms gap = day_and_night();
  gap.windows.back().to = Duration::hours(7);
  EXPECT_NE(reason(gap).find("leave a gap from Sunday 07:00"), std::string::npos);
  PriceTerms nowhere = day_and_night();
  nowhere.zone = "Mars/Olympus";
  EXPECT_NE(reason(nowhere).find("Mars/Olympus"), std::string::npos);
  PriceTerms halved = day_and_night();
  halved.prices.pop_back();
  EXPECT_NE(reason(halved).find("'night'"), std::string::npos);
  PriceTerms hybrid;
  hybrid.prices = {price(Tariff::flat, "", "1")};
  hybrid.prices.front().purchase_model = PurchaseModel::hybrid;
  EXPECT_NE(reason(hybrid).find("hybrid"), std::string::npos);
  EXPECT_NE(reason({}, "2", start - Duration{1}).find("in the past"), std::string::npos);
  ASSERT_FALSE(region.publish({}).reject);
  PriceTerms per_task;
  per_task.granularity = Granularity::task;
  const Decision mixed = region.publish(per_task, "2", region.now + Duration::hours(1));
  ASSERT_TRUE(mixed.reject);
  EXPECT_NE(mixed.reject->message.find("per task"), std::string::npos);
}

TEST(Cards, what_the_card_does_not_sell_is_neither_quoted_nor_accepted) {
  Region region;
  ASSERT_FALSE(region.publish({}).reject);
  TaskSpec by_time = Region::spec();
  by_time.tariff = Tariff::time_of_day;
  TaskSpec silver = Region::spec();
  silver.service_class = "silver";
  for (const TaskSpec& spec : {by_time, silver}) {
    const QuoteAnswer quoted = quote(region.state, region.now, TenantId{1}, spec);
    ASSERT_TRUE(quoted.reject);
    EXPECT_EQ(quoted.reject->code, RejectCode::not_sold);
    const Decision submitted = region.act(SubmitTask{TenantId{1}, spec});
    ASSERT_TRUE(submitted.reject);
    EXPECT_EQ(submitted.reject->code, RejectCode::not_sold);
  }
}

TEST(Cards, a_price_for_one_work_class_and_isolation_is_taken_where_it_matches) {
  Region region;
  PriceTerms terms;
  terms.prices = {price(Tariff::flat, "", "5"), price(Tariff::flat, "", "7")};
  terms.prices[0].work_class = WorkClass::train;
  terms.prices[1].isolation = Isolation::hardware;
  ASSERT_FALSE(region.publish(terms).reject);
  TaskSpec spec = Region::spec();
  const auto unit_price = [&] {
    return quote(region.state, region.now, TenantId{1}, spec).quote->unit_price;
  };
  EXPECT_EQ(unit_price(), money("2"));
  spec.request.work_class = WorkClass::train;
  EXPECT_EQ(unit_price(), money("5"));
  spec.request.work_class = WorkClass::general;
  spec.request.share = whole_device;
  spec.request.memory.reset();
  EXPECT_EQ(unit_price(), money("7"));
}

}  // namespace
}  // namespace loam::engine

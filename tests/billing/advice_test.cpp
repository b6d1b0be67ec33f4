// Advice: the worked example, the optimum against every other commitment, bad curves.
#include "billing/advice.hpp"

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

constexpr const char* example =
    "time,amount\n"
    "0,2\n1,2\n2,2\n3,2\n4,2\n5,2\n6,2\n7,2\n"
    "8,6\n9,6\n10,6\n11,6\n12,6\n13,6\n14,6\n15,6\n"
    "16,8\n17,8\n18,8\n19,8\n20,10\n21,10\n22,10\n23,10\n";

AdviceRequest prices(const char* on_demand, const char* committed, const char* hidden = "0") {
  AdviceRequest request;
  request.on_demand = money(on_demand);
  CommitOption option;
  option.name = "committed";
  option.price = money(committed);
  option.hidden = money(hidden);
  request.options = {option};
  return request;
}

TEST(Advice, the_worked_example_commits_to_six) {
  const Advice advice = *advise(*read_usage_csv(example), prices("2.00", "1.30"));
  EXPECT_EQ(advice.commitment, 6000);
  EXPECT_EQ(advice.cost_mixed, money("235.20"));
  EXPECT_EQ(advice.cost_on_demand, money("272.00"));
  EXPECT_EQ(advice.cost_committed, money("312.00"));
  EXPECT_EQ(advice.break_even, BasisPoints{6500});
  EXPECT_EQ(advice.base, 2000);
  EXPECT_EQ(advice.peak, 10'000);
}

TEST(Advice, a_hidden_cost_turns_the_worked_example_to_two) {
  const Advice advice = *advise(*read_usage_csv(example), prices("2.00", "1.30", "0.05"));
  EXPECT_EQ(advice.commitment, 2000);
  EXPECT_EQ(advice.cost_mixed, money("240.80"));
  EXPECT_EQ(advice.break_even, BasisPoints{6750});
}

// What the curve costs with `commitment` thousandths of the first option, step by step.
Money cost_of_commitment(const std::vector<UsageStep>& usage, const AdviceRequest& request,
                         std::int64_t commitment) {
  constexpr Int128 hour_ms = 3'600'000, year_ms = hour_ms * 24 * 365, whole = 10'000;
  const CommitOption& option = request.options.front();
  Int128 length = 0, used = 0, rest = 0;
  for (const UsageStep& step : usage) {
    const std::int64_t covered = std::min(step.amount, commitment);
    length += step.length.ms;
    used += Int128{covered} * step.length.ms;
    rest += Int128{step.amount - covered} * step.length.ms;
  }
  const Int128 upfront =
      option.upfront.units() * hour_ms * (whole + option.interest.value * length / year_ms);
  const Int128 held = (option.price.units() + option.hidden.units()) * length * whole + upfront;
  const Int128 dear = request.on_demand.units() + request.on_demand_hidden.units();
  return Money(held * commitment + (option.used.units() * used + dear * rest) * whole, usd)
      .times_ratio(1, 1000 * hour_ms * whole, Rounding::half_even);
}

std::vector<UsageStep> random_curve(Random& random) {
  std::vector<UsageStep> usage;
  Instant at{0};
  for (std::uint64_t i = 0; i < 1 + random.below(40); ++i) {
    const Duration length{random.between(1, 5'000'000)};
    usage.push_back({at, length, random.between(0, 12) * 1000});
    at = at + length;
  }
  return usage;
}

TEST(Advice, no_other_commitment_is_cheaper) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const auto usage = random_curve(random);
    AdviceRequest request = prices("2.00", "1.00");
    request.options[0].price = Money(random.between(0, 2'500'000'000'000), usd);
    request.options[0].used = Money(random.between(0, 600'000'000'000), usd);
    request.options[0].hidden = Money(random.between(0, 200'000'000'000), usd);
    request.options[0].upfront = Money(random.between(0, 500'000'000'000), usd);
    request.options[0].interest = {random.between(0, 2000)};
    request.on_demand_hidden = Money(random.between(0, 300'000'000'000), usd);
    const Advice advice = *advise(usage, request);
    EXPECT_EQ(advice.cost_mixed, cost_of_commitment(usage, request, advice.commitment))
        << "seed " << seed;
    for (std::int64_t other = 0; other <= 13'000; other += 500)
      EXPECT_LE(advice.cost_mixed, cost_of_commitment(usage, request, other)) << "seed " << seed;
    EXPECT_LE(advice.cost_mixed, advice.cost_on_demand) << "seed " << seed;
    EXPECT_LE(advice.cost_mixed, advice.cost_committed) << "seed " << seed;
  }
}

TEST(Advice, several_options_follow_the_lower_envelope) {
  // Light: cheap to hold and dear to use; full: dear to hold and free to use.
  AdviceRequest request = prices("2.00", "0.30");
  request.options[0].name = "light";
  request.options[0].used = money("1.00");
  CommitOption full = request.options[0];
  full.name = "full";
  full.price = money("1.00");
  full.used = money("0");
  request.options.push_back(full);
  // Busy 24, 16, 8 and 4 of 24 hours: full pays from 0.7, light from 0.3.
  const Advice advice = *advise(*read_usage_csv(example), request);
  ASSERT_EQ(advice.layers.size(), 2u);
  EXPECT_EQ(advice.layers[0].option, 1u);
  EXPECT_EQ(advice.layers[0].amount, 2000);
  EXPECT_EQ(advice.layers[1].option, 0u);
  EXPECT_EQ(advice.layers[1].amount, 6000);
  EXPECT_EQ(advice.commitment, 8000);
  // 2 x 24 + 4 x (7.2 + 16) + 2 x (7.2 + 8) + 2 x 8
  EXPECT_EQ(advice.cost_mixed, money("187.20"));
}

TEST(Advice, with_spot_the_rest_costs_less) {
  AdviceRequest request = prices("2.00", "1.30");
  request.spot = money("0.50");
  request.spot_lost = {1000};
  request.interruptible = {5000};
  const Advice advice = *advise(*read_usage_csv(example), request);
  EXPECT_EQ(advice.spot_share, BasisPoints{5000});
  // Half at 2.00 and half at 0.55: 1.275 a unit-hour, less than a committed one.
  EXPECT_EQ(advice.commitment_with_spot, 0);
  EXPECT_EQ(advice.cost_with_spot, money("173.40"));  // 136 x 1.275
  request.interruptible = {2000};
  const Advice less = *advise(*read_usage_csv(example), request);
  EXPECT_EQ(less.commitment_with_spot, 2000);
  EXPECT_EQ(less.cost_with_spot, money("212.88"));  // 2 x 24 x 1.30 + 88 x 1.71
  request.spot = money("1.90");
  EXPECT_EQ(advise(*read_usage_csv(example), request)->spot_share, BasisPoints{0});
}

TEST(Advice, a_commitment_dearer_than_on_demand_never_pays) {
  const Advice advice = *advise(*read_usage_csv(example), prices("2.00", "2.10"));
  EXPECT_EQ(advice.commitment, 0);
  EXPECT_TRUE(advice.layers.empty());
  EXPECT_FALSE(advice.break_even);
  EXPECT_EQ(advice.cost_mixed, money("272.00"));
}

TEST(Advice, an_upfront_fee_counts_for_its_term) {
  AdviceRequest request = prices("2.00", "0");
  request.options[0].upfront = money("8760");
  request.options[0].term = Duration::hours(8760);
  // A fee of 1.00 an hour, whatever time is looked at.
  for (const char* rows : {"time,amount\n0,1\n1,1\n", "time,amount\n0,1\n24,1\n48,1\n"}) {
    const auto usage = *read_usage_csv(rows);
    const Advice advice = *advise(usage, request);
    EXPECT_EQ(advice.cost_committed,
              money("1").times_ratio(advice.length.ms, 3'600'000, Rounding::half_even));
  }
  request.options[0].interest = {1000};
  const Advice dearer = *advise(*read_usage_csv("time,amount\n0,1\n1,1\n"), request);
  EXPECT_EQ(dearer.cost_committed, money("2.20"));
}

TEST(Advice, the_base_is_what_is_used_nearly_always_and_the_valley_the_least) {
  std::string text = "time,amount\n";
  for (int hour = 0; hour < 100; ++hour)
    text += std::to_string(hour) + "," + (hour == 50 ? "1" : hour % 2 == 0 ? "4" : "6") + "\n";
  const Advice advice = *advise(*read_usage_csv(text), prices("2", "1.3"));
  EXPECT_EQ(advice.valley, 1000);
  EXPECT_EQ(advice.base, 4000);
  EXPECT_EQ(advice.peak, 6000);
}

TEST(Advice, an_hour_of_the_week_never_seen_is_forecast_by_its_hour_of_the_day) {
  // One day of it: the example of 235.20 a day, for a week.
  const auto coming = forecast(*read_usage_csv(example), Duration::hours(168));
  const Advice advice = *advise(coming, prices("2.00", "1.30"));
  EXPECT_EQ(advice.commitment, 6000);
  EXPECT_EQ(advice.cost_on_demand, money("1904.00"));
  EXPECT_EQ(advice.cost_mixed, money("1646.40"));
  // By the wall clock of a zone: on the day of fewer hours its evening is as long as ever.
  const Zone berlin = *Zone::open("Europe/Berlin");
  std::string night = "time,amount\n";
  for (int hour = 0; hour < 24; ++hour)
    night += "2026-03-28T" + std::string(hour < 10 ? "0" : "") + std::to_string(hour) + ":00:00Z," +
             (hour == 2 ? "5" : "0") + "\n";  // 03:00 of the clock
  const auto sunday = forecast(*read_usage_csv(night), Duration::hours(24), berlin);
  for (const UsageStep& step : sunday) {
    const bool three = berlin.local(step.from).of_day == Duration::hours(3);
    EXPECT_EQ(step.amount, three ? 5000 : 0) << to_text(step.from);
  }
}

TEST(Advice, a_curve_that_repeats_is_forecast_as_it_was) {
  std::string text = "time,amount\n";
  for (int hour = 0; hour < 4 * 168; ++hour)
    text += std::to_string(hour) + "," + std::to_string(hour % 168 / 10) + "\n";
  const auto usage = *read_usage_csv(text);
  const auto coming = forecast(usage, Duration::hours(168));
  ASSERT_EQ(coming.size(), 168u);
  for (std::size_t i = 0; i < coming.size(); ++i) {
    EXPECT_EQ(coming[i].amount, usage[i].amount);
    EXPECT_EQ(coming[i].from.ms, (4 * 168 + static_cast<std::int64_t>(i)) * 3'600'000);
  }
  EXPECT_EQ(advise(coming, prices("2", "1.3"))->commitment,
            advise(usage, prices("2", "1.3"))->commitment);
}

TEST(UsageCsv, reads_instants_and_hours_and_gives_each_row_its_length) {
  const auto usage =
      *read_usage_csv("time,amount\r\n2025-03-01T00:00:00Z,1.5\r\n2025-03-01T00:15:00Z,\"2\"\r\n");
  ASSERT_EQ(usage.size(), 2u);
  EXPECT_EQ(usage[0].amount, 1500);
  EXPECT_EQ(usage[0].length, Duration::minutes(15));
  EXPECT_EQ(usage[1].length, Duration::minutes(15));
  EXPECT_EQ(read_usage_csv("time,amount\n5,1\n")->front().length, Duration::hours(1));
}

TEST(UsageCsv, bad_rows_are_refused_by_line) {
  const auto fault = [](const char* text) { return refusal(read_usage_csv(text, "use.csv")); };
  EXPECT_NE(fault("time,amount\n").find("no rows"), std::string::npos);
  EXPECT_NE(fault("time,amount\n0,1\n0,2\n").find("use.csv:3: "), std::string::npos);
  EXPECT_NE(fault("time,amount\n1,1\n0,2\n").find("not after"), std::string::npos);
  EXPECT_NE(fault("time,amount\n0,-1\n").find("use.csv:2: "), std::string::npos);
  EXPECT_NE(fault("time,amount\n0,1,2\n").find("3 fields"), std::string::npos);
  EXPECT_NE(fault("time,amount\nnoon,1\n").find("'noon' is not a time"), std::string::npos);
  EXPECT_NE(fault("time,amount\n2025-02-30T00:00:00Z,1\n").find("use.csv:2: "), std::string::npos);
  EXPECT_NE(fault("time,amount\n0,\"1\n").find("nothing closes"), std::string::npos);
  EXPECT_NE(fault("time,amount\n-1,1\n").find("'-1'"), std::string::npos);
  EXPECT_NE(fault("time,amount\n0,NaN\n").find("use.csv:2: "), std::string::npos);
}

TEST(UsageCsv, a_wrong_head_is_refused_by_its_column) {
  const auto fault = [](const std::string& text) {
    return refusal(read_usage_csv(text, "use.csv"));
  };
  EXPECT_NE(fault("").find("use.csv:1: the column 'time' is missing"), std::string::npos);
  EXPECT_NE(fault("when,amount\n1,1\n").find("use.csv:1: the column 'time' is missing"),
            std::string::npos);
  EXPECT_NE(fault("time,amount,note\n").find("the column 'note' is not known"), std::string::npos);
  EXPECT_NE(fault("time,time,amount\n").find("'time' is there twice"), std::string::npos);
  // However long a line is, little of it is quoted, and nothing that moves a terminal's cursor.
  const std::string long_head = "time,amount," + std::string(100'000, 'x') + "\n";
  EXPECT_LT(fault(long_head).size(), 200u);
  EXPECT_NE(fault("time,amount,\x1b[2J\n").find("'?[2J'"), std::string::npos);
  EXPECT_EQ(read_usage_csv("amount,time\n2,5\n")->front().amount, 2000);
}

TEST(Advice, prices_that_make_no_sense_are_refused) {
  const auto usage = *read_usage_csv(example);
  EXPECT_FALSE(advise(usage, prices("0", "1")).ok());
  EXPECT_FALSE(advise(usage, prices("2", "-1")).ok());
  EXPECT_FALSE(advise(usage, prices("2", "1000001")).ok());
  AdviceRequest none = prices("2", "1");
  none.options.clear();
  EXPECT_FALSE(advise(usage, none).ok());
  EXPECT_FALSE(advise({}, prices("2", "1")).ok());
  AdviceRequest mixed = prices("2", "1");
  mixed.options[0].price = money("1", Currency("EUR"));
  EXPECT_FALSE(advise(usage, mixed).ok());
}

}  // namespace
}  // namespace loam::billing

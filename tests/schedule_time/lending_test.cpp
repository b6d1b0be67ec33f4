// Lending: forecasts, holds, what is taken first, and the replay on a small pool.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "schedule/lend/forecast.hpp"
#include "schedule/lend/hold.hpp"
#include "schedule/lend/order.hpp"
#include "sim/trace/lending.hpp"
#include "sim/trace/lending_pool.hpp"

namespace loam::schedule::lend {
namespace {

constexpr double pi = 3.141592653589793;

WeekMinute at(std::int64_t minute) {
  return {static_cast<int>(minute / 1440 % 7), static_cast<int>(minute % 1440)};
}
double usual(std::int64_t minute) {
  const bool weekend = minute / 1440 % 7 >= 5;
  return (10 + 8 * std::cos(static_cast<double>(minute % 1440) * 2 * pi / 1440)) *
         (weekend ? 0.5 : 1);
}

TEST(Profile, KnowsWeekdaysFromWeekendsAndWrapsAtMidnight) {
  Profile profile;
  std::array<double, minutes_per_day> day{};
  EXPECT_EQ(profile.at({0, 0}), 0);
  day.fill(4);
  profile.learn(false, day);
  EXPECT_DOUBLE_EQ(profile.at({6, 700}), 4);  // a weekend not seen yet: as on a weekday
  day.fill(1);
  day[0] = 32;
  profile.learn(true, day);
  EXPECT_DOUBLE_EQ(profile.at({2, 3}), 4);
  EXPECT_DOUBLE_EQ(profile.at({5, 700}), 1);
  EXPECT_DOUBLE_EQ(profile.at({5, 1439}), 2);  // one of 31 minutes is 31 above
  EXPECT_DOUBLE_EQ(profile.at({5, 15}), 2);
  EXPECT_DOUBLE_EQ(profile.at({5, 16}), 1);
}

TEST(WeekMinute, GoesRoundTheWeek) {
  const WeekMinute sunday_night{6, 1439};
  EXPECT_EQ(sunday_night.plus(2).day, 0);
  EXPECT_EQ(sunday_night.plus(2).minute, 1);
  EXPECT_TRUE(sunday_night.weekend());
}

TEST(Forecaster, ExpectsTheUsualDayAndTheMostOfTheWindow) {
  Forecaster forecaster(forecast_terms(4'000, 30'000, 30'000, true, 0.01));
  for (std::int64_t minute = 0; minute < 21 * 1440; ++minute)
    forecaster.observe(at(minute), usual(minute), usual(minute));
  // Monday, 0:00; the peak is now, and the window's most is its beginning.
  EXPECT_NEAR(forecaster.expect(), 18, 1);
  for (std::int64_t minute = 21 * 1440; minute < 21 * 1440 + 1080; ++minute)
    forecaster.observe(at(minute), usual(minute), usual(minute));
  // 18:00, rising: twelve minutes ahead there is more than now.
  EXPECT_GT(forecaster.expect(), usual(21 * 1440 + 1080) + 0.3);
  EXPECT_NEAR(forecaster.level(), 1, 0.05);
}

TEST(Forecaster, FollowsAStepWithinMinutes) {
  Forecaster forecaster(ForecastTerms{});
  std::int64_t minute = 0;
  for (; minute < 14 * 1440; ++minute) forecaster.observe(at(minute), 10, 10);
  for (int i = 0; i < 5; ++i, ++minute) forecaster.observe(at(minute), 30, 30);
  EXPECT_NEAR(forecaster.expect(), 30, 1);
  for (int i = 0; i < 5; ++i, ++minute) forecaster.observe(at(minute), 10, 10);
  EXPECT_GT(forecaster.expect(), 10);  // the half hour remembers longer than five minutes
  for (int i = 0; i < 60; ++i, ++minute) forecaster.observe(at(minute), 1, 1);
  EXPECT_NEAR(forecaster.level(), 0.3, 0.001);  // clipped
}

TEST(Forecaster, ItsStockCoversAllButTheAllowedMinutes) {
  Random random(9);
  Forecaster forecaster(forecast_terms(4'000, 30'000, 30'000, true, 0.01));
  int missed = 0;
  int counted = 0;
  std::vector<double> held(3, 1e9);  // by when it was decided: it serves two minutes later
  for (std::int64_t minute = 0; minute < 28 * 1440; ++minute) {
    const double mean =
        usual(minute) * (0.9 + 0.2 * static_cast<double>(random.below(1000)) / 1000);
    const double peak = mean + 2 * std::sqrt(mean) * static_cast<double>(random.below(1000)) / 1000;
    if (minute >= 14 * 1440) {
      ++counted;
      missed += peak > held[static_cast<std::size_t>((minute + 1) % 3)] ? 1 : 0;
    }
    forecaster.observe(at(minute), mean, peak);
    const double m = forecaster.expect();
    held[static_cast<std::size_t>(minute % 3)] =
        m + forecaster.stock() * std::sqrt(std::max(m, 0.25));
  }
  EXPECT_LT(static_cast<double>(missed) / counted, 0.015);
  EXPECT_LT(forecaster.stock(), 4);
  EXPECT_GT(forecaster.stock(), 0);
}

TEST(Forecaster, WithoutHistoryItExpectsWhatItSees) {
  Forecaster forecaster(ForecastTerms{});
  forecaster.observe(at(0), 7, 9);
  EXPECT_EQ(forecaster.expect(), 7);
  EXPECT_EQ(forecaster.stock(), 4);
}

TEST(ForecastTerms, LeadAndSpanFollowFromWhatTakingCosts) {
  const auto guests = forecast_terms(4'000, 30'000, 30'000, true, 0.01);
  EXPECT_EQ(guests.lead_minutes, 2);
  EXPECT_EQ(guests.span_minutes, 10);
  EXPECT_EQ(forecast_terms(4'000, 60'000, 60'000, false, 0.01).lead_minutes, 3);
  EXPECT_DOUBLE_EQ(shortage_probability(1, 99), 0.01);
}

TEST(Holds, TheStockIsCutAlikeWhereThePoolIsSmall) {
  const std::vector<HoldDemand> demands{{16, 2, 0}, {4, 2, 0}, {0, 4, 0}};
  EXPECT_EQ(holds(demands, 100), (std::vector<std::int64_t>{24, 8, 2}));
  const auto small = holds(demands, 28);
  EXPECT_LE(std::accumulate(small.begin(), small.end(), std::int64_t{0}), 28);
  EXPECT_EQ(small, (std::vector<std::int64_t>{20, 6, 1}));
  EXPECT_EQ(holds(std::vector<HoldDemand>{{1, 1, 40}, {1, 0, 0}}, 100),
            (std::vector<std::int64_t>{40, 1}));
}

TEST(Holds, FitThePoolAndGiveEverybodyOne) {
  EXPECT_TRUE(rc::check([] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 6);
    std::vector<HoldDemand> demands;
    for (std::size_t i = 0; i < count; ++i)
      demands.push_back({*rc::gen::inRange(0, 400) / 10.0, *rc::gen::inRange(-10, 80) / 10.0,
                         *rc::gen::inRange<std::int64_t>(0, 30)});
    const auto pool = *rc::gen::inRange<std::int64_t>(static_cast<std::int64_t>(count), 200);
    const auto held = holds(demands, pool);
    std::int64_t sum = 0;
    for (const std::int64_t devices : held) {
      RC_ASSERT(devices >= 1);
      sum += devices;
    }
    RC_ASSERT(sum <= pool);
  }));
}

TEST(Emergency, LastsAMinuteAndAtMostDoubles) {
  Emergency emergency;
  emergency.observe(10, 4, 4);
  EXPECT_EQ(emergency.devices(10), 0);
  emergency.observe(11, 9, 8);
  EXPECT_EQ(emergency.devices(11), 12);
  emergency.observe(12, 100, 8);
  EXPECT_EQ(emergency.devices(12), 16);
  emergency.observe(20, 9, 8);  // still 16: the larger counts
  EXPECT_EQ(emergency.devices(79), 16);
  EXPECT_EQ(emergency.devices(80), 0);
}

TEST(GuestlessDevices, AreNeededOnlyForLongQuanta) {
  EXPECT_EQ(guestless_devices({4, 0.5, 3}, 50, 100), 0);  // q/2 + c is 2.5 ms already
  const auto k = guestless_devices({20, 0.5, 3}, 50, 100);
  EXPECT_GT(k, 0);
  EXPECT_GE(guestless_devices({20, 0.5, 3}, 200, 100), k);
  EXPECT_EQ(guestless_devices({20, 0.5, 3}, 1e6, 100), 100);
}

TEST(Take, TheCheapestFirst) {
  const auto task = [](std::uint64_t device, std::int64_t gang, std::int64_t seconds,
                       std::int64_t started) {
    return TakeCandidate{device, Taking::task, gang, Duration::seconds(seconds),
                         Instant{started * 1000}};
  };
  const std::vector<TakeCandidate> candidates{task(1, 4, 60, 5),
                                              task(2, 1, 60, 5),
                                              task(3, 1, 60, 9),
                                              {4, Taking::guest, 1, {}, {}},
                                              {5, Taking::saving_for_nobody, 1, {}, {}},
                                              {6, Taking::free, 1, {}, {}},
                                              {7, Taking::own_draining, 1, {}, {}},
                                              task(8, 2, 20, 1)};
  EXPECT_EQ(take(candidates, 8), (std::vector<std::uint64_t>{7, 6, 5, 4, 8, 3, 2, 1}));
  EXPECT_EQ(take(candidates, 2), (std::vector<std::uint64_t>{7, 6}));
  EXPECT_EQ(
      give({{1, Giving::busy}, {2, Giving::idle}, {3, Giving::idle}, {4, Giving::guestless_idle}},
           3),
      (std::vector<std::uint64_t>{4, 3, 2}));
}

}  // namespace
}  // namespace loam::schedule::lend

namespace loam::sim {
namespace {

std::vector<TracedRequest> steady_trace() {
  Random random(4);
  std::vector<TracedRequest> trace;
  for (int i = 0; i < 5'000; ++i)
    trace.push_back({random.between(1'000, 380'000),
                     static_cast<std::int32_t>(random.between(10, 2'000)),
                     static_cast<std::int32_t>(random.between(1, 400))});
  return trace;
}

// Three devices serve and idle. Two tasks became guests on the last two; the one on the very last
// has ended, the other is still there.
struct OneGuestLeft {
  LendingSettings settings = [] {
    LendingSettings made;
    made.devices = 3;
    made.endless_training = false;
    return made;
  }();
  std::vector<TrainingJob> jobs{{100, 1, 0}, {100'000, 1, 0}};
  LendingPool pool{settings, jobs, 1};

  OneGuestLeft() {
    const std::vector<std::vector<std::int64_t>> idle{{60'000'000, 60'000'000, 60'000'000}};
    for (int i = 0; i < 3; ++i) pool.install(0);
    pool.end_minute(idle, 0);
    EXPECT_EQ(pool.guests_of(0), (std::vector<std::uint8_t>{0, 1, 1}));
    for (const std::int64_t now : {60, 120, 180}) pool.end_minute(idle, now);
    EXPECT_EQ(pool.finished(), 1);
  }
};

TEST(LendingPool, RequestsFillDevicesWithoutAGuestFirst) {
  const OneGuestLeft one;
  EXPECT_EQ(one.pool.guests_of(0), (std::vector<std::uint8_t>{0, 0, 1}));
  EXPECT_EQ(one.pool.serving(0), (std::vector<int>{0, 2, 1}));
}

TEST(LendingPool, GivesIdleDevicesWithoutAGuestBackFirstAndBusyOnesNever) {
  OneGuestLeft one;
  EXPECT_FALSE(one.pool.give(0, 0, 1));
  EXPECT_TRUE(one.pool.give(0, 1, 1));
  EXPECT_EQ(one.pool.serving(0), (std::vector<int>{0, 1}));
  EXPECT_TRUE(one.pool.give(0, 5, 1));
  EXPECT_EQ(one.pool.serving(0), (std::vector<int>{0}));
  EXPECT_FALSE(one.pool.give(0, 1, 1));
}

TEST(LendingReplay, TurnsUseWhatIdlesAndDelayNobodyMuch) {
  const LendingWeeks weeks{8, 2, 3};
  const auto services = make_services(steady_trace(), weeks);
  ASSERT_EQ(services.size(), 4u);
  std::int64_t devices = 0;
  for (const ServiceLoad& service : services) devices += service.peak;
  std::vector<TrainingJob> jobs;
  for (int i = 0; i < 40; ++i) jobs.push_back({1'800 + i * 100, i % 4 == 0 ? 4 : 1, 0});

  LendingSettings settings;
  settings.lending = Lending::exclusive;
  const LendingOutcome alone = replay_lending(services, {}, weeks, settings);
  settings.devices = devices;
  settings.lending = Lending::threshold;
  const LendingOutcome threshold = replay_lending(services, jobs, weeks, settings);
  settings.lending = Lending::forecast;
  const LendingOutcome forecast = replay_lending(services, jobs, weeks, settings);
  settings.lending = Lending::forecast_and_turns;
  const LendingOutcome turns = replay_lending(services, jobs, weeks, settings);

  EXPECT_LT(alone.use, 0.5);
  EXPECT_GT(forecast.use, alone.use);
  EXPECT_GT(turns.use, 0.93);
  EXPECT_LE(turns.use, 1.0);
  EXPECT_GT(turns.use, forecast.use);
  std::int64_t queued_by_threshold = 0, queued_by_turns = 0;
  for (std::size_t i = 0; i < services.size(); ++i) {
    EXPECT_EQ(alone.queued[i], 0);
    EXPECT_LT(turns.p99_ms[i] - alone.p99_ms[i], 10) << services[i].name;
    EXPECT_NEAR(turns.serving, forecast.serving, 1e-3);
    queued_by_threshold += threshold.queued[i];
    queued_by_turns += turns.queued[i];
  }
  EXPECT_LT(queued_by_turns, queued_by_threshold);
  EXPECT_LT(turns.preemptions, forecast.preemptions);
}

TEST(LendingReplay, TheSameSeedGivesTheSameFigures) {
  const LendingWeeks weeks{1, 1, 5};
  const auto services = make_services(steady_trace(), weeks);
  const auto again = make_services(steady_trace(), weeks);
  ASSERT_EQ(services[0].arrivals.size(), again[0].arrivals.size());
  const std::vector<TrainingJob> jobs{{3'600, 1, 0}, {1'800, 2, 60}};
  LendingSettings settings;
  settings.devices = 60;
  const auto one = replay_lending(services, jobs, weeks, settings);
  const auto two = replay_lending(again, jobs, weeks, settings);
  EXPECT_EQ(one.use, two.use);
  EXPECT_EQ(one.p99_ms, two.p99_ms);
  EXPECT_EQ(one.finished, two.finished);
}

TEST(LendingReplay, FiniteTrainingFinishes) {
  const LendingWeeks weeks{0, 1, 5};
  std::vector<TrainingJob> jobs;
  for (int i = 0; i < 10; ++i) jobs.push_back({3'000, i < 2 ? 4 : 1, i * 600});
  LendingSettings settings;
  settings.lending = Lending::exclusive;
  settings.devices = 12;
  settings.endless_training = false;
  const auto outcome = replay_lending({}, jobs, weeks, settings);
  EXPECT_EQ(outcome.finished, 10);
  EXPECT_EQ(outcome.preemptions, 0);
  EXPECT_NEAR(outcome.completion_mean_s, 3'000 + 30 + 30, 60);
}

TEST(LendingReplay, NoTaskCompletesBeforeItsWorkIsDone) {
  const LendingWeeks weeks{8, 1, 7};
  const auto services = make_services(steady_trace(), weeks);
  std::vector<TrainingJob> jobs;
  std::int64_t work = 0;
  for (int i = 0; i < 2'000; ++i) {
    jobs.push_back({120 + i % 60, 1, i * 30});
    work += jobs.back().work_s;
  }
  LendingSettings settings;
  settings.devices = 60;
  settings.endless_training = false;
  const auto outcome = replay_lending(services, jobs, weeks, settings);
  EXPECT_GT(outcome.finished, 1'900);
  EXPECT_GT(outcome.completion_mean_s, static_cast<double>(work) / 2'000);
  EXPECT_LT(outcome.completion_mean_s, 3'600);
}

TEST(RequestTrace, BadInputIsRefusedWithFileLineAndReason) {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const std::string good = "2023-11-16 18:15:46.6805900,374,44\n";
  const auto trace =
      parse_requests("r.csv", header + good + "2023-11-16 18:15:47.1805900,1,2\r\n\n");
  ASSERT_TRUE(trace.ok()) << to_text(trace.error());
  EXPECT_EQ((*trace)[1].gap_us, 500'000);
  struct Bad {
    std::string text;
    const char* says;
  };
  for (const Bad& bad : {
           Bad{"", "two requests"},
           Bad{good, "r.csv:1: the header"},
           Bad{header + good, "two requests"},
           Bad{header + good + "x", "r.csv:3: three fields"},
           Bad{header + good + "2023-11-16,1,2", "r.csv:3: '2023-11-16' is no time"},
           Bad{header + good + "2023-13-16 18:15:47,1,2", "is no time"},
           Bad{header + good + "2023-11-16 25:15:47,1,2", "is no time"},
           Bad{header + good + "2023-11-16 18:15:47.,1,2", "is no time"},
           Bad{header + good + "2023-11-16 18:15:47.1x,1,2", "is no time"},
           Bad{header + good + "2023-11-16 18:15:47,-1,2", "r.csv:3: '-1,2'"},
           Bad{header + good + "2023-11-16 18:15:47,1,", "is no two counts"},
           Bad{header + good + "2023-11-16 18:15:47,1,2,3", "is no two counts"},
           Bad{header + good + "2023-11-16 18:15:47,1,99999999999", "is no two counts"},
           Bad{header + good + "2023-11-16 18:15:45,1,2", "before that of the line above"},
       }) {
    const auto refused = parse_requests("r.csv", bad.text);
    ASSERT_FALSE(refused.ok()) << bad.text;
    EXPECT_NE(refused.error().message.find(bad.says), std::string::npos) << refused.error().message;
  }
  EXPECT_EQ(read_requests("/nonexistent").error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace loam::sim

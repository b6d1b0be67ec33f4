// The floor that everything stands on: quantities from text, money, random numbers.
#include <cstdint>
#include <random>

#include "base/money.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

// Keeps `value` from being computed away.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

constexpr int rounds = 200'000;  // some milliseconds: far above the clock's grain
constexpr double nanoseconds = 1e9;

// Nanoseconds of one call of `work(i)`, the median of several series.
template <class Work>
Median nanoseconds_each(const Work& work) {
  constexpr int series = 11;
  std::vector<double> each;
  for (int s = 0; s < series; ++s) {
    each.push_back(core_seconds_of([&] {
                     for (int i = 0; i < rounds; ++i) work(i);
                   }) *
                   nanoseconds / rounds);
  }
  return median_of(std::move(each));
}

template <class Generator>
double draw(Generator&& next) {
  constexpr int draws = 2'000'000;
  return core_seconds_of([&] {
    std::uint64_t sum = 0;
    for (int i = 0; i < draws; ++i) sum += next();
    keep(sum);
  });
}

LOAM_BENCHMARK(base, {{"base.parse_duration_ns", "ns"},
                      {"base.money_times_ratio_ns", "ns"},
                      {"base.random_against_mt19937", "ratio", at_most(1.0)}}) {
  const Median parse = nanoseconds_each([](int) { keep(parse_duration("1h30m15s")); });
  report.set("base.parse_duration_ns", parse.value, parse.interval);

  const Money price(20'000'000'000, Currency("USD"));
  const Median rate = nanoseconds_each(
      [&](int i) { keep(price.times_ratio(22'800 + i, 3'600'000, Rounding::half_even).units()); });
  report.set("base.money_times_ratio_ns", rate.value, rate.interval, "rating one usage record");

  Random ours(1);
  std::mt19937_64 theirs(1);
  const Median ratio = compare_alternating([&] { return draw([&] { return ours.next(); }); },
                                           [&] { return draw([&] { return theirs(); }); });
  report.set("base.random_against_mt19937", ratio.value, ratio.interval, "time, 20 pairs");
  return {};
}

}  // namespace
}  // namespace loam::bench

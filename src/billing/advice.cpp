#include "billing/advice.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <charconv>
#include <map>

#include "base/assert.hpp"
#include "base/quantity.hpp"
#include "billing/csv.hpp"
#include "billing/exact.hpp"

namespace loam::billing {
namespace {

constexpr Int128 hour_ms = 3'600'000;
constexpr Int128 year_ms = hour_ms * 24 * 365;
constexpr Int128 per_unit_hour = 1000 * hour_ms;  // thousandths × ms in a unit-hour
constexpr std::int64_t whole_bp = 10'000;
constexpr std::int64_t amount_max = 1'000'000'000'000;  // thousandths
constexpr Int128 price_max = Int128{1'000'000} * Money::units_per_one;
constexpr std::int64_t hours_max = 24LL * 366 * 200;

// A run of layers that are busy equally long: amounts [below, above).
struct Band {
  std::int64_t below = 0;
  std::int64_t above = 0;
  Int128 busy = 0;  // ms
};

// From the base up; busy time falls.
std::vector<Band> bands_of(const std::vector<UsageStep>& usage) {
  std::map<std::int64_t, Int128> time_by_amount;
  Int128 left = 0;
  for (const UsageStep& step : usage) {
    time_by_amount[step.amount] += step.length.ms;
    left += step.length.ms;
  }
  std::vector<Band> bands;
  std::int64_t below = 0;
  for (const auto& [amount, time] : time_by_amount) {
    if (amount > 0) bands.push_back({below, amount, left});
    below = amount;
    left -= time;
  }
  return bands;
}

// area / time, rounded half up.
std::int64_t mean(Int128 area, Int128 time) {
  return static_cast<std::int64_t>((area + time / 2) / time);
}

Int128 length_of(const std::vector<UsageStep>& usage) {
  Int128 length = 0;
  for (const UsageStep& step : usage) length += step.length.ms;
  return length;
}

// What one committed thousandth costs over the whole time × per_unit_hour × whole_bp × year: one
// integer, so that options compare exactly.
Int128 fixed_cost(const CommitOption& option, Int128 length) {
  const Int128 hourly = (option.price.units() + option.hidden.units()) * length * whole_bp;
  // Upfront is per unit: × hour_ms brings it to the same denominator as the hourly part; interest
  // is simple, for the term that it is paid for.
  const Int128 term = option.term.ms > 0 ? Int128{option.term.ms} : length;
  const Int128 upfront = option.upfront.units() * hour_ms *
                         (whole_bp + static_cast<Int128>(option.interest.value) * term / year_ms);
  if (term == length) return hourly + upfront;
  using Wide = boost::multiprecision::int256_t;
  return hourly + static_cast<Int128>(Wide(upfront) * Wide(length) / Wide(term));
}

// What a thousandth costs that is busy for `busy` ms, in the same unit.
Int128 on_demand_line(const AdviceRequest& request, Int128 busy) {
  return (request.on_demand.units() + request.on_demand_hidden.units()) * busy * whole_bp;
}
Int128 option_line(const CommitOption& option, Int128 length, Int128 busy) {
  return fixed_cost(option, length) + option.used.units() * busy * whole_bp;
}

// The option whose line is lowest; ties to the earlier one.
std::size_t best_option(const AdviceRequest& request, Int128 length, Int128 busy) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < request.options.size(); ++i) {
    if (option_line(request.options[i], length, busy) <
        option_line(request.options[best], length, busy))
      best = i;
  }
  return best;
}

Money rounded(const ExactSum& sum, Currency currency) {
  return Money(sum.rounded(per_unit_hour * whole_bp), currency);
}

Result<void> check(const std::vector<UsageStep>& usage, const AdviceRequest& request) {
  if (usage.empty()) return invalid("there is no usage to look at", "give at least one row");
  if (request.options.empty())
    return invalid("there is no committed price to compare with", "give at least one option");
  const Currency currency = request.on_demand.currency();
  if (request.on_demand.is_negative() || request.on_demand.is_zero())
    return invalid("an on-demand price of " + to_text(request.on_demand) + " is not above zero",
                   "give what an hour costs");
  if (request.on_demand.units() > price_max || request.on_demand_hidden.units() > price_max ||
      request.on_demand_hidden.is_negative())
    return invalid("a price of " + to_text(std::max(request.on_demand, request.on_demand_hidden)) +
                       " is out of range",
                   "the most is 1000000 an hour");
  for (const CommitOption& option : request.options) {
    for (const Money& amount : {option.price, option.used, option.hidden, option.upfront}) {
      if (amount.currency() != currency || amount.is_negative() || amount.units() > price_max)
        return invalid("the amount " + to_text(amount) + " of the option '" + option.name +
                           "' is not 0 to 1000000 " + std::string(currency.code()),
                       "give it in the currency of the on-demand price");
    }
  }
  for (const UsageStep& step : usage) {
    if (step.amount < 0 || step.amount > amount_max || step.length.ms <= 0)
      return invalid("the usage at " + to_text(step.from) + " is out of range",
                     "amounts are 0 to 10^9, and every row lasts some time");
  }
  return {};
}

// The share of busy time at which the two lines meet, rounded up to a basis point.
std::optional<BasisPoints> break_even_of(const AdviceRequest& request, const CommitOption& option,
                                         Int128 length) {
  const Int128 fixed = fixed_cost(option, length);
  const Int128 saved = on_demand_line(request, length) - option.used.units() * length * whole_bp;
  if (saved <= 0 || fixed > saved) return std::nullopt;
  const Int128 per_bp = saved / whole_bp;
  return BasisPoints{static_cast<std::int64_t>((fixed + per_bp - 1) / per_bp)};
}

void add_shape(const std::vector<UsageStep>& usage, Advice& advice) {
  Int128 area = 0;
  advice.valley = usage.front().amount;
  for (const UsageStep& step : usage) {
    advice.peak = std::max(advice.peak, step.amount);
    advice.valley = std::min(advice.valley, step.amount);
    area += static_cast<Int128>(step.amount) * step.length.ms;
  }
  const Int128 length = length_of(usage);
  constexpr Int128 often = 95, whole = 100;
  for (const Band& band : bands_of(usage)) {
    if (band.busy * whole >= length * often) advice.base = band.above;
  }
  advice.length = Duration{static_cast<std::int64_t>(length)};
  advice.average = mean(area, length);
}

// Interruptible work on spot costs its price and what is lost and paid again; it goes there where
// that is cheaper than on demand. What is not committed then costs the mean of both, and the same
// optimum is taken at that price.
Result<void> add_spot(const std::vector<UsageStep>& usage, const AdviceRequest& request,
                      Advice& advice) {
  const Money spot =
      request.spot->times_ratio(whole_bp + request.spot_lost.value, whole_bp, Rounding::half_even);
  const Money dear = request.on_demand + request.on_demand_hidden;
  advice.spot_share = spot < dear ? request.interruptible : BasisPoints{0};
  const Money saved =
      (dear - spot).times_ratio(advice.spot_share->value, whole_bp, Rounding::half_even);
  AdviceRequest mixed = request;
  mixed.spot.reset();
  mixed.on_demand = dear - saved;
  mixed.on_demand_hidden = Money::zero(dear.currency());
  if (mixed.on_demand.is_zero()) {
    advice.cost_with_spot = mixed.on_demand;
    return {};
  }
  LOAM_TRY(with_spot, advise(usage, mixed));
  advice.cost_with_spot = with_spot.cost_mixed;
  advice.commitment_with_spot = with_spot.commitment;
  return {};
}

}  // namespace

Result<Advice> advise(const std::vector<UsageStep>& usage, const AdviceRequest& request) {
  LOAM_CHECK(check(usage, request));
  Advice advice;
  add_shape(usage, advice);
  const Int128 length = advice.length.ms;
  ExactSum mixed, on_demand, committed;
  for (const Band& band : bands_of(usage)) {
    const Int128 height = band.above - band.below;
    const std::size_t best = best_option(request, length, band.busy);
    const Int128 under_option = option_line(request.options[best], length, band.busy);
    const Int128 as_used = on_demand_line(request, band.busy);
    on_demand.add(as_used, height, 1);
    committed.add(under_option, height, 1);
    mixed.add(std::min(under_option, as_used), height, 1);
    if (under_option > as_used) continue;
    advice.commitment += static_cast<std::int64_t>(height);
    if (!advice.layers.empty() && advice.layers.back().option == best) {
      advice.layers.back().amount += static_cast<std::int64_t>(height);
    } else {
      advice.layers.push_back({best, static_cast<std::int64_t>(height)});
    }
  }
  const Currency currency = request.on_demand.currency();
  advice.cost_mixed = rounded(mixed, currency);
  advice.cost_on_demand = rounded(on_demand, currency);
  advice.cost_committed = rounded(committed, currency);
  advice.break_even = break_even_of(request, request.options.front(), length);
  if (request.spot) LOAM_CHECK(add_spot(usage, request, advice));
  return advice;
}

// --- Reading and forecasting ---------------------------------------------------------------------

namespace {

Result<Instant> read_time(const std::string& text) {
  std::int64_t hours = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), hours);
  if (fault == std::errc{} && end == text.data() + text.size() && !text.empty() && hours >= 0 &&
      hours <= hours_max)
    return Instant{hours * static_cast<std::int64_t>(hour_ms)};
  const auto instant = parse_instant(text);
  if (instant.ok()) return *instant;
  return invalid(shown(text) + " is not a time",
                 "write an instant such as 2026-03-01T00:00:00Z, or whole hours");
}

}  // namespace

Result<std::vector<UsageStep>> read_usage_csv(std::string_view text, std::string_view file) {
  LOAM_TRY(rows, read_csv(text, file));
  const std::vector<std::string> head = rows.empty() ? std::vector<std::string>{} : rows.front();
  LOAM_TRY(columns, find_columns(file, head, {"time", "amount"}));
  std::vector<UsageStep> usage;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& row = rows[i];
    if (row.size() != columns.size())
      return fault_at(file, i + 1,
                      invalid("there are " + std::to_string(row.size()) + " fields instead of " +
                                  std::to_string(columns.size()),
                              "write time,amount"));
    const auto from = read_time(row[columns[0]]);
    if (!from.ok()) return fault_at(file, i + 1, from.error());
    const auto amount = parse_decimal(row[columns[1]], 3, amount_max, "amount");
    if (!amount.ok()) return fault_at(file, i + 1, amount.error());
    if (!usage.empty()) {
      if (*from <= usage.back().from)
        return fault_at(file, i + 1,
                        invalid(shown(row[columns[0]]) + " is not after the row before",
                                "sort the rows by time, each time once"));
      usage.back().length = *from - usage.back().from;
    }
    usage.push_back({*from, {}, *amount});
  }
  if (usage.empty())
    return invalid(std::string(file) + ": there are no rows", "add some: time,amount");
  usage.back().length = usage.size() > 1 ? usage[usage.size() - 2].length : Duration::hours(1);
  return usage;
}

namespace {

// What was used at the hours of a cycle: a week, a day, or all as one.
struct Cycle {
  explicit Cycle(std::size_t hours) : area(hours, 0), time(hours, 0) {}

  std::vector<Int128> area, time;

  void add(std::size_t hour_of_week, std::int64_t amount, Duration length) {
    area[hour_of_week % area.size()] += static_cast<Int128>(amount) * length.ms;
    time[hour_of_week % area.size()] += length.ms;
  }
  std::optional<std::int64_t> at(std::size_t hour_of_week) const {
    const std::size_t slot = hour_of_week % area.size();
    if (time[slot] == 0) return std::nullopt;
    return mean(area[slot], time[slot]);
  }
};

struct LocalHour {
  std::size_t of_week = 0;
  Instant until;
};

LocalHour local_hour(const Zone& zone, Instant at) {
  constexpr std::int64_t hour = 3'600'000;
  const LocalTime local = zone.local(at);
  const std::int64_t past = local.of_day.ms % hour;
  return {static_cast<std::size_t>(weekday_of(local.date)) * 24 +
              static_cast<std::size_t>(local.of_day.ms / hour),
          std::min(at + Duration{hour - past}, zone.next_change(at))};
}

}  // namespace

std::vector<UsageStep> forecast(const std::vector<UsageStep>& usage, Duration ahead,
                                const Zone& zone) {
  LOAM_ASSERT(!usage.empty() && ahead.ms > 0);
  Cycle week(168), day(24), all(1);
  for (const UsageStep& step : usage) {
    for (Instant at = step.from; at < step.from + step.length;) {
      const LocalHour hour = local_hour(zone, at);
      const Instant end = std::min(step.from + step.length, hour.until);
      for (Cycle* cycle : {&week, &day, &all}) cycle->add(hour.of_week, step.amount, end - at);
      at = end;
    }
  }
  std::vector<UsageStep> coming;
  const Instant begin = usage.back().from + usage.back().length;
  for (Instant at = begin; at < begin + ahead;) {
    const LocalHour hour = local_hour(zone, at);
    const Instant end = std::min(begin + ahead, hour.until);
    std::optional<std::int64_t> amount;
    for (const Cycle* cycle : {&week, &day, &all}) {
      if (!amount) amount = cycle->at(hour.of_week);
    }
    coming.push_back({at, end - at, amount.value_or(0)});
    at = end;
  }
  return coming;
}

}  // namespace loam::billing

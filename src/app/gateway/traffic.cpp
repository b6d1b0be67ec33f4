#include "app/gateway/traffic.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/string.hpp>
#include <cmath>
#include <fstream>

namespace loam::serving {
namespace {

namespace json = boost::json;
namespace lend = schedule::lend;

constexpr std::int64_t minute_ms = Duration::minutes(1).ms;
// Below it an instance that is started on demand is good enough.
constexpr double expected_least = 0.1;

lend::WeekMinute week_minute(std::int64_t minute_of_epoch) {
  constexpr std::int64_t thursday = 3;  // 1970-01-01, counted from Monday
  const std::int64_t day = minute_of_epoch / lend::minutes_per_day;
  return {static_cast<int>((day + thursday) % 7),
          static_cast<int>(minute_of_epoch % lend::minutes_per_day)};
}

}  // namespace

// Saving and loading are the same here: an instance holds nothing that must be saved.
Traffic::Traffic(Duration start_time)
    : forecaster_(lend::forecast_terms(start_time.ms, 0, start_time.ms, false,
                                       lend::shortage_probability(1, 99))) {}

void Traffic::learn(std::int64_t minute_of_epoch, double mean, double peak) {
  if (!first_minute_) first_minute_ = minute_of_epoch;
  forecaster_.observe(week_minute(minute_of_epoch), mean, std::max(peak, mean));
  minute_ = minute_of_epoch + 1;
}

void Traffic::close_minute(std::int64_t next_minute) {
  // After a long silence of this program the minutes in between tell nothing; a day of them is
  // enough to forget the present level.
  const std::int64_t from = std::max(minute_, next_minute - lend::minutes_per_day);
  for (std::int64_t minute = from; minute < next_minute; ++minute) {
    const bool observed = minute == minute_ && samples_ > 0;
    learn(minute, observed ? sum_ / static_cast<double>(samples_) : 0, observed ? peak_ : 0);
  }
  sum_ = peak_ = 0;
  samples_ = 0;
}

void Traffic::observe(Instant now, std::uint32_t requests) {
  const std::int64_t minute = now.ms / minute_ms;
  if (!first_minute_ && samples_ == 0) minute_ = minute;
  if (minute > minute_) close_minute(minute);
  sum_ += requests;
  peak_ = std::max(peak_, static_cast<double>(requests));
  ++samples_;
  minute_ = std::max(minute_, minute);
}

std::uint64_t Traffic::expected_milli() const {
  if (!first_minute_ || minute_ - *first_minute_ < lend::minutes_per_day) return 0;
  const double expected = forecaster_.expect();
  if (expected < expected_least) return 0;
  const double held = expected + forecaster_.stock() * std::sqrt(std::max(expected, 0.25));
  return static_cast<std::uint64_t>(std::ceil(held * 1000));
}

Result<PastTraffic> past_traffic(const std::string& usage_file, Instant now, int days,
                                 std::size_t& skipped) {
  PastTraffic past;
  skipped = 0;
  std::ifstream in(usage_file, std::ios::binary);
  if (!in) return past;
  const Instant first = now - Duration::hours(24) * days;
  for (std::string line; std::getline(in, line);) {
    boost::system::error_code fault;
    const json::value value = json::parse(line, fault);
    const json::object* record = fault ? nullptr : value.if_object();
    const auto* model = record == nullptr ? nullptr : record->if_contains("model");
    const auto* arrived = record == nullptr ? nullptr : record->if_contains("arrived");
    const auto* lasted = record == nullptr ? nullptr : record->if_contains("lasted_ms");
    if (model == nullptr || arrived == nullptr || lasted == nullptr || !model->is_string() ||
        !arrived->is_string() || !lasted->is_int64() || lasted->get_int64() < 0) {
      ++skipped;
      continue;
    }
    const auto begin = parse_instant(std::string_view(arrived->get_string()));
    if (!begin.ok()) {
      ++skipped;
      continue;
    }
    const Instant end = std::min(*begin + Duration{lasted->get_int64()}, now);
    auto& minutes = past[std::string(model->get_string())];
    for (Instant at = std::max(*begin, first); at < end;) {
      const std::int64_t minute = at.ms / minute_ms;
      const Instant next = std::min(Instant{(minute + 1) * minute_ms}, end);
      minutes[minute].mean += static_cast<double>((next - at).ms) / static_cast<double>(minute_ms);
      minutes[minute].peak += 1;
      at = next;
    }
  }
  return past;
}

}  // namespace loam::serving

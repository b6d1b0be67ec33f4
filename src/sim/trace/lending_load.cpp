// Services and training for the lending replay, from traces.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <queue>
#include <sstream>

#include "base/random.hpp"
#include "sim/trace/lending.hpp"

namespace loam::sim {
namespace {

constexpr double pi = 3.141592653589793;
constexpr std::int64_t us_per_second = 1'000'000;
constexpr std::int64_t us_per_day = 86'400 * us_per_second;
constexpr std::int64_t minute_us = 60 * us_per_second;

double uniform(Random& random) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53;
}
// Close to a standard normal: the sum of twelve uniforms less six.
double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(random);
  return sum;
}

// --- the request trace ----------------------------------------------------------------------

Error bad_line(const std::string& name, std::size_t line, const std::string& why) {
  return invalid(name + ":" + std::to_string(line) + ": " + why,
                 "write TIMESTAMP,ContextTokens,GeneratedTokens, such as "
                 "2023-11-16 18:15:46.6805900,374,44");
}

bool read_digits(std::string_view& text, std::size_t digits, std::int64_t& value) {
  if (text.size() < digits) return false;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + digits, value);
  if (fault != std::errc{} || end != text.data() + digits || value < 0) return false;
  text.remove_prefix(digits);
  return true;
}

bool skip(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// "2023-11-16 18:15:46.6805900" in microseconds since midnight of the month's first day.
bool read_time(std::string_view text, std::int64_t& us) {
  std::int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, fraction = 0;
  if (!read_digits(text, 4, year) || !skip(text, '-') || !read_digits(text, 2, month) ||
      !skip(text, '-') || !read_digits(text, 2, day) || !skip(text, ' ') ||
      !read_digits(text, 2, hour) || !skip(text, ':') || !read_digits(text, 2, minute) ||
      !skip(text, ':') || !read_digits(text, 2, second))
    return false;
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
    return false;
  if (!text.empty()) {
    if (!skip(text, '.') || text.empty() || text.size() > 9) return false;
    const std::size_t digits = text.size();
    if (!read_digits(text, digits, fraction)) return false;
    for (std::size_t i = digits; i < 6; ++i) fraction *= 10;
    for (std::size_t i = 6; i < digits; ++i) fraction /= 10;
  }
  us = (((day * 24 + hour) * 60 + minute) * 60 + second) * us_per_second + fraction;
  return true;
}

bool read_tokens(std::string_view text, std::int32_t& tokens) {
  constexpr std::int32_t tokens_max = 10'000'000;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), tokens);
  return fault == std::errc{} && end == text.data() + text.size() && tokens >= 0 &&
         tokens <= tokens_max;
}

// --- services -------------------------------------------------------------------------------

struct Shape {
  const char* name;
  double requests_per_second;  // at its mean
  double swing;                // of the day: the peak is e^(2 swing) times the night
  double peak_hour;
  double weekend;  // load on Saturdays and Sundays, of a weekday's
  double drift;    // spread of the slow drift
  double context_us;
  double generated_us;  // a token
};

// Rates and token times put each service between 5 and 20 devices on average: large enough that
// the peaks are not the trace's single requests, small enough for millions of requests.
constexpr std::array<Shape, 4> shapes{{{"office", 1.1, 0.9, 14, 0.35, 0.06, 250, 40'000},
                                       {"evening", 1.4, 0.7, 20.5, 1.15, 0.06, 250, 30'000},
                                       {"steady", 1.0, 0.25, 10, 0.9, 0.05, 400, 50'000},
                                       {"bursty", 0.5, 0.6, 16, 0.7, 0.20, 250, 60'000}}};
constexpr std::size_t stepping = 0;  // the service that grows by half at once
constexpr std::size_t flashing = 3;  // the one that meets a flash crowd

// What befalls a service in the replayed weeks, as a factor of its load.
double event_factor(std::size_t service, std::int64_t at_us) {
  constexpr std::int64_t step_at = 8 * us_per_day + 10 * 3'600 * us_per_second;
  constexpr std::int64_t flash_at = 9 * us_per_day + 15 * 3'600 * us_per_second;
  constexpr std::int64_t ramp = 3 * minute_us, plateau = 20 * minute_us;
  if (service == stepping && at_us >= step_at) return 1.5;
  if (service != flashing || at_us < flash_at) return 1;
  const std::int64_t since = at_us - flash_at;
  const std::int64_t left = 2 * ramp + plateau - since;
  if (left <= 0) return 1;
  const double rise = static_cast<double>(std::min({since, ramp, left})) / ramp;
  return 1 + 3 * rise;
}

// The rate of one service over time, relative to its mean.
class Rhythm {
 public:
  Rhythm(const Shape& shape, std::size_t service, Random& random)
      : shape_(shape), service_(service), random_(random) {}

  // `day` 0 is a Monday. Requires times that never fall.
  double factor(std::int64_t us_since_monday, std::int64_t at_us) {
    while (us_since_monday >= drift_until_) {
      // A slow drift: an autoregression in steps of ten minutes.
      drift_ = 0.95 * drift_ + shape_.drift * 0.31 * normal(random_);
      drift_until_ += 10 * minute_us;
    }
    const double hour = static_cast<double>(us_since_monday % us_per_day) / 3.6e9;
    const bool weekend = us_since_monday / us_per_day % 7 >= 5;
    return std::exp(shape_.swing * std::cos((hour - shape_.peak_hour) * pi / 12) + drift_) *
           (weekend ? shape_.weekend : 1) * event_factor(service_, at_us);
  }

 private:
  const Shape& shape_;
  std::size_t service_;
  Random& random_;
  double drift_ = 0;
  std::int64_t drift_until_ = 0;
};

// Requests in the system by minute, were there devices for all.
class Crowd {
 public:
  explicit Crowd(std::size_t minutes) : minutes_(minutes), busy_us_(minutes) {}

  void arrive(std::int64_t at_us, std::int64_t service_us) {
    leave_until(at_us);
    advance(at_us);
    ends_.push(at_us + service_us);
    note_peak();
  }
  void finish(std::int64_t at_us) {
    leave_until(at_us);
    advance(at_us);
  }
  std::int64_t peak() const { return peak_; }
  std::vector<MinuteLoad> take() {
    for (std::size_t i = 0; i < minutes_.size(); ++i)
      minutes_[i].mean = static_cast<float>(busy_us_[i] / static_cast<double>(minute_us));
    return std::move(minutes_);
  }

 private:
  void leave_until(std::int64_t at_us) {
    while (!ends_.empty() && ends_.top() <= at_us) {
      advance(ends_.top());
      ends_.pop();
    }
  }
  void advance(std::int64_t to_us) {
    while (now_us_ < to_us) {
      const auto minute = static_cast<std::size_t>(now_us_ / minute_us);
      const std::int64_t until = std::min(to_us, (now_us_ / minute_us + 1) * minute_us);
      if (minute < minutes_.size()) {
        busy_us_[minute] +=
            static_cast<double>(until - now_us_) * static_cast<double>(ends_.size());
      }
      now_us_ = until;
      if (now_us_ < to_us || now_us_ % minute_us == 0) note_peak();
    }
  }
  void note_peak() {
    const auto minute = static_cast<std::size_t>(now_us_ / minute_us);
    const auto n = static_cast<std::int64_t>(ends_.size());
    peak_ = std::max(peak_, n);
    if (minute < minutes_.size())
      minutes_[minute].peak = std::max(minutes_[minute].peak, static_cast<float>(n));
  }

  std::vector<MinuteLoad> minutes_;
  std::vector<double> busy_us_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends_;
  std::int64_t now_us_ = 0;
  std::int64_t peak_ = 0;
};

ServiceLoad make_service(const std::vector<TracedRequest>& trace, const LendingWeeks& weeks,
                         std::size_t index, double trace_rate) {
  const Shape& shape = shapes[index];
  Random random(weeks.seed * 1'000 + index);
  Rhythm rhythm(shape, index, random);
  const std::int64_t replay_from = weeks.history_days * us_per_day;
  const std::int64_t end = replay_from + weeks.days * us_per_day;
  Crowd past(static_cast<std::size_t>(weeks.history_days) * 1440);
  Crowd present(static_cast<std::size_t>(weeks.days) * 1440);
  ServiceLoad load;
  load.name = shape.name;
  std::size_t at = random.below(trace.size());
  double now = 0;
  while (true) {
    // The trace's own gaps, stretched to the rate of the hour, so that its bursts stay.
    const TracedRequest& request = trace[at];
    at = at + 1 == trace.size() ? 0 : at + 1;
    const auto before = static_cast<std::int64_t>(now);
    const double rate =
        shape.requests_per_second * rhythm.factor(before, before - replay_from) / trace_rate;
    now += static_cast<double>(request.gap_us) / rate;
    const auto now_us = static_cast<std::int64_t>(now);
    if (now_us >= end) break;
    const auto service_us =
        1'000 + static_cast<std::int64_t>(shape.context_us * request.context +
                                          shape.generated_us * request.generated);
    if (now_us < replay_from) {
      past.arrive(now_us, service_us);
    } else {
      present.arrive(now_us - replay_from, service_us);
      load.arrivals.push_back({now_us - replay_from, service_us});
    }
  }
  past.finish(replay_from);
  present.finish(end - replay_from);
  load.history = past.take();
  load.peak = present.peak();
  return load;
}

}  // namespace

const char* name_of(Lending lending) noexcept {
  switch (lending) {
    case Lending::exclusive:
      return "exclusive";
    case Lending::threshold:
      return "threshold";
    case Lending::forecast:
      return "forecast";
    case Lending::forecast_and_turns:
      break;
  }
  return "forecast and turns";
}

Result<std::vector<TracedRequest>> parse_requests(const std::string& name, std::string_view text) {
  constexpr std::string_view header = "TIMESTAMP,ContextTokens,GeneratedTokens";
  std::vector<TracedRequest> requests;
  std::size_t number = 0;
  std::int64_t before = -1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1) {
      if (line != header) return bad_line(name, 1, "the header is missing");
      continue;
    }
    if (line.empty()) continue;
    const std::size_t first = line.find(',');
    const std::size_t second = first == line.npos ? line.npos : line.find(',', first + 1);
    if (second == line.npos) return bad_line(name, number, "three fields are needed");
    std::int64_t us = 0;
    TracedRequest request;
    if (!read_time(line.substr(0, first), us))
      return bad_line(name, number, "'" + std::string(line.substr(0, first)) + "' is no time");
    if (!read_tokens(line.substr(first + 1, second - first - 1), request.context) ||
        !read_tokens(line.substr(second + 1), request.generated))
      return bad_line(name, number,
                      "'" + std::string(line.substr(first + 1)) + "' is no two counts");
    if (us < before) return bad_line(name, number, "the time is before that of the line above");
    request.gap_us = before < 0 ? 0 : us - before;
    before = us;
    requests.push_back(request);
  }
  if (requests.size() < 2) return bad_line(name, number, "two requests at least are needed");
  return requests;
}

Result<std::vector<TracedRequest>> read_requests(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text)
    return Error{ErrorKind::not_found, path + " cannot be read",
                 "give the path of a request trace"};
  return parse_requests(path, text.str());
}

std::vector<ServiceLoad> make_services(const std::vector<TracedRequest>& trace,
                                       const LendingWeeks& weeks) {
  LOAM_ASSERT(trace.size() >= 2);
  double span_us = 0;
  for (const TracedRequest& request : trace) span_us += static_cast<double>(request.gap_us);
  const double trace_rate = static_cast<double>(trace.size() - 1) * 1e6 / std::max(span_us, 1.0);
  std::vector<ServiceLoad> services;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    services.push_back(make_service(trace, weeks, i, trace_rate));
  return services;
}

std::vector<TrainingJob> make_training(const std::vector<TrainingJob>& traced,
                                       const LendingWeeks& weeks, std::int64_t devices,
                                       double load) {
  LOAM_ASSERT(!traced.empty() && devices > 0 && load > 0);
  Random random(weeks.seed * 1'000 + 999);
  const double span = static_cast<double>(weeks.days) * 86'400;
  double left = span * static_cast<double>(devices) * load;
  std::vector<TrainingJob> jobs;
  while (left > 0) {
    TrainingJob job = traced[random.below(traced.size())];
    left -= static_cast<double>(job.work_s * job.gang);
    // Submitted in the first nine tenths, so that most can end within the weeks.
    job.arrival_s = static_cast<std::int64_t>(uniform(random) * span * 0.9);
    jobs.push_back(job);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const TrainingJob& a, const TrainingJob& b) {
    return a.arrival_s < b.arrival_s;
  });
  return jobs;
}

}  // namespace loam::sim

// loam sim: one task on spot capacity under a deadline.
#include <algorithm>
#include <cstdio>
#include <span>

#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "base/quantity.hpp"
#include "schedule/spot/optimum.hpp"
#include "sim/plot.hpp"
#include "sim/trace/spot.hpp"

namespace loam::cli {
namespace {

namespace spot = schedule::spot;

constexpr int ratio_decimals = 6;
constexpr std::int64_t start_max = 10'000'000;
// The optimum is left out where it would take longer than a few seconds, or this many values.
constexpr std::int64_t optimum_steps_max = 2'000'000'000;
constexpr std::int64_t optimum_values_max = 50'000'000;

Result<Duration> length_of(const Arguments& arguments, const char* key, const char* example) {
  if (!arguments.has(key))
    return invalid("--trace spot needs --" + std::string(key),
                   "give it as " + std::string(example));
  Result<Duration> length = parse_duration(arguments.text(key));
  if (!length) {
    return invalid("--" + std::string(key) + ": " + length.error().message,
                   length.error().next_step);
  }
  return *length;
}

Result<spot::Policy> policy_of(const Arguments& arguments) {
  const std::string name = arguments.text("policy", "reserve");
  if (const auto policy = spot::policy_of(name)) return *policy;
  return invalid("'" + name + "' is no policy for spot",
                 "give --policy as greedy, uniform_progress or reserve");
}

Result<spot::Terms> terms_of(const Arguments& arguments, Duration gap) {
  LOAM_TRY(work, length_of(arguments, "work", "--work 48h"));
  LOAM_TRY(deadline, length_of(arguments, "deadline", "--deadline 60h"));
  LOAM_TRY(changeover, length_of(arguments, "changeover", "--changeover 3m"));
  LOAM_TRY(ratio, parse_decimal(arguments.text("price-ratio", "0.317"), ratio_decimals,
                                spot::cost_scale, "price ratio"));
  return spot::terms_of(work, deadline, changeover, gap, ratio);
}

// A sample's index, or a time into the file, "12h", which is rounded down to one.
Result<std::size_t> start_of(const Arguments& arguments, const sim::AvailabilityTrace& trace) {
  const std::string text = arguments.text("start", "0");
  std::int64_t start = 0;
  if (text.find_first_not_of("0123456789") == text.npos) {
    LOAM_TRY(index, parse_decimal(text, 0, start_max, "start"));
    start = index;
  } else {
    const Result<Duration> offset = parse_duration(text);
    if (!offset)
      return invalid("--start: " + offset.error().message, "give a sample's index, or a time: 12h");
    start = offset->ms / trace.gap.ms;
  }
  if (static_cast<std::size_t>(start) >= trace.available.size())
    return invalid("--start " + text + " is sample " + std::to_string(start) + " of " +
                       std::to_string(trace.available.size()),
                   "start before the file's end");
  return static_cast<std::size_t>(start);
}

std::string fraction_text(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", fraction);
  return text;
}

// "null" where it is too long to compute, or nothing meets the deadline.
std::string optimum_text(const spot::Terms& terms, const sim::AvailabilityTrace& trace,
                         std::size_t start) {
  const std::int64_t width = terms.deadline - terms.work + 1;
  if (terms.deadline > optimum_steps_max / width ||
      terms.changeover + 1 > optimum_values_max / (width + terms.changeover))
    return "null";
  const auto best =
      spot::optimal_cost(terms, std::span<const std::uint8_t>(trace.available).subspan(start));
  if (!best) return "null";
  return fraction_text(static_cast<double>(*best) /
                       static_cast<double>(terms.work * spot::cost_scale));
}

// The run tick by tick, for --csv and --plot.
class Course {
 public:
  Course(const spot::Terms& terms, std::span<const std::uint8_t> available, const char* policy)
      : terms_(terms),
        available_(available),
        plot_every_(std::max<spot::Ticks>(1, terms.deadline / plot_points_max)),
        done_{std::string(policy) + ": work done", {{0, 0}}},
        paid_{std::string(policy) + ": paid", {{0, 0}}} {}

  void note(const spot::State& state) {
    const auto tick = static_cast<std::size_t>(state.now - 1);
    const double all = static_cast<double>(terms_.work);
    const double done = static_cast<double>(state.done) / all;
    const double paid =
        static_cast<double>(state.paid) / (all * static_cast<double>(spot::cost_scale));
    csv_ += std::to_string(tick) + "," + decimal_text((terms_.tick * (state.now - 1)).ms, 3) + "," +
            (available_[tick] != 0 ? "1," : "0,") + spot::name_of(state.mode) + "," +
            decimal_text((terms_.tick * state.done).ms, 3) + "," + fraction_text(paid) + "," +
            std::to_string(state.starts) + "\n";
    if (state.now % plot_every_ != 0 && !state.finished(terms_)) return;
    const double hours = static_cast<double>((terms_.tick * state.now).ms) / 3'600'000;
    done_.points.emplace_back(hours, 100 * done);
    paid_.points.emplace_back(hours, 100 * paid);
  }

  const std::string& csv() const { return csv_; }
  std::string plot() const {
    return sim::line_chart(
        {"One task on spot", "hours", "% of the work, and of its on-demand price"}, {done_, paid_});
  }

 private:
  static constexpr spot::Ticks plot_points_max = 2'000;  // more than a plot is wide

  const spot::Terms& terms_;
  std::span<const std::uint8_t> available_;
  spot::Ticks plot_every_;
  std::string csv_ = "tick,at_s,available,mode,done_s,paid_fraction,starts\n";
  sim::Series done_;
  sim::Series paid_;
};

}  // namespace

Result<int> sim_spot(Session& session, const Arguments& arguments) {
  if (!arguments.has("availability"))
    return invalid("--trace spot needs --availability FILE",
                   R"(a file of {"metadata":{"gap_seconds":195},"data":[1,0,...]})");
  LOAM_TRY(policy, policy_of(arguments));
  LOAM_TRY(trace, sim::read_availability(arguments.text("availability")));
  LOAM_TRY(terms, terms_of(arguments, trace.gap));
  LOAM_TRY(start, start_of(arguments, trace));
  const auto samples = std::span<const std::uint8_t>(trace.available).subspan(start);
  Course course(terms, samples, spot::name_of(policy));
  const bool watched = arguments.has("csv") || arguments.has("plot");
  LOAM_TRY(outcome,
           sim::run_spot(policy, terms, trace.available, start, [&](const spot::State& state) {
             if (watched) course.note(state);
           }));

  const std::string optimum = optimum_text(terms, trace, start);
  const std::string fraction = fraction_text(outcome.cost_fraction(terms));
  const Duration ended = terms.tick * outcome.ended;
  LOAM_CHECK(write_json(
      arguments, session,
      std::string("{\"policy\":\"") + spot::name_of(policy) + "\",\"cost_fraction\":" + fraction +
          ",\"starts\":" + std::to_string(outcome.starts) + ",\"missed\":" +
          (outcome.missed ? "true" : "false") + ",\"ended_s\":" + std::to_string(ended.ms / 1000) +
          ",\"jain\":1" +  // one task of one tenant
          ",\"optimum_fraction\":" + optimum + "}\n"));
  LOAM_CHECK(write_result(arguments, "csv", session, course.csv()));
  if (arguments.has("plot")) LOAM_CHECK(write_plot(arguments, "spot.svg", course.plot()));
  if (!shows_table(arguments, session)) return 0;
  session.out() << spot::name_of(policy) << ": " << fraction << " of the on-demand price, "
                << outcome.starts << " starts, " << (outcome.missed ? "missed" : "done in ")
                << (outcome.missed ? "" : to_text(ended)) << " of " << arguments.text("deadline")
                << "; who knew the future would have paid " << optimum
                << "; Jain's index 1, of one tenant\n";
  return 0;
}

OptionGroup sim_spot_options() {
  return {"Spot under a deadline",
          {{"--availability", "FILE", "when spot was there, as JSON", Option::Kind::value, "@path"},
           {"--work", "TIME", "what the task needs on one instance, such as 48h"},
           {"--deadline", "TIME", "after the start, such as 60h"},
           {"--changeover", "TIME", "lost at each start, such as 3m"},
           {"--price-ratio", "R", "spot price / on-demand price, such as 0.317"},
           {"--start", "T", "the sample to start at, or a time into the file"}}};
}

}  // namespace loam::cli

// bench_infer_replay MODELS TRACE.csv: a public trace of requests to a language model (azure-llm,
// AzurePublicDataset 2023), served by a fixed number of instances and by as many as the load asks
// for. Steps are measured on the real engine in this same run, the rest is virtual time
// (replay.hpp). Prints figures (docs/formats/bench.md).
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "bench/infer_replay/measure.hpp"
#include "sim/trace/lending.hpp"

namespace {

using namespace loam::bench::replay;  // NOLINT: a program of one file
using loam::Duration;
using loam::Result;

// The machine's model is smaller and its context shorter than those of the trace.
constexpr std::uint32_t length_divisor = 4;
constexpr std::uint32_t context_tokens = 2048;
constexpr std::uint32_t instances_max = 4;
// At the day's height, of what all instances can do.
constexpr double load_at_height = 0.5;

// Requests of each hour of a working day, as parts of the busiest; nobody asks from one to six.
constexpr std::array<double, 24> hours{.02, 0,   0, 0,   0,  0,  .05, .15, .35, .7,  .9,  1,
                                       .8,  .85, 1, .95, .8, .5, .3,  .25, .2,  .12, .05, .03};
constexpr double hour_us = 5 * 60e6;  // the day passes in two hours

std::string figures;
void add(const std::string& name, double value, const std::string& note = {}) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  figures += (figures.empty() ? "" : ",") + ("{\"name\":\"infer_replay." + name) +
             "\",\"value\":" + text + ",\"note\":\"" + note + "\"}";
  std::fprintf(stderr, "infer_replay.%s %s %s\n", name.c_str(), text, note.c_str());
}

Arrival scaled(const loam::sim::TracedRequest& request) {
  const auto shorter = [](std::int32_t tokens, std::uint32_t most) {
    return std::clamp(static_cast<std::uint32_t>(tokens) / length_divisor, 1U, most);
  };
  Arrival arrival;
  arrival.generated_tokens = shorter(request.generated, context_tokens / 2);
  arrival.prompt_tokens = shorter(request.context, context_tokens - arrival.generated_tokens);
  return arrival;
}

// The trace's own gaps, drawn together or apart so that the busiest hour has `height_per_s`.
std::vector<Arrival> day_of(const std::vector<loam::sim::TracedRequest>& trace,
                            double height_per_s) {
  double trace_us = 0;
  for (const auto& request : trace) trace_us += static_cast<double>(request.gap_us);
  const double trace_per_s = static_cast<double>(trace.size()) / (trace_us / 1e6);
  std::vector<Arrival> arrivals;
  double at_us = 0;
  for (std::size_t i = 0;; i = (i + 1) % trace.size()) {
    // Of the trace's own time, so much has to pass; hour by hour at that hour's pace.
    double left_us = static_cast<double>(trace[i].gap_us) * trace_per_s / height_per_s;
    while (true) {
      const auto hour = static_cast<std::size_t>(at_us / hour_us);
      if (hour >= hours.size()) return arrivals;
      const double hour_left_us = (static_cast<double>(hour) + 1) * hour_us - at_us;
      if (hours[hour] > 0 && left_us / hours[hour] < hour_left_us) {
        at_us += left_us / hours[hour];
        break;
      }
      left_us -= hours[hour] * hour_left_us;
      at_us = (static_cast<double>(hour) + 1) * hour_us;
    }
    Arrival arrival = scaled(trace[i]);
    arrival.at_us = static_cast<std::int64_t>(at_us);
    arrivals.push_back(arrival);
  }
}

double percentile(std::vector<double>& values, std::size_t percent) {
  const std::size_t rank = (values.size() * percent + 99) / 100;
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1)) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// At one dollar for an hour of an instance.
double dollars_per_million(const Outcome& outcome) {
  return outcome.instance_seconds / 3600 / (static_cast<double>(outcome.tokens) / 1e6);
}

void add_outcome(const std::string& name, Outcome& outcome) {
  char note[160];
  std::snprintf(note, sizeof note,
                "%.2f instances on average, %u at most, %.0f %% of their time in steps",
                outcome.instance_seconds / outcome.span_seconds, outcome.most_instances,
                100 * outcome.busy_seconds / outcome.instance_seconds);
  add(name + "_first_token_ms_p50", percentile(outcome.first_token_ms, 50), note);
  add(name + "_first_token_ms_p99", percentile(outcome.first_token_ms, 99));
  add(name + "_gap_ms_p50", percentile(outcome.gap_ms, 50));
  add(name + "_gap_ms_p99", percentile(outcome.gap_ms, 99));
  add(name + "_usd_per_million_tokens", dollars_per_million(outcome),
      "prompt and generated, at 1 USD an hour of an instance");
}

Result<void> run(const std::string& models, const std::string& trace_path) {
  LOAM_TRY(trace, loam::sim::read_requests(trace_path));
  std::vector<Arrival> samples;
  for (const auto& request : trace) samples.push_back(scaled(request));
  Settings settings;
  settings.batching.cells_per_slot = context_tokens;
  settings.batching.cells = settings.batching.slots * context_tokens;
  settings.batching.share_prefixes =
      false;  // the trace says nothing of what prompts have in common
  settings.scaling.instances_max = instances_max;
  // An hour of the day is five minutes here; the waits of an endpoint shrink with it.
  settings.scaling.idle_after = Duration::seconds(60);
  settings.scaling.shrink_after = Duration::seconds(15);
  LOAM_TRY(measured, measure(models + "/20m.q8_0.gguf", settings.batching, samples));
  settings.start_time = measured.start_time;
  char note[200];
  std::snprintf(
      note, sizeof note,
      "said over lasted, %llu steps of the 20m model at q8_0: %llu us for one stream, %llu "
      "us for eight, %llu us a prompt token; started in %lld ms",
      static_cast<unsigned long long>(measured.steps),
      static_cast<unsigned long long>(measured.cost.decode_us(1)),
      static_cast<unsigned long long>(measured.cost.decode_us(8)),
      static_cast<unsigned long long>(measured.cost.prompt_token_us()),
      static_cast<long long>(measured.start_time.ms));
  add("step_time_ratio", measured.said_over_lasted, note);

  samples.resize(std::min<std::size_t>(samples.size(), 2'000));
  const double each_per_s = capacity(samples, settings, measured.cost);
  const std::vector<Arrival> day = day_of(trace, load_at_height * instances_max * each_per_s);
  add("requests", static_cast<double>(day.size()),
      "lengths of the trace over 4; a day's rhythm in two hours, the busiest hour at half of what "
      "4 "
      "instances can do");
  Outcome elastic = replay(day, settings, measured.cost);
  settings.scaling.instances_min = instances_max;
  Outcome fixed = replay(day, settings, measured.cost);
  add("failures", static_cast<double>(fixed.unanswered + elastic.unanswered));
  add_outcome("fixed", fixed);
  add_outcome("elastic", elastic);
  add("elastic_cost_ratio", dollars_per_million(elastic) / dollars_per_million(fixed),
      "from none to 4 instances as the load asks, over 4 all the time");
  std::printf("{\"figures\":[%s]}\n", figures.c_str());
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("usage: bench_infer_replay MODELS TRACE.csv\n", stderr);
    return 2;
  }
  const auto done = run(words[1], words[2]);
  if (!done.ok()) std::fprintf(stderr, "bench_infer_replay: %s\n", to_text(done.error()).c_str());
  return done.ok() ? 0 : 1;
}

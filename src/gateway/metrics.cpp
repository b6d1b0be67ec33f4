#include "gateway/metrics.hpp"

#include <cstdio>

#include "http/exposition.hpp"

namespace loam::gateway {

namespace {

using http::label;

std::string decimal(std::uint64_t microseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%06llu",
                static_cast<unsigned long long>(microseconds / 1'000'000),
                static_cast<unsigned long long>(microseconds % 1'000'000));
  return text;
}

class Page : public http::Exposition {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    http::Exposition::family("loam_inference_" + std::string(name), type, help);
  }
  void histogram(const std::string& labels, const Histogram& histogram) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < bucket_ms.size(); ++i) {
      below += histogram.counts[i];
      sample(labels + "," + label("le", decimal(std::uint64_t{bucket_ms[i]} * 1000)),
             std::to_string(below), "_bucket");
    }
    below += histogram.counts.back();
    sample(labels + "," + label("le", "+Inf"), std::to_string(below), "_bucket");
    sample(labels, decimal(histogram.sum_us), "_sum");
    sample(labels, std::to_string(below), "_count");
  }
};

struct Counted {
  std::string_view name;
  std::string_view kind;
  std::string_view what;
  std::uint64_t (*value)(const ModelMetrics&);
};
constexpr Counted counted[] = {
    {"requests_refused_total", "counter", "Requests over their tenant's limits.",
     [](const ModelMetrics& m) { return m.refused; }},
    {"tries_repeated_total", "counter", "Tries that were repeated on another instance.",
     [](const ModelMetrics& m) { return m.repeated; }},
    {"requests_in_flight", "gauge", "Requests that are not over.",
     [](const ModelMetrics& m) { return std::uint64_t{m.in_flight}; }},
    {"requests_waiting", "gauge", "Requests that wait for an instance to come up.",
     [](const ModelMetrics& m) { return std::uint64_t{m.waiting}; }},
    {"chunks_total", "counter", "Pieces of text passed on.",
     [](const ModelMetrics& m) { return m.chunks; }},
    {"prompt_tokens_total", "counter", "Prompt tokens, cached or not.",
     [](const ModelMetrics& m) { return m.prompt_tokens; }},
    {"cached_tokens_total", "counter", "Prompt tokens taken from stored prefixes.",
     [](const ModelMetrics& m) { return m.cached_tokens; }},
    {"generated_tokens_total", "counter", "Generated tokens.",
     [](const ModelMetrics& m) { return m.generated_tokens; }},
};

struct Timed {
  std::string_view name;
  std::string_view what;
  Histogram ModelMetrics::*histogram;
};
constexpr Timed timed[] = {
    {"time_to_first_token_seconds", "From a request's arrival to its first token.",
     &ModelMetrics::to_first_token},
    {"gap_seconds", "Between two pieces of one answer.", &ModelMetrics::gap},
    {"request_seconds", "From a request's arrival to its end.", &ModelMetrics::lasted},
};

struct Measured {
  std::string_view name;
  std::string_view kind;
  std::string_view what;
  std::uint64_t (*value)(const InstanceReport&);
};
constexpr Measured measured[] = {
    {"instance_requests_in_flight", "gauge", "This gateway's requests at the instance.",
     [](const InstanceReport& r) { return std::uint64_t{r.in_flight}; }},
    {"instance_running", "gauge", "Requests being computed.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.running}; }},
    {"instance_waiting", "gauge", "Requests in the instance's queue.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.waiting}; }},
    {"instance_swapped", "gauge", "Requests put aside.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.swapped}; }},
    {"instance_batch_requests", "gauge", "Requests in the latest step.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.last_batch}; }},
    {"instance_steps_total", "counter", "Steps of the model.",
     [](const InstanceReport& r) { return r.stats.steps; }},
    {"instance_batch_tokens_total", "counter", "Tokens computed in all steps.",
     [](const InstanceReport& r) { return r.stats.batch_tokens; }},
    {"instance_cells", "gauge", "Tokens that fit key-value memory.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.cells}; }},
    {"instance_cells_used", "gauge", "Tokens in key-value memory.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.cells_used}; }},
    {"instance_cells_promised", "gauge", "Tokens promised to running requests.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.cells_promised}; }},
    {"instance_fragmentation_permille", "gauge", "Holes in key-value memory.",
     [](const InstanceReport& r) { return std::uint64_t{r.stats.fragmentation_permille}; }},
    {"instance_prefix_bytes", "gauge", "Stored prefixes in host memory.",
     [](const InstanceReport& r) { return r.stats.cache_bytes; }},
    {"instance_weights_bytes", "gauge", "The model's weights.",
     [](const InstanceReport& r) { return r.welcome.weights_bytes; }},
    {"instance_key_value_bytes", "gauge", "Key-value memory.",
     [](const InstanceReport& r) {
       return std::uint64_t{r.stats.cells} * r.welcome.kv_token_bytes;
     }},
    {"instance_preemptions_total", "counter", "Requests put aside so far.",
     [](const InstanceReport& r) { return r.stats.preemptions; }},
};

void add_models(Page& page, const std::map<std::string, ModelMetrics>& models) {
  page.family("requests_total", "counter", "Requests that ended, by outcome.");
  for (const auto& [name, model] : models) {
    for (const auto& [outcome, count] : model.ended)
      page.sample(label("model", name) + "," + label("outcome", outcome), count);
  }
  for (const Counted& one : counted) {
    page.family(one.name, one.kind, one.what);
    for (const auto& [name, model] : models) page.sample(label("model", name), one.value(model));
  }
  page.family("tokens_by_hour_total", "counter",
              "Prompt and generated tokens by hour of the day, UTC.");
  for (const auto& [name, model] : models) {
    for (std::size_t hour = 0; hour < 24; ++hour)
      page.sample(label("model", name) + "," + label("hour", std::to_string(hour)),
                  model.tokens_by_hour[hour]);
  }
  for (const Timed& one : timed) {
    page.family(one.name, "histogram", one.what);
    for (const auto& [name, model] : models)
      page.histogram(label("model", name), model.*one.histogram);
  }
}

}  // namespace

void Histogram::observe(std::uint64_t microseconds) {
  std::size_t bucket = 0;
  while (bucket < bucket_ms.size() && microseconds > std::uint64_t{bucket_ms[bucket]} * 1000)
    ++bucket;
  ++counts[bucket];
  sum_us += microseconds;
}

void ModelMetrics::count(const TokenUsage& usage, Instant now) {
  prompt_tokens += usage.prompt_tokens;
  cached_tokens += usage.cached_tokens;
  generated_tokens += usage.generated_tokens;
  const auto hour = static_cast<std::size_t>(now.ms / Duration::hours(1).ms % 24);
  tokens_by_hour[hour] += std::uint64_t{usage.prompt_tokens} + usage.generated_tokens;
}

const char* name_of(InstanceReport::State state) noexcept {
  switch (state) {
    case InstanceReport::State::down:
      return "down";
    case InstanceReport::State::starting:
      return "starting";
    case InstanceReport::State::up:
      return "up";
    case InstanceReport::State::silent:
      return "silent";
    case InstanceReport::State::draining:
      break;
  }
  return "draining";
}

std::string metrics_text(const std::map<std::string, ModelMetrics>& models,
                         const std::vector<InstanceReport>& instances) {
  Page page;
  add_models(page, models);
  const auto labels = [](const InstanceReport& one) {
    return label("model", one.model) + "," + label("instance", one.name);
  };
  page.family("instance_state", "gauge", "1 for the state that the instance is in.");
  for (const InstanceReport& one : instances)
    page.sample(labels(one) + "," + label("state", name_of(one.state)), std::uint64_t{1});
  page.family("instance_info", "gauge", "1, with what computes and how.");
  for (const InstanceReport& one : instances) {
    if (one.welcome.compute.empty()) continue;
    page.sample(labels(one) + "," + label("file_type", one.welcome.file_type) + "," +
                    label("compute", one.welcome.compute),
                std::uint64_t{1});
  }
  for (const Measured& figure : measured) {
    page.family(figure.name, figure.kind, figure.what);
    for (const InstanceReport& one : instances) page.sample(labels(one), figure.value(one));
  }
  page.family("instance_step_seconds_total", "counter", "Time spent in steps.");
  for (const InstanceReport& one : instances) page.sample(labels(one), decimal(one.stats.steps_us));
  return page.take();
}

}  // namespace loam::gateway

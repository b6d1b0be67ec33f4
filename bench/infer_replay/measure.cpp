#include "bench/infer_replay/measure.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "app/engine/instance.hpp"
#include "base/random.hpp"

namespace loam::bench::replay {

namespace {

double thread_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

struct Step {
  std::uint32_t streams = 0;  // one-token continuations
  std::uint32_t prompt_tokens = 0;
  double us = 0;
};

// Serves requests of the trace, `at_once` at a time, until `steps` steps were taken.
class Load {
 public:
  Load(serve::Instance& instance, const std::vector<Arrival>& samples)
      : instance_(instance), samples_(samples) {}

  std::vector<Step> run(std::uint32_t at_once, std::size_t steps) {
    std::vector<Step> taken;
    while (taken.size() < steps) {
      while (in_flight_ < at_once) submit();
      const double begin_us = thread_us();
      const serve::Instance::Step step = instance_.step(
          [](infer::SequenceId sequence, const float*) {
            return infer::Sampled{sequence, 1, false};
          },
          [](infer::SequenceId, std::uint32_t, const float*) {});
      const double us = thread_us() - begin_us;
      in_flight_ -= static_cast<std::uint32_t>(step.ended.size());
      if (step.tokens == 0) continue;
      const auto sequences = static_cast<std::uint32_t>(step.computed.size());
      // Of a step that holds more tokens than sequences, one holds a piece of a prompt: with so few
      // requests coming at once hardly ever two.
      const bool decodes = step.tokens == sequences;
      const std::uint32_t streams = decodes ? sequences : sequences - 1;
      taken.push_back({streams, step.tokens - streams, us});
    }
    return taken;
  }

 private:
  void submit() {
    const Arrival& sample = samples_[next_++ % samples_.size()];
    infer::SequenceRequest request;
    request.tenant = "bench";
    for (std::uint32_t i = 0; i < sample.prompt_tokens; ++i)
      request.prompt.push_back(static_cast<infer::Token>(random_.below(30'000)));
    request.tokens_max = sample.generated_tokens;
    if (instance_.batcher().submit(std::move(request)).ok()) ++in_flight_;
  }

  serve::Instance& instance_;
  const std::vector<Arrival>& samples_;
  Random random_{7};
  std::size_t next_ = 0;
  std::uint32_t in_flight_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

Result<Measured> measure(const std::string& model_path, const infer::BatcherConfig& batching,
                         const std::vector<Arrival>& samples) {
  const auto begun = std::chrono::steady_clock::now();
  serve::Model::Options from;
  from.path = model_path;
  LOAM_TRY(model, serve::Model::load(from));
  infer::TokenCounters counters;
  serve::InstanceOptions options;
  options.batching = batching;
  LOAM_TRY(instance, serve::Instance::make(*model, options, {}, counters));
  const auto started = std::chrono::steady_clock::now() - begun;
  Measured measured{infer::StepCost(batching.slots), {}, 0, 0};
  measured.start_time = {std::chrono::duration_cast<std::chrono::milliseconds>(started).count() +
                         1};

  constexpr std::size_t steps_each = 100;
  Load load(*instance, samples);
  std::vector<double> prompt_token_us;
  for (std::uint32_t at_once = 1; at_once <= batching.slots; ++at_once) {
    std::vector<double> decode_us;
    for (const Step& step : load.run(at_once, steps_each)) {
      ++measured.steps;
      if (step.prompt_tokens == 0 && step.streams == at_once) decode_us.push_back(step.us);
      // Whole pieces without streams: what a token costs where nothing shares the step.
      if (step.streams == 0 && step.prompt_tokens >= batching.chunk_tokens)
        prompt_token_us.push_back(step.us / step.prompt_tokens);
    }
    if (!decode_us.empty())
      measured.cost.learn(at_once, 0, static_cast<std::uint64_t>(median(std::move(decode_us))));
  }
  if (prompt_token_us.empty()) return invalid("no piece of a prompt was computed alone");
  measured.cost.learn(0, 1, static_cast<std::uint64_t>(median(std::move(prompt_token_us))));

  double said = 0;
  double lasted = 0;
  for (const std::uint32_t at_once : {2U, batching.slots}) {
    for (const Step& step : load.run(at_once, 2 * steps_each)) {
      ++measured.steps;
      lasted += step.us;
      if (step.streams > 0) said += static_cast<double>(measured.cost.decode_us(step.streams));
      said += static_cast<double>(step.prompt_tokens * measured.cost.prompt_token_us());
    }
  }
  measured.said_over_lasted = said / lasted;
  return measured;
}

}  // namespace loam::bench::replay

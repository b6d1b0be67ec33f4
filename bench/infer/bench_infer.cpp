// bench_infer MODELS: what serving costs beside the bare library, and what sharing, fairness, small
// pieces and precision bring. Prints figures (docs/formats/bench.md). MODELS is the folder that
// tools/make_models.sh fills.
//
// Times are processor time of the whole process: engine, client and socket (load.hpp says why).
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/engine/import_model.hpp"
#include "bench/infer/load.hpp"

namespace {

using namespace loam::bench::infer;  // NOLINT: a program of one file
using loam::Result;

struct Figure {
  std::string name;
  double value;
  std::string note;
};
std::vector<Figure> figures;

void add(const std::string& name, double value, const std::string& note) {
  figures.push_back({"infer." + name, value, note});
  std::fprintf(stderr, "infer.%s %.4g (%s)\n", name.c_str(), value, note.c_str());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

std::string text(double value, const char* unit) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.4g %s", value, unit);
  return buffer;
}

std::string text_of_part(double part) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f %% of the time", 100 * part);
  return buffer;
}

// The same prompts and lengths by a bare loop and through the engine, alternating which goes first.
void raw(const Model& model, std::uint32_t streams, std::uint32_t generated, int pairs) {
  std::vector<double> ratios;
  double per_second = 0;
  Engine engine(model, slots(16));
  for (int pair = 0; pair < pairs; ++pair) {
    double bare = 0;
    double served = 0;
    for (const bool first : {true, false}) {
      if (first == (pair % 2 == 0)) {
        bare = bare_loop_seconds(model, streams, 32, generated, pair);
      } else {
        const Cost start = now();
        run_all(engine, streams, streams,
                {.shared = 0, .own = 32, .generated = generated, .salt = 100 + pair});
        served = now().processor - start.processor;
      }
    }
    ratios.push_back(bare / served);
    per_second = streams * generated / served;
  }
  add("raw_" + std::to_string(streams) + "_ratio", median(ratios),
      "tokens a processor second through the engine over the bare library, 32 tokens in, " +
          std::to_string(generated) + " out, " + std::to_string(pairs) + " pairs; last " +
          text(per_second, "tokens/s"));
}

void shared_prefix(const Model& model) {
  const Load load{.shared = 256, .own = 32, .generated = 32, .salt = 1};
  Run unshared;
  Run shared;
  {
    loam::serve::ServerOptions options = slots(8);
    options.instance.batching.share_prefixes = false;
    options.instance.batching.fair = false;
    Engine engine(model, options);
    unshared = run_all(engine, 24, 8, load);
  }
  {
    Engine engine(model, slots(8));
    shared = run_all(engine, 24, 8, load);
  }
  const double tokens = 24 * 32;
  add("shared_prefix_tokens_per_s", tokens / shared.cost.processor,
      "24 requests, 256 tokens shared, 8 at once; generated tokens a processor second");
  add("shared_prefix_speedup", unshared.cost.processor / shared.cost.processor,
      "over our own unshared mode; that one gave " +
          text(tokens / unshared.cost.processor, "tokens/s"));
  add("shared_prefix_first_token_p99_ratio", unshared.first_token_p99() / shared.first_token_p99(),
      "unshared over shared; shared " + text(shared.first_token_p99(), "ms") + ", unshared " +
          text(unshared.first_token_p99(), "ms"));
}

void newcomer(const Model& model) {
  std::vector<double> idle;
  std::vector<double> waited;
  for (int round = 0; round < 3; ++round) {
    Engine engine(model, slots(8));
    for (int i = 0; i < 3; ++i) {
      const Load load{.shared = 0, .own = 32, .generated = 4, .salt = 200 + 10 * round + i};
      idle.push_back(run_all(engine, 1, 1, load).first_token_p99());
    }
    waited.push_back(newcomer_first_token_ms(engine, 48));
  }
  add("newcomer_first_token_ratio", median(waited) / median(idle),
      "beside a flood of 48 over idle, median of three; " + text(median(waited), "ms") + " over " +
          text(median(idle), "ms"));
}

void long_prompt(const Model& model) {
  Engine engine(model, slots(8));
  const Gaps gaps = gaps_beside_long_prompt(engine);
  add("long_prompt_largest_gap_ratio", gaps.largest_ms / gaps.median_ms,
      "a stream beside a prompt of 480 tokens: largest gap " + text(gaps.largest_ms, "ms") +
          ", median " + text(gaps.median_ms, "ms") + ", processor time");
}

void quarter_memory(const Model& model) {
  loam::serve::ServerOptions options = slots(8);
  options.instance.batching.unified = true;
  options.instance.batching.cells = 1024;
  options.instance.batching.overcommit_permille = 2000;
  Engine engine(model, options);
  const Run run = run_all(engine, 8, 8, {.shared = 0, .own = 100, .generated = 200, .salt = 5});
  add("quarter_memory_failures", run.failures,
      "8 x (100 + 200) tokens in a context of 1,024, 20m model");
}

void precision(const std::string& folder) {
  const auto half = load_model(folder + "/124m.f16.gguf");
  const auto mixed = load_model(folder + "/124m.mixed.gguf");
  if (!half || !mixed) return;
  const auto per_second = [](const Model& model, std::uint32_t requests, std::uint32_t at_once,
                             int salt) {
    Engine engine(model, slots(16));
    const Run run =
        run_all(engine, requests, at_once, {.shared = 0, .own = 32, .generated = 24, .salt = salt});
    return requests * 24 / run.cost.processor;
  };
  const double alone = per_second(*half, 4, 1, 1);
  const double batched = per_second(*half, 16, 16, 2);
  const double both = per_second(*mixed, 16, 16, 3);
  add("mixed_batched_over_f16_alone", both / alone,
      text(both, "tokens/s") + " over " + text(alone, "tokens/s") + ", by processor time");
  add("mixed_batched_over_f16_batched", both / batched,
      "16 at once; f16 " + text(batched, "tokens/s"));
}

// What precision costs in quality, on a small model that learned something: one with random weights
// would not tell.
int loss(const std::string& folder) {
  constexpr std::uint64_t tokens_max = 16'384;
  const std::string reference = folder + "/learner.f16.gguf";
  const std::string text_path = folder + "/held_back.txt";
  bool is_first = true;
  for (const std::string precision : {"q8_0", "q4_K_M", "mixed"}) {
    const auto measured = loam::serve::measure_loss(folder + "/learner." + precision + ".gguf",
                                                    reference, text_path, tokens_max, 1);
    if (!measured.ok()) {
      std::fprintf(stderr, "bench_infer: %s\n", to_text(measured.error()).c_str());
      return 1;
    }
    const std::string judged = std::to_string(measured->tokens) + " tokens held back";
    if (std::exchange(is_first, false))
      add("loss_f16_perplexity", measured->perplexity_reference, judged);
    add("loss_" + precision + "_perplexity", measured->perplexity, judged);
    add("loss_" + precision + "_divergence", measured->divergence_nats,
        "against f16; the same token is likeliest " + text_of_part(measured->same_choice));
  }
  return 0;
}

void print() {
  std::printf("{\"figures\":[");
  for (std::size_t i = 0; i < figures.size(); ++i) {
    std::printf("%s{\"name\":\"%s\",\"value\":%.6g,\"note\":\"%s\"}", i == 0 ? "" : ",",
                figures[i].name.c_str(), figures[i].value, figures[i].note.c_str());
  }
  std::printf("]}\n");
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fputs("usage: bench_infer MODELS [PART]...\n", stderr);
    return 2;
  }
  const std::string folder = words[1];
  const auto wanted = [&](const char* part) {
    return count == 2 || std::find(words + 2, words + count, std::string(part)) != words + count;
  };
  // Each part loads what it needs: one alone does not want the others' models.
  const auto needs = [&](std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(), wanted);
  };
  std::unique_ptr<Model> model;
  std::unique_ptr<Model> small;
  if (needs({"raw", "shared", "newcomer", "long"})) {
    model = load_model(folder + "/124m.q8_0.gguf");
    if (!model) return 1;
  }
  if (needs({"quarter"})) {
    small = load_model(folder + "/20m.q8_0.gguf");
    if (!small) return 1;
  }
  if (wanted("raw")) {
    raw(*model, 1, 48, 4);
    raw(*model, 16, 24, 4);
  }
  if (wanted("shared")) shared_prefix(*model);
  if (wanted("newcomer")) newcomer(*model);
  if (wanted("long")) long_prompt(*model);
  if (wanted("quarter")) quarter_memory(*small);
  if (wanted("precision")) precision(folder);
  if (wanted("loss") && loss(folder) != 0) return 1;
  print();
  return 0;
}

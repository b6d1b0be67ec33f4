#include "app/engine/import_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "app/engine/model.hpp"

namespace loam::serve {

namespace {

Result<llama_ftype> file_type_of(const std::string& precision) {
  if (precision == "f16") return LLAMA_FTYPE_MOSTLY_F16;
  if (precision == "q8_0") return LLAMA_FTYPE_MOSTLY_Q8_0;
  if (precision == "q4_K_M" || precision == "mixed") return LLAMA_FTYPE_MOSTLY_Q4_K_M;
  return invalid("'" + precision + "' is no precision", "choose f16, q8_0, q4_K_M or mixed");
}

ContextHandle context_for(const Model& model, std::uint32_t tokens, std::uint32_t sequences,
                          int threads) {
  llama_context_params params = llama_context_default_params();
  params.n_seq_max = sequences;
  params.n_ctx = tokens * sequences;
  params.n_batch = params.n_ubatch = tokens;
  params.n_threads = params.n_threads_batch = threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.no_perf = true;
  return ContextHandle(llama_init_from_model(model.handle(), params));
}

Result<std::unique_ptr<Model>> open(const std::string& path) {
  Model::Options options;
  options.path = path;
  return Model::load(options);
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Log-probabilities in place of logits.
void normalise(std::vector<double>& row, const float* logits) {
  const float highest = *std::max_element(logits, logits + row.size());
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i)
    sum += std::exp(static_cast<double>(logits[i] - highest));
  const double total = static_cast<double>(highest) + std::log(sum);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<double>(logits[i]) - total;
}

constexpr std::int32_t window_tokens = 256;

// One window through a context: logits after each token of its second half.
bool run_window(llama_context* context, const std::vector<infer::Token>& tokens, std::size_t at) {
  llama_memory_clear(llama_get_memory(context), false);
  llama_batch batch = llama_batch_init(window_tokens, 0, 1);
  for (std::int32_t i = 0; i < window_tokens; ++i) {
    batch.token[i] = tokens[at + static_cast<std::size_t>(i)];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = i >= window_tokens / 2 ? 1 : 0;
  }
  batch.n_tokens = window_tokens;
  const bool done = llama_decode(context, batch) == 0;
  llama_batch_free(batch);
  return done;
}

}  // namespace

Result<void> import_model(const ImportOptions& options) {
  LOAM_CHECK(start_library());
  LOAM_TRY(type, file_type_of(options.precision));
  LOAM_CHECK(open(options.from));  // a broken file is named before anything is written
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = type;
  params.nthread = options.threads;
  std::vector<llama_model_tensor_override> overrides;
  if (options.precision == "mixed") {
    for (const std::string& pattern : options.keep)
      overrides.push_back({pattern.c_str(), GGML_TYPE_Q8_0});
    overrides.push_back({nullptr, GGML_TYPE_COUNT});
    params.tt_overrides = overrides.data();
    params.token_embedding_type = GGML_TYPE_Q8_0;
    params.output_tensor_type = GGML_TYPE_Q8_0;
  }
  last_complaint();
  if (llama_model_quantize(options.from.c_str(), options.to.c_str(), &params) != 0) {
    std::remove(options.to.c_str());
    return Error{ErrorKind::unsupported,
                 "'" + options.from + "' cannot be taken over: " + last_complaint(),
                 "start from a 16- or 32-bit model and see that the disk has room"};
  }
  return {};
}

Result<Loss> measure_loss(const std::string& path, const std::string& reference_path,
                          const std::string& text_path, std::uint64_t tokens_max, int threads) {
  LOAM_TRY(model, open(path));
  LOAM_TRY(reference, open(reference_path));
  if (model->vocabulary_size() != reference->vocabulary_size()) {
    return invalid("the two models have vocabularies of " +
                       std::to_string(model->vocabulary_size()) + " and " +
                       std::to_string(reference->vocabulary_size()),
                   "compare a model with the one it was made from");
  }
  std::ifstream file(text_path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  infer::Prompt prompt;
  prompt.text = content.str();
  if (!file || prompt.text.empty()) {
    return Error{ErrorKind::not_found, "there is no text in '" + text_path + "'",
                 "name a file with text"};
  }
  LOAM_TRY(tokenized, model->tokenize(prompt));
  const std::vector<infer::Token>& tokens = tokenized.tokens;
  const ContextHandle one = context_for(*model, window_tokens, 1, threads);
  const ContextHandle other = context_for(*reference, window_tokens, 1, threads);
  if (!one || !other)
    return Error{ErrorKind::exhausted, "no context can be made: " + last_complaint(),
                 "free memory"};
  Loss loss;
  std::vector<double> row(static_cast<std::size_t>(model->vocabulary_size()));
  std::vector<double> reference_row = row;
  double nats = 0;
  double reference_nats = 0;
  for (std::size_t at = 0; at + window_tokens + 1 <= tokens.size() && at < tokens_max;
       at += window_tokens) {
    if (!run_window(one.get(), tokens, at) || !run_window(other.get(), tokens, at)) {
      return Error{ErrorKind::internal, "a step failed: " + last_complaint(), "try again"};
    }
    for (std::int32_t i = window_tokens / 2; i < window_tokens; ++i) {
      normalise(row, llama_get_logits_ith(one.get(), i));
      normalise(reference_row, llama_get_logits_ith(other.get(), i));
      const auto next = static_cast<std::size_t>(tokens[at + static_cast<std::size_t>(i) + 1]);
      nats -= row[next];
      reference_nats -= reference_row[next];
      for (std::size_t v = 0; v < row.size(); ++v) {
        loss.divergence_nats += std::exp(reference_row[v]) * (reference_row[v] - row[v]);
      }
      const auto best = [](const std::vector<double>& r) {
        return std::max_element(r.begin(), r.end()) - r.begin();
      };
      loss.same_choice += best(row) == best(reference_row) ? 1 : 0;
      ++loss.tokens;
    }
  }
  if (loss.tokens == 0) {
    return invalid("'" + text_path + "' has only " + std::to_string(tokens.size()) + " tokens",
                   "give a text of some thousand");
  }
  const auto count = static_cast<double>(loss.tokens);
  loss.perplexity = std::exp(nats / count);
  loss.perplexity_reference = std::exp(reference_nats / count);
  loss.divergence_nats /= count;
  loss.same_choice /= count;
  return loss;
}

Result<Speed> measure_speed(const std::string& path, int threads) {
  LOAM_TRY(model, open(path));
  const ContextHandle context = context_for(*model, window_tokens, 16, threads);
  if (!context)
    return Error{ErrorKind::exhausted, "no context can be made: " + last_complaint(),
                 "free memory"};
  llama_batch batch = llama_batch_init(window_tokens, 0, 1);
  const auto run = [&](int sequences, int tokens, int position) {
    batch.n_tokens = 0;
    for (int s = 0; s < sequences; ++s) {
      for (int i = 0; i < tokens; ++i) {
        const int n = batch.n_tokens++;
        batch.token[n] = (n * 31 + position) % std::min(model->vocabulary_size(), 1000);
        batch.pos[n] = position + i;
        batch.n_seq_id[n] = 1;
        batch.seq_id[n][0] = s;
        batch.logits[n] = tokens == 1 ? 1 : 0;
      }
    }
    const double start = processor_seconds();
    llama_decode(context.get(), batch);
    return processor_seconds() - start;
  };
  Speed speed;
  const auto best_of = [](int runs, auto&& measured) {
    double best = measured(0);
    for (int i = 1; i < runs; ++i) best = std::min(best, measured(i));
    return best;
  };
  speed.prompt_tokens_per_second = 200 / best_of(3, [&](int) {
                                     llama_memory_clear(llama_get_memory(context.get()), false);
                                     return run(1, 200, 0);
                                   });
  llama_memory_clear(llama_get_memory(context.get()), false);
  speed.decode_tokens_per_second = 1 / best_of(8, [&](int i) { return run(1, 1, i); });
  llama_memory_clear(llama_get_memory(context.get()), false);
  speed.decode_16_tokens_per_second = 16 / best_of(8, [&](int i) { return run(16, 1, i); });
  llama_batch_free(batch);
  return speed;
}

std::string record_json(const ImportOptions& options, std::uint64_t bytes_from,
                        std::uint64_t bytes_to, const Speed& speed,
                        const std::optional<Loss>& loss) {
  const auto number = [](double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", value);
    return std::string(text);
  };
  std::string out = "{\"format\":\"loam-model/1\",\"precision\":\"" + options.precision +
                    "\",\"bytes_from\":" + std::to_string(bytes_from) +
                    ",\"bytes\":" + std::to_string(bytes_to) +
                    ",\"prompt_tokens_per_second\":" + number(speed.prompt_tokens_per_second) +
                    ",\"decode_tokens_per_second\":" + number(speed.decode_tokens_per_second) +
                    ",\"decode_16_tokens_per_second\":" + number(speed.decode_16_tokens_per_second);
  if (loss) {
    out += ",\"perplexity\":" + number(loss->perplexity) +
           ",\"perplexity_reference\":" + number(loss->perplexity_reference) +
           ",\"divergence_nats\":" + number(loss->divergence_nats) +
           ",\"same_choice\":" + number(loss->same_choice) +
           ",\"judged_tokens\":" + std::to_string(loss->tokens);
  }
  return out + "}\n";
}

}  // namespace loam::serve

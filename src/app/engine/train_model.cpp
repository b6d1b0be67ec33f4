// Trains a small model with the library's own trainer, enough that its quality moves with
// precision. Its attention must be plain and its key-value memory 32-bit: the trainer has no
// backward pass for the others.
#include <ggml-opt.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "app/engine/make_model.hpp"
#include "app/engine/model.hpp"

namespace loam::serve {

namespace {

struct FreeDataset {
  void operator()(ggml_opt_dataset* dataset) const { ggml_opt_dataset_free(dataset); }
};
struct FreeResult {
  void operator()(ggml_opt_result* result) const { ggml_opt_result_free(result); }
};
using DatasetHandle = std::unique_ptr<ggml_opt_dataset, FreeDataset>;
using ResultHandle = std::unique_ptr<ggml_opt_result, FreeResult>;

Result<std::vector<llama_token>> tokens_of_file(const llama_vocab* vocabulary,
                                                const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  if (!file || text.empty()) {
    return Error{ErrorKind::not_found, "there is no text in '" + path + "'",
                 "name a file with text"};
  }
  std::vector<llama_token> tokens(text.size() + 8);
  const int count =
      llama_tokenize(vocabulary, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                     static_cast<std::int32_t>(tokens.size()), false, false);
  tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  return tokens;
}

// Examples of `context` tokens one after the other, each token's label being the next.
DatasetHandle examples(const std::vector<llama_token>& tokens, std::int64_t context) {
  const std::int64_t count = (static_cast<std::int64_t>(tokens.size()) - 1) / context;
  DatasetHandle dataset(
      ggml_opt_dataset_init(GGML_TYPE_I32, GGML_TYPE_I32, context, context, count, 1));
  auto* data = static_cast<llama_token*>(ggml_opt_dataset_data(dataset.get())->data);
  auto* labels = static_cast<llama_token*>(ggml_opt_dataset_labels(dataset.get())->data);
  std::copy_n(tokens.begin(), count * context, data);
  std::copy_n(tokens.begin() + 1, count * context, labels);
  return dataset;
}

ggml_opt_optimizer_params constant_rate(void* rate) {
  ggml_opt_optimizer_params params = ggml_opt_get_default_optimizer_params(nullptr);
  params.adamw.alpha = *static_cast<const float*>(rate);
  params.adamw.wd = 0;
  return params;
}

}  // namespace

Result<TrainReport> train_model(const TrainOptions& options) {
  LOAM_CHECK(start_library());
  llama_model_params loading = llama_model_default_params();
  loading.load_mode = LLAMA_LOAD_MODE_NONE;  // weights that can be written
  loading.use_extra_bufts = false;
  const ModelHandle model(llama_model_load_from_file(options.from.c_str(), loading));
  if (!model) {
    return Error{ErrorKind::corrupt,
                 "the model '" + options.from + "' cannot be loaded: " + last_complaint(),
                 "generate it with 32-bit weights: loam-model generate learner"};
  }
  LOAM_TRY(tokens, tokens_of_file(llama_model_get_vocab(model.get()), options.text));
  if (tokens.size() < 2 * options.context) {
    return invalid("'" + options.text + "' has only " + std::to_string(tokens.size()) + " tokens",
                   "give a longer text");
  }
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = options.context;
  params.n_threads = params.n_threads_batch = options.threads;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  const ContextHandle context(llama_init_from_model(model.get(), params));
  if (!context) {
    return Error{ErrorKind::exhausted, "no context can be made on the model: " + last_complaint(),
                 "free memory"};
  }
  const auto actual = static_cast<std::int64_t>(llama_n_ctx(context.get()));
  const DatasetHandle dataset = examples(tokens, actual);
  // The trainer computes with as many threads as the step before it, and four if there was none.
  llama_token first = tokens.front();
  if (llama_decode(context.get(), llama_batch_get_one(&first, 1)) != 0) {
    return Error{ErrorKind::internal, "a step failed: " + last_complaint(), "try again"};
  }
  float rate = options.rate;
  llama_opt_init(context.get(), model.get(),
                 {0, llama_opt_param_filter_all, nullptr, constant_rate, &rate,
                  GGML_OPT_OPTIMIZER_TYPE_ADAMW});
  TrainReport report;
  const std::int64_t count = ggml_opt_dataset_ndata(dataset.get());
  report.tokens = static_cast<std::uint64_t>(count * actual);
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    const ResultHandle result(ggml_opt_result_init());
    llama_opt_epoch(context.get(), dataset.get(), result.get(), nullptr, count, nullptr, nullptr);
    double loss = 0;
    double spread = 0;
    ggml_opt_result_loss(result.get(), &loss, &spread);
    report.losses.push_back(loss);
    rate *= 0.5F;  // the later epochs settle
  }
  llama_model_save_to_file(model.get(), options.to.c_str());
  if (!std::ifstream(options.to)) {
    return Error{ErrorKind::unavailable, "'" + options.to + "' was not written",
                 "check the folder and the disk"};
  }
  return report;
}

}  // namespace loam::serve

// Takes a model over at a precision, and says what that costs: size, speed, perplexity and the
// Kullback-Leibler divergence from the 16-bit model on a given text. Shell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace loam::serve {

// f16, q8_0, q4_K_M, or mixed: q4_K_M with the tensors that matter most kept at 8 bits, those whose
// names match one of `keep`.
struct ImportOptions {
  std::string from;  // a 16- or 32-bit GGUF file
  std::string to;
  std::string precision = "mixed";
  // Regular expressions on tensor names. By default what every token passes through twice
  // (embedding and output), the keys' and values' projections and the way down of each layer.
  std::vector<std::string> keep = {"token_embd", "output\\.weight", "attn_k", "attn_v", "ffn_down"};
  int threads = 1;
};
Result<void> import_model(const ImportOptions& options);

struct Loss {
  double perplexity = 0;            // of the model on the text
  double perplexity_reference = 0;  // of the reference
  double divergence_nats = 0;       // mean over tokens of KL(reference || model)
  double same_choice = 0;           // how often both find the same token likeliest, 0 to 1
  std::uint64_t tokens = 0;         // judged
};
// Both models must have the same vocabulary. At most `tokens_max` tokens of the file are read, in
// windows of 256 of which the second half is judged.
Result<Loss> measure_loss(const std::string& model, const std::string& reference,
                          const std::string& text_path, std::uint64_t tokens_max, int threads);

struct Speed {
  double prompt_tokens_per_second = 0;     // 256 at once; by processor time of one thread
  double decode_tokens_per_second = 0;     // one stream
  double decode_16_tokens_per_second = 0;  // sixteen together
};
Result<Speed> measure_speed(const std::string& model, int threads);

// The record beside an imported model, as JSON: precision, bytes, speed and, with a text, loss.
std::string record_json(const ImportOptions& options, std::uint64_t bytes_from,
                        std::uint64_t bytes_to, const Speed& speed,
                        const std::optional<Loss>& loss);

}  // namespace loam::serve

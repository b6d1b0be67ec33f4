// Makes models without downloading any: llama-architecture GGUF files of any size with seeded
// random weights, and small ones trained on text. Random weights serve measurements of speed and
// memory; only trained ones show what precision costs. Shell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace loam::serve {

struct ModelShape {
  std::uint32_t embedding = 64;
  std::uint32_t layers = 2;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 4;
  std::uint32_t feed_forward = 128;
  std::uint32_t context = 2048;
  std::uint32_t vocabulary = 0;  // so many tokens of the GPT-2 vocabulary; 0: all 50,257
  bool half = true;              // 16-bit weights, else 32-bit, which training needs
};

// The sizes that have a name: "tiny" (about 1M parameters), "20m", "124m"; "learner" is the one
// that is trained.
Result<ModelShape> shape_named(const std::string& name);

// Writes `path` with the GPT-2 vocabulary. The same shape and seed give the same bytes.
Result<void> generate_model(const std::string& path, const ModelShape& shape, std::uint64_t seed);

struct TrainOptions {
  std::string from;  // a 32-bit model
  std::string to;
  std::string text;  // a file to learn from
  std::uint32_t epochs = 2;
  std::uint32_t context = 128;  // tokens of one example
  float rate = 1e-3F;           // the optimizer's (AdamW)
  int threads = 1;
};
struct TrainReport {
  std::vector<double> losses;  // nats a token, averaged over each epoch
  std::uint64_t tokens = 0;    // of one epoch
};
Result<TrainReport> train_model(const TrainOptions& options);

}  // namespace loam::serve

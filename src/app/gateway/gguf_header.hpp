// What a GGUF file says of itself, without the model library: whether it is whole, and what its
// contexts will take. Source: the GGUF specification of ggml (versions 2 and 3). Shell (reads the
// file's header).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace loam::serving {

struct ModelFacts {
  std::string architecture;
  std::uint64_t file_bytes = 0;
  std::uint64_t tensors = 0;
  // 0 where the file does not say.
  std::uint64_t kv_token_bytes = 0;  // key-value memory of one token, at 16 bits
  std::uint64_t vocabulary = 0;
  std::uint64_t embedding = 0;
};

// not_found where it cannot be read; invalid_argument where it is no GGUF, or cut short. The
// message names the fault, not the path. Cost: the header, some megabytes.
Result<ModelFacts> read_model_facts(const std::string& path);

}  // namespace loam::serving

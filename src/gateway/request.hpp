// What a client asks of the inference API: the bodies of /v1/chat/completions, /v1/completions and
// /v1/embeddings, read strictly. Specification: the OpenAI API; our own fields lie in the object
// "loam" (docs/inference.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/api_error.hpp"
#include "infer/request.hpp"

namespace loam::gateway {

enum class Work { chat, completion, embedding };

struct InferenceRequest {
  Work work = Work::chat;
  std::string model;
  // One for a chat; a completion or an embedding may have several.
  std::vector<infer::Prompt> prompts;
  std::uint32_t tokens_max = 0;  // to generate, a choice; 0: what the engine takes
  std::uint32_t choices = 1;     // for each prompt
  infer::Sampling sampling;
  std::vector<infer::AdapterUse> adapters;
  std::optional<infer::ServiceClass> service_class;  // as asked for
  bool stream = false;
  bool include_usage = false;               // at the end of a stream
  bool base64 = false;                      // embeddings as base64 of little endian floats
  std::uint32_t dimensions = 0;             // of an embedding, as asked for; 0: not said
  std::map<std::string, std::string> tags;  // of its cost
};

// Prompts of one request, so that one request cannot fill every queue.
inline constexpr std::size_t prompts_max = 2048;
// Choices of one request, over all its prompts.
inline constexpr std::size_t answers_max = 256;

// Every field is read or refused: unknown ones, values of the wrong type and out of range, what
// is known but not offered. The error names the field.
std::variant<InferenceRequest, ApiError> parse_request(Work work, std::string_view body);

}  // namespace loam::gateway

// What an inference request asks for: the prompt, how to sample, how urgent it is. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace loam::infer {

using Token = std::int32_t;  // an entry of the model's vocabulary

// Who goes first, and who may be put aside for whom: a higher class preempts a lower one by
// swapping its memory out. Inside a class tenants share by counted tokens.
enum class ServiceClass : std::uint8_t { batch = 0, standard = 1, interactive = 2 };

struct ChatMessage {
  std::string role;
  std::string content;
  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// Exactly one of the three forms; the engine holds the tokenizer and the chat template.
struct Prompt {
  enum class Kind : std::uint8_t { tokens = 0, text = 1, messages = 2 } kind = Kind::text;
  std::vector<Token> tokens;
  std::string text;
  std::vector<ChatMessage> messages;
  // How much of the beginning every tenant may share: tokens, bytes or messages, as `kind` says. A
  // stored public prefix is found only by those who mark it public too.
  std::uint32_t public_extent = 0;
  friend bool operator==(const Prompt&, const Prompt&) = default;
};

// What may be generated at all.
struct Grammar {
  enum class Kind : std::uint8_t { none = 0, gbnf = 1, json_schema = 2, json_object = 3 };
  Kind kind = Kind::none;
  std::string text;  // the GBNF grammar or the JSON schema; empty for the others
  friend bool operator==(const Grammar&, const Grammar&) = default;
};

struct Sampling {
  float temperature = 1.0F;  // 0 takes the likeliest token
  float top_p = 1.0F;
  float min_p = 0.0F;
  std::uint32_t top_k = 0;  // 0: all
  float frequency_penalty = 0.0F;
  float presence_penalty = 0.0F;
  float repeat_penalty = 1.0F;
  std::optional<std::uint64_t> seed;  // absent: drawn by the engine
  std::vector<std::pair<Token, float>> logit_bias;
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;  // alternatives listed beside each token, with logprobs
  std::vector<std::string> stop;   // generation ends before any of these
  bool ignore_end = false;         // go on after the model's end token, for measurements
  Grammar grammar;
  friend bool operator==(const Sampling&, const Sampling&) = default;
};

// A low-rank adapter the engine knows by name, and how strongly it applies.
struct AdapterUse {
  std::string name;
  float scale = 1.0F;
  friend bool operator==(const AdapterUse&, const AdapterUse&) = default;
};

// Bounds on what a request may say; beyond them it is refused with the value named.
inline constexpr std::uint32_t choices_max = 16;
inline constexpr std::uint32_t stop_strings_max = 16;
inline constexpr std::uint32_t stop_bytes_max = 256;
inline constexpr std::uint32_t top_logprobs_max = 20;
inline constexpr std::uint32_t logit_bias_max = 1024;
inline constexpr std::uint32_t weight_max = 1'000'000;

// Everything that can be said without the model: ranges, not-a-number, empty prompts.
Result<void> check_prompt(const Prompt& prompt);
Result<void> check_sampling(const Sampling& sampling);

}  // namespace loam::infer

// How long a step of the model takes, learned from the steps so far, and from it how many prompt
// tokens may ride along with running streams without making their gaps long. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace loam::infer {

// What a prompt's tokens are computed for: those of an embedding give a vector each, which costs
// more than feeding what an answer goes on from.
enum class PromptWork : std::uint8_t { answer = 0, embedding = 1 };

class StepCost {
 public:
  // `streams_max`: streams that can be decoded at once.
  explicit StepCost(std::uint32_t streams_max);

  // A step of `streams` one-token continuations and `prompt_tokens` more took `us`.
  void learn(std::uint32_t streams, std::uint32_t prompt_tokens, std::uint64_t us,
             PromptWork work = PromptWork::answer);

  // A step of so many continuations and nothing else; 0 while nothing is known.
  std::uint64_t decode_us(std::uint32_t streams) const;
  // One prompt token more; 0 while nothing is known.
  std::uint64_t prompt_token_us(PromptWork work = PromptWork::answer) const {
    return prompt_token_us_[static_cast<std::size_t>(work)];
  }

  // Prompt tokens that fit beside `streams` continuations so that the step takes at most
  // `factor` times what it would without them; between `least` and `most`.
  std::uint32_t prompt_budget(std::uint32_t streams, std::uint32_t factor, std::uint32_t least,
                              std::uint32_t most, PromptWork work = PromptWork::answer) const;

 private:
  std::vector<std::uint64_t> decode_us_;            // by number of streams; 0: unknown
  std::array<std::uint64_t, 2> prompt_token_us_{};  // by work
};

}  // namespace loam::infer

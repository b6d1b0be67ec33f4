#include "infer/step_cost.hpp"

#include <algorithm>

namespace loam::infer {

namespace {

// One part in eight new: follows a change within some ten steps and ignores a single outlier. A
// step may be slow because something else had the processor, so that slower steps count as at most
// twice the average.
std::uint64_t blend(std::uint64_t average, std::uint64_t sample) {
  if (average == 0) return sample;
  return (average * 7 + std::min(sample, average * 2)) / 8;
}

}  // namespace

StepCost::StepCost(std::uint32_t streams_max) : decode_us_(streams_max + 1, 0) {}

void StepCost::learn(std::uint32_t streams, std::uint32_t prompt_tokens, std::uint64_t us,
                     PromptWork work) {
  us = std::max<std::uint64_t>(us, 1);
  streams = std::min(streams, static_cast<std::uint32_t>(decode_us_.size() - 1));
  if (prompt_tokens == 0) {
    decode_us_[streams] = blend(decode_us_[streams], us);
    return;
  }
  const std::uint64_t decode = streams == 0 ? 0 : decode_us(streams);
  if (streams > 0 && (decode == 0 || decode >= us)) return;  // the parts cannot be told apart
  std::uint64_t& token_us = prompt_token_us_[static_cast<std::size_t>(work)];
  token_us = blend(token_us, std::max<std::uint64_t>((us - decode) / prompt_tokens, 1));
}

std::uint64_t StepCost::decode_us(std::uint32_t streams) const {
  streams = std::min(streams, static_cast<std::uint32_t>(decode_us_.size() - 1));
  if (decode_us_[streams] != 0) return decode_us_[streams];
  // The nearest smaller batch that is known is a lower bound, which keeps gaps short.
  for (std::uint32_t known = streams; known > 0; --known) {
    if (decode_us_[known - 1] != 0) return decode_us_[known - 1];
  }
  return 0;
}

std::uint32_t StepCost::prompt_budget(std::uint32_t streams, std::uint32_t factor,
                                      std::uint32_t least, std::uint32_t most,
                                      PromptWork work) const {
  const std::uint64_t decode = decode_us(streams);
  if (decode == 0 || prompt_token_us(work) == 0) return least;
  const std::uint64_t tokens = decode * (factor - 1) / prompt_token_us(work);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tokens, least, most));
}

}  // namespace loam::infer

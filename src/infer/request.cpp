#include "infer/request.hpp"

#include <cmath>

namespace loam::infer {

namespace {

Error out_of_range(const char* name, float value, const char* range) {
  return invalid(std::string(name) + " is " + std::to_string(value),
                 std::string("give a number ") + range);
}

Result<void> check_float(const char* name, float value, float low, float high, const char* range) {
  if (!std::isfinite(value) || value < low || value > high) return out_of_range(name, value, range);
  return {};
}

Error too_many(const char* what, std::size_t count, std::uint32_t max) {
  return invalid(std::to_string(count) + " " + what,
                 "at most " + std::to_string(max) + " are possible");
}

}  // namespace

Result<void> check_prompt(const Prompt& prompt) {
  const bool empty = prompt.kind == Prompt::Kind::tokens ? prompt.tokens.empty()
                     : prompt.kind == Prompt::Kind::text ? prompt.text.empty()
                                                         : prompt.messages.empty();
  if (empty) return invalid("the prompt is empty", "send at least one token");
  const std::size_t extent = prompt.kind == Prompt::Kind::tokens ? prompt.tokens.size()
                             : prompt.kind == Prompt::Kind::text ? prompt.text.size()
                                                                 : prompt.messages.size();
  if (prompt.public_extent > extent) {
    return invalid("the public part is " + std::to_string(prompt.public_extent) +
                       " long and the prompt " + std::to_string(extent),
                   "mark no more public than there is");
  }
  for (const ChatMessage& message : prompt.messages) {
    if (message.role.empty()) return invalid("a message has no role", "give each message a role");
  }
  return {};
}

Result<void> check_sampling(const Sampling& sampling) {
  LOAM_CHECK(check_float("temperature", sampling.temperature, 0, 2, "from 0 to 2"));
  LOAM_CHECK(check_float("top_p", sampling.top_p, 0, 1, "from 0 to 1"));
  LOAM_CHECK(check_float("min_p", sampling.min_p, 0, 1, "from 0 to 1"));
  LOAM_CHECK(check_float("frequency_penalty", sampling.frequency_penalty, -2, 2, "from -2 to 2"));
  LOAM_CHECK(check_float("presence_penalty", sampling.presence_penalty, -2, 2, "from -2 to 2"));
  LOAM_CHECK(check_float("repeat_penalty", sampling.repeat_penalty, 0.1F, 10, "from 0.1 to 10"));
  if (sampling.top_logprobs > top_logprobs_max) {
    return too_many("top_logprobs", sampling.top_logprobs, top_logprobs_max);
  }
  if (sampling.logit_bias.size() > logit_bias_max) {
    return too_many("entries of logit_bias", sampling.logit_bias.size(), logit_bias_max);
  }
  for (const auto& [token, bias] : sampling.logit_bias) {
    if (token < 0) {
      return invalid("logit_bias names token " + std::to_string(token), "tokens count from 0");
    }
    LOAM_CHECK(check_float("logit_bias", bias, -100, 100, "from -100 to 100"));
  }
  if (sampling.stop.size() > stop_strings_max) {
    return too_many("stop strings", sampling.stop.size(), stop_strings_max);
  }
  for (const std::string& stop : sampling.stop) {
    if (stop.empty()) return invalid("a stop string is empty", "leave it out");
    if (stop.size() > stop_bytes_max)
      return too_many("bytes of stop string", stop.size(), stop_bytes_max);
  }
  if (sampling.grammar.kind == Grammar::Kind::gbnf && sampling.grammar.text.empty()) {
    return invalid("the grammar is empty", "give its rules, or no grammar");
  }
  return {};
}

}  // namespace loam::infer

// Answers of the inference API as JSON and as events, written straight to bytes: a chunk is some
// hundred bytes and there are many. Specification: the OpenAI API. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/token_usage.hpp"
#include "gateway/api_error.hpp"
#include "gateway/request.hpp"
#include "infer/wire.hpp"

namespace loam::gateway {

using Logprobs = std::vector<infer::wire::TokenLogprob>;

// What all parts of one answer begin with.
struct AnswerHead {
  Work work = Work::chat;
  std::string id;
  std::string model;
  std::int64_t created_s = 0;
  bool logprobs = false;       // asked for
  bool include_usage = false;  // streams only
};

// One answer among the `n`. Choices are numbered over all prompts of the request.
struct Choice {
  std::string text;
  Logprobs logprobs;
  infer::wire::FinishReason reason = infer::wire::FinishReason::stop;
};

// Writes the events of one stream, each with its "data: " and empty line.
class EventWriter {
 public:
  EventWriter() = default;
  explicit EventWriter(const AnswerHead& head);

  // A chat's choice begins with its role; nothing for completions.
  void begin_choice(std::string& out, std::uint32_t choice) const;
  // `offset` is where the choice's text stood, in characters; it moves on. Only completions with
  // logprobs look at it.
  void text(std::string& out, std::uint32_t choice, std::string_view text, const Logprobs& logprobs,
            std::uint64_t& offset) const;
  void end_choice(std::string& out, std::uint32_t choice, infer::wire::FinishReason reason) const;
  void usage(std::string& out, const TokenUsage& usage) const;

 private:
  void begin(std::string& out, std::uint32_t choice) const;

  bool chat_ = false;
  bool logprobs_ = false;
  std::string before_;  // up to the list of choices
  std::string after_;   // behind it
};
// Streams that break off end with it.
void error_event(std::string& out, const ApiError& error);
inline constexpr std::string_view done_event = "data: [DONE]\n\n";

std::string whole_answer(const AnswerHead& head, std::span<const Choice> choices,
                         const TokenUsage& usage);
std::string embedding_answer(std::string_view model, std::span<const std::vector<float>> vectors,
                             bool base64, const TokenUsage& usage);
// {"prompt_tokens":...}: as a bill has it.
void append_usage(std::string& out, const TokenUsage& usage, Work work);

struct ModelEntry {
  std::string name;
  std::string owner;
  std::int64_t created_s = 0;
};
std::string model_answer(const ModelEntry& model);
std::string model_list(std::span<const ModelEntry> models);

}  // namespace loam::gateway

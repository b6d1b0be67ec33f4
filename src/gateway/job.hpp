// One client's request on its way: its parts at the engines and what it has been answered. Touched
// by the hub's thread alone once it is there. Internal to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/answer.hpp"
#include "gateway/ports.hpp"
#include "gateway/request.hpp"
#include "http/responder.hpp"
#include "infer/route.hpp"
#include "infer/wire.hpp"

namespace loam::gateway {

using SteadyTime = std::chrono::steady_clock::time_point;
using LinkId = std::uint64_t;

// One prompt: one stream at one engine at a time.
struct Part {
  infer::wire::Submit submit;  // let go at the first token: there is no second try after it
  infer::PrefixMarks marks;    // the same
  std::uint64_t tokens = 0;    // predicted, at most
  LinkId link = 0;             // where it is; 0: nowhere now
  infer::wire::StreamId stream = 0;
  std::vector<LinkId> tried;
  int tries = 0;
  bool is_started = false;               // the first token has come
  std::uint32_t prompt_tokens = 0;       // as the engine counted them
  std::vector<std::uint32_t> generated;  // a choice, so far
  SteadyTime last_text{};
};

struct Job {
  std::uint64_t id = 0;
  AnswerHead head;
  std::string model;  // that serves it: head.model, or a tier of it
  Caller caller;
  infer::ServiceClass service_class = infer::ServiceClass::standard;
  std::uint32_t choices = 1;  // a part
  std::uint32_t tokens_max = 0;
  std::uint32_t dimensions = 0;
  bool streams = false;
  bool base64 = false;
  std::map<std::string, std::string> tags;

  std::optional<http::Responder> responder;  // until the answer begins
  http::Stream stream;                       // then, for streams
  EventWriter writer;

  std::vector<Part> parts;
  std::deque<std::uint32_t> to_place;  // parts that no engine has, in order
  std::size_t parts_ended = 0;
  std::size_t parts_out = 0;                // at an engine now
  std::vector<Choice> answers;              // over all parts; the text of streams is not kept
  std::vector<std::uint64_t> text_offsets;  // streams
  std::vector<bool> begun;                  // streams
  std::vector<std::vector<float>> vectors;  // embeddings

  bool is_admitted = false;
  bool is_waiting = false;  // for an instance
  bool is_over = false;     // for the client: answered, failed or gone
  UsageOutcome outcome = UsageOutcome::answered;
  std::uint64_t tokens_reserved = 0;
  TokenUsage usage;
  TokenUsage wasted;
  bool is_settled = true;
  std::string instance;

  Instant arrived{};
  SteadyTime arrived_at{};
  SteadyTime wait_until{};
  std::optional<SteadyTime> first_token_at;
};

}  // namespace loam::gateway

// A conversation with a model over the OpenAI API: what is sent and how the pieces of an answer are
// read. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::cli {

struct ChatTurn {
  std::string role;  // system, user, assistant
  std::string content;
};

struct ChatOptions {
  std::string model;
  std::uint32_t tokens_max = 0;  // 0: the server's default
  std::string temperature;       // a decimal as typed; empty: the server's default
};

// The body of POST /v1/chat/completions, streaming, with usage at the end. Requires a temperature
// that is a JSON number.
std::string chat_body(const ChatOptions& options, const std::vector<ChatTurn>& turns);

// One event's data.
struct ChatPiece {
  std::string text;
  bool is_done = false;
  struct Usage {
    std::int64_t prompt = 0;
    std::int64_t cached = 0;
    std::int64_t generated = 0;
  };
  std::optional<Usage> usage;
};
// An error in the event, or data that is no event of this API, is the error.
Result<ChatPiece> read_chat_piece(std::string_view data);

// The error in an answer that is none: {"error":{"message":...}}.
Error chat_error(int status, std::string_view body);

}  // namespace loam::cli

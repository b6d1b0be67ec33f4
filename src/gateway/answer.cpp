#include "gateway/answer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace loam::gateway {

using infer::wire::Alternative;
using infer::wire::FinishReason;
using infer::wire::TokenLogprob;

namespace {

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

// JSON knows no infinity: a token that cannot come has the API's own least value.
void append_logprob(std::string& out, float value) {
  constexpr float least = -9999.0F;
  append_number(out, std::isfinite(value) ? std::max(value, least) : least);
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text);
  out += '"';
}

std::string_view name_of(FinishReason reason) {
  return reason == FinishReason::length ? "length" : "stop";
}

void append_alternative(std::string& out, const Alternative& token) {
  out += "{\"token\":";
  append_string(out, token.bytes);
  out += ",\"logprob\":";
  append_logprob(out, token.logprob);
  out += ",\"bytes\":[";
  for (std::size_t i = 0; i < token.bytes.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, static_cast<unsigned>(static_cast<unsigned char>(token.bytes[i])));
  }
  out += ']';
}

void append_chat_logprobs(std::string& out, const Logprobs& logprobs) {
  out += "{\"content\":[";
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    if (i > 0) out += ',';
    append_alternative(out, logprobs[i].chosen);
    out += ",\"top_logprobs\":[";
    for (std::size_t k = 0; k < logprobs[i].top.size(); ++k) {
      if (k > 0) out += ',';
      append_alternative(out, logprobs[i].top[k]);
      out += '}';
    }
    out += "]}";
  }
  out += "],\"refusal\":null}";
}

// Characters, not bytes: all but the continuation bytes of UTF-8.
std::uint64_t characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

template <class Each>
void append_list(std::string& out, std::string_view name, const Logprobs& logprobs, Each each) {
  append_string(out, name);
  out += ":[";
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    if (i > 0) out += ',';
    each(logprobs[i]);
  }
  out += ']';
}

void append_completion_logprobs(std::string& out, const Logprobs& logprobs, std::uint64_t& offset) {
  out += '{';
  append_list(out, "tokens", logprobs,
              [&](const TokenLogprob& token) { append_string(out, token.chosen.bytes); });
  out += ',';
  append_list(out, "token_logprobs", logprobs,
              [&](const TokenLogprob& token) { append_logprob(out, token.chosen.logprob); });
  out += ',';
  append_list(out, "top_logprobs", logprobs, [&](const TokenLogprob& token) {
    out += '{';
    for (std::size_t k = 0; k < token.top.size(); ++k) {
      if (k > 0) out += ',';
      append_string(out, token.top[k].bytes);
      out += ':';
      append_logprob(out, token.top[k].logprob);
    }
    out += '}';
  });
  out += ',';
  append_list(out, "text_offset", logprobs, [&](const TokenLogprob& token) {
    append_number(out, offset);
    offset += characters(token.chosen.bytes);
  });
  out += '}';
}

void append_head(std::string& out, const AnswerHead& head, std::string_view object) {
  out += "{\"id\":";
  append_string(out, head.id);
  out += ",\"object\":";
  append_string(out, object);
  out += ",\"created\":";
  append_number(out, head.created_s);
  out += ",\"model\":";
  append_string(out, head.model);
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8U | (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= here ? digits[(bits >> (18 - 6 * k)) & 63U] : '=';
  }
}

void append_vector(std::string& out, std::span<const float> values, bool base64) {
  if (base64) {
    std::string bytes;
    bytes.reserve(values.size() * 4);
    for (const float value : values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      for (int shift = 0; shift < 32; shift += 8)
        bytes += static_cast<char>(static_cast<unsigned char>(bits >> shift));
    }
    out += '"';
    append_base64(out, bytes);
    out += '"';
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, values[i]);
  }
  out += ']';
}

void append_model(std::string& out, const ModelEntry& model) {
  out += "{\"id\":";
  append_string(out, model.name);
  out += ",\"object\":\"model\",\"created\":";
  append_number(out, model.created_s);
  out += ",\"owned_by\":";
  append_string(out, model.owner);
  out += '}';
}

}  // namespace

EventWriter::EventWriter(const AnswerHead& head)
    : chat_(head.work == Work::chat), logprobs_(head.logprobs) {
  before_ = "data: ";
  append_head(before_, head, chat_ ? "chat.completion.chunk" : "text_completion");
  before_ += ",\"choices\":[";
  after_ = head.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
}

void EventWriter::begin(std::string& out, std::uint32_t choice) const {
  out += before_;
  out += "{\"index\":";
  append_number(out, choice);
  out += chat_ ? ",\"delta\":{" : ",\"text\":\"";
}

void EventWriter::begin_choice(std::string& out, std::uint32_t choice) const {
  if (!chat_) return;
  begin(out, choice);
  out +=
      "\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
      "\"finish_reason\":null}";
  out += after_;
}

void EventWriter::text(std::string& out, std::uint32_t choice, std::string_view text,
                       const Logprobs& logprobs, std::uint64_t& offset) const {
  begin(out, choice);
  if (chat_) out += "\"content\":\"";
  append_escaped(out, text);
  out += chat_ ? "\"},\"logprobs\":" : "\",\"logprobs\":";
  if (!logprobs_) {
    out += "null";
  } else if (chat_) {
    append_chat_logprobs(out, logprobs);
  } else {
    append_completion_logprobs(out, logprobs, offset);
  }
  out += ",\"finish_reason\":null}";
  out += after_;
}

void EventWriter::end_choice(std::string& out, std::uint32_t choice, FinishReason reason) const {
  begin(out, choice);
  out += chat_ ? "},\"logprobs\":null,\"finish_reason\":\""
               : "\",\"logprobs\":null,\"finish_reason\":\"";
  out += name_of(reason);
  out += "\"}";
  out += after_;
}

void EventWriter::usage(std::string& out, const TokenUsage& usage) const {
  out += before_;
  out += "],\"usage\":";
  append_usage(out, usage, chat_ ? Work::chat : Work::completion);
  out += "}\n\n";
}

void error_event(std::string& out, const ApiError& error) {
  out += "data: ";
  out += to_json(error);
  out += "\n\n";
}

void append_usage(std::string& out, const TokenUsage& usage, Work work) {
  out += "{\"prompt_tokens\":";
  append_number(out, usage.prompt_tokens);
  if (work != Work::embedding) {
    out += ",\"completion_tokens\":";
    append_number(out, usage.generated_tokens);
  }
  out += ",\"total_tokens\":";
  append_number(out, std::uint64_t{usage.prompt_tokens} + usage.generated_tokens);
  if (work != Work::embedding) {
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
    append_number(out, usage.cached_tokens);
    out +=
        ",\"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":0,"
        "\"audio_tokens\":0,\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}";
  }
  out += '}';
}

std::string whole_answer(const AnswerHead& head, std::span<const Choice> choices,
                         const TokenUsage& usage) {
  const bool chat = head.work == Work::chat;
  std::string out;
  append_head(out, head, chat ? "chat.completion" : "text_completion");
  out += ",\"choices\":[";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    out += i > 0 ? ",{\"index\":" : "{\"index\":";
    append_number(out, i);
    out += chat ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"text\":";
    append_string(out, choice.text);
    if (chat) out += ",\"refusal\":null}";
    out += ",\"logprobs\":";
    std::uint64_t offset = 0;
    if (!head.logprobs) {
      out += "null";
    } else if (chat) {
      append_chat_logprobs(out, choice.logprobs);
    } else {
      append_completion_logprobs(out, choice.logprobs, offset);
    }
    out += ",\"finish_reason\":";
    append_string(out, name_of(choice.reason));
    out += '}';
  }
  out += "],\"usage\":";
  append_usage(out, usage, head.work);
  return out + "}";
}

std::string embedding_answer(std::string_view model, std::span<const std::vector<float>> vectors,
                             bool base64, const TokenUsage& usage) {
  std::string out = "{\"object\":\"list\",\"data\":[";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    out += i > 0 ? ",{\"object\":\"embedding\",\"index\":" : "{\"object\":\"embedding\",\"index\":";
    append_number(out, i);
    out += ",\"embedding\":";
    append_vector(out, vectors[i], base64);
    out += '}';
  }
  out += "],\"model\":";
  append_string(out, model);
  out += ",\"usage\":";
  append_usage(out, usage, Work::embedding);
  return out + "}";
}

std::string model_answer(const ModelEntry& model) {
  std::string out;
  append_model(out, model);
  return out;
}

std::string model_list(std::span<const ModelEntry> models) {
  std::string out = "{\"object\":\"list\",\"data\":[";
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (i > 0) out += ',';
    append_model(out, models[i]);
  }
  return out + "]}";
}

}  // namespace loam::gateway

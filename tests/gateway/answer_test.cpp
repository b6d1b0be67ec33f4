#include "gateway/answer.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace loam::gateway {
namespace {

namespace json = boost::json;
using infer::wire::FinishReason;

json::value data_of(std::string_view event) {
  EXPECT_TRUE(event.starts_with("data: ")) << event;
  EXPECT_TRUE(event.ends_with("\n\n")) << event;
  EXPECT_EQ(event.substr(0, event.size() - 2).find('\n'), std::string_view::npos) << event;
  event.remove_prefix(6);
  boost::system::error_code fault;
  json::value value = json::parse(event.substr(0, event.size() - 2), fault);
  EXPECT_FALSE(fault) << event;
  return value;
}

Logprobs two_tokens() {
  return {{{7, "h\xC3\xA9", -0.5F}, {{7, "h", -0.5F}, {8, "\xFF", -1e30F}}}, {{9, "!", -2}, {}}};
}

TEST(Answers, AChatStreamsAsChunks) {
  const EventWriter writer({Work::chat, "chatcmpl-1", "m", 5, false, true});
  std::string out;
  std::uint64_t offset = 0;
  writer.begin_choice(out, 2);
  EXPECT_EQ(json::serialize(data_of(out)),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m",)"
            R"("choices":[{"index":2,"delta":{"role":"assistant","content":"","refusal":null},)"
            R"("logprobs":null,"finish_reason":null}],"usage":null})");
  out.clear();
  writer.text(out, 0, "a\n\"\xC3\xA9", {}, offset);
  const json::value chunk = data_of(out);
  const json::value& choice = chunk.at("choices").at(0);
  EXPECT_EQ(choice.at("delta").at("content").as_string(), "a\n\"\xC3\xA9");
  out.clear();
  writer.end_choice(out, 0, FinishReason::length);
  EXPECT_EQ(data_of(out).at("choices").at(0).at("finish_reason").as_string(), "length");
  out.clear();
  writer.usage(out, {10, 4, 6, 99, 0});
  const json::value last = data_of(out);
  EXPECT_TRUE(last.at("choices").as_array().empty());
  EXPECT_EQ(last.at("usage").at("prompt_tokens").to_number<int>(), 10);
  EXPECT_EQ(last.at("usage").at("completion_tokens").to_number<int>(), 6);
  EXPECT_EQ(last.at("usage").at("total_tokens").to_number<int>(), 16);
  EXPECT_EQ(last.at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>(), 4);
}

TEST(Answers, ACompletionStreamsItsOffsets) {
  const EventWriter writer({Work::completion, "cmpl-1", "m", 5, true, false});
  std::string out;
  std::uint64_t offset = 0;
  writer.begin_choice(out, 0);
  EXPECT_EQ(out, "");
  writer.text(out, 0, "h\xC3\xA9!", two_tokens(), offset);
  EXPECT_EQ(offset, 3U);  // characters
  const json::value chunk = data_of(out);
  const json::value& logprobs = chunk.at("choices").at(0).at("logprobs");
  EXPECT_EQ(json::serialize(logprobs.at("text_offset")), "[0,2]");
  EXPECT_EQ(logprobs.at("tokens").as_array().size(), 2U);
  EXPECT_EQ(logprobs.at("top_logprobs").at(0).at("\xEF\xBF\xBD").to_number<double>(), -9999);
  EXPECT_FALSE(chunk.as_object().contains("usage"));
}

TEST(Answers, AWholeChatHasItsLogprobs) {
  const std::vector<Choice> choices{{"h\xC3\xA9!", two_tokens(), FinishReason::stop}, {}};
  const json::value answer =
      json::parse(whole_answer({Work::chat, "i", "m", 1, true, false}, choices, {1, 0, 2, 0, 0}));
  EXPECT_EQ(answer.at("object").as_string(), "chat.completion");
  EXPECT_EQ(answer.at("choices").as_array().size(), 2U);
  const json::value& token = answer.at("choices").at(0).at("logprobs").at("content").at(0);
  EXPECT_EQ(json::serialize(token.at("bytes")), "[104,195,169]");
  EXPECT_EQ(token.at("top_logprobs").as_array().size(), 2U);
  EXPECT_EQ(answer.at("usage").at("total_tokens").to_number<int>(), 3);
}

TEST(Answers, EmbeddingsComeAsNumbersAndAsBase64) {
  const std::vector<std::vector<float>> vectors{{1.0F, -0.5F}};
  const json::value plain = json::parse(embedding_answer("m", vectors, false, {3, 0, 0, 0, 0}));
  EXPECT_EQ(plain.at("data").at(0).at("embedding").at(1).to_number<double>(), -0.5);
  EXPECT_FALSE(plain.at("usage").as_object().contains("completion_tokens"));
  const json::value coded = json::parse(embedding_answer("m", vectors, true, {}));
  EXPECT_EQ(coded.at("data").at(0).at("embedding").as_string(), "AACAPwAAAL8=");
}

TEST(Answers, EveryByteBecomesValidJson) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  std::string out = "\"";
  append_escaped(out, bytes);
  out += '"';
  boost::system::error_code fault;
  const json::value value = json::parse(out, fault);
  ASSERT_FALSE(fault) << out;
  EXPECT_TRUE(
      std::string_view(value.as_string()).starts_with(std::string_view(bytes).substr(0, 128)));
}

}  // namespace
}  // namespace loam::gateway

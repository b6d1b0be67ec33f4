#include "gateway/request.hpp"

#include <gtest/gtest.h>

namespace loam::gateway {
namespace {

using infer::Grammar;
using infer::Prompt;

InferenceRequest read(Work work, std::string_view body) {
  auto parsed = parse_request(work, body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << to_json(*error);
    return {};
  }
  return std::get<InferenceRequest>(std::move(parsed));
}

ApiError refused(Work work, std::string_view body) {
  auto parsed = parse_request(work, body);
  if (auto* error = std::get_if<ApiError>(&parsed)) return *error;
  ADD_FAILURE() << "taken: " << body;
  return {};
}

// A chat with one more field.
std::string chat(std::string_view field) {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}],)" + std::string(field) + "}";
}
std::string completion(std::string_view field) {
  return R"({"model":"m","prompt":"hi",)" + std::string(field) + "}";
}

TEST(Request, AChatWithEverythingIsReadWhole) {
  const auto request = read(Work::chat, R"({
    "model": "org/m", "messages": [
      {"role": "developer", "content": "be brief"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": "c", "refusal": null, "annotations": []}],
    "temperature": 0.5, "top_p": 0.25, "frequency_penalty": -1, "presence_penalty": 1.5, "n": 3,
    "seed": -1, "max_completion_tokens": 7, "stop": ["x", "y"], "logit_bias": {"5": -100},
    "logprobs": true, "top_logprobs": 2, "stream": true, "stream_options": {"include_usage": true},
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "strict": true,
                        "schema": {"type": "object"}}},
    "service_tier": "flex", "user": "u", "metadata": {"k": "v"}, "tools": [], "store": false,
    "loam": {"top_k": 4, "min_p": 0.5, "repeat_penalty": 1.5, "public_extent": 1,
             "tags": {"team": "blue"}, "adapters": [{"name": "a", "scale": 0.5}]}})");
  EXPECT_EQ(request.model, "org/m");
  ASSERT_EQ(request.prompts.size(), 1U);
  const std::vector<infer::ChatMessage> messages{
      {"system", "be brief"}, {"user", "ab"}, {"assistant", "c"}};
  EXPECT_EQ(request.prompts[0].messages, messages);
  EXPECT_EQ(request.prompts[0].public_extent, 1U);
  infer::Sampling sampling;
  sampling.temperature = 0.5F;
  sampling.top_p = 0.25F;
  sampling.min_p = 0.5F;
  sampling.top_k = 4;
  sampling.frequency_penalty = -1;
  sampling.presence_penalty = 1.5F;
  sampling.repeat_penalty = 1.5F;
  sampling.seed = ~std::uint64_t{0};
  sampling.logit_bias = {{5, -100.0F}};
  sampling.logprobs = true;
  sampling.top_logprobs = 2;
  sampling.stop = {"x", "y"};
  sampling.grammar = {Grammar::Kind::json_schema, R"({"type":"object"})"};
  EXPECT_EQ(request.sampling, sampling);
  EXPECT_EQ(request.choices, 3U);
  EXPECT_EQ(request.tokens_max, 7U);
  EXPECT_TRUE(request.stream && request.include_usage);
  EXPECT_EQ(request.service_class, infer::ServiceClass::batch);
  EXPECT_EQ(request.adapters, (std::vector<infer::AdapterUse>{{"a", 0.5F}}));
  EXPECT_EQ(request.tags, (std::map<std::string, std::string>{{"team", "blue"}}));
}

TEST(Request, APromptComesInFourForms) {
  EXPECT_EQ(read(Work::completion, R"({"model":"m","prompt":"ab"})").prompts[0].text, "ab");
  const auto tokens = read(Work::completion, R"({"model":"m","prompt":[1,2.0]})");
  EXPECT_EQ(tokens.prompts[0].tokens, (std::vector<infer::Token>{1, 2}));
  EXPECT_EQ(tokens.prompts[0].kind, Prompt::Kind::tokens);
  EXPECT_EQ(read(Work::completion, R"({"model":"m","prompt":["a","b"]})").prompts.size(), 2U);
  EXPECT_EQ(read(Work::embedding, R"({"model":"m","input":[[1],[2,3]]})").prompts[1].tokens.size(),
            2U);
}

TEST(Request, AStringStopsAndAFormatTextIsNone) {
  const auto request = read(Work::chat, chat(R"("stop":"x","response_format":{"type":"text"})"));
  EXPECT_EQ(request.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(request.sampling.grammar.kind, Grammar::Kind::none);
}

struct BadField {
  const char* field;
  const char* param;
  const char* code;
};

TEST(Request, ABadFieldIsNamedWithACode) {
  const BadField fields[] = {
      {R"("temperature":"hot")", "temperature", "invalid_type"},
      {R"("temperature":"NaN")", "temperature", "invalid_type"},
      {R"("temperature":2.5)", "temperature", "decimal_above_max_value"},
      {R"("temperature":1e999)", "temperature", "decimal_above_max_value"},
      {R"("temperature":-0.1)", "temperature", "decimal_below_min_value"},
      {R"("top_p":2)", "top_p", "decimal_above_max_value"},
      {R"("max_tokens":0)", "max_tokens", "integer_below_min_value"},
      {R"("max_tokens":-1)", "max_tokens", "integer_below_min_value"},
      {R"("max_tokens":1.5)", "max_tokens", "invalid_type"},
      {R"("max_tokens":99999999999999999999)", "max_tokens", "integer_above_max_value"},
      {R"("max_completion_tokens":0)", "max_completion_tokens", "integer_below_min_value"},
      {R"("max_tokens":1,"max_completion_tokens":1)", "max_tokens",
       "invalid_parameter_combination"},
      {R"("n":0)", "n", "integer_below_min_value"},
      {R"("n":1000)", "n", "integer_above_max_value"},
      {R"("n":true)", "n", "invalid_type"},
      {R"("stop":[""])", "stop", "empty_string"},
      {R"("stop":[1])", "stop", "invalid_type"},
      {R"("stop":{})", "stop", "invalid_type"},
      {R"("logit_bias":{"x":1})", "logit_bias", "invalid_value"},
      {R"("logit_bias":{"1":101})", "logit_bias.1", "decimal_above_max_value"},
      {R"("logit_bias":[])", "logit_bias", "invalid_type"},
      {R"("top_logprobs":2)", "top_logprobs", "invalid_value"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "integer_above_max_value"},
      {R"("stream":1)", "stream", "invalid_type"},
      {R"("stream_options":{"include_usage":true})", "stream_options", "invalid_value"},
      {R"("response_format":{"type":"xml"})", "response_format.type", "invalid_value"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema",
       "missing_required_parameter"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"string","pattern":"a+"}}})",
       "response_format.json_schema.schema", "invalid_value"},
      {R"("tools":[{}])", "tools", "unsupported_parameter"},
      {R"("modalities":["audio"])", "modalities", "unsupported_value"},
      {R"("service_tier":"gold")", "service_tier", "invalid_value"},
      {R"("frobnicate":1)", "frobnicate", "unknown_parameter"},
      {R"("loam":{"x":1})", "loam.x", "unknown_parameter"},
      {R"("loam":{"tags":["team"]})", "loam.tags", "invalid_type"},
      {R"("loam":{"tags":{"team":1}})", "loam.tags", "invalid_type"},
      {R"("loam":{"tags":{"a b":"c"}})", "loam.tags", "invalid_value"},
      {R"("loam":{"tags":{"team":"a,b"}})", "loam.tags", "invalid_value"},
      {R"("loam":{"public_extent":2})", "loam.public_extent", "invalid_value"},
      {R"("loam":{"grammar":"root"},"response_format":{"type":"json_object"})", "loam.grammar",
       "invalid_parameter_combination"},
  };
  for (const BadField& bad : fields) {
    const ApiError error = refused(Work::chat, chat(bad.field));
    EXPECT_EQ(error.status, 400) << bad.field;
    EXPECT_EQ(error.type, "invalid_request_error") << bad.field;
    EXPECT_EQ(error.param.value_or(""), bad.param) << bad.field;
    EXPECT_EQ(error.code.value_or(""), bad.code) << bad.field << ": " << error.message;
    EXPECT_FALSE(error.message.empty()) << bad.field;
  }
}

TEST(Request, ABadMessageIsNamedByItsPlace) {
  const BadField bodies[] = {
      {R"({"model":"m"})", "messages", "missing_required_parameter"},
      {R"({"model":"m","messages":[]})", "messages", "empty_array"},
      {R"({"model":"m","messages":"hi"})", "messages", "invalid_type"},
      {R"({"model":"m","messages":[1]})", "messages[0]", "invalid_type"},
      {R"({"model":"m","messages":[{}]})", "messages[0].role", "missing_required_parameter"},
      {R"({"model":"m","messages":[{"role":"user"}]})", "messages[0].content",
       "missing_required_parameter"},
      {R"({"model":"m","messages":[{"role":"king","content":"x"}]})", "messages[0].role",
       "invalid_value"},
      {R"({"model":"m","messages":[{"role":"tool","content":"x"}]})", "messages[0].role",
       "unsupported_value"},
      {R"({"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
       "messages[0].content[0].type", "unsupported_value"},
      {R"({"model":"m","messages":[{"role":"user","content":"x","colour":1}]})",
       "messages[0].colour", "unknown_parameter"},
      {R"({"messages":[{"role":"user","content":"x"}]})", "model", "missing_required_parameter"},
      {R"({"model":7,"messages":[{"role":"user","content":"x"}]})", "model", "invalid_type"},
  };
  for (const BadField& bad : bodies) {
    const ApiError error = refused(Work::chat, bad.field);
    EXPECT_EQ(error.param.value_or(""), bad.param) << bad.field;
    EXPECT_EQ(error.code.value_or(""), bad.code) << bad.field << ": " << error.message;
  }
}

TEST(Request, ABodyThatIsNoObjectIsRefused) {
  for (const char* body : {"", "{", "NaN", "{\"temperature\":NaN}", "{\"a\":1}x", "\"\xff\""})
    EXPECT_EQ(refused(Work::chat, body).code.value_or(""), "invalid_json") << body;
  for (const char* body : {"[]", "7", "null", "\"x\""})
    EXPECT_EQ(refused(Work::chat, body).code.value_or(""), "invalid_type") << body;
  std::string deep(10'000, '[');
  EXPECT_EQ(refused(Work::chat, deep).code.value_or(""), "invalid_json");
}

TEST(Request, ABadCompletionIsRefused) {
  const BadField fields[] = {
      {R"("echo":true)", "echo", "unsupported_parameter"},
      {R"("suffix":"x")", "suffix", "unsupported_parameter"},
      {R"("best_of":2)", "best_of", "unsupported_parameter"},
      {R"("logprobs":21)", "logprobs", "integer_above_max_value"},
      {R"("logprobs":true)", "logprobs", "invalid_type"},
      {R"("messages":[])", "messages", "unknown_parameter"},
  };
  for (const BadField& bad : fields) {
    const ApiError error = refused(Work::completion, completion(bad.field));
    EXPECT_EQ(error.param.value_or(""), bad.param) << bad.field;
    EXPECT_EQ(error.code.value_or(""), bad.code) << bad.field << ": " << error.message;
  }
  for (const char* prompt : {R"("")", "[]", "[[]]", R"([""])", "[-1]", R"([1,"a"])", "7", "[{}]"}) {
    const std::string body = R"({"model":"m","prompt":)" + std::string(prompt) + "}";
    EXPECT_EQ(refused(Work::completion, body).status, 400) << prompt;
  }
}

TEST(Request, TooManyAnswersAreRefused) {
  std::string prompts = "\"a\"";
  for (int i = 0; i < 40; ++i) prompts += ",\"a\"";
  const std::string body = R"({"model":"m","n":16,"prompt":[)" + prompts + "]}";
  EXPECT_EQ(refused(Work::completion, body).param.value_or(""), "n");
}

TEST(Request, AnEmbeddingIsRead) {
  const auto request = read(
      Work::embedding, R"({"model":"m","input":"a","encoding_format":"base64","dimensions":4})");
  EXPECT_TRUE(request.base64);
  EXPECT_EQ(request.dimensions, 4U);
  EXPECT_EQ(refused(Work::embedding, R"({"model":"m","input":"a","encoding_format":"hex"})")
                .param.value_or(""),
            "encoding_format");
}

TEST(ApiErrors, HaveAllFourFieldsAndEscapeTheirText) {
  const ApiError plain{500, "a \"b\"\n\xff", "server_error"};
  EXPECT_EQ(to_json(plain),
            "{\"error\":{\"message\":\"a \\\"b\\\"\\n\xEF\xBF\xBD\",\"type\":\"server_error\","
            "\"param\":null,\"code\":null}}");
  const auto response =
      to_response({429, "slow", "requests", {}, "rate_limit_exceeded", Duration{1500}});
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.get("retry-after"), "2");
  EXPECT_EQ(response.headers.get("retry-after-ms"), "1500");
}

}  // namespace
}  // namespace loam::gateway

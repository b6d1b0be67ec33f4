// The whole chain: HTTP, gateway, wire, loam-engine and a model of about a million parameters.
#include "gateway/fixture.hpp"
#include "infer_engine/fixture.hpp"

namespace loam::gateway {
namespace {

// Of slots and tokens enough for a few requests at once.
struct ChainTest : GatewayTest {
  void start_chain(std::uint32_t slots = 4) {
    engine = std::make_unique<serve::RunningEngine>(serve::small_engine(slots));
    start();
    gateway->add_instance("real", "tiny", engine->path);
    ASSERT_TRUE(up("real"));
  }
  static std::uint32_t cached_of(const http::Response& response) {
    return parse_body(response)
        .at("usage")
        .at("prompt_tokens_details")
        .at("cached_tokens")
        .to_number<std::uint32_t>();
  }
  std::unique_ptr<serve::RunningEngine> engine;
};

TEST_F(ChainTest, AChatIsAnsweredAndTheRecordIsItsUsage) {
  start_chain();
  const auto response = ask("What is a lease?", R"(,"max_tokens":5,"seed":3,"n":2)");
  ASSERT_EQ(response.status, 200) << response.body;
  const json::value answer = parse_body(response);
  EXPECT_EQ(answer.at("choices").as_array().size(), 2U);
  ASSERT_TRUE(recorded(1));
  const TokenUsage usage = sink.all()[0].usage;
  const json::value& told = answer.at("usage");
  EXPECT_EQ(told.at("prompt_tokens").to_number<std::uint32_t>(), usage.prompt_tokens);
  EXPECT_EQ(told.at("completion_tokens").to_number<std::uint32_t>(), usage.generated_tokens);
  EXPECT_GT(usage.prompt_tokens, 0U);
  EXPECT_LE(usage.generated_tokens, 10U);
  EXPECT_GT(usage.engine_time_us, 0U);
}

TEST_F(ChainTest, AStreamAndAWholeAnswerWithOneSeedAreTheSameText) {
  start_chain();
  const std::string more = R"(,"max_tokens":12,"seed":7,"temperature":0)";
  const auto whole = ask("once upon a time", more);
  ASSERT_EQ(whole.status, 200) << whole.body;
  std::string text;
  for (const std::string& event :
       stream(post("/v1/chat/completions", chat("once upon a time", more + R"(,"stream":true)")))) {
    if (event == "[DONE]") continue;
    const json::value chunk = json::parse(event);
    const json::value& delta = chunk.at("choices").at(0).at("delta");
    if (delta.as_object().contains("content")) text += delta.at("content").as_string();
  }
  EXPECT_EQ(text, parse_body(whole).at("choices").at(0).at("message").at("content").as_string());
}

TEST_F(ChainTest, APrefixIsCachedForItsTenantAndForNobodyElse) {
  start_chain();
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += "word" + std::to_string(i) + " ";
  const std::string more = R"(,"max_tokens":1)";
  EXPECT_EQ(cached_of(ask(prompt + "one", more)), 0U);
  EXPECT_GT(cached_of(ask(prompt + "two", more)), 0U);
  EXPECT_EQ(cached_of(ask(prompt + "three", more, "beta")), 0U);
}

TEST_F(ChainTest, APromptLongerThanTheContextIsNamed) {
  start_chain();
  const auto response = ask(std::string(20'000, 'x'));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(error_code_of(response), "context_length_exceeded");
}

TEST_F(ChainTest, AClientThatLeavesIsMeteredForWhatWasGenerated) {
  start_chain();
  {
    http::RawClient client(address());
    ASSERT_TRUE(client.send(
        raw(chat("go on", R"(,"stream":true,"max_tokens":400,"loam":{"ignore_end":true})"))));
    ASSERT_TRUE(client.read_until("\"delta\":{\"content\""));
  }
  ASSERT_TRUE(recorded(1));
  const UsageRecord record = sink.all()[0];
  EXPECT_EQ(record.outcome, UsageOutcome::client_left);
  EXPECT_TRUE(record.settled);
  EXPECT_GE(record.usage.generated_tokens, 1U);
  EXPECT_LT(record.usage.generated_tokens, 400U);
}

TEST_F(ChainTest, MoreRequestsThanSlotsAllFinish) {
  start_chain(2);
  std::vector<std::future<int>> answers;
  for (int i = 0; i < 8; ++i) {
    answers.push_back(std::async(std::launch::async, [this, i] {
      return ask("request " + std::to_string(i), R"(,"max_tokens":10)",
                 i % 2 == 0 ? "acme" : "beta")
          .status;
    }));
  }
  for (std::future<int>& status : answers) EXPECT_EQ(status.get(), 200);
}

TEST_F(ChainTest, ASchemaBindsTheAnswer) {
  start_chain();
  const auto response = ask("json please", R"(,"max_tokens":60,"seed":1,"response_format":{
    "type":"json_schema","json_schema":{"name":"p","schema":{"type":"object","properties":
    {"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}}})");
  ASSERT_EQ(response.status, 200) << response.body;
  const json::value answer = parse_body(response);
  const json::value& choice = answer.at("choices").at(0);
  std::string made;  // without the blanks that a grammar lets pass
  for (const char c : std::string_view(choice.at("message").at("content").as_string())) {
    if (c != ' ' && c != '\n' && c != '\t') made += c;
  }
  const bool yes = std::string_view(R"({"a":true})").starts_with(made);
  const bool no = std::string_view(R"({"a":false})").starts_with(made);
  EXPECT_TRUE(yes || no) << made;
  const bool stopped = choice.at("finish_reason").as_string() == "stop";
  EXPECT_TRUE(!stopped || made.ends_with("}")) << made;
}

}  // namespace
}  // namespace loam::gateway

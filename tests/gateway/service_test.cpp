// What a well-behaved client gets from well-behaved engines, and how it is counted.
#include "gateway/fixture.hpp"

namespace loam::gateway {
namespace {

TEST_F(GatewayTest, AChatIsAnsweredWholeAndItsUsageIsTheRecord) {
  FakeEngine& engine = start_with_engine();
  const auto response = ask("hello there, engine", R"(,"n":2)");
  ASSERT_EQ(response.status, 200) << response.body;
  const json::value answer = parse_body(response);
  EXPECT_EQ(answer.at("choices").as_array().size(), 2U);
  EXPECT_EQ(answer.at("choices").at(1).at("message").at("content").as_string(), "ab ab ab ");
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason").as_string(), "stop");
  const std::string id(answer.at("id").as_string());
  EXPECT_EQ(response.headers.get("x-request-id"), id);
  ASSERT_TRUE(recorded(1));
  const UsageRecord record = sink.all().at(0);
  EXPECT_EQ(record.request, id);
  EXPECT_EQ(record.caller.tenant, "acme");
  EXPECT_EQ(record.owner, "owner");
  EXPECT_EQ(record.instance, "e1");
  EXPECT_EQ(record.outcome, UsageOutcome::answered);
  EXPECT_TRUE(record.settled);
  EXPECT_EQ(record.usage, engine.books().at(id));
  EXPECT_EQ(record.usage.generated_tokens, 6U);
  const json::value& usage = answer.at("usage");
  EXPECT_EQ(usage.at("prompt_tokens").to_number<std::uint32_t>(), record.usage.prompt_tokens);
  EXPECT_EQ(usage.at("completion_tokens").to_number<std::uint32_t>(), 6U);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens").to_number<std::uint32_t>(),
            record.usage.cached_tokens);
}

TEST_F(GatewayTest, AUsageRecordSaysWhoseCostAndWhoseIncomeItIs) {
  start_with_engine();
  Attribution serving;
  serving.project = "serving";
  serving.tags = {{"team", "green"}};
  gateway->offer({"tiny", "owner", {}, Instant{5000}, {}, serving});
  EXPECT_EQ(ask("hi", R"(,"loam":{"tags":{"team":"blue"}})").status, 200);
  ASSERT_TRUE(recorded(1));
  const UsageRecord record = sink.all()[0];
  EXPECT_EQ(record.tags, (std::map<std::string, std::string>{{"team", "blue"}}));
  EXPECT_EQ(record.owner_attribution, serving);
}

TEST_F(GatewayTest, AStreamComesInPiecesAndEndsWithUsageAndDone) {
  start_with_engine();
  const auto events =
      stream(post("/v1/chat/completions",
                  chat("hi", R"(,"stream":true,"stream_options":{"include_usage":true})")));
  ASSERT_EQ(events.size(), 7U);  // role, three tokens, end, usage, done
  EXPECT_EQ(json::parse(events[0]).at("choices").at(0).at("delta").at("role").as_string(),
            "assistant");
  EXPECT_EQ(json::parse(events[2]).at("choices").at(0).at("delta").at("content").as_string(),
            "ab ");
  EXPECT_EQ(json::parse(events[4]).at("choices").at(0).at("finish_reason").as_string(), "stop");
  const json::value last = json::parse(events[5]);
  EXPECT_TRUE(last.at("choices").as_array().empty());
  ASSERT_TRUE(recorded(1));
  EXPECT_EQ(last.at("usage").at("completion_tokens").to_number<std::uint32_t>(),
            sink.all()[0].usage.generated_tokens);
  EXPECT_EQ(events[6], "[DONE]");
}

TEST_F(GatewayTest, ATierIsServedAndChargedUnderItsOwnNameAndListedUnderNone) {
  access.callers.at("key-acme").service_class = infer::ServiceClass::interactive;
  start_with_engine();
  gateway->offer({"tiny@flex", "owner", {}, Instant{5000}, "tiny"});
  FakeEngine::Options options;
  options.model = "tiny@flex";
  engines.push_back(std::make_unique<FakeEngine>(folder / "cheap", options));
  gateway->add_instance("cheap", "tiny@flex", folder / "cheap");
  ASSERT_TRUE(up("cheap"));
  const std::pair<const char*, const char*> tiers[] = {
      {"flex", "tiny@flex"}, {"default", "tiny"}, {"priority", "tiny"}};
  for (std::size_t i = 0; i < std::size(tiers); ++i) {
    const auto& [tier, served] = tiers[i];
    const auto answer = ask("hi", R"(,"service_tier":")" + std::string(tier) + "\"");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(parse_body(answer).at("model").as_string(), "tiny") << "as it was asked for";
    ASSERT_TRUE(recorded(i + 1));
    EXPECT_EQ(sink.all()[i].model, served) << tier;
    EXPECT_EQ(sink.all()[i].instance, std::string(served) == "tiny" ? "e1" : "cheap");
    EXPECT_EQ(sink.all()[i].owner, "owner");
  }
  http::Request list;
  list.method = http::Method::get;
  list.path = "/v1/models";
  list.headers = {{"Authorization", "Bearer key-acme"}};
  EXPECT_EQ(parse_body(send(list)).at("data").as_array().size(), 1U);
  const auto direct = send(post("/v1/completions", R"({"model":"tiny@flex","prompt":"x"})"));
  EXPECT_EQ(direct.status, 404) << "a tier is asked for by service_tier";
  // Without the tier the model itself answers.
  gateway->withdraw("tiny@flex");
  EXPECT_EQ(ask("hi", R"(,"service_tier":"flex")").status, 200);
  ASSERT_TRUE(recorded(4));
  EXPECT_EQ(sink.all()[3].model, "tiny");
}

TEST_F(GatewayTest, WithoutTheOptionAStreamHasNoUsage) {
  start_with_engine();
  const auto events =
      stream(post("/v1/completions", R"({"model":"tiny","prompt":"x","stream":true})"));
  ASSERT_EQ(events.size(), 5U);
  for (std::size_t i = 0; i + 1 < events.size(); ++i)
    EXPECT_FALSE(json::parse(events[i]).as_object().contains("usage")) << events[i];
  EXPECT_EQ(json::parse(events[0]).at("object").as_string(), "text_completion");
}

TEST_F(GatewayTest, TheEngineIsToldWhatWasAskedFor) {
  FakeEngine& engine = start_with_engine();
  access.callers["key-acme"].weight = 7;
  const auto response = ask("hi", R"(,"temperature":0,"seed":5,"max_tokens":2,"logprobs":true,
    "top_logprobs":1,"stop":"x","service_tier":"priority",
    "response_format":{"type":"json_object"})");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto submit = engine.submits().at(0);
  EXPECT_EQ(submit.tenant, "acme");
  EXPECT_EQ(submit.weight, 7U);
  // Asked for more than the caller may have: the highest it may have.
  EXPECT_EQ(submit.service_class, infer::ServiceClass::standard);
  EXPECT_EQ(submit.tokens_max, 2U);
  EXPECT_EQ(submit.sampling.temperature, 0.0F);
  EXPECT_EQ(submit.sampling.seed, 5U);
  EXPECT_EQ(submit.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(submit.sampling.grammar.kind, infer::Grammar::Kind::json_object);
  const json::value answer = parse_body(response);
  const json::value& choice = answer.at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason").as_string(), "length");
  EXPECT_EQ(choice.at("logprobs").at("content").as_array().size(), 2U);
}

TEST_F(GatewayTest, SeveralPromptsAreAnsweredInTheirOrder) {
  settings.prompts_at_once = 2;
  FakeEngine& engine = start_with_engine();
  const auto response =
      send(post("/v1/completions", R"({"model":"tiny","prompt":["a","b","c","d","e"],"n":2})"));
  ASSERT_EQ(response.status, 200) << response.body;
  const json::value answer = parse_body(response);
  ASSERT_EQ(answer.at("choices").as_array().size(), 10U);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(answer.at("choices").at(static_cast<std::size_t>(i)).at("index").to_number<int>(), i);
  EXPECT_EQ(engine.submits().size(), 5U);
  ASSERT_TRUE(recorded(1));
  TokenUsage sum;
  for (const auto& [name, usage] : engine.books()) sum += usage;
  EXPECT_EQ(sink.all()[0].usage, sum);
  EXPECT_EQ(sum.generated_tokens, 30U);
}

TEST_F(GatewayTest, EmbeddingsComeInTheOrderOfTheirInputs) {
  start_with_engine();
  const auto response =
      send(post("/v1/embeddings", R"({"model":"tiny","input":["a","bbb","cc"]})"));
  ASSERT_EQ(response.status, 200) << response.body;
  const json::value answer = parse_body(response);
  const double lengths[] = {1, 3, 2};
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(answer.at("data").at(i).at("embedding").at(0).to_number<double>(), lengths[i]);
  EXPECT_EQ(answer.at("usage").at("prompt_tokens").to_number<int>(), 3);
  EXPECT_EQ(
      error_code_of(send(post("/v1/embeddings", R"({"model":"tiny","input":"a","dimensions":9})"))),
      "unsupported_value");
}

TEST_F(GatewayTest, ModelsAreListedForThoseWhoMayUseThem) {
  start();
  gateway->offer({"private/one", "beta", {"gamma"}, Instant{7000}});
  http::Request request = post("/v1/models", "");
  request.method = http::Method::get;
  json::value list = parse_body(send(request));
  ASSERT_EQ(list.at("data").as_array().size(), 1U);
  EXPECT_EQ(list.at("data").at(0).at("id").as_string(), "tiny");
  EXPECT_EQ(list.at("data").at(0).at("owned_by").as_string(), "owner");
  EXPECT_EQ(list.at("data").at(0).at("created").to_number<int>(), 5);
  request.path = "/v1/models/private/one";
  EXPECT_EQ(error_code_of(send(request)), "model_not_found");
  EXPECT_EQ(ask("hi").status, 503);  // offered, and nobody serves it
  const auto hidden =
      send(post("/v1/chat/completions",
                R"({"model":"private/one","messages":[{"role":"user","content":"x"}]})"));
  EXPECT_EQ(hidden.status, 404);
  request.headers.set("Authorization", "Bearer key-beta");
  EXPECT_EQ(send(request).status, 200);
}

TEST_F(GatewayTest, ALimitIsAnswered429AndWhenToTryAgain) {
  access.add("small", {.requests_per_minute = 2});
  start_with_engine();
  EXPECT_EQ(ask("hi", "", "small").status, 200);
  EXPECT_EQ(ask("hi", "", "small").status, 200);
  const auto refused = ask("hi", "", "small");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(error_code_of(refused), "rate_limit_exceeded");
  EXPECT_EQ(parse_body(refused).at("error").at("type").as_string(), "requests");
  const int retry_s = std::stoi(std::string(refused.headers.get("retry-after")));
  EXPECT_GE(retry_s, 1);
  EXPECT_LE(retry_s, 30);
  EXPECT_EQ(ask("hi").status, 200);  // the neighbour's allowance is its own
  EXPECT_EQ(sink.all().size(), 3U);  // a refusal is no usage
}

TEST_F(GatewayTest, RequestsAtOnceAreLimitedUntilOneEnds) {
  access.add("small", {.concurrent_requests = 1});
  FakeEngine& engine = start_with_engine({}, [](const infer::wire::Submit&) {
    return FakeEngine::Script{FakeEngine::Script::Do::hold, {}};
  });
  auto held = std::make_unique<http::RawClient>(address());
  std::string request = raw(chat("hi"));
  request.replace(request.find("key-acme"), 8, "key-small");
  ASSERT_TRUE(held->send(request));
  ASSERT_TRUE(http::eventually([&] { return engine.running() == 1; }));
  EXPECT_EQ(ask("hi", "", "small").status, 429);
  held.reset();  // hangs up: the slot is free
  ASSERT_TRUE(recorded(1));
  held = std::make_unique<http::RawClient>(address());
  ASSERT_TRUE(held->send(request));
  EXPECT_TRUE(http::eventually([&] { return engine.submits().size() == 2; }));
}

TEST_F(GatewayTest, APrefixGoesWhereItIsKnown) {
  start();
  FakeEngine& first = add_engine("e1");
  FakeEngine& second = add_engine("e2");
  ASSERT_TRUE(up("e1") && up("e2"));
  const std::string a(1000, 'a');
  const std::string b(1000, 'b');
  EXPECT_EQ(ask(a).status, 200);
  const bool went_first = first.submits().size() == 1;
  FakeEngine& knows = went_first ? first : second;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(a + std::to_string(i)).status, 200);
  EXPECT_EQ(knows.submits().size(), 6U);
}

TEST_F(GatewayTest, ADrainedInstanceFinishesAndGetsNoMore) {
  start();
  FakeEngine& first = add_engine("e1", {.tokens = 40, .tick_ms = 5});
  ASSERT_TRUE(up("e1"));
  auto streaming = std::async(std::launch::async, [&] { return ask("hi").status; });
  ASSERT_TRUE(http::eventually([&] { return first.submits().size() == 1; }));
  std::promise<void> drained;
  gateway->drain_instance("e1", [&] { drained.set_value(); });
  FakeEngine& second = add_engine("e2");
  ASSERT_TRUE(up("e2"));
  EXPECT_EQ(ask("hi").status, 200);
  EXPECT_EQ(second.submits().size(), 1U);
  EXPECT_EQ(streaming.get(), 200);
  drained.get_future().get();
  EXPECT_EQ(first.submits().size(), 1U);
}

struct Starter final : Demand {
  void wanted(const std::string& model) override {
    if (!asked.exchange(true)) first.set_value(model);
  }
  std::atomic<bool> asked = false;
  std::promise<std::string> first;
};

TEST_F(GatewayTest, ARequestWaitsForAnInstanceThatIsStartedForIt) {
  Starter starter;
  demand = &starter;
  start();
  auto answered = std::async(std::launch::async, [&] { return ask("hi").status; });
  EXPECT_EQ(starter.first.get_future().get(), "tiny");
  EXPECT_NE(metrics().find("loam_inference_requests_waiting{model=\"tiny\"} 1"), std::string::npos);
  add_engine("e1");
  EXPECT_EQ(answered.get(), 200);
  server.reset();
  gateway.reset();
}

TEST_F(GatewayTest, MetricsCountWhatHappened) {
  start_with_engine();
  EXPECT_EQ(ask("hi").status, 200);
  const std::string text = metrics();
  for (const char* line :
       {"loam_inference_requests_total{model=\"tiny\",outcome=\"answered\"} 1",
        "loam_inference_generated_tokens_total{model=\"tiny\"} 3",
        "loam_inference_chunks_total{model=\"tiny\"} 3",
        "loam_inference_time_to_first_token_seconds_count{model=\"tiny\"} 1",
        "loam_inference_gap_seconds_count{model=\"tiny\"} 2",
        "loam_inference_instance_state{model=\"tiny\",instance=\"e1\",state=\"up\"} 1"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
}

}  // namespace
}  // namespace loam::gateway

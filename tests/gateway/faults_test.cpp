// Clients and engines that misbehave: a clear error at once, right accounts, and nobody else hurt.
#include "gateway/fixture.hpp"

namespace loam::gateway {
namespace {

using Script = FakeEngine::Script;
using Do = FakeEngine::Script::Do;

std::string prompt_of(const infer::wire::Submit& submit) {
  return submit.prompt.messages.empty() ? submit.prompt.text : submit.prompt.messages[0].content;
}

infer::wire::Failed failure(ErrorKind kind, std::string message) {
  infer::wire::Failed failed;
  failed.kind = kind;
  failed.message = std::move(message);
  return failed;
}

// Engine e1 breaks on "break", in the given way.
FakeEngine::Choose breaking(Script script) {
  return [script](const infer::wire::Submit& submit) {
    return prompt_of(submit) == "break" ? script : Script{};
  };
}

TEST_F(GatewayTest, RequestsThatMeanNothingAreRefusedWithAReason) {
  start_with_engine();
  EXPECT_EQ(ask("hi", R"(,"max_tokens":0)").status, 400);
  EXPECT_EQ(ask("hi", R"(,"temperature":NaN)").status, 400);
  EXPECT_EQ(error_code_of(send(post("/v1/chat/completions", R"({"model":"tiny","messages":[]})"))),
            "empty_array");
  const auto unknown = send(
      post("/v1/chat/completions", R"({"model":"no","messages":[{"role":"user","content":"x"}]})"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(error_code_of(unknown), "model_not_found");
  EXPECT_EQ(error_code_of(send(post("/v1/nothing", "{}"))), "unknown_url");
  http::Request get = post("/v1/chat/completions", "");
  get.method = http::Method::get;
  const auto wrong = send(get);
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.get("allow"), "POST");
  EXPECT_EQ(error_code_of(wrong), "method_not_supported");
  EXPECT_TRUE(sink.all().empty());
}

TEST_F(GatewayTest, NobodyEntersWithoutAKey) {
  start_with_engine();
  http::Request request = post("/v1/chat/completions", chat("hi"), "nobody");
  EXPECT_EQ(send(request).status, 401);
  request.headers.set("Authorization", "Basic x");
  EXPECT_EQ(send(request).status, 401);
  request.headers.remove("Authorization");
  const auto refused = send(request);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(error_code_of(refused), "invalid_api_key");
}

TEST_F(GatewayTest, APromptLongerThanTheContextIsNamed) {
  start_with_engine({.context_tokens = 64});
  const auto text = ask(std::string(1000, 'x'));
  EXPECT_EQ(text.status, 400);
  EXPECT_EQ(error_code_of(text), "context_length_exceeded");
  EXPECT_EQ(parse_body(text).at("error").at("param").as_string(), "messages");
  std::string tokens = "1";
  for (int i = 0; i < 100; ++i) tokens += ",1";
  const auto listed =
      send(post("/v1/completions", R"({"model":"tiny","stream":true,"prompt":[)" + tokens + "]}"));
  EXPECT_EQ(listed.status, 400);
  EXPECT_EQ(error_code_of(listed), "context_length_exceeded");
}

TEST_F(GatewayTest, AHugeBodyIsRefusedBeforeItIsRead) {
  start_with_engine();
  http::RawClient client(address());
  ASSERT_TRUE(
      client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
                  "Content-Length: 104857600\r\n\r\n{"));
  const std::string response = client.read_response();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 413 ")) << response;
  EXPECT_NE(response.find("\"code\":\"request_too_large\""), std::string::npos) << response;
  EXPECT_EQ(ask("hi").status, 200);
}

TEST_F(GatewayTest, TheLargestBodyOfTokensDoesNotBreakTheFrame) {
  start_with_engine();
  std::string body = R"({"model":"tiny","prompt":[1)";
  while (body.size() + 4 < settings.body_bytes_max) body += ",1";
  const auto refused = send(post("/v1/completions", body + "]}"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(error_code_of(refused), "context_length_exceeded");
}

TEST_F(GatewayTest, AClientThatLeavesAStreamIsMeteredForWhatWasGenerated) {
  FakeEngine& engine = start_with_engine({.tokens = 1'000'000, .tick_ms = 1});
  {
    http::RawClient client(address());
    ASSERT_TRUE(client.send(raw(chat("hi", R"(,"stream":true)"))));
    ASSERT_TRUE(client.read_until("ab "));
  }
  ASSERT_TRUE(recorded(1));
  const UsageRecord record = sink.all()[0];
  EXPECT_EQ(record.outcome, UsageOutcome::client_left);
  EXPECT_TRUE(record.settled);
  EXPECT_GT(record.usage.generated_tokens, 0U);
  EXPECT_EQ(record.usage, engine.books().at(record.request));
  EXPECT_TRUE(http::eventually([&] { return engine.running() == 0; }));
}

TEST_F(GatewayTest, AClientThatLeavesBeforeAWholeAnswerIsMeteredToo) {
  FakeEngine& engine = start_with_engine({.tokens = 1'000'000, .tick_ms = 1});
  {
    http::RawClient client(address());
    ASSERT_TRUE(client.send(raw(chat("hi"))));
    ASSERT_TRUE(http::eventually([&] { return engine.chunks() > 0; }));
  }
  ASSERT_TRUE(recorded(1));
  const UsageRecord record = sink.all()[0];
  EXPECT_EQ(record.outcome, UsageOutcome::client_left);
  EXPECT_EQ(record.usage, engine.books().at(record.request));
  EXPECT_TRUE(http::eventually([&] { return engine.running() == 0; }));
}

TEST_F(GatewayTest, AHalfClosedSocketIsToldAndItsRequestCancelled) {
  FakeEngine& engine = start_with_engine({}, [](const infer::wire::Submit&) {
    return Script{Do::hold, {}};
  });
  http::RawClient client(address());
  ASSERT_TRUE(client.send(raw(chat("hi"))));
  ASSERT_TRUE(http::eventually([&] { return engine.submits().size() == 1; }));
  client.finish_writing();
  const std::string response = client.read_response();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 400 ")) << response;
  EXPECT_NE(response.find("\"code\":\"client_closed\""), std::string::npos) << response;
  EXPECT_TRUE(http::eventually([&] { return engine.cancels() == 1; }));
}

TEST_F(GatewayTest, ASlowReaderIsLetGoAndNobodyElseNotices) {
  FakeEngine& engine = start_with_engine({.tokens = 1'000'000, .text = std::string(4000, 'x')});
  http::RawClient slow(address());
  ASSERT_TRUE(slow.send(raw(chat("hi", R"(,"stream":true)"))));
  ASSERT_TRUE(recorded(1));  // without a byte read
  EXPECT_EQ(sink.all()[0].outcome, UsageOutcome::client_left);
  EXPECT_TRUE(http::eventually([&] { return engine.running() == 0; }));
  EXPECT_EQ(ask("hi", R"(,"max_tokens":1)").status, 200);
}

TEST_F(GatewayTest, ARefusalBeforeTheFirstTokenIsTriedOnAnotherInstance) {
  start();
  FakeEngine& bad =
      add_engine("e1", {}, breaking({Do::refuse, failure(ErrorKind::unavailable, "draining")}));
  ASSERT_TRUE(up("e1"));
  FakeEngine& good = add_engine("e2");
  ASSERT_TRUE(up("e2"));
  EXPECT_EQ(ask("break").status, 200);
  EXPECT_EQ(bad.submits().size(), 1U);
  EXPECT_EQ(good.submits().size(), 1U);
  EXPECT_EQ(sink.all().at(0).instance, "e2");
}

TEST_F(GatewayTest, ALostInstanceBeforeTheFirstTokenIsReplaced) {
  start();
  add_engine("e1", {}, breaking({Do::drop, {}}));
  ASSERT_TRUE(up("e1"));
  add_engine("e2");
  ASSERT_TRUE(up("e2"));
  EXPECT_EQ(ask("break").status, 200);
  EXPECT_EQ(sink.all().at(0).usage.generated_tokens, 3U);
}

TEST_F(GatewayTest, WhatBreaksEveryInstanceIsGivenUp) {
  start();
  FakeEngine& only = add_engine("e1", {}, breaking({Do::drop, {}}));
  ASSERT_TRUE(up("e1"));
  const auto response = ask("break");
  EXPECT_EQ(response.status, 502);
  EXPECT_EQ(error_code_of(response), "instance_lost");
  EXPECT_EQ(only.submits().size(), 3U);
  EXPECT_EQ(ask("hi").status, 200);  // it came back
}

TEST_F(GatewayTest, AfterTheFirstTokenThereIsNoSecondTry) {
  start();
  add_engine("e1", {}, breaking({Do::drop_midway, {}}));
  ASSERT_TRUE(up("e1"));
  FakeEngine& other = add_engine("e2");
  ASSERT_TRUE(up("e2"));
  const auto events = stream(post("/v1/chat/completions", chat("break", R"(,"stream":true)")));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(json::parse(events.back()).at("error").at("code").as_string(), "instance_lost");
  EXPECT_TRUE(other.submits().empty());
  ASSERT_TRUE(recorded(1));
  const UsageRecord record = sink.all()[0];
  EXPECT_EQ(record.outcome, UsageOutcome::failed);
  EXPECT_FALSE(record.settled);
  EXPECT_EQ(record.usage.generated_tokens, 1U);
}

TEST_F(GatewayTest, AnEnginesFailuresBecomeStatuses) {
  struct Case {
    ErrorKind kind;
    int status;
    const char* code;
  };
  for (const Case& one : {Case{ErrorKind::invalid_argument, 400, "invalid_value"},
                          Case{ErrorKind::unsupported, 400, "unsupported_value"},
                          Case{ErrorKind::exhausted, 503, "overloaded"},
                          Case{ErrorKind::unavailable, 503, "unavailable"},
                          Case{ErrorKind::internal, 500, "internal_error"}}) {
    server.reset();
    gateway.reset();
    engines.clear();
    start_with_engine({}, breaking({Do::refuse, failure(one.kind, "no")}));
    const auto response = ask("break", R"(,"stream":true)");
    EXPECT_EQ(response.status, one.status);
    EXPECT_EQ(error_code_of(response), one.code);
    EXPECT_EQ(response.headers.get("retry-after"), one.status == 503 ? "1" : "");
  }
}

TEST_F(GatewayTest, AFailureMidwayEndsTheStreamWithAnErrorAndItsUsage) {
  start_with_engine({}, breaking({Do::fail_midway, failure(ErrorKind::internal, "broken")}));
  const auto events = stream(post("/v1/chat/completions", chat("break", R"(,"stream":true)")));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(json::parse(events[2]).at("error").at("type").as_string(), "server_error");
  ASSERT_TRUE(recorded(1));
  EXPECT_TRUE(sink.all()[0].settled);
  EXPECT_EQ(sink.all()[0].usage.generated_tokens, 1U);
}

TEST_F(GatewayTest, AnInstanceThatServesAnotherModelGetsNothing) {
  settings.start_wait_max = Duration{50};
  start();
  FakeEngine& stranger = add_engine("e1", {.model = "other"});
  EXPECT_EQ(ask("hi").status, 503);
  EXPECT_TRUE(stranger.submits().empty());
}

TEST_F(GatewayTest, WhereNoInstanceComesUpTheWaitEnds) {
  settings.start_wait_max = Duration{50};
  start();
  gateway->add_instance("e1", "tiny", folder / "nothing-there");
  const auto response = ask("hi");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(error_code_of(response), "unavailable");
}

TEST_F(GatewayTest, AnInstanceThatStopsTalkingGetsNoMoreRequests) {
  settings.silence_max = Duration{200};
  settings.stats_interval = Duration{20};
  start();
  add_engine("e1", {.answers_stats = false});
  FakeEngine& good = add_engine("e2");
  ASSERT_TRUE(up("e2"));
  ASSERT_TRUE(http::eventually([&] { return state("e1") == InstanceReport::State::silent; }));
  EXPECT_EQ(ask("hi").status, 200);
  EXPECT_EQ(good.submits().size(), 1U);
}

TEST_F(GatewayTest, AGatewayThatStopsAnswersWhatIsInFlight) {
  FakeEngine& engine = start_with_engine({}, [](const infer::wire::Submit&) {
    return Script{Do::hold, {}};
  });
  auto answered = std::async(std::launch::async, [&] { return ask("hi").status; });
  ASSERT_TRUE(http::eventually([&] { return engine.submits().size() == 1; }));
  gateway->stop();
  EXPECT_EQ(answered.get(), 503);
  ASSERT_EQ(sink.all().size(), 1U);
  EXPECT_FALSE(sink.all()[0].settled);
  EXPECT_EQ(ask("hi").status, 503);
}

TEST_F(GatewayTest, AWithdrawnModelIsGone) {
  FakeEngine& engine = start_with_engine({}, [](const infer::wire::Submit&) {
    return Script{Do::hold, {}};
  });
  auto answered = std::async(std::launch::async, [&] { return ask("hi").status; });
  ASSERT_TRUE(http::eventually([&] { return engine.submits().size() == 1; }));
  gateway->withdraw("tiny");
  EXPECT_EQ(answered.get(), 404);
  EXPECT_EQ(ask("hi").status, 404);
}

}  // namespace
}  // namespace loam::gateway

// Endpoints over instances that are real processes (fake_loam_engine): started on demand, ended
// when idle, in turns where there is no room for all.
#include "app/gateway/endpoints.hpp"

#include <fstream>

#include "app/gateway/endpoint_json.hpp"
#include "app/gateway/local_host.hpp"
#include "app/gateway/standing_json.hpp"
#include "gateway/fixture.hpp"
#include "gateway/small_gguf.hpp"

namespace loam::serving {
namespace {

using gateway::TestAccess;
using gateway::TestSink;

struct EndpointsTest : testing::Test {
  EndpointsTest() {
    access.add("acme");
    config.run_dir = folder / "run";
    config.endpoints_file = folder / "endpoints.json";
    config.usage_file = folder / "usage.jsonl";
    config.engine_program = FAKE_LOAM_ENGINE;
  }
  ~EndpointsTest() override { end(); }

  EndpointConfig endpoint(const std::string& model) {
    EndpointConfig made;
    made.model = model;
    made.file = folder / model.c_str();
    made.memory_mib = 100;
    made.scaling.idle_after = Duration{300};
    made.scaling.shrink_after = Duration{100};
    std::ofstream(made.file) << small_gguf();
    return made;
  }
  void start() {
    gateway::Settings settings;
    settings.start_wait_max = start_wait_max;
    host = std::make_unique<LocalHost>(config);
    endpoints = std::make_unique<Endpoints>(config, *host, [this](const std::string& line) {
      std::lock_guard lock(mutex);
      log += line + "\n";
    });
    auto begun = gateway::Gateway::start(settings, {&access, &sink, endpoints.get()});
    ASSERT_TRUE(begun.ok());
    gateway = std::make_unique<gateway::Gateway>(std::move(begun).value());
    http::ServerOptions options = gateway->server_options();
    options.unix_address = http::UnixAddress{folder / "s"};
    auto serving = http::Server::start(options, [this](http::Request q, http::Responder r) {
      gateway->handle(std::move(q), std::move(r));
    });
    ASSERT_TRUE(serving.ok());
    server = std::make_unique<http::Server>(std::move(serving).value());
    const auto started = endpoints->start(*gateway);
    ASSERT_TRUE(started.ok()) << to_text(started.error());
  }
  void end() {
    server.reset();
    if (endpoints) endpoints->stop();
    gateway.reset();
    endpoints.reset();
    host.reset();
  }
  int ask(const std::string& model, const std::string& more = "") {
    http::Request request;
    request.method = http::Method::post;
    request.path = "/v1/chat/completions";
    request.headers = {{"Authorization", "Bearer key-acme"}};
    request.body =
        R"({"model":")" + model + R"(","messages":[{"role":"user","content":"x"}])" + more + "}";
    auto response = http::Client(http::UnixAddress{folder / "s"}).send(request);
    EXPECT_TRUE(response.ok()) << to_text(response.error());
    return response.ok() ? response->status : 0;
  }
  // Three requests to each of two models, of which only one has room.
  void serve_in_turns() {
    config.memory_mib = 150;
    config.turn_min = Duration{200};
    for (EndpointConfig& one : config.endpoints) one.scaling.idle_after = Duration::minutes(5);
    start();
    std::vector<std::future<int>> answers;
    for (const char* model : {"a", "b"}) {
      answers.push_back(std::async(std::launch::async, [this, model] {
        int served = 0;
        for (int i = 0; i < 3; ++i) {
          served += ask(model) == 200 ? 1 : 0;
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
        }
        return served;
      }));
    }
    for (std::future<int>& served : answers) EXPECT_EQ(served.get(), 3) << log;
    EXPECT_LE(standing("a").instances + standing("b").instances, 1U);
  }
  Endpoints::Standing standing(const std::string& model) {
    for (const Endpoints::Standing& one : endpoints->standings()) {
      if (one.model == model) return one;
    }
    return {};
  }

  http::Folder folder;
  TestAccess access;
  TestSink sink;
  Config config;
  Duration start_wait_max = Duration::seconds(60);
  std::mutex mutex;
  std::string log;
  std::unique_ptr<InstanceHost> host;
  std::unique_ptr<Endpoints> endpoints;
  std::unique_ptr<gateway::Gateway> gateway;
  std::unique_ptr<http::Server> server;
};

TEST_F(EndpointsTest, AColdModelStartsWithTheFirstRequestAndEndsAfterTheLast) {
  config.endpoints = {endpoint("a")};
  start();
  EXPECT_EQ(standing("a").state, infer::EndpointState::cold);
  EXPECT_EQ(ask("a"), 200);
  EXPECT_TRUE(http::eventually([&] { return standing("a").instances == 0; })) << log;
  EXPECT_EQ(standing("a").state, infer::EndpointState::cold);
  EXPECT_EQ(ask("a"), 200);  // and again
}

TEST_F(EndpointsTest, HowItServedInTheLastMinuteIsTold) {
  config.endpoints = {endpoint("a")};
  config.endpoints[0].scaling.idle_after = Duration::minutes(5);
  config.endpoints[0].arguments = {"--tokens", "40", "--tick-ms", "2"};
  start();
  EXPECT_NE(standings_json(endpoints->standings()).find("\"first_token_p99_ms\":null"),
            std::string::npos);
  EXPECT_EQ(ask("a"), 200);
  EXPECT_TRUE(http::eventually([&] {
    const Endpoints::Standing seen = standing("a");
    return seen.recent.generated_tokens == 40 && seen.recent.prompt_tokens > 0 &&
           seen.recent.gap_p50_us.value_or(0) >= 1'000 &&
           seen.recent.first_token_p99_us.value_or(0) >= seen.recent.first_token_p50_us.value_or(1);
  })) << standings_json(endpoints->standings());
  const std::string told = standings_json(endpoints->standings());
  EXPECT_EQ(told.find("\"gap_p50_ms\":null"), std::string::npos) << told;
  EXPECT_NE(told.find("\"queue\":0"), std::string::npos) << told;
}

TEST_F(EndpointsTest, AMinimumIsKept) {
  config.endpoints = {endpoint("a")};
  config.endpoints[0].scaling.instances_min = 2;
  config.endpoints[0].scaling.instances_max = 2;
  start();
  EXPECT_TRUE(http::eventually([&] {
    return standing("a").instances == 2 && standing("a").state == infer::EndpointState::serving;
  })) << log;
}

TEST_F(EndpointsTest, TwoModelsWithRoomForOneAreBothServed) {
  config.endpoints = {endpoint("a"), endpoint("b")};
  serve_in_turns();
}

TEST_F(EndpointsTest, ModelsSlowerToStartThanATurnIsLongAreBothServed) {
  config.endpoints = {endpoint("a"), endpoint("b")};
  for (EndpointConfig& one : config.endpoints) one.arguments = {"--start-ms", "900"};
  serve_in_turns();
}

TEST_F(EndpointsTest, AnInstanceThatDoesNotComeUpIsSaidToFail) {
  config.endpoints = {endpoint("broken")};
  start_wait_max = Duration{600};
  start();
  EXPECT_EQ(ask("broken"), 503);
  EXPECT_EQ(standing("broken").state, infer::EndpointState::failing) << log;
}

TEST_F(EndpointsTest, OneMadeAtRunTimeSurvivesARestartUntilItIsRemoved) {
  start();
  EXPECT_EQ(ask("a"), 404);
  const EndpointConfig made = endpoint("a");
  ASSERT_TRUE(endpoints->create(made).ok());
  EXPECT_EQ(endpoints->create(made).error().kind, ErrorKind::conflict);
  EXPECT_EQ(ask("a"), 200);
  end();
  start();
  EXPECT_EQ(ask("a"), 200);
  ASSERT_TRUE(endpoints->remove("a").ok());
  EXPECT_EQ(endpoints->remove("a").error().kind, ErrorKind::not_found);
  EXPECT_EQ(ask("a"), 404);
  EXPECT_TRUE(load_endpoints(config.endpoints_file)->empty());
  EndpointConfig nowhere = made;
  nowhere.file = folder / "no-such-file";
  EXPECT_EQ(endpoints->create(nowhere).error().kind, ErrorKind::not_found);
  std::ofstream(nowhere.file) << small_gguf().substr(0, 60);
  EXPECT_EQ(endpoints->create(nowhere).error().kind, ErrorKind::invalid_argument) << "cut short";
  EndpointConfig vast = endpoint("vast");
  vast.memory_mib = std::int64_t{900} << 20U;
  EXPECT_EQ(endpoints->create(vast).error().kind, ErrorKind::exhausted) << "no machine has 900 TiB";
  EXPECT_EQ(ask("vast"), 404);
}

TEST_F(EndpointsTest, ATierHasItsOwnFileAndInstancesAndComesAndGoesWithItsEndpoint) {
  EndpointConfig made = endpoint("a");
  made.tiers = {{"flex", endpoint("small").file}};
  made.scaling.idle_after = Duration::minutes(5);
  start();
  EndpointConfig bad = made;
  bad.tiers["flex"] = folder / "no-such-file";
  EXPECT_EQ(endpoints->create(bad).error().kind, ErrorKind::not_found);
  EXPECT_EQ(ask("a"), 404) << "nothing of it is left";
  ASSERT_TRUE(endpoints->create(made).ok());
  const std::string flex = R"(,"service_tier":"flex")";
  EXPECT_EQ(ask("a", flex), 200);
  EXPECT_EQ(standing("a").instances, 0U);
  EXPECT_EQ(standing("a@flex").requests, 1U);
  EXPECT_EQ(ask("a"), 200);
  EXPECT_TRUE(http::eventually([&] { return standing("a").requests == 1; }));
  end();
  start();
  EXPECT_EQ(ask("a", flex), 200);
  EXPECT_TRUE(http::eventually([&] { return standing("a@flex").requests == 1; }));
  EXPECT_EQ(endpoints->remove("a@flex").error().kind, ErrorKind::conflict);
  ASSERT_TRUE(endpoints->remove("a").ok());
  EXPECT_TRUE(endpoints->standings().empty());
  EXPECT_EQ(ask("a", flex), 404);
  EXPECT_TRUE(load_endpoints(config.endpoints_file)->empty());
}

TEST_F(EndpointsTest, OneOfTheConfigurationIsNotRemoved) {
  config.endpoints = {endpoint("a")};
  start();
  EXPECT_EQ(endpoints->remove("a").error().kind, ErrorKind::conflict);
}

}  // namespace
}  // namespace loam::serving

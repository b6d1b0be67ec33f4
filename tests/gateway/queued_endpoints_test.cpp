// Endpoints whose instances wait in a queue for room, as a pool's tasks do: the reason reaches
// whoever waits, models take turns, one that was put off comes back, and what ran before is found
// again.
#include <fstream>

#include "app/gateway/endpoints.hpp"
#include "gateway/fixture.hpp"
#include "gateway/small_gguf.hpp"

namespace loam::serving {
namespace {

using State = InstanceFact::State;

// A pool of so much memory, first come, first served; instances are fake engines in this process.
class QueueHost final : public InstanceHost {
 public:
  struct One {
    InstanceOrder order;
    State state = State::waiting;
    std::unique_ptr<gateway::FakeEngine> engine;
    std::string words;
    bool is_refused = false;
  };

  Result<void> open(std::function<void()>) override { return {}; }
  void close() override {}
  Result<void> check(const EndpointConfig&, Mebibytes) override { return {}; }
  bool is_known() override { return known; }
  std::string trouble() override { return known ? "" : "loamd does not answer"; }
  bool has_queue() const override { return true; }
  void launch(InstanceOrder order) override {
    std::lock_guard lock(mutex);
    ++launches;
    One one;
    one.is_refused = !refusal.empty();
    if (one.is_refused) one.state = State::ended;
    one.words = one.is_refused ? refusal : "no room: 1 device is full";
    one.order = std::move(order);
    ones.push_back(std::move(one));
  }
  void end(const std::string& name) override {
    std::lock_guard lock(mutex);
    for (One& one : ones) {
      if (one.order.name != name) continue;
      one.engine.reset();
      one.state = State::ended;
      one.words = "ended";
    }
  }
  std::vector<InstanceFact> facts() override {
    std::lock_guard lock(mutex);
    std::vector<InstanceFact> told;
    if (!known) return told;
    fill();
    for (const One& one : ones) {
      InstanceFact fact;
      fact.state = one.state;
      fact.name = one.order.name;
      fact.model = one.order.endpoint.model;
      fact.socket = one.order.socket;
      fact.words = one.words;
      fact.is_refused = one.is_refused;
      fact.waits_for_room = one.state == State::waiting;
      told.push_back(fact);
    }
    std::erase_if(ones, [](const One& one) { return one.state == State::ended; });
    return told;
  }
  // Another's task goes first: what runs is told to leave, and waits again once that is over.
  void preempt() {
    std::lock_guard lock(mutex);
    for (One& one : ones) {
      if (one.state == State::running) one.state = State::leaving;
    }
  }
  void put_off() {
    std::lock_guard lock(mutex);
    for (One& one : ones) {
      if (one.state != State::leaving) continue;
      one.engine.reset();
      one.state = State::waiting;
    }
  }

  std::mutex mutex;
  std::vector<One> ones;
  std::atomic<std::int64_t> room_mib = 150;
  std::atomic<int> launches = 0;
  std::atomic<bool> known = true;
  std::string refusal;

 private:
  void fill() {
    std::int64_t left = room_mib;
    for (const One& one : ones) {
      if (one.engine) left -= one.order.memory.value;
    }
    for (One& one : ones) {
      if (one.state != State::waiting) continue;
      if (one.order.memory.value > left) return;  // nobody goes before it
      left -= one.order.memory.value;
      gateway::FakeEngine::Options options;
      options.model = one.order.endpoint.model;
      one.engine = std::make_unique<gateway::FakeEngine>(one.order.socket, options);
      one.state = State::running;
      one.words.clear();
    }
  }
};

struct QueuedEndpointsTest : testing::Test {
  QueuedEndpointsTest() {
    access.add("acme");
    access.add("beta");
    config.run_dir = folder / "run";
    config.endpoints_file = folder / "endpoints.json";
    config.usage_file = folder / "usage.jsonl";
    std::filesystem::create_directories(engines_folder(config));
  }
  ~QueuedEndpointsTest() override { end(); }

  EndpointConfig endpoint(const std::string& model) {
    EndpointConfig made;
    made.model = model;
    made.owner = "acme";
    made.file = folder / model.c_str();
    made.memory_mib = 100;
    std::ofstream(made.file) << small_gguf();
    return made;
  }
  void start() {
    gateway::Settings settings;
    settings.start_wait_max = start_wait_max;
    endpoints = std::make_unique<Endpoints>(config, host, [](const std::string&) {});
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
    ASSERT_TRUE(endpoints->start(*gateway).ok());
  }
  void end() {
    server.reset();
    if (endpoints) endpoints->stop();
    gateway.reset();
    endpoints.reset();
  }
  http::Response ask(const std::string& model, const std::string& tenant = "acme") {
    http::Request request;
    request.method = http::Method::post;
    request.path = "/v1/completions";
    request.headers = {{"Authorization", "Bearer key-" + tenant}};
    request.body = R"({"model":")" + model + R"(","prompt":"x"})";
    auto response = http::Client(http::UnixAddress{folder / "s"}).send(request);
    EXPECT_TRUE(response.ok()) << to_text(response.error());
    return response.ok() ? *response : http::Response{};
  }
  Endpoints::Standing standing(const std::string& model) {
    for (const Endpoints::Standing& one : endpoints->standings()) {
      if (one.model == model) return one;
    }
    return {};
  }
  bool serves(const std::string& model) {
    return http::eventually([&] { return standing(model).state == infer::EndpointState::serving; });
  }

  http::Folder folder;
  gateway::TestAccess access;
  gateway::TestSink sink;
  Config config;
  QueueHost host;
  Duration start_wait_max = Duration::seconds(60);
  std::unique_ptr<Endpoints> endpoints;
  std::unique_ptr<gateway::Gateway> gateway;
  std::unique_ptr<http::Server> server;
};

TEST_F(QueuedEndpointsTest, WhyNothingRunsIsToldToWhoeverWaits) {
  config.endpoints = {endpoint("a")};
  host.room_mib = 50;
  start_wait_max = Duration{900};
  start();
  const http::Response answer = ask("a");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("no room: 1 device is full"), std::string::npos) << answer.body;
  EXPECT_EQ(standing("a").queued, 1U);
  EXPECT_EQ(standing("a").instances, 0U);
  EXPECT_EQ(standing("a").why, "no room: 1 device is full");
  host.room_mib = 150;
  EXPECT_TRUE(serves("a"));
  EXPECT_EQ(ask("a").status, 200);
  EXPECT_EQ(standing("a").why, "");
  EXPECT_EQ(host.launches, 1);
}

TEST_F(QueuedEndpointsTest, WhatIsRefusedFailsAtOnceAndOnlyItsOwnerHearsWhy) {
  config.endpoints = {endpoint("a")};
  host.refusal = "the wallet of acme does not cover it";
  start();
  const http::Response owner = ask("a");  // would wait for a minute
  EXPECT_EQ(owner.status, 503);
  EXPECT_NE(owner.body.find("the wallet of acme"), std::string::npos) << owner.body;
  const http::Response other = ask("a", "beta");
  EXPECT_EQ(other.status, 503);
  EXPECT_EQ(other.body.find("wallet"), std::string::npos) << other.body;
  EXPECT_EQ(standing("a").state, infer::EndpointState::failing);
  {
    std::lock_guard lock(host.mutex);
    host.refusal.clear();
  }
  EXPECT_TRUE(http::eventually([&] { return ask("a").status == 200; }));
}

TEST_F(QueuedEndpointsTest, TwoModelsWithRoomForOneTakeTurnsInTheQueue) {
  config.endpoints = {endpoint("a"), endpoint("b")};
  config.turn_min = Duration{200};
  start();
  std::vector<std::future<int>> answers;
  for (const char* model : {"a", "b"}) {
    answers.push_back(std::async(std::launch::async, [this, model] {
      int served = 0;
      for (int i = 0; i < 3; ++i) {
        served += ask(model).status == 200 ? 1 : 0;
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      }
      return served;
    }));
  }
  for (std::future<int>& served : answers) EXPECT_EQ(served.get(), 3);
}

TEST_F(QueuedEndpointsTest, AHotModelsNextInstanceTakesTheBigSliceAndAColdOnesTheSmall) {
  config.endpoints = {endpoint("a"), endpoint("b")};
  for (EndpointConfig& one : config.endpoints) {
    one.scaling.idle_after = Duration{200};
    one.scaling.shrink_after = Duration{100};
  }
  config.slices = {{"0.2", MilliDevice{200}, Mebibytes{1000}},
                   {"0.5", MilliDevice{500}, Mebibytes{1000}}};
  host.room_mib = 1000;
  start();
  const auto share_of = [&](const std::string& model) {
    EXPECT_EQ(ask(model).status, 200);
    std::string share;
    {
      std::lock_guard lock(host.mutex);
      for (const QueueHost::One& one : host.ones) {
        if (one.order.endpoint.model == model) share = one.order.endpoint.share;
      }
    }
    EXPECT_TRUE(http::eventually([&] { return standing(model).instances == 0; }));
    return share;
  };
  EXPECT_EQ(share_of("b"), "0.2") << "as hot as a, which is first by name";
  EXPECT_EQ(share_of("b"), "0.5") << "hotter than a, which nobody asked for";
  EXPECT_EQ(share_of("a"), "0.2");
  EndpointConfig vast = endpoint("vast");
  vast.memory_mib = 1001;
  const auto refused = endpoints->create(vast);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no slice"), std::string::npos);
}

TEST_F(QueuedEndpointsTest, OneThatIsPutOffComesBackAndIsNotDoubled) {
  config.endpoints = {endpoint("a")};
  config.endpoints[0].scaling.instances_min = 1;
  start();
  ASSERT_TRUE(serves("a"));
  EXPECT_EQ(ask("a").status, 200);
  host.room_mib = 0;
  host.preempt();
  EXPECT_TRUE(
      http::eventually([&] { return standing("a").state == infer::EndpointState::starting; }));
  host.put_off();
  EXPECT_TRUE(http::eventually([&] { return standing("a").queued == 1; }));
  host.room_mib = 150;
  EXPECT_EQ(ask("a").status, 200);
  EXPECT_EQ(host.launches, 1);
}

TEST_F(QueuedEndpointsTest, NothingIsStartedBeforeItIsKnownWhatRuns) {
  config.endpoints = {endpoint("a")};
  config.endpoints[0].scaling.instances_min = 1;
  const std::string socket = fresh_socket(config);
  for (const std::string model : {"a", "gone"}) {
    EndpointConfig before = endpoint(model);
    const std::string place = model == "a" ? socket : fresh_socket(config);
    host.launch({instance_name(model, place), place, before, Mebibytes{50}, {}});
  }
  host.launches = 0;
  host.known = false;
  start();
  EXPECT_TRUE(http::eventually([&] { return standing("a").why == "loamd does not answer"; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // some rounds of tending
  EXPECT_EQ(host.launches, 0);
  host.known = true;
  EXPECT_TRUE(serves("a"));
  EXPECT_EQ(ask("a").status, 200);
  EXPECT_EQ(host.launches, 0);
  EXPECT_TRUE(http::eventually([&] {  // an endpoint that is no more has no instances
    std::lock_guard lock(host.mutex);
    return host.ones.size() == 1 && host.ones[0].order.socket == socket;
  }));
}

}  // namespace
}  // namespace loam::serving

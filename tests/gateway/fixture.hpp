// A gateway behind a real server, engines of our own behind it, and clients in front.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/fake_engine.hpp"
#include "gateway/gateway.hpp"
#include "http/fixture.hpp"

namespace loam::gateway {

namespace json = boost::json;

// Keys are tenants' names; "key-acme" is acme's.
class TestAccess final : public Access {
 public:
  Result<Caller> identify(std::string_view key) override {
    std::lock_guard lock(mutex);
    const auto found = callers.find(key);
    if (found == callers.end())
      return Error{ErrorKind::unauthenticated, "nobody has this key", "ask for one"};
    return found->second;
  }
  void add(const std::string& tenant, TenantLimits limits = {}) {
    std::lock_guard lock(mutex);
    Caller caller;
    caller.tenant = tenant;
    caller.limits = limits;
    callers["key-" + tenant] = caller;
  }
  std::mutex mutex;
  std::map<std::string, Caller, std::less<>> callers;
};

class TestSink final : public UsageSink {
 public:
  void record(const UsageRecord& record) override {
    std::lock_guard lock(mutex);
    records.push_back(record);
  }
  std::vector<UsageRecord> all() {
    std::lock_guard lock(mutex);
    return records;
  }
  std::mutex mutex;
  std::vector<UsageRecord> records;
};

struct GatewayTest : testing::Test {
  GatewayTest() {
    access.add("acme");
    access.add("beta");
  }

  void start() {
    auto started = Gateway::start(settings, {&access, &sink, demand});
    ASSERT_TRUE(started.ok()) << to_text(started.error());
    gateway = std::make_unique<Gateway>(std::move(started).value());
    http::ServerOptions options = gateway->server_options();
    if (tune) tune(options);
    options.unix_address = http::UnixAddress{folder / "s"};
    auto serving =
        http::Server::start(options, [this](http::Request request, http::Responder answer) {
          gateway->handle(std::move(request), std::move(answer));
        });
    ASSERT_TRUE(serving.ok()) << to_text(serving.error());
    server = std::make_unique<http::Server>(std::move(serving).value());
    gateway->offer({"tiny", "owner", {}, Instant{5000}});
  }
  // The engine and the gateway's knowledge of it.
  FakeEngine& add_engine(const char* name, FakeEngine::Options options = {},
                         FakeEngine::Choose choose = {}) {
    engines.push_back(
        std::make_unique<FakeEngine>(folder / name, std::move(options), std::move(choose)));
    gateway->add_instance(name, "tiny", folder / name);
    return *engines.back();
  }
  InstanceReport::State state(const std::string& name) {
    std::promise<InstanceReport::State> told;
    gateway->ask_instances([&](const std::vector<InstanceReport>& reports) {
      auto state = InstanceReport::State::down;
      for (const InstanceReport& report : reports) {
        if (report.name == name) state = report.state;
      }
      told.set_value(state);
    });
    return told.get_future().get();
  }
  bool up(const std::string& name) {
    return http::eventually([&] { return state(name) == InstanceReport::State::up; });
  }
  // A gateway with one engine that is up.
  FakeEngine& start_with_engine(FakeEngine::Options options = {}, FakeEngine::Choose choose = {}) {
    start();
    FakeEngine& engine = add_engine("e1", std::move(options), std::move(choose));
    EXPECT_TRUE(up("e1"));
    return engine;
  }
  std::string metrics() {
    std::promise<std::string> told;
    gateway->ask_metrics([&](std::string text) { told.set_value(std::move(text)); });
    return told.get_future().get();
  }
  bool recorded(std::size_t count) {
    return http::eventually([&] { return sink.all().size() >= count; });
  }

  http::Address address() const { return http::UnixAddress{folder / "s"}; }
  static http::Request post(std::string path, std::string body,
                            const std::string& tenant = "acme") {
    http::Request request;
    request.method = http::Method::post;
    request.path = std::move(path);
    request.headers = {{"Authorization", "Bearer key-" + tenant},
                       {"Content-Type", "application/json"}};
    request.body = std::move(body);
    return request;
  }
  http::Response send(const http::Request& request) {
    auto response = http::Client(address()).send(request);
    EXPECT_TRUE(response.ok()) << to_text(response.error());
    return response.ok() ? std::move(response).value() : http::Response{};
  }
  static std::string chat(const std::string& content, const std::string& more = "") {
    return R"({"model":"tiny","messages":[{"role":"user","content":")" + content + "\"}]" + more +
           "}";
  }
  http::Response ask(const std::string& content, const std::string& more = "",
                     const std::string& tenant = "acme") {
    return send(post("/v1/chat/completions", chat(content, more), tenant));
  }
  // The data of each event.
  std::vector<std::string> stream(const http::Request& request, int* status = nullptr) {
    std::vector<std::string> events;
    auto end = http::Client(address()).stream(request, [&](const http::SseEvent& event) {
      events.push_back(event.data);
      return true;
    });
    EXPECT_TRUE(end.ok()) << to_text(end.error());
    if (end.ok() && status != nullptr) *status = end->response.status;
    return events;
  }
  // A request as bytes, for clients that misbehave.
  static std::string raw(const std::string& body,
                         const std::string& path = "/v1/chat/completions") {
    return "POST " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-acme\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  // In the order in which they must not end: engines may, the server goes before the gateway.
  http::Folder folder;
  TestAccess access;
  TestSink sink;
  Demand* demand = nullptr;
  Settings settings;
  std::function<void(http::ServerOptions&)> tune;
  std::vector<std::unique_ptr<FakeEngine>> engines;
  std::unique_ptr<Gateway> gateway;
  std::unique_ptr<http::Server> server;
};

inline json::value parse_body(const http::Response& response) {
  boost::system::error_code fault;
  json::value value = json::parse(response.body, fault);
  EXPECT_FALSE(fault) << response.body;
  return value;
}

// The code of an error that has all four fields.
inline std::string error_code_of(const http::Response& response) {
  const json::value body = parse_body(response);
  const json::value& error = body.at("error");
  for (const char* field : {"message", "type", "param", "code"})
    EXPECT_TRUE(error.as_object().contains(field)) << response.body;
  EXPECT_FALSE(error.at("message").as_string().empty());
  return error.at("code").is_null() ? "" : std::string(error.at("code").as_string());
}

}  // namespace loam::gateway

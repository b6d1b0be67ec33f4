// Asks the API without sockets: requests are made by hand, answers and streams are caught.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "api/api.hpp"
#include "api/fake_daemon.hpp"
#include "api/json.hpp"
#include "http/sse.hpp"
#include "http/target.hpp"

namespace loam::api::testing {

// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-api-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

class MemorySink final : public http::StreamSink {
 public:
  http::Sent write(std::string_view bytes) override {
    if (closed_) return http::Sent::closed;
    if (text.size() >= room) return http::Sent::full;
    text += bytes;
    return http::Sent::queued;
  }
  void finish() override { closed_ = finished = true; }
  void abort() override { closed_ = true; }
  bool closed() const override { return closed_; }
  void on_close(std::function<void()>) override {}
  void on_writable(std::function<void()>) override {}

  // Events so far, decoded.
  std::vector<http::SseEvent> events() const {
    http::SseParser parser;
    auto parsed = parser.feed(text);
    return parsed ? *parsed : std::vector<http::SseEvent>{};
  }

  std::string text;
  std::size_t room = std::size_t{1} << 30;
  bool finished = false;
  bool closed_ = false;
};

struct Caught {
  std::optional<http::Response> response;
  std::shared_ptr<MemorySink> stream;

  int status() const { return response ? response->status : 0; }
  template <class T>
  T as() const {
    const auto value = from_json<T>(response ? response->body : "");
    EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().message) << " in "
                            << (response ? response->body : "no answer");
    return value ? *value : T{};
  }
  Problem problem() const { return as<Problem>(); }
};

class CatchingExchange final : public http::Exchange {
 public:
  explicit CatchingExchange(std::shared_ptr<Caught> caught) : caught_(std::move(caught)) {}
  void answer(http::Response response) override { caught_->response = std::move(response); }
  std::shared_ptr<http::StreamSink> begin(http::Response response, bool) override {
    caught_->response = std::move(response);
    caught_->stream = std::make_shared<MemorySink>();
    caught_->stream->text = caught_->response->body;
    return caught_->stream;
  }

 private:
  std::shared_ptr<Caught> caught_;
};

struct As {
  http::Peer peer = http::UnixPeer{0, 0, 1};
  std::string token;
};
inline const As root{};

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    auto opened = TokenStore::open(folder.path + "/tokens.json");
    EXPECT_TRUE(opened.ok());
    tokens = std::move(*opened);
    authenticator = std::make_unique<Authenticator>(
        std::map<std::uint32_t, UidGrant>{{1001, {Role::member, "acme"}},
                                          {1002, {Role::member, "beta"}},
                                          {1003, {Role::operator_, ""}},
                                          {1004, {Role::finance, ""}}},
        500, *tokens);
    ApiOptions options;
    options.workers = 0;
    options.ticker = false;
    api = std::make_unique<Api>(daemon, *authenticator, *tokens, options);
    daemon.on_record = [this](const Record& record) { api->on_record(record); };
    daemon.furnish();
  }
  ~ApiTest() override { daemon.on_record = nullptr; }

  static As uid(std::uint32_t number) { return {http::UnixPeer{number, number, 1}, {}}; }
  static As tcp(std::string token = {}) {
    return {http::TcpPeer{"127.0.0.1:4000"}, std::move(token)};
  }

  Caught ask(http::Method method, const std::string& target, const std::string& body = {},
             const As& who = root, http::Headers headers = {}) {
    http::Request request;
    request.method = method;
    const auto parsed = http::parse_target(target);
    EXPECT_TRUE(parsed.ok()) << target;
    request.path = parsed->path;
    request.query = parsed->query;
    request.headers = std::move(headers);
    request.body = body;
    request.peer = who.peer;
    if (!who.token.empty()) request.headers.set("Authorization", "Bearer " + who.token);
    auto caught = std::make_shared<Caught>();
    api->handle(std::move(request), http::Responder(std::make_unique<CatchingExchange>(caught)));
    EXPECT_TRUE(caught->response.has_value()) << target;
    return *caught;
  }
  Caught get(const std::string& target, const As& who = root) {
    return ask(http::Method::get, target, {}, who);
  }
  Caught post(const std::string& target, const std::string& body = {}, const As& who = root,
              const std::string& key = {}) {
    http::Headers headers;
    if (!key.empty()) headers.set("Idempotency-Key", key);
    return ask(http::Method::post, target, body, who, std::move(headers));
  }

  // A task of acme's for a share of 0.25, one hour at most.
  static std::string task_body(const std::string& tenant = "acme", const std::string& more = {}) {
    return R"({"tenant":")" + tenant +
           R"(","command":["/bin/true","a b","c\nd"],"share":"0.25","time":"1h")" +
           (more.empty() ? "" : "," + more) + "}";
  }
  TaskId submit(const std::string& tenant = "acme", const std::string& more = {}) {
    const Caught answer = post("/v1/tasks", task_body(tenant, more));
    EXPECT_EQ(answer.status(), 201) << answer.response->body;
    return TaskId::parse(answer.as<TaskView>().id).value_or(TaskId{});
  }

  Folder folder;
  FakeDaemon daemon;
  std::unique_ptr<TokenStore> tokens;
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<Api> api;
};

}  // namespace loam::api::testing

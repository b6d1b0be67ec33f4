// Any request to a furnished daemon gets exactly one answer: a success, or a problem that can be
// read. The engine's own assertions watch the rest.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "api/api.hpp"
#include "api/fake_daemon.hpp"
#include "api/json.hpp"
#include "http/target.hpp"

namespace {

using namespace loam;
using namespace loam::api;

struct Answered {
  int times = 0;
  http::Response response;
};

class Sink final : public http::StreamSink {
 public:
  http::Sent write(std::string_view) override { return http::Sent::queued; }
  void finish() override { closed_ = true; }
  void abort() override { closed_ = true; }
  bool closed() const override { return closed_; }
  void on_close(std::function<void()>) override {}
  void on_writable(std::function<void()>) override {}

 private:
  bool closed_ = false;
};

class Exchange final : public http::Exchange {
 public:
  explicit Exchange(Answered& answered) : answered_(answered) {}
  void answer(http::Response response) override {
    ++answered_.times;
    answered_.response = std::move(response);
  }
  std::shared_ptr<http::StreamSink> begin(http::Response response, bool) override {
    answer(std::move(response));
    return std::make_shared<Sink>();
  }

 private:
  Answered& answered_;
};

struct World {
  World() {
    ApiOptions options;
    options.workers = 0;
    options.ticker = false;
    api = std::make_unique<Api>(daemon, authenticator, *tokens, options);
    daemon.furnish();
  }
  testing::FakeDaemon daemon;
  std::unique_ptr<TokenStore> tokens = std::move(*TokenStore::open("/nonexistent/tokens.json"));
  Authenticator authenticator{
      {{1001, {Role::member, "acme"}}, {1003, {Role::operator_, ""}}, {1004, {Role::finance, ""}}},
      500,
      *tokens};
  std::unique_ptr<Api> api;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::size_t line_end = std::min(input.find('\n'), input.size());
  const std::string line = input.substr(0, line_end);
  const std::size_t first = line.find(' ');
  if (first == std::string::npos) return 0;
  const std::size_t second = std::min(line.find(' ', first + 1), line.size());
  const auto method = http::parse_method(line.substr(0, first));
  const auto target = http::parse_target(line.substr(first + 1, second - first - 1));
  if (!method || !target) return 0;

  World world;
  http::Request request;
  request.method = *method;
  request.path = target->path;
  request.query = target->query;
  if (line_end < input.size()) request.body = input.substr(line_end + 1);
  const std::string who = second < line.size() ? line.substr(second + 1) : "0";
  request.peer = http::UnixPeer{static_cast<std::uint32_t>(std::atoi(who.c_str())), 0, 1};
  request.headers.set("Idempotency-Key", "k");
  for (int time = 0; time < 2; ++time) {
    Answered answered;
    world.api->handle(request, http::Responder(std::make_unique<Exchange>(answered)));
    if (answered.times != 1) std::abort();
    const int status = answered.response.status;
    if (status / 100 == 2) continue;
    const auto problem = from_json<Problem>(answered.response.body);
    if (!problem || problem->status != status || problem->code.empty()) std::abort();
    if (status == 500) std::abort();
  }
  world.daemon.clock.advance(Duration::hours(2));
  world.api->tick(Instant{5000});
  return 0;
}

// serve_gateway [SOCKET]: the gateway over a fake engine, or over the engine at SOCKET, on a TCP
// port that it prints, until standard input ends. For clients in other languages.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/assert.hpp"
#include "gateway/fake_engine.hpp"
#include "gateway/gateway.hpp"
#include "http/server.hpp"

namespace {

using namespace loam;
using namespace loam::gateway;

// "key-small" has one request a minute.
struct Keys final : Access {
  Result<Caller> identify(std::string_view key) override {
    Caller caller;
    if (!key.starts_with("key-"))
      return Error{ErrorKind::unauthenticated, "nobody has this key", "ask for one"};
    caller.tenant = std::string(key.substr(4));
    if (caller.tenant == "small") caller.limits.requests_per_minute = 1;
    return caller;
  }
};

FakeEngine::Script choose(const infer::wire::Submit& submit) {
  using Do = FakeEngine::Script::Do;
  const std::string text =
      submit.prompt.messages.empty() ? submit.prompt.text : submit.prompt.messages[0].content;
  FakeEngine::Script script;
  if (text == "hold") script.what = Do::hold;
  if (text == "break midway") {
    script.what = Do::fail_midway;
    script.failure.message = "the engine broke";
  }
  return script;
}

}  // namespace

int main(int count, char** words) {
  std::string folder = (std::filesystem::temp_directory_path() / "loam-serve-XXXXXX").string();
  LOAM_ASSERT(::mkdtemp(folder.data()) != nullptr);
  {
    std::optional<FakeEngine> fake;
    if (count < 2) fake.emplace(folder + "/engine", FakeEngine::Options{}, choose);
    Keys keys;
    auto gateway = Gateway::start({}, {&keys, nullptr, nullptr});
    LOAM_ASSERT(gateway.ok());
    gateway->offer({"tiny", "owner", {}, {}});
    gateway->add_instance("e1", "tiny", count < 2 ? folder + "/engine" : words[1]);
    http::ServerOptions options = gateway->server_options();
    options.tcp_address = http::TcpAddress{"127.0.0.1", 0};
    auto server = http::Server::start(options, [&](http::Request request, http::Responder answer) {
      gateway->handle(std::move(request), std::move(answer));
    });
    LOAM_ASSERT(server.ok());
    std::printf("%u\n", unsigned{server->tcp_port()});
    std::fflush(stdout);
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
    server->stop(Duration::seconds(1));
  }
  std::filesystem::remove_all(folder);
  return 0;
}

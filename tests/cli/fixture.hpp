// The whole program against a daemon in this process: real sockets and a real engine, with the
// executor and the clock in the test's hands.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "api/api.hpp"
#include "api/fake_daemon.hpp"
#include "app/loam/program.hpp"
#include "http/server.hpp"

namespace loam::cli {

struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

using Variables = std::map<std::string, std::string>;

struct Shown {
  bool terminal = false;
  bool colour = false;
  std::size_t columns = 0;
};

inline Ran run(const std::vector<std::string>& words, const Variables& variables = {},
               Shown shown = {}) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{out, err};
  console.out_is_terminal = console.err_is_terminal = shown.terminal;
  console.colour = console.err_colour = shown.colour;
  console.columns = shown.columns;
  const int status = run_program(words, console, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
  return {status, out.str(), err.str()};
}

// Ctrl-C goes to the process: no thread but the one that waits for it may take it.
struct BlockedSignals {
  BlockedSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM}) sigaddset(&signals, number);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  }
};

class DaemonTest : public ::testing::Test, private BlockedSignals {
 protected:
  DaemonTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-cli-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    tokens = std::move(*api::TokenStore::open(folder + "/tokens.json"));
    authenticator = std::make_unique<api::Authenticator>(
        std::map<std::uint32_t, api::UidGrant>{}, static_cast<std::uint32_t>(::getuid()), *tokens);
    api = std::make_unique<api::Api>(daemon, *authenticator, *tokens);
    daemon.on_record = [this](const Record& record) { api->on_record(record); };
    daemon.furnish();
    http::ServerOptions options;
    options.unix_address = http::UnixAddress{folder + "/s"};
    options.tcp_address = http::TcpAddress{"127.0.0.1", 0};
    options.refusal = api::Api::refusal;
    auto started = http::Server::start(options, [this](http::Request q, http::Responder r) {
      api->handle(std::move(q), std::move(r));
    });
    EXPECT_TRUE(started.ok()) << to_text(started.error());
    if (started.ok()) server = std::make_unique<http::Server>(std::move(*started));
  }
  ~DaemonTest() override {
    server.reset();
    api.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  Ran loam(const std::vector<std::string>& words, Variables variables = {}, Shown shown = {}) {
    variables.try_emplace("LOAM_HOST", folder + "/s");
    return run(words, variables, shown);
  }

  std::string folder;
  api::testing::FakeDaemon daemon;
  std::unique_ptr<api::TokenStore> tokens;
  std::unique_ptr<api::Authenticator> authenticator;
  std::unique_ptr<api::Api> api;
  std::unique_ptr<http::Server> server;
};

}  // namespace loam::cli

// A pool for the gateway's own parts: loamd's API, on a socket of its own, in front of a real
// engine loop.
#pragma once

#include <memory>

#include "api/fixture.hpp"
#include "app/gateway/config.hpp"
#include "http/fixture.hpp"
#include "http/server.hpp"

namespace loam::serving {

struct PoolTest : testing::Test {
  PoolTest() {
    config.pool = folder / "loamd.sock";
    auto opened = api::TokenStore::open(folder / "tokens.json");
    tokens = std::move(*opened);
    authenticator = std::make_unique<api::Authenticator>(std::map<std::uint32_t, api::UidGrant>{},
                                                         ::geteuid(), *tokens);
    api::ApiOptions options;
    options.workers = 2;
    options.ticker = false;
    web = std::make_unique<api::Api>(daemon, *authenticator, *tokens, options);
    daemon.on_record = [this](const Record& record) { web->on_record(record); };
    daemon.furnish();
  }
  // What asks the pool ends before it: in the destructors of those who derive from this.
  ~PoolTest() override {
    server.reset();
    daemon.on_record = nullptr;
    web.reset();
  }

  // From now on the pool answers.
  void serve() {
    http::ServerOptions options;
    options.unix_address = http::UnixAddress{config.pool};
    auto begun = http::Server::start(options, [this](http::Request q, http::Responder r) {
      web->handle(std::move(q), std::move(r));
    });
    ASSERT_TRUE(begun.ok()) << to_text(begun.error());
    server = std::make_unique<http::Server>(std::move(begun).value());
  }

  http::Folder folder;
  Config config;
  api::testing::FakeDaemon daemon;
  std::unique_ptr<api::TokenStore> tokens;
  std::unique_ptr<api::Authenticator> authenticator;
  std::unique_ptr<api::Api> web;
  std::unique_ptr<http::Server> server;
};

}  // namespace loam::serving

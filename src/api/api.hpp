// The server side of the HTTP API: requests in, answers out, over a Backend. It owns the workers
// on which handlers run and the ticker of live streams; sockets are http's.
#pragma once

#include <memory>

#include "api/auth.hpp"
#include "api/backend.hpp"
#include "http/message.hpp"
#include "http/responder.hpp"

namespace loam::api {

struct ApiOptions {
  // Threads that handle requests; each mostly waits for the loop, and so many can share a commit.
  // 0: on the caller's own, for tests.
  int workers = 32;
  // How often live streams are looked at while anybody listens: logs each time, live lines each
  // second. No thread wakes while nobody does.
  Duration tick = Duration{100};
  // False: no ticker thread; whoever owns the Api calls tick(), for tests.
  bool ticker = true;
  // Of one read of a log.
  std::int64_t log_bytes_max = 256 * 1024;
};

class ApiCore;

class Api {
 public:
  // All three must outlive this. Wire it so:
  //   http::Server::start(options, [&](http::Request q, http::Responder r) {
  //     api.handle(std::move(q), std::move(r)); });
  //   loop.on_record([&](const Record& record) { api.on_record(record); });
  // and destroy it after the server and before the backend.
  Api(Backend& backend, Authenticator& authenticator, TokenStore& tokens, ApiOptions options = {});
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // From any thread; does not block. Every answer that is not a success is a problem document.
  void handle(http::Request request, http::Responder responder);

  // For ServerOptions::refusal: what the server answers by itself, as a problem document.
  static http::Response refusal(int status, std::string_view detail);

  // Every durable record, in order, from the loop's thread; does not block. Feeds the metrics
  // and wakes live streams.
  void on_record(const Record& record);

  // One look at the live streams; `now` paces them and may be of any clock that does not fall.
  // With a ticker it is called by itself.
  void tick(Instant now);

  // Ends live streams and waits for the workers. Called by the destructor too.
  void stop();

 private:
  std::shared_ptr<ApiCore> core_;
};

// OpenAPI 3.1 of everything under /v1, as JSON text.
std::string openapi_document();

}  // namespace loam::api

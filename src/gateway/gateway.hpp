// The inference gateway: answers the OpenAI API over HTTP by passing requests on to instances of
// loam-engine, counts what was used and keeps tenants to their limits. docs/inference.md describes
// it. Shell (one thread, sockets, clocks).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "gateway/metrics.hpp"
#include "gateway/ports.hpp"
#include "gateway/recent.hpp"
#include "http/responder.hpp"
#include "http/server.hpp"

namespace loam::gateway {

struct Settings {
  std::size_t body_bytes_max = 8U << 20U;
  // How long a request waits for an instance to come up before it is answered 503.
  Duration start_wait_max = Duration::seconds(60);
  // Prompts of one request that are computed at once.
  std::size_t prompts_at_once = 32;
  // Requests not over, of all tenants; one more is answered 503.
  std::size_t requests_max = 16 * 1024;
  Duration stats_interval = Duration::seconds(1);
  // An instance that has not answered for so long gets no requests, and after three times as long
  // is given up.
  Duration silence_max = Duration::seconds(10);
  Duration reconnect_min = Duration{50};
  Duration reconnect_max = Duration::seconds(5);
};

// The interfaces outlive the gateway, and the gateway the server that it answers for. `sink` and
// `demand` may be null.
struct Ports {
  Access* access = nullptr;
  UsageSink* sink = nullptr;
  Demand* demand = nullptr;
};

class Hub;

class Gateway {
 public:
  // Requires ports.access. unavailable where the system gives no thread or descriptor.
  static Result<Gateway> start(Settings settings, Ports ports);
  Gateway(Gateway&&) noexcept;
  Gateway& operator=(Gateway&&) noexcept;
  ~Gateway();  // stop()

  // For http::Server. Everything below /v1/; never blocks.
  void handle(http::Request request, http::Responder responder);
  // A server's options with what this API needs: sizes, errors in its shape, slow readers.
  http::ServerOptions server_options() const;

  // What is offered. A model that is offered again is changed. Removing it drains its instances.
  void offer(Endpoint endpoint);
  void withdraw(const std::string& model);
  // An instance of an offered model, by the path of its socket; it may still be starting.
  // Requires a name that no other instance has.
  void add_instance(std::string name, std::string model, std::string socket_path);
  // No new requests; `done` is called (on the gateway's thread) when its last one is over, or at
  // once where there is none of that name.
  void drain_instance(const std::string& name, std::function<void()> done);
  // Requests it still has are tried elsewhere or fail.
  void remove_instance(const std::string& name);

  // Why no instance of a model serves now, in words; empty: nothing is known to stand in the way.
  // Where one was refused, requests fail at once instead of waiting for what will not come, and
  // only the owner is told the words: they may speak of the owner's money.
  void explain(const std::string& model, std::string why, bool is_refused);

  // Both are called back on the gateway's thread and must not block it.
  void ask_metrics(std::function<void(std::string)> callback);
  void ask_instances(std::function<void(std::vector<InstanceReport>)> callback);
  // What was asked of a model so far, for deciding how many instances it needs.
  struct ModelLoad {
    std::string model;
    std::uint32_t in_flight = 0;
    std::uint32_t waiting = 0;                  // for an instance
    std::optional<Instant> waiting_since = {};  // the oldest of them
    std::uint64_t requests = 0;
    Instant last_request{};
    std::uint64_t tokens = 0;  // prompt and generated, of requests that ended
    Recent::Summary recent = {};
  };
  void ask_loads(std::function<void(std::vector<ModelLoad>)> callback);

  // Answers what is in flight with 503, records its usage as far as it is known and ends. For a
  // gentler end, stop the server first.
  void stop();

 private:
  explicit Gateway(std::shared_ptr<Hub> hub);
  std::shared_ptr<Hub> hub_;
};

}  // namespace loam::gateway

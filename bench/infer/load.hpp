// Load on a running engine, and the bare library beside it, for the figures of serving.
//
// All times are this process's processor time. One thread computes and the others wait for it, so
// that it passes as wall time would on a machine with nothing else to do, and other work does not
// show. While nothing is in flight it stands still, which no figure here counts.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/engine/client.hpp"
#include "app/engine/server.hpp"

namespace loam::bench::infer {

using serve::Model;

struct Cost {
  double processor = 0;  // seconds of the whole process
  double wall = 0;       // seconds
};
Cost now();

std::unique_ptr<Model> load_model(const std::string& path);  // says why not on standard error

serve::ServerOptions slots(std::uint32_t count);

// An engine in this process, one thread, listening in a folder of its own.
class Engine {
 public:
  Engine(const Model& model, serve::ServerOptions options);
  ~Engine();
  const std::string& path() const { return path_; }
  const Model& model() const { return model_; }

 private:
  const Model& model_;
  std::string path_;
  std::unique_ptr<serve::Server> server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Tokens of a request: `shared` the same in all, `own` drawn from `salt` and its number.
struct Load {
  std::uint32_t shared = 0;
  std::uint32_t own = 32;
  std::uint32_t generated = 32;
  int salt = 0;
};

struct Run {
  Cost cost;
  std::vector<double> first_token_ms;
  double failures = 0;
  double first_token_p99() const;
};

// `requests` of the load, `at_once` in flight, the next sent when one ends.
Run run_all(Engine& engine, std::uint32_t requests, std::uint32_t at_once, const Load& load);

// Of one tenant's request that comes 300 ms into a flood of another tenant's.
double newcomer_first_token_ms(Engine& engine, std::uint32_t flood);

struct Gaps {
  double median_ms = 0;
  double largest_ms = 0;
};
Gaps gaps_beside_long_prompt(Engine& engine);

// Processor seconds of the library alone for `streams` prompts and their continuations, batched.
double bare_loop_seconds(const Model& model, std::uint32_t streams, std::uint32_t prompt_tokens,
                         std::uint32_t generated, int salt);

}  // namespace loam::bench::infer

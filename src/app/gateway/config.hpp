// loam-gateway's settings: one TOML file, every key with a default, an unknown key an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "base/result.hpp"
#include "gateway/ports.hpp"
#include "infer/scaling.hpp"

namespace loam::serving {

struct EndpointConfig {
  std::string model;                 // the name under which it is offered
  std::string owner;                 // the tenant that pays for the instances
  std::vector<std::string> callers;  // tenants beside the owner; empty: all
  // Either instances that somebody else runs, by their sockets, ...
  std::vector<std::string> engines;
  // ... or a model file that instances are started for, with more arguments for loam-engine.
  std::string file;
  std::vector<std::string> arguments;
  // Other files for requests of a tier, "flex" or "priority": each has instances of its own, by the
  // same terms, under the name "MODEL@TIER".
  std::map<std::string, std::string> tiers;
  infer::ScalingTerms scaling;
  std::int64_t slots = 8;       // requests computed at once by one instance
  std::int64_t memory_mib = 0;  // of one instance; 0: the file's size and a quarter
  // What its task asks the pool for, where there is one. Exactly one of `ce` and `share`.
  std::string ce;
  std::string share;
  std::string project = "default";
  std::string environment = "default";
  std::map<std::string, std::string> tags;
  std::string purchase_model = "on_demand";
  std::string tariff = "flat";
  std::string service_class = "standard";
  Duration time = Duration::hours(8);      // longest run; another instance takes over before
  Duration grace = Duration::seconds(30);  // for streams that run, when its task is ended
};

// A part of a device for the instances of endpoints that ask for none themselves.
struct SliceConfig {
  std::string share;  // "0.5"
  MilliDevice part;
  Mebibytes memory;  // that an instance in it may take
};

struct TenantConfig {
  std::string tenant;
  gateway::TenantLimits limits;
  std::uint32_t weight = 1;
  infer::ServiceClass service_class = infer::ServiceClass::standard;
};

struct Config {
  std::string socket;  // Unix socket
  std::int64_t socket_mode = 0666;
  std::string listen;          // TCP "127.0.0.1:8480"; empty: none
  std::string tokens;          // loamd's tokens, which are the API keys
  std::string usage_file;      // a line of JSON for each request
  std::string endpoints_file;  // endpoints made at run time
  std::string run_dir;         // the instances' sockets and logs
  std::string engine_program;  // loam-engine
  // loamd's address: instances are tasks of its pool. Empty: children of this program, outside any
  // pool's books.
  std::string pool;
  Duration bill_every = Duration::seconds(10);  // tokens to the bill, where there is a pool
  Duration start_wait_max = Duration::minutes(5);
  // Of all instances that this program starts; 0: no bound. Models that do not fit at once take
  // turns, each at least so long while others wait.
  std::int64_t memory_mib = 0;
  Duration turn_min = Duration::seconds(10);
  std::vector<EndpointConfig> endpoints;
  std::vector<SliceConfig> slices;
  std::vector<TenantConfig> tenants;  // those without an entry have no limits
};

// invalid_argument where its cost can be attributed to no such project, environment or tags.
Result<void> check_attribution(const EndpointConfig& endpoint);
// invalid_argument where a tier has another name or no file, or the endpoint has no file of its
// own.
Result<void> check_tiers(const EndpointConfig& endpoint);
// What serves an endpoint: itself, without tiers, and one for each tier.
std::vector<EndpointConfig> parts_of(const EndpointConfig& endpoint);

// What an endpoint must say where its instances are tasks of a pool; with slices, nothing of a
// share.
Result<void> check_for_pool(const EndpointConfig& endpoint, bool has_slices);
// Whether it takes a slice by how hot it is.
bool takes_slice(const EndpointConfig& endpoint);
// The smallest slice that holds an instance of so much memory; null where none does.
const SliceConfig* smallest_slice(const std::vector<SliceConfig>& slices, Mebibytes memory);

// Beside loamd's: /var/lib/loam and /run/loam for root, the user's own folders for others.
Config default_config();

// Reads `text` over the defaults; `origin` names the file in errors.
Result<Config> parse_config(std::string_view text, const std::string& origin);
Result<Config> load_config(const std::string& path);

}  // namespace loam::serving

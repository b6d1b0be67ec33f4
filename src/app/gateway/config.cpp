#include "app/gateway/config.hpp"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "billing/attribution.hpp"
#include "domain/tenant.hpp"

namespace loam::serving {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Takes keys from one table and keeps the first fault.
class Section {
 public:
  Section(const toml::table& table, std::string path, std::string& fault)
      : table_(table), path_(std::move(path)), fault_(fault) {}

  void read(const char* key, std::string& out) {
    if (const auto* node = take(key)) {
      const auto value = node->value_exact<std::string>();
      value ? void(out = *value) : wrong(key, "text");
    }
  }
  void read(const char* key, std::vector<std::string>& out) {
    const auto* node = take(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return wrong(key, "a list of texts");
    out.clear();
    for (const toml::node& entry : *list) {
      const auto value = entry.value_exact<std::string>();
      if (!value) return wrong(key, "a list of texts");
      out.push_back(*value);
    }
  }
  template <class Number>
  void read(const char* key, Number& out, std::int64_t low, std::int64_t high) {
    const auto* node = take(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < low || *value > high)
      return wrong(key,
                   "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    out = static_cast<Number>(*value);
  }
  void read(const char* key, Duration& out) {
    const auto* node = take(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::string>();
    const auto length = value ? parse_duration(*value) : Result<Duration>(invalid(""));
    length ? void(out = *length) : wrong(key, "a length of time such as \"5m\"");
  }
  // Each table of a list of tables.
  void tables(const char* key, const std::function<void(const toml::table&)>& each) {
    const auto* node = take(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr || !list->is_array_of_tables())
      return wrong(key, "tables, each headed [[" + std::string(key) + "]]");
    for (const toml::node& entry : *list) each(*entry.as_table());
  }
  // A table of texts.
  void read(const char* key, std::map<std::string, std::string>& out) {
    const auto* node = take(key);
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) return wrong(key, "a table of texts");
    for (const auto& [name, entry] : *table) {
      const auto value = entry.value_exact<std::string>();
      if (!value) return wrong(key, "a table of texts");
      out[std::string(name.str())] = *value;
    }
  }
  void refuse_the_rest() {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) == known_.end())
        fail(name, "is not a known key", node);
    }
  }

 private:
  const toml::node* take(const char* key) {
    known_.emplace_back(key);
    return table_.get(key);
  }
  void wrong(const char* key, const std::string& expected) {
    fail(key, "is not " + expected, *table_.get(key));
  }
  void fail(const std::string& key, const std::string& what, const toml::node& node) {
    if (!fault_.empty()) return;
    const auto at = node.source().begin;
    fault_ =
        std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + path_ + key + " " + what;
  }

  const toml::table& table_;
  const std::string path_;
  std::string& fault_;
  std::vector<std::string> known_;
};

constexpr std::int64_t memory_mib_max = 1'000'000'000;
constexpr std::int64_t limit_max = std::numeric_limits<std::int32_t>::max();

EndpointConfig read_endpoint(const toml::table& table, std::string& fault) {
  EndpointConfig endpoint;
  Section section(table, "endpoint.", fault);
  section.read("model", endpoint.model);
  section.read("owner", endpoint.owner);
  section.read("callers", endpoint.callers);
  section.read("engines", endpoint.engines);
  section.read("file", endpoint.file);
  section.read("arguments", endpoint.arguments);
  section.read("tiers", endpoint.tiers);
  section.read("min", endpoint.scaling.instances_min, 0, 64);
  section.read("max", endpoint.scaling.instances_max, 1, 64);
  section.read("idle_after", endpoint.scaling.idle_after);
  section.read("shrink_after", endpoint.scaling.shrink_after);
  section.read("slots", endpoint.slots, 1, 4096);
  section.read("memory_mib", endpoint.memory_mib, 0, memory_mib_max);
  section.read("ce", endpoint.ce);
  section.read("share", endpoint.share);
  section.read("project", endpoint.project);
  section.read("environment", endpoint.environment);
  section.read("tags", endpoint.tags);
  section.read("purchase_model", endpoint.purchase_model);
  section.read("tariff", endpoint.tariff);
  section.read("service_class", endpoint.service_class);
  section.read("time", endpoint.time);
  section.read("grace", endpoint.grace);
  section.refuse_the_rest();
  const std::string name = "endpoint \"" + endpoint.model + "\" ";
  if (!fault.empty()) return endpoint;
  if (endpoint.model.empty()) fault = "an endpoint has no model";
  if (endpoint.engines.empty() == endpoint.file.empty())
    fault = name + "needs either engines or a file";
  if (endpoint.scaling.instances_min > endpoint.scaling.instances_max)
    fault = name + "has a min above its max";
  for (const auto& checked : {check_tiers(endpoint), check_attribution(endpoint)}) {
    if (!checked.ok() && fault.empty()) fault = to_text(checked.error());
  }
  return endpoint;
}

SliceConfig read_slice(const toml::table& table, std::string& fault) {
  SliceConfig slice;
  Section section(table, "slice.", fault);
  std::string memory = std::to_string(memory_mib_max) + "MiB";
  section.read("share", slice.share);
  section.read("memory", memory);
  section.refuse_the_rest();
  const auto part = parse_share(slice.share);
  const auto held = parse_memory(memory);
  if (!fault.empty()) return slice;
  if (!part.ok()) fault = "slice.share: " + to_text(part.error());
  if (!held.ok()) fault = "slice.memory: " + to_text(held.error());
  if (part.ok()) slice.part = *part;
  if (held.ok()) slice.memory = *held;
  return slice;
}

TenantConfig read_tenant(const toml::table& table, std::string& fault) {
  TenantConfig tenant;
  Section section(table, "tenant.", fault);
  std::string service_class = "standard";
  section.read("name", tenant.tenant);
  section.read("requests_per_minute", tenant.limits.requests_per_minute, 0, limit_max);
  section.read("tokens_per_minute", tenant.limits.tokens_per_minute, 0, limit_max);
  section.read("concurrent_requests", tenant.limits.concurrent_requests, 0, limit_max);
  section.read("weight", tenant.weight, 1, infer::weight_max);
  section.read("class", service_class);
  section.refuse_the_rest();
  if (tenant.tenant.empty() && fault.empty()) fault = "a tenant has no name";
  if (service_class == "batch") {
    tenant.service_class = infer::ServiceClass::batch;
  } else if (service_class == "interactive") {
    tenant.service_class = infer::ServiceClass::interactive;
  } else if (service_class != "standard" && fault.empty()) {
    fault = "tenant.class is \"" + service_class + "\"; give batch, standard or interactive";
  }
  return tenant;
}

}  // namespace

Result<void> check_attribution(const EndpointConfig& endpoint) {
  for (const std::string& name : {endpoint.project, endpoint.environment}) {
    if (!is_name(name))
      return invalid("the endpoint " + endpoint.model + " has '" + name + "', which is no name",
                     "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  return billing::check(endpoint.tags);
}

Result<void> check_tiers(const EndpointConfig& endpoint) {
  const std::string name = "the endpoint " + endpoint.model;
  if (!endpoint.tiers.empty() && endpoint.file.empty())
    return invalid(name + " has tiers and no file", "give it the file of the default tier");
  for (const auto& [tier, file] : endpoint.tiers) {
    if (tier != "flex" && tier != "priority")
      return invalid(name + " has a tier '" + tier + "'", "there are flex and priority");
    if (file.empty()) return invalid(name + " has a tier " + tier + " without a file");
  }
  return {};
}

std::vector<EndpointConfig> parts_of(const EndpointConfig& endpoint) {
  std::vector<EndpointConfig> parts{endpoint};
  parts.front().tiers.clear();
  for (const auto& [tier, file] : endpoint.tiers) {
    EndpointConfig part = parts.front();
    part.model += "@" + tier;
    part.file = file;
    parts.push_back(std::move(part));
  }
  return parts;
}

bool takes_slice(const EndpointConfig& endpoint) {
  return endpoint.ce.empty() && endpoint.share.empty();
}

const SliceConfig* smallest_slice(const std::vector<SliceConfig>& slices, Mebibytes memory) {
  const SliceConfig* best = nullptr;
  for (const SliceConfig& slice : slices) {
    if (slice.memory >= memory && (best == nullptr || slice.part < best->part)) best = &slice;
  }
  return best;
}

Result<void> check_for_pool(const EndpointConfig& endpoint, bool has_slices) {
  if (endpoint.file.empty()) return {};
  const std::string name = "the endpoint " + endpoint.model;
  if (endpoint.owner.empty())
    return invalid(name + " has no owner, so nobody would pay for its tasks",
                   "name a tenant: owner = \"acme\"");
  if (endpoint.ce.empty() == endpoint.share.empty() && !(has_slices && takes_slice(endpoint)))
    return invalid(
        name + (endpoint.ce.empty() ? " says neither ce nor share" : " says both ce and share"),
        "say what an instance takes of a device: share = \"0.5\", or ce = \"25\"");
  for (const EndpointConfig& part : parts_of(endpoint)) {
    if (!part.file.starts_with('/'))
      return invalid(name + " has the file " + part.file, "give its whole path");
  }
  return {};
}

Config default_config() {
  Config config;
  const bool root = ::geteuid() == 0;
  const std::string home = variable("HOME");
  const std::string state = variable("XDG_STATE_HOME");
  const std::string run = variable("XDG_RUNTIME_DIR");
  const std::string data_dir = root             ? "/var/lib/loam"
                               : !state.empty() ? state + "/loam"
                                                : home + "/.local/state/loam";
  config.run_dir = root          ? "/run/loam/inference"
                   : run.empty() ? data_dir + "/inference"
                                 : run + "/loam/inference";
  config.socket = config.run_dir + "/gateway.sock";
  config.tokens = data_dir + "/tokens.json";
  config.usage_file = data_dir + "/inference-usage.jsonl";
  config.endpoints_file = data_dir + "/inference-endpoints.json";
  std::error_code fault;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", fault);
  config.engine_program = fault ? "loam-engine" : (self.parent_path() / "loam-engine").string();
  return config;
}

Result<Config> parse_config(std::string_view text, const std::string& origin) {
  Config config = default_config();
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    return invalid(origin + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                   std::string(error.description()));
  }
  std::string fault;
  Section section(root, "", fault);
  section.read("socket", config.socket);
  section.read("socket_mode", config.socket_mode, 0, 0777);
  section.read("listen", config.listen);
  section.read("tokens", config.tokens);
  section.read("usage_file", config.usage_file);
  section.read("endpoints_file", config.endpoints_file);
  section.read("run_dir", config.run_dir);
  section.read("engine_program", config.engine_program);
  section.read("pool", config.pool);
  section.read("bill_every", config.bill_every);
  section.read("start_wait_max", config.start_wait_max);
  section.read("memory_mib", config.memory_mib, 0, memory_mib_max);
  section.read("turn_min", config.turn_min);
  section.tables("endpoint", [&](const toml::table& table) {
    config.endpoints.push_back(read_endpoint(table, fault));
  });
  section.tables("slice", [&](const toml::table& table) {
    config.slices.push_back(read_slice(table, fault));
  });
  section.tables("tenant", [&](const toml::table& table) {
    config.tenants.push_back(read_tenant(table, fault));
  });
  section.refuse_the_rest();
  std::set<std::string> names;
  for (const EndpointConfig& endpoint : config.endpoints) {
    for (const EndpointConfig& part : parts_of(endpoint)) {
      if (!names.insert(part.model).second && fault.empty())
        fault = "endpoint \"" + part.model + "\" is there twice";
    }
  }
  if (!fault.empty()) return invalid(origin + ":" + fault, "correct the configuration");
  if (config.bill_every < Duration{100}) {
    return invalid(origin + ": bill_every is " + to_text(config.bill_every),
                   "give 100ms or more, such as \"10s\"");
  }
  if (!config.pool.empty() && config.memory_mib > 0) {
    return invalid(origin + ": memory_mib bounds instances outside a pool, and there is a pool",
                   "leave it out: the pool's devices are the bound");
  }
  for (const EndpointConfig& endpoint : config.endpoints) {
    if (!config.pool.empty()) LOAM_CHECK(check_for_pool(endpoint, !config.slices.empty()));
  }
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return invalid("the configuration " + path + " cannot be read", "check the path");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_config(text, path);
}

}  // namespace loam::serving

// What the gateway needs of the program around it: who is asking, where usage is kept, and
// somebody to start an instance where there is none. Interfaces and plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/task.hpp"
#include "domain/token_usage.hpp"
#include "gateway/limits.hpp"
#include "gateway/request.hpp"
#include "infer/request.hpp"

namespace loam::gateway {

// On whose behalf a request runs.
struct Caller {
  std::string tenant;
  std::string project;
  std::string environment;
  std::string key;           // the key's name, never the key
  std::uint32_t weight = 1;  // the tenant's share of an engine against other tenants
  // What requests get that do not ask, and the highest they may ask for.
  infer::ServiceClass service_class = infer::ServiceClass::standard;
  TenantLimits limits;  // of the tenant; the same for all its keys
};

class Access {
 public:
  virtual ~Access() = default;
  // From the bearer token. unauthenticated or permission_denied where nobody may enter with it.
  // Called on server threads, several at once; must not wait for anything slow.
  virtual Result<Caller> identify(std::string_view key) = 0;
};

// A model that is offered. Its instances come and go.
// "tiny@flex". A request's tier is the one that the API calls its class by: flex for batch, default
// for standard, priority for interactive.
std::string tier_model(std::string_view model, infer::ServiceClass service_class);

struct Endpoint {
  std::string model;
  std::string owner;                 // the tenant that pays for the instances
  std::vector<std::string> callers;  // tenants that may use it beside the owner; empty: all
  Instant created{};
  // The model of which this is one tier, under the name tier_model(): requests for that model in
  // that tier are served, metered and charged under this name. Not listed. Empty: a model itself.
  std::string tier_of = {};
  // Whose cost, among the owner's, its instances are, and whose income others' tokens are.
  Attribution attribution = {};
};

enum class UsageOutcome {
  answered,     // the client got it all
  client_left,  // what was generated until then
  failed,       // it broke off; what had been generated is recorded, not what was promised
};

// One request's usage, recorded once, when the last of it is known: whatever the answer's `usage`
// says is the same.
struct UsageRecord {
  std::string request;  // "chatcmpl-...", as the client and the engine know it
  Caller caller;
  std::string model;
  std::string owner;
  std::string instance;  // that did the last part of it
  Work work = Work::chat;
  UsageOutcome outcome = UsageOutcome::answered;
  TokenUsage usage;
  // What instances spent on tries that were repeated elsewhere: not the caller's.
  TokenUsage wasted;
  // Whether every figure is the engine's last word. Not so where an instance was lost: then this
  // is what was seen, and the engine's own usage file has the rest under the request's name.
  bool settled = true;
  Instant arrived{};
  Duration to_first_token{};  // 0: there was none
  Duration lasted{};
  std::map<std::string, std::string> tags = {};  // of the caller's cost, as the request says
  Attribution owner_attribution = {};            // the endpoint's
};

class UsageSink {
 public:
  virtual ~UsageSink() = default;
  // Before the answer's end leaves. On the gateway's thread: must not block.
  virtual void record(const UsageRecord& record) = 0;
};

class Demand {
 public:
  virtual ~Demand() = default;
  // Somebody asks for a model that no instance serves now. May be called often. On the gateway's
  // thread: must not block.
  virtual void wanted(const std::string& model) = 0;
};

}  // namespace loam::gateway

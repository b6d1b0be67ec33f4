// Virtual token counters: each tenant's service so far, in tokens over its weight; who has had
// least goes next. A tenant that comes back from idling starts at the level of those who stayed, so
// that absence earns no credit.
// Source: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace loam::infer {

class TokenCounters {
 public:
  // One unfinished request more or less. The weight, above 0, is the tenant's from now on.
  void arrive(const std::string& tenant, std::uint32_t weight);
  void leave(const std::string& tenant);

  // `cost` is tokens times their kind's cost.
  void charge(const std::string& tenant, std::uint64_t cost);

  // What `cost` would add to the tenant's counter. Requires that it has been here.
  std::uint64_t scaled(const std::string& tenant, std::uint64_t cost) const;
  // Service over weight, in millionths of a token of weight 1. 0 for a stranger.
  std::uint64_t counter(const std::string& tenant) const;

 private:
  struct Account {
    std::uint64_t counter = 0;
    std::uint32_t weight = 1;
    std::uint32_t requests = 0;
  };
  std::map<std::string, Account> accounts_;
  std::uint64_t last_left_ = 0;  // the counter of the latest tenant to have nothing left
};

}  // namespace loam::infer

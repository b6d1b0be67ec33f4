#include "infer/token_counter.hpp"

#include <algorithm>
#include <optional>

#include "base/assert.hpp"

namespace loam::infer {

void TokenCounters::arrive(const std::string& tenant, std::uint32_t weight) {
  LOAM_ASSERT(weight > 0);
  Account& account = accounts_[tenant];
  account.weight = weight;
  if (account.requests++ > 0) return;
  std::optional<std::uint64_t> least;
  for (const auto& [name, other] : accounts_) {
    if (name == tenant || other.requests == 0) continue;
    least = std::min(least.value_or(other.counter), other.counter);
  }
  account.counter = std::max(account.counter, least.value_or(last_left_));
}

void TokenCounters::leave(const std::string& tenant) {
  const auto account = accounts_.find(tenant);
  LOAM_ASSERT(account != accounts_.end() && account->second.requests > 0);
  if (--account->second.requests == 0) last_left_ = account->second.counter;
}

void TokenCounters::charge(const std::string& tenant, std::uint64_t cost) {
  const std::uint64_t more = scaled(tenant, cost);
  accounts_[tenant].counter += more;
}

std::uint64_t TokenCounters::scaled(const std::string& tenant, std::uint64_t cost) const {
  const auto account = accounts_.find(tenant);
  LOAM_ASSERT(account != accounts_.end());
  return cost * 1'000'000 / account->second.weight;
}

std::uint64_t TokenCounters::counter(const std::string& tenant) const {
  const auto account = accounts_.find(tenant);
  return account == accounts_.end() ? 0 : account->second.counter;
}

}  // namespace loam::infer

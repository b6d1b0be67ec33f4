#include "app/gateway/keys.hpp"

#include <sys/stat.h>

#include <ctime>

namespace loam::serving {
namespace {

// 0 where there is no file.
std::int64_t changed_ns(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return 0;
  return std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Two changes within a tick of the file system's clock leave the same time behind: what was read
// sooner than this after a change may have been read between them.
constexpr std::int64_t settled_after_ns = 1'000'000'000;

}  // namespace

Keys::Keys(const Config& config) : path_(config.tokens) {
  for (const TenantConfig& tenant : config.tenants) tenants_[tenant.tenant] = tenant;
}

// A token made or revoked a moment ago counts at once: the file is looked at each time, and read
// when it has changed.
Result<api::TokenInfo> Keys::check(std::string_view key) {
  std::shared_ptr<const api::TokenStore> store;
  {
    std::lock_guard lock(mutex_);
    const std::int64_t changed = changed_ns(path_);
    if (store_ == nullptr || changed != read_ns_ || !settled_) {
      const std::int64_t now = now_ns();
      LOAM_TRY(opened, api::TokenStore::open(path_));
      store_ = std::move(opened);
      read_ns_ = changed;
      settled_ = now - changed > settled_after_ns;
    }
    store = store_;
  }
  return store->check(key);
}

Result<gateway::Caller> Keys::identify(std::string_view key) {
  LOAM_TRY(token, check(key));
  if (token.tenant.empty()) {
    return Error{ErrorKind::permission_denied,
                 "the token " + token.name + " belongs to no tenant, so nobody would pay",
                 "use a member's token: loam token create --role member --tenant NAME"};
  }
  gateway::Caller caller;
  caller.tenant = token.tenant;
  caller.key = token.name;
  if (const auto found = tenants_.find(token.tenant); found != tenants_.end()) {
    caller.limits = found->second.limits;
    caller.weight = found->second.weight;
    caller.service_class = found->second.service_class;
  }
  return caller;
}

bool Keys::may_operate(std::string_view key) {
  const auto token = check(key);
  return token.ok() && api::may(token->role, api::Action::see_metrics);
}

}  // namespace loam::serving

// API keys: loamd's tokens, read from their file, and what the configuration says of their tenants.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/auth.hpp"
#include "app/gateway/config.hpp"
#include "gateway/ports.hpp"

namespace loam::serving {

class Keys final : public gateway::Access {
 public:
  explicit Keys(const Config& config);

  // A member's token is its tenant's key. An operator's and an admin's belong to no tenant and
  // cannot be billed: permission_denied.
  Result<gateway::Caller> identify(std::string_view key) override;
  // Who may see the endpoints and the metrics.
  bool may_operate(std::string_view key);

 private:
  Result<api::TokenInfo> check(std::string_view key);

  const std::string path_;
  std::map<std::string, TenantConfig> tenants_;
  std::mutex mutex_;
  std::shared_ptr<const api::TokenStore> store_;
  std::int64_t read_ns_ = 0;  // the file's time when it was read
  bool settled_ = false;      // whether the file had been at rest for a while when it was read
};

}  // namespace loam::serving

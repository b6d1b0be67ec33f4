// Instances as children of this program: outside the pool's books, and ended with it. Shell
// (processes).
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>

#include "app/gateway/instance_host.hpp"

namespace loam::serving {

class LocalHost final : public InstanceHost {
 public:
  explicit LocalHost(const Config& config) : config_(config) {}
  ~LocalHost() override { close(); }

  Result<void> open(std::function<void()> on_change) override;
  void close() override;  // ends all, and waits for it
  // Against memory_mib, or what this machine has.
  Result<void> check(const EndpointConfig& endpoint, Mebibytes memory) override;
  bool is_known() override { return true; }
  std::string trouble() override { return {}; }
  void launch(InstanceOrder order) override;
  void end(const std::string& name) override;
  std::vector<InstanceFact> facts() override;
  bool has_queue() const override { return false; }

 private:
  struct Child {
    pid_t pid = -1;  // -1: it could not be started
    std::string model;
    std::string socket;
  };
  const Config& config_;
  std::mutex mutex_;
  std::map<std::string, Child> children_;
};

}  // namespace loam::serving

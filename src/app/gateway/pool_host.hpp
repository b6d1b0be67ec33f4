// Instances as tasks of the pool: loamd is asked, over its API, to run loam-engine for the
// endpoint's owner, who pays for it as for any task. One thread of its own, so that a slow or
// absent daemon holds nothing up; what it last said counts until it answers again. Tasks outlive
// this program: another run of it finds them by their name and the folder of their sockets. Shell.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "api/client.hpp"
#include "app/gateway/instance_host.hpp"

namespace loam::serving {

// The name that instances have among a tenant's tasks.
inline constexpr const char* instance_task_name = "loam-engine";

// What loamd is asked for.
api::TaskRequest task_of(const Config& config, const InstanceOrder& order);
// The model and the socket of a task that this gateway asked for; nothing where another did.
struct OwnTask {
  std::string model;
  std::string socket;
};
std::optional<OwnTask> own_task(const Config& config, const api::TaskView& task);
// How a live task stands as an instance.
InstanceFact fact_of(const api::TaskView& task, const OwnTask& own);

class PoolHost final : public InstanceHost {
 public:
  explicit PoolHost(const Config& config) : config_(config) {}
  ~PoolHost() override { close(); }

  Result<void> open(std::function<void()> on_change) override;
  void close() override;  // tasks go on
  Result<void> check(const EndpointConfig& endpoint, Mebibytes memory) override;
  bool is_known() override;
  std::string trouble() override;
  void launch(InstanceOrder order) override;
  void end(const std::string& name) override;
  std::vector<InstanceFact> facts() override;
  bool has_queue() const override { return true; }

 private:
  struct Entry {
    std::optional<InstanceOrder> order;  // until loamd has taken it
    std::string task;                    // then
    InstanceFact fact;
    bool is_unwanted = false;
    bool is_stop_sent = false;
  };

  Result<api::Client*> client();
  void run();
  bool visit();
  Result<void> submit_new();
  Result<void> stop_unwanted();
  Result<std::map<std::string, InstanceFact>> live_tasks();
  Result<void> look();
  struct End {
    std::string words;  // empty where it lives after all
    bool is_refused = false;
  };
  Result<End> how_it_ended(const std::string& task);
  void note(std::optional<Error> trouble);
  void conclude(const std::string& name, std::string words, bool is_refused);

  const Config& config_;
  std::function<void()> on_change_;
  std::thread thread_;
  std::optional<api::Client> client_;  // of the thread
  mutable std::mutex mutex_;           // for what follows
  std::condition_variable wake_;
  bool is_stopping_ = false;
  bool has_orders_ = false;
  bool is_known_ = false;
  std::string trouble_ = "loamd was not asked yet";
  std::map<std::string, Entry> entries_;
};

}  // namespace loam::serving

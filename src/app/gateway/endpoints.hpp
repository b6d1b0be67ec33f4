// Keeps as many instances of each endpoint running as infer/scaling decides: has them started where
// its host says, tells the gateway of them, drains and ends them. One thread. Shell.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/gateway/config.hpp"
#include "app/gateway/instance_host.hpp"
#include "app/gateway/traffic.hpp"
#include "gateway/gateway.hpp"
#include "infer/token_rate.hpp"

namespace loam::serving {

class Endpoints final : public gateway::Demand {
 public:
  using Log = std::function<void(const std::string& line)>;
  // `host` outlives this.
  Endpoints(const Config& config, InstanceHost& host, Log log)
      : config_(config), host_(host), log_(std::move(log)) {}
  ~Endpoints() override { stop(); }

  // Offers every endpoint, those made at run time too, and begins to tend them.
  Result<void> start(gateway::Gateway& gateway);
  // From now on and after a restart. conflict where the model is offered already; not_found where
  // the file is not there; what the pool says where it would take no instance.
  Result<void> create(EndpointConfig endpoint);
  // Requests in flight fail. not_found where there is none; conflict for one of the configuration.
  Result<void> remove(const std::string& model);
  void wanted(const std::string& model) override;
  // Tends no more; what runs is the host's to end or to leave. Before the gateway's end.
  void stop();

  // What the instances that serve say, summed.
  struct Engines {
    std::uint32_t batch = 0;    // requests in their latest steps
    std::uint32_t waiting = 0;  // in their queues
    std::uint32_t swapped = 0;
    std::uint64_t kv_bytes = 0;
    std::uint64_t kv_used_bytes = 0;
    std::uint64_t weights_bytes = 0;  // once for all of a machine where it maps the same file
    std::uint64_t prefix_bytes = 0;
    std::string compute;  // how one of them computes
    void add(const gateway::InstanceReport& report);
  };
  struct Standing {
    std::string model;
    infer::EndpointState state = infer::EndpointState::cold;
    std::uint32_t instances = 0;  // that run
    std::uint32_t queued = 0;     // that the pool has no room for yet
    std::string why;              // none runs, in words
    std::uint32_t in_flight = 0;
    std::uint32_t waiting = 0;
    std::uint64_t requests = 0;
    Mebibytes memory;  // of one instance
    gateway::Recent::Summary recent;
    Engines engines;
  };
  std::vector<Standing> standings() const;

 private:
  struct Instance {
    std::uint64_t id = 0;
    std::string name;
    std::string socket;
    infer::ScaledInstance::State state = infer::ScaledInstance::State::starting;
    std::shared_ptr<std::atomic<bool>> drained = std::make_shared<std::atomic<bool>>(false);
    bool is_told_to_end = false;
    bool is_routed = false;       // the gateway knows it
    bool is_leaving = false;      // somebody else is ending it
    bool waits_for_room = false;  // in the pool's queue
    bool has_served = false;
  };
  // Until an instance serves: the weights are read and its context is made.
  static constexpr Duration start_time = Duration::seconds(30);
  struct Tended {
    EndpointConfig config;
    Mebibytes need;  // of one instance
    infer::ScalingMemory memory;
    infer::EndpointLoad load;
    Traffic traffic{start_time};
    infer::TokenRate heat;
    std::string slice_share;  // where it takes a slice: of the one for its next instance
    gateway::Recent::Summary recent;
    Engines engines;
    std::uint64_t requests = 0;
    std::vector<Instance> instances;
    std::optional<Instant> waiting_since;
    std::optional<Instant> turn_began;  // since when any instance serves
    Instant starts_since{};             // where none does: when the first had room to start
    std::string words;                  // what the host last said of one that does not run
    bool is_refused = false;
    std::string why;  // as the gateway was told
    bool was_refused = false;
    bool is_made = false;                      // at run time
    std::string tier_of;                       // the model of which this is a tier
    std::map<std::string, std::string> tiers;  // of its own: their files
  };

  void run();
  void note_turn(Tended& endpoint) const;
  void take_facts();
  void end_drained(Tended& endpoint);
  void take_fact(Tended& endpoint, Instance& instance, const InstanceFact& fact);
  void take_end(Tended& endpoint, Instance& instance, const InstanceFact& fact);
  void adopt(const InstanceFact& fact);
  void unroute(Instance& instance);
  void explain(const std::string& trouble);
  void make_turns(const std::vector<std::string>& models, std::vector<infer::RoomAsk> asks);
  void give_way(const std::string& model);
  void offer(const EndpointConfig& endpoint, bool is_made);
  void offer_part(const EndpointConfig& part, const std::string& tier_of, bool is_made);
  void withdraw(const std::string& model);  // and its tiers
  Result<void> save() const;
  void learn_past();
  void tend();
  void assign_slices();
  Result<EndpointConfig> with_slice(const EndpointConfig& part) const;
  void observe();
  void apply(const std::vector<std::string>& models, const std::vector<infer::RoomAsk>& asks);
  infer::RoomDecision room_of(Mebibytes total, const std::vector<infer::RoomAsk>& asks) const;
  infer::RoomAsk ask_of(const Tended& endpoint, std::uint64_t number, std::uint32_t start) const;
  void start_instance(Tended& endpoint);
  void drain_instance(Tended& endpoint, std::uint64_t id);

  const Config& config_;
  InstanceHost& host_;
  const Log log_;
  gateway::Gateway* gateway_ = nullptr;
  std::thread thread_;
  mutable std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool is_wanted_ = false;
  std::map<std::string, Tended> tended_;
  Tended leaving_;  // instances of removed endpoints, which are ending
  bool is_known_ = false;
  std::uint64_t last_id_ = 0;
};

}  // namespace loam::serving

// The gateway's one thread: the connections to the engines, the requests in flight and every
// decision about them, so that nothing here needs a lock but the mailbox. Internal to this folder.
//
// hub.cpp is the loop and the mailbox, hub_links.cpp the engines' side, hub_jobs.cpp the clients'.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gateway/engine_link.hpp"
#include "gateway/gateway.hpp"
#include "gateway/job.hpp"
#include "gateway/limits.hpp"
#include "gateway/metrics.hpp"
#include "infer/route.hpp"

namespace loam::gateway {

class Hub : public std::enable_shared_from_this<Hub> {
 public:
  Hub(Settings settings, Ports ports);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  ~Hub();

  Result<void> start();
  void stop();  // not from the hub's own thread

  // From any thread. False where the hub has stopped: `action` is dropped unrun.
  bool post(std::function<void()> action);

  const Settings settings;
  const Ports ports;

  // --- On the hub's thread, by way of post() ---------------------------------------------------
  void take_job(std::shared_ptr<Job> job);
  void client_left(std::uint64_t job);
  void offer(Endpoint endpoint);
  void withdraw(const std::string& model);
  void add_instance(std::string name, std::string model, std::string path);
  void drain_instance(const std::string& name, std::function<void()> done);
  void remove_instance(const std::string& name);
  void explain(const std::string& model, std::string why, bool is_refused);
  std::string metrics() const;
  std::vector<InstanceReport> instances() const;
  std::vector<Gateway::ModelLoad> loads() const;
  std::vector<ModelEntry> models_for(const std::string& tenant) const;

 private:
  struct Flight {
    Job* job;
    std::uint32_t part;
  };
  struct Link {
    Link(LinkId given_id, std::string given_name, std::string given_model, std::string path)
        : id(given_id),
          name(std::move(given_name)),
          model(std::move(given_model)),
          wire(std::move(path)) {}
    const LinkId id;
    const std::string name;
    const std::string model;
    EngineLink wire;
    bool is_up = false;  // it has said what it is
    bool is_draining = false;
    bool is_broken = false;  // to be closed once nobody reads from it
    bool wants_write = false;
    infer::wire::Welcome welcome;
    infer::wire::Stats stats;
    std::unordered_map<infer::wire::StreamId, Flight> flights;
    infer::wire::StreamId last_stream = 0;
    std::uint64_t tokens_promised = 0;  // of its flights
    infer::PrefixTrail trail;
    SteadyTime heard_at{};
    SteadyTime ask_at{};
    SteadyTime connect_at{};
    Duration pause{};
    std::function<void()> when_drained;
  };
  struct Model {
    Endpoint endpoint;
    ModelMetrics metrics;
    Recent recent;
    std::uint64_t requests = 0;
    Instant last_request{};
    std::set<LinkId> links;
    std::string why;          // no instance serves, as far as somebody told
    bool is_refused = false;  // and none will come

    void note_first_token(std::uint64_t us, Instant now) {
      metrics.to_first_token.observe(us);
      recent.first_token(us, now);
    }
    void note_gap(std::uint64_t us, Instant now) {
      metrics.gap.observe(us);
      recent.gap(us, now);
    }
  };

  // The loop.
  void run();
  int wait_ms() const;
  void take_mail();
  void refresh_now();

  // Engines.
  void on_link_event(LinkId id, std::uint32_t events);
  void connect(Link& link);
  void lose(Link& link);
  void watch(Link& link, bool add);
  void send(Link& link, const infer::wire::Frame& frame);
  void take_frame(Link& link, infer::wire::Frame& frame);
  void welcome(Link& link, infer::wire::Welcome& welcome);
  void tend_links();
  void check_drained(Link& link);
  bool is_silent(const Link& link) const;
  bool accepts(const Link& link) const;
  InstanceReport::State state_of(const Link& link) const;
  Flight* find_flight(Link& link, infer::wire::StreamId stream);
  Flight end_flight(Link& link, infer::wire::StreamId stream);

  // Requests.
  std::optional<ApiError> admit(Job& job);
  std::string served_as(const Job& job) const;
  std::optional<ApiError> check_limits(Job& job);
  void predict(Job& job, const Model& model) const;
  const infer::wire::Welcome* any_welcome(const Model& model) const;
  void advance(Job& job);
  enum class Placed { sent, nowhere, refused };
  Placed place(Job& job, std::uint32_t index);
  Link* choose(const Model& model, const Part& part);
  void wait_for_instance(Job& job);
  void end_waiting(Job& job);
  ApiError no_instance(const Job& job, const Model& model, std::string what) const;
  void tend_waiting(const std::string* model);

  void take_text(Flight flight, infer::wire::Chunk& chunk);
  void take_choice_end(Flight flight, const infer::wire::ChoiceDone& done);
  void take_embedding(Flight flight, infer::wire::Embedding& embedding);
  void take_end(Link& link, Flight flight, const infer::wire::Finished& finished);
  void take_failure(Link& link, Flight flight, const infer::wire::Failed& failed);
  void lose_part(Flight flight, const Link& link);
  void note_text(Job& job, Part& part, std::uint32_t tokens);
  void begin_choice(Job& job, std::size_t choice);
  void write(Job& job, std::string_view bytes);
  void fail(Job& job, ApiError error);
  void abandon(Job& job);
  void cancel_parts(Job& job);
  void end_part(Job& job);
  void settle(Job& job);
  void answer(Job& job);
  void forget_if_done(Job& job);
  void erase_done();
  std::function<void()> when_client_leaves(std::uint64_t job);
  http::Response head_of(const Job& job, http::Response response) const;
  Instant wall_now() const;
  Instant steady_now() const;  // now_, of no particular beginning

  int epoll_ = -1;
  int wake_ = -1;
  std::thread thread_;
  std::mutex mail_mutex_;
  std::vector<std::function<void()>> mail_;
  bool is_closed_ = false;  // under mail_mutex_
  bool is_stopping_ = false;

  SteadyTime now_{};
  std::map<LinkId, std::unique_ptr<Link>> links_;
  LinkId last_link_ = 0;
  std::map<std::string, Model> models_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Job>> jobs_;
  std::set<std::uint64_t> waiting_;  // jobs, the oldest first
  std::vector<std::uint64_t> done_;  // jobs to forget at the end of the turn
  std::map<std::string, TenantMeter> meters_;
  std::string scratch_;
};

}  // namespace loam::gateway

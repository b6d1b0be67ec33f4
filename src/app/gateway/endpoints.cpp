#include "app/gateway/endpoints.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "app/gateway/endpoint_json.hpp"

namespace loam::serving {
namespace {

using State = infer::ScaledInstance::State;
constexpr std::chrono::milliseconds tick{250};

Instant wall_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

template <class Answer, class Ask>
Answer answer_of(Ask ask) {
  auto told = std::make_shared<std::promise<Answer>>();
  auto answer = told->get_future();
  ask([told](Answer given) { told->set_value(std::move(given)); });
  // A gateway that has stopped drops the question.
  if (answer.wait_for(std::chrono::seconds(5)) != std::future_status::ready) return {};
  return answer.get();
}

}  // namespace

void Endpoints::offer(const EndpointConfig& endpoint, bool is_made) {
  for (const EndpointConfig& part : parts_of(endpoint))
    offer_part(part, part.model == endpoint.model ? "" : endpoint.model, is_made);
  tended_.at(endpoint.model).tiers = endpoint.tiers;
}

void Endpoints::offer_part(const EndpointConfig& part, const std::string& tier_of, bool is_made) {
  gateway_->offer({part.model,
                   part.owner,
                   part.callers,
                   wall_now(),
                   tier_of,
                   {part.project, part.environment, {}, part.tags, {}}});
  for (std::size_t i = 0; i < part.engines.size(); ++i)
    gateway_->add_instance(part.model + "-" + std::to_string(i), part.model, part.engines[i]);
  Tended tended;
  tended.config = part;
  if (!part.file.empty()) {
    tended.need = instance_memory(part);
    if (const auto checked = check_model(part); !checked.ok())
      log_(part.model + " will not come up: " + to_text(checked.error()));
  }
  tended.load.slots = static_cast<std::uint32_t>(part.slots);
  tended.is_made = is_made;
  tended.tier_of = tier_of;
  tended_.emplace(part.model, std::move(tended));
}

Result<void> Endpoints::start(gateway::Gateway& gateway) {
  gateway_ = &gateway;
  LOAM_TRY(made, load_endpoints(config_.endpoints_file));
  for (const EndpointConfig& endpoint : config_.endpoints) offer(endpoint, false);
  for (const EndpointConfig& endpoint : made) {
    const auto parts = parts_of(endpoint);
    if (std::any_of(parts.begin(), parts.end(),
                    [this](const EndpointConfig& part) { return tended_.contains(part.model); })) {
      log_(endpoint.model + " is in the configuration too, which counts");
    } else {
      offer(endpoint, true);
    }
  }
  learn_past();
  LOAM_CHECK(host_.open([this] { wanted({}); }));
  thread_ = std::thread([this] { run(); });
  return {};
}

// The traffic of the past days, from the usage file, so that a restart forgets nothing usual.
void Endpoints::learn_past() {
  constexpr int days = 14;
  std::size_t skipped = 0;
  const Instant now = wall_now();
  const auto past = past_traffic(config_.usage_file, now, days, skipped);
  if (!past.ok()) return log_(to_text(past.error()));
  if (skipped > 0)
    log_(std::to_string(skipped) + " lines of " + config_.usage_file + " cannot be read");
  for (const auto& [model, minutes] : *past) {
    const auto found = tended_.find(model);
    if (found == tended_.end() || minutes.empty()) continue;
    auto next = minutes.begin();
    for (std::int64_t minute = next->first; minute < now.ms / Duration::minutes(1).ms; ++minute) {
      const bool busy = next != minutes.end() && next->first == minute;
      found->second.traffic.learn(minute, busy ? next->second.mean : 0,
                                  busy ? next->second.peak : 0);
      if (busy) ++next;
    }
  }
}

Result<void> Endpoints::save() const {
  std::vector<EndpointConfig> made;
  for (const auto& [model, endpoint] : tended_) {
    if (!endpoint.is_made || !endpoint.tier_of.empty()) continue;
    made.push_back(endpoint.config);
    made.back().tiers = endpoint.tiers;
  }
  return save_endpoints(config_.endpoints_file, made);
}

Result<void> Endpoints::create(EndpointConfig endpoint) {
  const std::vector<EndpointConfig> parts = parts_of(endpoint);
  for (const EndpointConfig& part : parts) {
    LOAM_CHECK(check_model(part));
    LOAM_TRY(asked, with_slice(part));
    LOAM_CHECK(host_.check(asked, instance_memory(part)));
  }
  {
    std::lock_guard lock(mutex_);
    for (const EndpointConfig& part : parts) {
      if (!tended_.contains(part.model)) continue;
      return Error{ErrorKind::conflict, "the model " + part.model + " is offered already",
                   "delete it first, or choose another name"};
    }
    offer(endpoint, true);
    if (auto saved = save(); !saved.ok()) {
      withdraw(endpoint.model);
      return saved;
    }
  }
  wanted(endpoint.model);
  return {};
}

Result<void> Endpoints::remove(const std::string& model) {
  std::lock_guard lock(mutex_);
  const auto found = tended_.find(model);
  if (found == tended_.end())
    return Error{ErrorKind::not_found, "there is no endpoint " + model, "loam endpoint list"};
  if (!found->second.tier_of.empty()) {
    return Error{ErrorKind::conflict, model + " is a tier of " + found->second.tier_of,
                 "remove that endpoint"};
  }
  if (!found->second.is_made) {
    return Error{ErrorKind::conflict, "the endpoint " + model + " is in the configuration",
                 "remove it there and restart the gateway"};
  }
  withdraw(model);
  return save();
}

void Endpoints::withdraw(const std::string& model) {
  for (auto one = tended_.begin(); one != tended_.end();) {
    if (one->first != model && one->second.tier_of != model) {
      ++one;
      continue;
    }
    for (Instance& instance : one->second.instances) {
      *instance.drained = true;
      instance.state = State::draining;
      leaving_.instances.push_back(std::move(instance));
    }
    gateway_->withdraw(one->first);
    one = tended_.erase(one);
  }
}

void Endpoints::wanted(const std::string&) {
  {
    std::lock_guard lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_all();
}

void Endpoints::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    is_wanted_ = false;
    lock.unlock();
    observe();
    lock.lock();
    tend();
    changed_.wait_for(lock, tick, [&] { return is_stopping_ || is_wanted_; });
  }
}

void Endpoints::Engines::add(const gateway::InstanceReport& report) {
  if (report.welcome.model.empty()) return;  // it has not said what it is
  batch += report.stats.last_batch;
  waiting += report.stats.waiting;
  swapped += report.stats.swapped;
  const std::uint64_t token_bytes = report.welcome.kv_token_bytes;
  kv_bytes += report.stats.cells * token_bytes;
  kv_used_bytes += report.stats.cells_used * token_bytes;
  weights_bytes = std::max(weights_bytes, report.welcome.weights_bytes);
  prefix_bytes += report.stats.cache_bytes;
  compute = report.welcome.compute;
}

// What the gateway knows; asked without the lock, which wanted() takes on the gateway's thread.
void Endpoints::observe() {
  const auto loads = answer_of<std::vector<gateway::Gateway::ModelLoad>>(
      [&](auto callback) { gateway_->ask_loads(callback); });
  const auto reports = answer_of<std::vector<gateway::InstanceReport>>(
      [&](auto callback) { gateway_->ask_instances(callback); });
  std::lock_guard lock(mutex_);
  for (const auto& load : loads) {
    const auto found = tended_.find(load.model);
    if (found == tended_.end()) continue;
    Tended& endpoint = found->second;
    endpoint.load.in_flight = load.in_flight - std::min(load.in_flight, load.waiting);
    endpoint.load.waiting = load.waiting;
    endpoint.waiting_since = load.waiting_since;
    endpoint.traffic.observe(wall_now(), load.in_flight);
    endpoint.load.expected_milli = endpoint.traffic.expected_milli();
    endpoint.requests = load.requests;
    if (load.requests > 0) endpoint.load.last_request = load.last_request;
    endpoint.recent = load.recent;
    endpoint.heat.note(load.tokens, wall_now());
    endpoint.engines = {};
    for (const auto& report : reports) {
      if (report.model == load.model) endpoint.engines.add(report);
    }
    endpoint.load.instances.clear();
    for (Instance& instance : endpoint.instances) {
      infer::ScaledInstance scaled{instance.id, instance.state, 0};
      for (const auto& report : reports) {
        if (report.name != instance.name) continue;
        scaled.in_flight = report.in_flight;
        if (instance.state == State::starting && !instance.is_leaving &&
            report.state == gateway::InstanceReport::State::up) {
          instance.state = scaled.state = State::serving;
          instance.has_served = true;
          infer::note_start(endpoint.memory);
          log_(instance.name + " serves");
        }
      }
      endpoint.load.instances.push_back(scaled);
    }
    for (const auto& report : reports) {  // those that somebody else runs
      if (report.model == load.model && !endpoint.config.engines.empty() &&
          report.state == gateway::InstanceReport::State::up)
        endpoint.load.instances.push_back({0, State::serving, report.in_flight});
    }
  }
}

void Endpoints::tend() {
  is_known_ = host_.is_known();  // before the facts, which then hold what was there
  take_facts();
  end_drained(leaving_);
  std::vector<std::string> models;
  std::vector<infer::RoomAsk> asks;
  for (auto& [model, endpoint] : tended_) {
    if (endpoint.config.file.empty()) continue;
    end_drained(endpoint);
    note_turn(endpoint);
    infer::ScalingDecision decision =
        infer::decide_scaling(endpoint.config.scaling, endpoint.load, wall_now(), endpoint.memory);
    if (!is_known_) decision.start = 0;
    for (const std::uint64_t id : decision.drain) drain_instance(endpoint, id);
    asks.push_back(ask_of(endpoint, models.size(), decision.start));
    models.push_back(model);
  }
  assign_slices();
  host_.has_queue() ? make_turns(models, std::move(asks)) : apply(models, asks);
  explain(host_.trouble());
}

infer::RoomAsk Endpoints::ask_of(const Tended& endpoint, std::uint64_t number,
                                 std::uint32_t start) const {
  infer::RoomAsk ask;
  ask.endpoint = number;
  ask.memory = endpoint.need;
  for (const Instance& instance : endpoint.instances)
    ++(instance.state == State::draining ? ask.draining : ask.serving);
  ask.start = start;
  ask.in_flight = endpoint.load.in_flight;
  ask.waiting_since = endpoint.waiting_since;
  ask.turn_began = endpoint.turn_began;
  ask.starts_since = endpoint.starts_since;
  return ask;
}

// A turn lasts as long as any instance serves.
void Endpoints::note_turn(Tended& endpoint) const {
  const bool serves =
      std::any_of(endpoint.instances.begin(), endpoint.instances.end(),
                  [](const Instance& instance) { return instance.state == State::serving; });
  if (!serves && endpoint.turn_began) endpoint.starts_since = wall_now();
  if (serves != endpoint.turn_began.has_value())
    endpoint.turn_began = serves ? std::optional(wall_now()) : std::nullopt;
}

infer::RoomDecision Endpoints::room_of(Mebibytes total,
                                       const std::vector<infer::RoomAsk>& asks) const {
  infer::TurnTerms terms;
  terms.turn_min = config_.turn_min;
  terms.start_max = std::max(terms.start_max, config_.start_wait_max);
  return infer::decide_room(total, terms, asks, wall_now());
}

// `asks` by their place in `models`.
void Endpoints::apply(const std::vector<std::string>& models,
                      const std::vector<infer::RoomAsk>& asks) {
  constexpr std::int64_t unbounded_mib = std::int64_t{1} << 50;
  const Mebibytes total{config_.memory_mib == 0 ? unbounded_mib : config_.memory_mib};
  const infer::RoomDecision decision = room_of(total, asks);
  for (const std::uint64_t number : decision.drain) give_way(models[number]);
  for (const std::uint64_t number : decision.start) start_instance(tended_.at(models[number]));
}

// Where others wait in the same queue, the pool decides who gets room. But a model that has all the
// room would keep it from another of this gateway's for as long as requests come: so models that
// wait in the queue take turns with those that run.
void Endpoints::make_turns(const std::vector<std::string>& models,
                           std::vector<infer::RoomAsk> asks) {
  Mebibytes used;
  for (infer::RoomAsk& ask : asks) {
    Tended& endpoint = tended_.at(models[ask.endpoint]);
    for (std::uint32_t i = 0; i < ask.start; ++i) start_instance(endpoint);
    ask.start = 0;
    for (const Instance& instance : endpoint.instances) {
      if (instance.state != State::starting || !instance.waits_for_room) continue;
      --ask.serving;
      ++ask.start;
    }
    used.value += ask.memory.value * (std::int64_t{ask.serving} + ask.draining);
  }
  const infer::RoomDecision decision = room_of(used, asks);
  for (const std::uint64_t number : decision.drain) give_way(models[number]);
}

// Its least busy instance.
void Endpoints::give_way(const std::string& model) {
  Tended& endpoint = tended_.at(model);
  const infer::ScaledInstance* least = nullptr;
  for (const infer::ScaledInstance& one : endpoint.load.instances) {
    const auto instance = std::find_if(endpoint.instances.begin(), endpoint.instances.end(),
                                       [&](const Instance& known) { return known.id == one.id; });
    if (one.state == State::draining || instance == endpoint.instances.end() ||
        instance->waits_for_room)
      continue;
    if (least == nullptr || one.in_flight < least->in_flight) least = &one;
  }
  if (least == nullptr) return;
  log_(model + " gives way to a model that waits");
  drain_instance(endpoint, least->id);
}

// Hot models on big slices: who takes a slice gets one for its next instance by how many tokens it
// served in the last hour. What runs stays where it is.
void Endpoints::assign_slices() {
  if (config_.slices.empty()) return;
  std::vector<Tended*> takers;
  std::vector<infer::ModelHeat> models;
  for (auto& [model, endpoint] : tended_) {
    if (endpoint.config.file.empty() || !takes_slice(endpoint.config)) continue;
    models.push_back({takers.size(), endpoint.heat.per_minute(wall_now()), endpoint.need});
    takers.push_back(&endpoint);
  }
  std::vector<infer::SliceRoom> slices;
  for (std::size_t i = 0; i < config_.slices.size(); ++i)
    slices.push_back({i, MilliCe{config_.slices[i].part.value}, config_.slices[i].memory});
  // More models than slices: the coldest share the smallest that holds them.
  for (Tended* taker : takers) {
    const SliceConfig* smallest = smallest_slice(config_.slices, taker->need);
    taker->slice_share = smallest == nullptr ? config_.slices.front().share : smallest->share;
  }
  for (const infer::SlicePick& pick : infer::assign_slices(models, std::move(slices)))
    takers[pick.endpoint]->slice_share = config_.slices[pick.slice].share;
}

// As its first instance would be asked for.
Result<EndpointConfig> Endpoints::with_slice(const EndpointConfig& part) const {
  EndpointConfig asked = part;
  if (config_.slices.empty() || !takes_slice(part)) return asked;
  const Mebibytes memory = instance_memory(part);
  const SliceConfig* slice = smallest_slice(config_.slices, memory);
  if (slice == nullptr) {
    return Error{ErrorKind::exhausted,
                 "an instance of " + part.model + " takes " + std::to_string(memory.value) +
                     " MiB, which no slice of the gateway's settings holds",
                 "say share or ce, or make --context or --slots smaller"};
  }
  asked.share = slice->share;
  return asked;
}

void Endpoints::start_instance(Tended& endpoint) {
  Instance instance;
  instance.id = ++last_id_;
  instance.socket = fresh_socket(config_);
  instance.name = instance_name(endpoint.config.model, instance.socket);
  EndpointConfig asked = endpoint.config;
  if (!endpoint.slice_share.empty()) asked.share = endpoint.slice_share;
  host_.launch({instance.name, instance.socket, std::move(asked), endpoint.need,
                engine_command(config_, endpoint.config, instance.socket)});
  log_(instance.name + " is asked for");
  if (std::all_of(endpoint.instances.begin(), endpoint.instances.end(),
                  [](const Instance& other) { return other.state == State::draining; }))
    endpoint.starts_since = wall_now();
  endpoint.load.instances.push_back({instance.id, State::starting, 0});
  endpoint.instances.push_back(std::move(instance));
}

void Endpoints::drain_instance(Tended& endpoint, std::uint64_t id) {
  for (Instance& instance : endpoint.instances) {
    if (instance.id != id) continue;
    instance.state = State::draining;
    log_(instance.name + " drains");
    for (infer::ScaledInstance& scaled : endpoint.load.instances) {
      if (scaled.id == id) scaled.state = State::draining;
    }
    gateway_->drain_instance(instance.name, [drained = instance.drained] { *drained = true; });
  }
}

// --- What the host says --------------------------------------------------------------------------

void Endpoints::take_facts() {
  for (const InstanceFact& fact : host_.facts()) {
    const auto owner = tended_.find(fact.model);
    Instance* found = nullptr;
    Tended* endpoint = nullptr;
    for (Tended* one : {owner == tended_.end() ? nullptr : &owner->second, &leaving_}) {
      if (one == nullptr) continue;
      for (Instance& instance : one->instances) {
        if (instance.name != fact.name) continue;
        found = &instance;
        endpoint = one;
      }
    }
    if (found == nullptr) {
      adopt(fact);
    } else if (fact.state == InstanceFact::State::ended) {
      take_end(*endpoint, *found, fact);
    } else {
      take_fact(*endpoint, *found, fact);
    }
  }
}

// One that an earlier run of this program started.
void Endpoints::adopt(const InstanceFact& fact) {
  if (fact.state == InstanceFact::State::ended) return;
  const auto found = tended_.find(fact.model);
  if (found == tended_.end() || found->second.config.file.empty()) {
    log_(fact.name + " belongs to no endpoint any more and is ended");
    return host_.end(fact.name);
  }
  Tended& endpoint = found->second;
  Instance instance;
  instance.id = ++last_id_;
  instance.name = fact.name;
  instance.socket = fact.socket;
  log_(instance.name + " is there from before" + (fact.task.empty() ? "" : ", task " + fact.task));
  if (endpoint.instances.empty()) endpoint.starts_since = wall_now();
  endpoint.load.instances.push_back({instance.id, State::starting, 0});
  endpoint.instances.push_back(std::move(instance));
  take_fact(endpoint, endpoint.instances.back(), fact);
}

void Endpoints::take_fact(Tended& endpoint, Instance& instance, const InstanceFact& fact) {
  using Fact = InstanceFact::State;
  const bool waited = std::exchange(instance.waits_for_room, fact.waits_for_room);
  if (fact.state == Fact::running) {
    if (waited) endpoint.starts_since = wall_now();
    endpoint.is_refused = false;
    endpoint.words.clear();
    if (!instance.is_routed && instance.state == State::starting) {
      instance.is_routed = true;
      gateway_->add_instance(instance.name, endpoint.config.model, instance.socket);
    }
    if (fact.is_due && instance.state == State::serving) {
      log_(instance.name + " has run for nearly as long as it may");
      drain_instance(endpoint, instance.id);
    }
    return;
  }
  endpoint.is_refused = false;
  if (!fact.words.empty()) endpoint.words = fact.words;
  if (fact.state == Fact::leaving && instance.state != State::draining &&
      !std::exchange(instance.is_leaving, true)) {
    log_(instance.name + " is leaving: " + fact.words);
    instance.state = State::starting;  // it may come back
    gateway_->drain_instance(instance.name, {});
  }
  if (fact.state == Fact::waiting) {
    unroute(instance);
    instance.is_leaving = false;
    if (instance.state == State::serving) instance.state = State::starting;
    if (instance.state == State::draining) *instance.drained = true;
  }
}

void Endpoints::unroute(Instance& instance) {
  if (std::exchange(instance.is_routed, false)) gateway_->remove_instance(instance.name);
}

void Endpoints::end_drained(Tended& endpoint) {
  for (Instance& instance : endpoint.instances) {
    if (*instance.drained && !std::exchange(instance.is_told_to_end, true))
      host_.end(instance.name);
  }
}

void Endpoints::take_end(Tended& endpoint, Instance& instance, const InstanceFact& fact) {
  unroute(instance);
  ::unlink(instance.socket.c_str());
  const bool wanted = instance.state != State::draining && !instance.is_told_to_end;
  const bool never_served = wanted && !instance.has_served;
  if (never_served) {
    infer::note_failed_start(endpoint.memory, wall_now());
    endpoint.is_refused = fact.is_refused;
    endpoint.words = fact.words;
  }
  log_(instance.name +
       (fact.is_refused ? " is refused"
        : never_served  ? " did not come up"
        : wanted        ? " was lost"
                        : " has ended") +
       (fact.words.empty() ? "" : ": " + fact.words) +
       (fact.log.empty() ? "" : "; see " + fact.log));
  const std::uint64_t id = instance.id;
  std::erase_if(endpoint.load.instances,
                [&](const infer::ScaledInstance& one) { return one.id == id; });
  std::erase_if(endpoint.instances, [&](const Instance& one) { return one.id == id; });
}

// Tells the gateway what stands in the way where no instance serves.
void Endpoints::explain(const std::string& trouble) {
  for (auto& [model, endpoint] : tended_) {
    if (endpoint.config.file.empty()) continue;
    const bool serves =
        infer::state_of(endpoint.load, endpoint.memory) == infer::EndpointState::serving;
    const std::string why = serves ? "" : trouble.empty() ? endpoint.words : trouble;
    const bool refused = !serves && endpoint.is_refused;
    if (why == endpoint.why && refused == endpoint.was_refused) continue;
    endpoint.why = why;
    endpoint.was_refused = refused;
    gateway_->explain(model, why, refused);
  }
}

void Endpoints::stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  host_.close();
}

std::vector<Endpoints::Standing> Endpoints::standings() const {
  std::lock_guard lock(mutex_);
  std::vector<Standing> all;
  for (const auto& [model, endpoint] : tended_) {
    Standing one;
    one.model = model;
    one.state = infer::state_of(endpoint.load, endpoint.memory);
    one.instances = static_cast<std::uint32_t>(endpoint.load.instances.size());
    for (const Instance& instance : endpoint.instances) {
      if (!instance.waits_for_room) continue;
      ++one.queued;
      --one.instances;
    }
    one.why = endpoint.why;
    one.in_flight = endpoint.load.in_flight;
    one.waiting = endpoint.load.waiting;
    one.requests = endpoint.requests;
    one.memory = endpoint.need;
    one.recent = endpoint.recent;
    one.engines = endpoint.engines;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace loam::serving

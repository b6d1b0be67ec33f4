#include "app/gateway/endpoints.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
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

// Starts the program with its output in `log`; it ends with this process. -1 where it cannot.
pid_t spawn(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (out < 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {  // nothing but system calls: other threads may have held locks
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out);
  return pid;
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
  gateway_->offer({endpoint.model, endpoint.owner, endpoint.callers, wall_now()});
  for (std::size_t i = 0; i < endpoint.engines.size(); ++i)
    gateway_->add_instance(endpoint.model + "-" + std::to_string(i), endpoint.model,
                           endpoint.engines[i]);
  Tended tended;
  tended.config = endpoint;
  tended.load.slots = static_cast<std::uint32_t>(endpoint.slots);
  tended.is_made = is_made;
  tended_.emplace(endpoint.model, std::move(tended));
}

Result<void> Endpoints::start(gateway::Gateway& gateway) {
  gateway_ = &gateway;
  LOAM_TRY(made, load_endpoints(config_.endpoints_file));
  for (const EndpointConfig& endpoint : config_.endpoints) offer(endpoint, false);
  for (const EndpointConfig& endpoint : made) {
    if (tended_.contains(endpoint.model)) {
      log_(endpoint.model + " is in the configuration too, which counts");
    } else {
      offer(endpoint, true);
    }
  }
  learn_past();
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
    if (endpoint.is_made) made.push_back(endpoint.config);
  }
  return save_endpoints(config_.endpoints_file, made);
}

Result<void> Endpoints::create(EndpointConfig endpoint) {
  if (::access(endpoint.file.c_str(), R_OK) != 0) {
    return Error{ErrorKind::not_found, "the model file " + endpoint.file + " cannot be read",
                 "give a path on the gateway's machine that its user may read"};
  }
  {
    std::lock_guard lock(mutex_);
    if (tended_.contains(endpoint.model)) {
      return Error{ErrorKind::conflict, "the model " + endpoint.model + " is offered already",
                   "delete it first, or choose another name"};
    }
    offer(endpoint, true);
    if (auto saved = save(); !saved.ok()) {
      gateway_->withdraw(endpoint.model);
      tended_.erase(endpoint.model);
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
  if (!found->second.is_made) {
    return Error{ErrorKind::conflict, "the endpoint " + model + " is in the configuration",
                 "remove it there and restart the gateway"};
  }
  for (Instance& instance : found->second.instances) {
    *instance.drained = true;
    instance.state = State::draining;
    leaving_.instances.push_back(std::move(instance));
  }
  gateway_->withdraw(model);
  tended_.erase(found);
  return save();
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
    endpoint.load.instances.clear();
    for (Instance& instance : endpoint.instances) {
      infer::ScaledInstance scaled{instance.id, instance.state, 0};
      for (const auto& report : reports) {
        if (report.name != instance.name) continue;
        scaled.in_flight = report.in_flight;
        if (instance.state == State::starting &&
            report.state == gateway::InstanceReport::State::up) {
          instance.state = scaled.state = State::serving;
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
  reap(leaving_);
  std::vector<std::string> models;
  std::vector<infer::RoomAsk> asks;
  for (auto& [model, endpoint] : tended_) {
    if (endpoint.config.file.empty()) continue;
    reap(endpoint);
    const infer::ScalingDecision decision =
        infer::decide_scaling(endpoint.config.scaling, endpoint.load, wall_now(), endpoint.memory);
    for (const std::uint64_t id : decision.drain) drain_instance(endpoint, id);
    asks.push_back(ask_of(endpoint, models.size(), decision.start));
    models.push_back(model);
  }
  apply(models, asks);
}

infer::RoomAsk Endpoints::ask_of(const Tended& endpoint, std::uint64_t number,
                                 std::uint32_t start) const {
  infer::RoomAsk ask;
  ask.endpoint = number;
  ask.memory = Mebibytes{endpoint.config.memory_mib};
  if (ask.memory.value == 0) {  // the weights, and some for contexts
    std::error_code fault;
    const auto bytes = std::filesystem::file_size(endpoint.config.file, fault);
    ask.memory = Mebibytes{fault ? 1 : static_cast<std::int64_t>(bytes / 4 * 5 / (1U << 20U)) + 1};
  }
  for (const Instance& instance : endpoint.instances)
    ++(instance.state == State::draining ? ask.draining : ask.serving);
  ask.start = start;
  ask.in_flight = endpoint.load.in_flight;
  ask.waiting_since = endpoint.waiting_since;
  ask.turn_began = endpoint.turn_began;
  return ask;
}

// `asks` by their place in `models`.
void Endpoints::apply(std::vector<std::string>& models, const std::vector<infer::RoomAsk>& asks) {
  constexpr std::int64_t unbounded_mib = std::int64_t{1} << 50;
  const Mebibytes total{config_.memory_mib == 0 ? unbounded_mib : config_.memory_mib};
  const infer::RoomDecision decision =
      infer::decide_room(total, config_.turn_min, asks, wall_now());
  for (const std::uint64_t number : decision.drain) {
    Tended& endpoint = tended_.at(models[number]);
    const auto busiest_last = [](const infer::ScaledInstance& a, const infer::ScaledInstance& b) {
      return a.in_flight < b.in_flight;
    };
    std::vector<infer::ScaledInstance> active;
    for (const infer::ScaledInstance& one : endpoint.load.instances) {
      if (one.state != State::draining) active.push_back(one);
    }
    const auto least = std::min_element(active.begin(), active.end(), busiest_last);
    if (least == active.end()) continue;
    log_(models[number] + " gives way to a model that waits");
    drain_instance(endpoint, least->id);
  }
  for (const std::uint64_t number : decision.start) start_instance(tended_.at(models[number]));
}

void Endpoints::start_instance(Tended& endpoint) {
  Instance instance;
  instance.id = ++last_id_;
  instance.name = endpoint.config.model + "-" + std::to_string(instance.id);
  instance.socket = config_.run_dir + "/e" + std::to_string(instance.id) + ".sock";
  ::unlink(instance.socket.c_str());
  std::vector<std::string> command{config_.engine_program,
                                   "--model",
                                   endpoint.config.file,
                                   "--name",
                                   endpoint.config.model,
                                   "--socket",
                                   instance.socket,
                                   "--slots",
                                   std::to_string(endpoint.config.slots),
                                   "--usage",
                                   config_.run_dir + "/engine-usage.jsonl"};
  command.insert(command.end(), endpoint.config.arguments.begin(), endpoint.config.arguments.end());
  instance.pid = spawn(command, config_.run_dir + "/e" + std::to_string(instance.id) + ".log");
  if (instance.pid < 0) {
    infer::note_failed_start(endpoint.memory, wall_now());
    return log_(instance.name + " cannot be started");
  }
  log_(instance.name + " starts, pid " + std::to_string(instance.pid));
  if (endpoint.instances.empty()) endpoint.turn_began = wall_now();
  gateway_->add_instance(instance.name, endpoint.config.model, instance.socket);
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

// Ends those that are drained and forgets those that have ended.
void Endpoints::reap(Tended& endpoint) {
  for (Instance& instance : endpoint.instances) {
    if (*instance.drained && !std::exchange(instance.is_told_to_end, true))
      ::kill(instance.pid, SIGTERM);
    int status = 0;
    if (::waitpid(instance.pid, &status, WNOHANG) != instance.pid) continue;
    instance.pid = -1;
    gateway_->remove_instance(instance.name);
    ::unlink(instance.socket.c_str());
    const bool never_served = instance.state == State::starting;
    if (never_served) infer::note_failed_start(endpoint.memory, wall_now());
    log_(instance.name + (never_served              ? " did not come up; see its log"
                          : instance.is_told_to_end ? " has ended"
                                                    : " was lost"));
    std::erase_if(endpoint.load.instances,
                  [&](const infer::ScaledInstance& one) { return one.id == instance.id; });
  }
  std::erase_if(endpoint.instances, [](const Instance& one) { return one.pid < 0; });
}

void Endpoints::stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  std::vector<Instance> ending = std::move(leaving_.instances);
  for (auto& [model, endpoint] : tended_)
    std::move(endpoint.instances.begin(), endpoint.instances.end(), std::back_inserter(ending));
  tended_.clear();
  for (const Instance& instance : ending) ::kill(instance.pid, SIGTERM);
  for (const Instance& instance : ending) {
    constexpr int tries = 100;
    for (int i = 0; ::waitpid(instance.pid, nullptr, WNOHANG) == 0; ++i) {
      if (i == tries) ::kill(instance.pid, SIGKILL);
      ::usleep(50'000);
    }
    ::unlink(instance.socket.c_str());
  }
}

std::vector<Endpoints::Standing> Endpoints::standings() const {
  std::lock_guard lock(mutex_);
  std::vector<Standing> all;
  for (const auto& [model, endpoint] : tended_) {
    all.push_back({model, infer::state_of(endpoint.load, endpoint.memory),
                   static_cast<std::uint32_t>(endpoint.load.instances.size()),
                   endpoint.load.in_flight, endpoint.load.waiting, endpoint.requests});
  }
  return all;
}

}  // namespace loam::serving

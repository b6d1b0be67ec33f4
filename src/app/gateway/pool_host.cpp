#include "app/gateway/pool_host.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace loam::serving {
namespace {

using State = InstanceFact::State;

constexpr const char* live_states = "waiting,starting,running,stopping,paused";

// What comes after an option in a command; empty where it is not there.
std::string after(const std::vector<std::string>& command, std::string_view option) {
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (command[i] == option) return command[i + 1];
  }
  return {};
}

std::string words_of(const Error& error) {
  return error.next_step.empty() ? error.message : error.message + "; " + error.next_step;
}

// Trouble that passes, unlike an answer that says no.
bool is_passing(const Error& error) {
  return error.kind == ErrorKind::unavailable || error.kind == ErrorKind::corrupt;
}

// Before the longest run time is over, so that another instance can take over in time.
Duration due_before(const api::TaskView& task) {
  constexpr std::int64_t parts = 10;
  return std::min(Duration{task.limit_ms / parts}, Duration::minutes(10));
}

}  // namespace

api::TaskRequest task_of(const Config& config, const InstanceOrder& order) {
  constexpr std::int64_t grace_for_cleaning_s = 5;
  const EndpointConfig& endpoint = order.endpoint;
  api::TaskRequest task;
  task.tenant = endpoint.owner;
  task.name = instance_task_name;
  task.command = order.command;
  // A stop lets the streams that run go on for as long as the grace allows.
  const std::int64_t grace_s = endpoint.grace.ms / 1000;
  task.command.insert(task.command.end(),
                      {"--drain-seconds",
                       std::to_string(std::max<std::int64_t>(grace_s - grace_for_cleaning_s, 0))});
  const std::string sockets = engines_folder(config);
  const std::string weights = std::filesystem::path(endpoint.file).parent_path().string();
  task.mounts = {{sockets, sockets, false}};
  // A model beside the sockets is seen with them.
  if (weights != sockets) task.mounts.push_back({weights, weights, true});
  if (!endpoint.ce.empty()) task.ce = endpoint.ce;
  if (!endpoint.share.empty()) task.share = endpoint.share;
  task.memory = std::to_string(order.memory.value) + "MiB";
  // Weights are mapped, and prefixes and swapped streams lie in the host's memory as well.
  task.host_memory =
      std::to_string(order.memory.value + host_memory_beside(endpoint).value) + "MiB";
  task.project = endpoint.project;
  task.environment = endpoint.environment;
  task.tags = endpoint.tags;
  task.model = endpoint.model;
  task.purchase_model = endpoint.purchase_model;
  task.tariff = endpoint.tariff;
  task.service_class = endpoint.service_class;
  task.time = to_text(endpoint.time);
  task.grace = to_text(endpoint.grace);
  return task;
}

std::optional<OwnTask> own_task(const Config& config, const api::TaskView& task) {
  if (task.name != instance_task_name) return std::nullopt;
  OwnTask own{task.model, after(task.command, "--socket")};
  if (own.model.empty() || after(task.command, "--name") != own.model) return std::nullopt;
  if (std::filesystem::path(own.socket).parent_path() != engines_folder(config))
    return std::nullopt;
  return own;
}

InstanceFact fact_of(const api::TaskView& task, const OwnTask& own) {
  InstanceFact fact;
  fact.name = instance_name(own.model, own.socket);
  fact.model = own.model;
  fact.socket = own.socket;
  fact.task = task.id;
  fact.words = task.reason;
  if (task.state == "running") {
    fact.state = State::running;
    fact.is_due = Duration{task.limit_ms - task.run_ms} < due_before(task);
  } else if (task.state == "stopping") {
    fact.state = State::leaving;
  } else {
    fact.state = State::waiting;
    fact.waits_for_room = task.state == "waiting";
    if (task.state == "paused") fact.words = "its task " + task.id + " is paused";
  }
  return fact;
}

Result<void> PoolHost::open(std::function<void()> on_change) {
  std::error_code fault;
  std::filesystem::create_directories(engines_folder(config_), fault);
  if (fault) {
    return Error{ErrorKind::unavailable,
                 "cannot make " + engines_folder(config_) + ": " + fault.message(),
                 "set run_dir to a folder that this user may make"};
  }
  LOAM_CHECK(api::Client::make({config_.pool, {}, {}}));
  on_change_ = std::move(on_change);
  thread_ = std::thread([this] { run(); });
  return {};
}

void PoolHost::close() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// On the caller's thread, by a connection of its own.
Result<void> PoolHost::check(const EndpointConfig& endpoint, Mebibytes memory) {
  LOAM_CHECK(check_for_pool(endpoint, false));
  LOAM_TRY(asked, api::Client::make({config_.pool, {}, {}}));
  const std::string socket = fresh_socket(config_);
  const InstanceOrder order{instance_name(endpoint.model, socket), socket, endpoint, memory,
                            engine_command(config_, endpoint, socket)};
  LOAM_CHECK(asked.quote(task_of(config_, order)));
  return {};
}

bool PoolHost::is_known() {
  std::lock_guard lock(mutex_);
  return is_known_;
}

std::string PoolHost::trouble() {
  std::lock_guard lock(mutex_);
  return trouble_;
}

void PoolHost::launch(InstanceOrder order) {
  {
    std::lock_guard lock(mutex_);
    Entry entry;
    entry.fact.name = order.name;
    entry.fact.model = order.endpoint.model;
    entry.fact.socket = order.socket;
    entry.order = std::move(order);
    entries_.emplace(entry.fact.name, std::move(entry));
    has_orders_ = true;
  }
  wake_.notify_all();
}

void PoolHost::end(const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.is_unwanted) return;
    found->second.is_unwanted = true;
    has_orders_ = true;
  }
  wake_.notify_all();
}

std::vector<InstanceFact> PoolHost::facts() {
  std::lock_guard lock(mutex_);
  std::vector<InstanceFact> facts;
  for (auto one = entries_.begin(); one != entries_.end();) {
    facts.push_back(one->second.fact);
    one = facts.back().state == State::ended ? entries_.erase(one) : std::next(one);
  }
  return facts;
}

// --- The thread ----------------------------------------------------------------------------------

void PoolHost::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    has_orders_ = false;
    lock.unlock();
    const bool unsettled = visit();
    if (on_change_) on_change_();
    lock.lock();
    // Whatever is about to change is looked at often; the rest changes seldom.
    const std::chrono::milliseconds pause{unsettled ? 200 : 1000};
    wake_.wait_for(lock, pause, [&] { return is_stopping_ || has_orders_; });
  }
}

// Tells loamd what is wanted and asks how things stand. True where something is on its way.
bool PoolHost::visit() {
  Result<void> done = submit_new();
  if (done.ok()) done = stop_unwanted();
  if (done.ok()) done = look();
  if (!done.ok()) client_.reset();  // a fresh connection next time
  note(done.ok() ? std::nullopt : std::optional(done.error()));
  std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& one) {
    return one.second.is_unwanted || one.second.fact.state != State::running;
  });
}

Result<api::Client*> PoolHost::client() {
  if (!client_) {
    LOAM_TRY(made, api::Client::make({config_.pool, {}, {}}));
    client_.emplace(std::move(made));
  }
  return &*client_;
}

void PoolHost::note(std::optional<Error> trouble) {
  std::lock_guard lock(mutex_);
  trouble_ = trouble ? "loamd does not answer: " + trouble->message : std::string();
}

void PoolHost::conclude(const std::string& name, std::string words, bool is_refused) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  found->second.fact.state = State::ended;
  found->second.fact.words = std::move(words);
  found->second.fact.is_refused = is_refused;
}

// The instance's name is the request's key: sent again after a lost answer, it is the same task.
Result<void> PoolHost::submit_new() {
  std::vector<InstanceOrder> orders;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      if (entry.order && entry.fact.state != State::ended) orders.push_back(*entry.order);
    }
  }
  for (const InstanceOrder& order : orders) {
    LOAM_TRY(asked, client());
    const auto task = asked->submit(task_of(config_, order), "instance-" + order.name);
    if (!task.ok() && is_passing(task.error())) return task.error();
    if (!task.ok()) {
      conclude(order.name, words_of(task.error()), true);
      continue;
    }
    std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(order.name);
    entry.order.reset();
    entry.task = entry.fact.task = task->id;
    entry.fact.words = task->reason;
  }
  return {};
}

Result<void> PoolHost::stop_unwanted() {
  std::vector<std::pair<std::string, std::string>> tasks;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      if (entry.is_unwanted && !entry.is_stop_sent && !entry.task.empty())
        tasks.emplace_back(name, entry.task);
    }
  }
  for (const auto& [name, task] : tasks) {
    LOAM_TRY(asked, client());
    const auto stopped = asked->stop(task);
    if (!stopped.ok() && is_passing(stopped.error())) return stopped.error();
    // Otherwise it is over already, which look() finds out.
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(name); found != entries_.end())
      found->second.is_stop_sent = true;
  }
  return {};
}

// By their instances' names.
Result<std::map<std::string, InstanceFact>> PoolHost::live_tasks() {
  std::map<std::string, InstanceFact> live;
  api::TaskQuery query;
  query.name = instance_task_name;
  query.state = live_states;
  query.limit = 500;
  LOAM_TRY(asked, client());
  do {
    LOAM_TRY(page, asked->tasks(query));
    for (const api::TaskView& task : page.tasks) {
      const auto own = own_task(config_, task);
      if (!own) continue;
      InstanceFact fact = fact_of(task, *own);
      std::string name = fact.name;
      live.emplace(std::move(name), std::move(fact));
    }
    query.after = page.next;
  } while (!query.after.empty());
  return live;
}

Result<void> PoolHost::look() {
  LOAM_TRY(live, live_tasks());
  std::vector<std::pair<std::string, std::string>> gone;
  {
    std::lock_guard lock(mutex_);
    for (auto& [name, fact] : live) {
      Entry& entry = entries_[name];  // one that an earlier run of this program asked for, too
      if (entry.fact.state == State::ended && !entry.fact.name.empty()) continue;
      entry.order.reset();
      entry.task = fact.task;
      entry.fact = std::move(fact);
    }
    for (const auto& [name, entry] : entries_) {
      if (!entry.task.empty() && !live.contains(name) && entry.fact.state != State::ended)
        gone.emplace_back(name, entry.task);
    }
  }
  for (const auto& [name, task] : gone) {
    LOAM_TRY(end, how_it_ended(task));
    if (!end.words.empty()) conclude(name, std::move(end.words), end.is_refused);
  }
  std::lock_guard lock(mutex_);
  is_known_ = true;
  return {};
}

Result<PoolHost::End> PoolHost::how_it_ended(const std::string& task) {
  LOAM_TRY(asked, client());
  const auto view = asked->task(task);
  if (!view.ok() && is_passing(view.error())) return view.error();
  if (!view.ok()) return End{"loamd knows no task " + task, false};
  if (view->state != "finished") return End{};
  std::string words = "task " + task + " " + view->outcome;
  if (view->exit_code == model_unusable_status)
    return End{words + ": " + model_unusable_words, true};
  if (!view->reason.empty()) words += ": " + view->reason;
  return End{words, false};
}

}  // namespace loam::serving

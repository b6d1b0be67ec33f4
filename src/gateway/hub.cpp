// The hub's loop: waits for the engines' sockets, the mailbox and the next time limit.
#include "gateway/hub.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/assert.hpp"

namespace loam::gateway {

namespace {

constexpr LinkId mailbox_id = 0;  // links count from 1

Error cannot_start(const char* what) {
  return {ErrorKind::unavailable,
          std::string("cannot start the gateway: ") + what + ": " + std::strerror(errno),
          {}};
}

}  // namespace

Hub::Hub(Settings given, Ports given_ports) : settings(given), ports(given_ports) {
  LOAM_ASSERT(ports.access != nullptr);
}

Hub::~Hub() {
  stop();
  links_.clear();
  if (epoll_ >= 0) ::close(epoll_);
  if (wake_ >= 0) ::close(wake_);
}

Result<void> Hub::start() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return cannot_start("epoll");
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) return cannot_start("eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = mailbox_id;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) return cannot_start("epoll");
  refresh_now();
  sigset_t all;  // signals are for the program's own threads
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<void> started;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& fault) {
    started = Error{ErrorKind::unavailable,
                    std::string("cannot start the gateway's thread: ") + fault.what(),
                    {}};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

bool Hub::post(std::function<void()> action) {
  {
    std::lock_guard lock(mail_mutex_);
    if (is_closed_) return false;
    mail_.push_back(std::move(action));
    if (mail_.size() > 1) return true;  // whoever was first has woken the thread
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof(one));
  return true;
}

void Hub::stop() {
  if (!thread_.joinable()) return;
  LOAM_ASSERT(thread_.get_id() != std::this_thread::get_id());
  post([this] { is_stopping_ = true; });
  thread_.join();
  std::vector<std::function<void()>> late;
  {
    std::lock_guard lock(mail_mutex_);
    is_closed_ = true;
    late = std::exchange(mail_, {});
  }
  for (const auto& action : late) action();  // jobs among them are answered below
  std::vector<std::shared_ptr<Job>> jobs;
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  for (const auto& job : jobs) {
    if (!job->is_over) {
      fail(*job, {503,
                  "The gateway is stopping; send the request again.",
                  "server_error",
                  {},
                  "unavailable",
                  Duration::seconds(1)});
    }
    if (job->parts_out > 0) job->is_settled = false;
    settle(*job);
  }
  jobs_.clear();
}

void Hub::run() {
  std::array<epoll_event, 64> events{};
  while (!is_stopping_) {
    const int count =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
    refresh_now();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == mailbox_id) {
        take_mail();
      } else {
        on_link_event(event.data.u64, event.events);
      }
    }
    tend_links();
    tend_waiting(nullptr);
    erase_done();
  }
}

void Hub::refresh_now() {
  now_ = std::chrono::steady_clock::now();
}

Instant Hub::wall_now() const {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

Instant Hub::steady_now() const {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count()};
}

// Until the next time limit, rounded up so that it has passed when the thread wakes.
int Hub::wait_ms() const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [id, link] : links_)
    next = std::min(next, link->wire.open() ? link->ask_at : link->connect_at);
  if (!waiting_.empty()) next = std::min(next, jobs_.at(*waiting_.begin())->wait_until);
  if (next == SteadyTime::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now_).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Hub::take_mail() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_, &count, sizeof(count));
  std::vector<std::function<void()>> mail;
  {
    std::lock_guard lock(mail_mutex_);
    mail = std::exchange(mail_, {});
  }
  for (const auto& action : mail) action();
}

void Hub::erase_done() {
  for (const std::uint64_t id : done_) {
    waiting_.erase(id);
    jobs_.erase(id);
  }
  done_.clear();
}

std::string Hub::metrics() const {
  std::map<std::string, ModelMetrics> models;
  for (const auto& [name, model] : models_) models.emplace(name, model.metrics);
  return metrics_text(models, instances());
}

std::vector<InstanceReport> Hub::instances() const {
  std::vector<InstanceReport> reports;
  for (const auto& [id, link] : links_) {
    reports.push_back({link->name, link->model, state_of(*link),
                       static_cast<std::uint32_t>(link->flights.size()), link->welcome,
                       link->stats});
  }
  return reports;
}

// The tier of its model that the request's class asks for, where there is one.
std::string Hub::served_as(const Job& job) const {
  const std::string tier = tier_model(job.head.model, job.service_class);
  const auto found = models_.find(tier);
  return found != models_.end() && found->second.endpoint.tier_of == job.head.model
             ? tier
             : job.head.model;
}

std::vector<Gateway::ModelLoad> Hub::loads() const {
  std::map<std::string_view, Instant> waiting_since;
  for (const std::uint64_t id : waiting_) {
    const Job& job = *jobs_.at(id);
    const auto [at, is_new] = waiting_since.try_emplace(job.model, job.arrived);
    if (!is_new) at->second = std::min(at->second, job.arrived);
  }
  std::vector<Gateway::ModelLoad> loads;
  for (const auto& [name, model] : models_) {
    Gateway::ModelLoad load{name,
                            model.metrics.in_flight,
                            model.metrics.waiting,
                            {},
                            model.requests,
                            model.last_request,
                            model.metrics.prompt_tokens + model.metrics.generated_tokens,
                            model.recent.summary(steady_now())};
    if (const auto at = waiting_since.find(name); at != waiting_since.end())
      load.waiting_since = at->second;
    loads.push_back(std::move(load));
  }
  return loads;
}

std::vector<ModelEntry> Hub::models_for(const std::string& tenant) const {
  std::vector<ModelEntry> entries;
  for (const auto& [name, model] : models_) {
    const Endpoint& endpoint = model.endpoint;
    if (!endpoint.tier_of.empty()) continue;
    const bool listed = std::find(endpoint.callers.begin(), endpoint.callers.end(), tenant) !=
                        endpoint.callers.end();
    if (!endpoint.callers.empty() && !listed && tenant != endpoint.owner) continue;
    entries.push_back({name, endpoint.owner, endpoint.created.ms / 1000});
  }
  return entries;
}

}  // namespace loam::gateway

// bench_clients SOCKET CLIENTS TASKS: so many clients at once submit tasks to a running loamd, each
// over its own connection and with an idempotency key, until TASKS are durable. The device should
// be taken, so that none of them starts: what is measured is the way of a command through the
// daemon. Prints figures as loam-bench reads them.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/client.hpp"

namespace {

using namespace loam;
using Clock = std::chrono::steady_clock;

struct Run {
  std::string socket;
  std::size_t clients = 64;
  std::int64_t tasks = 100'000;
};

api::TaskRequest request() {
  api::TaskRequest made;
  made.tenant = "acme";
  made.command = {"/bin/true"};
  made.share = "1";
  made.time = "1m";
  return made;
}

class Crowd {
 public:
  explicit Crowd(Run run) : run_(std::move(run)) {}

  // Milliseconds of each submission.
  Result<std::vector<double>> submit_all() {
    std::vector<std::thread> clients;
    for (std::size_t i = 0; i < run_.clients; ++i) clients.emplace_back([this] { be_a_client(); });
    for (std::thread& client : clients) client.join();
    if (!fault_.ok()) return fault_.error();
    return std::move(milliseconds_);
  }

 private:
  void be_a_client() {
    api::ConnectOptions options;
    options.address = run_.socket;
    auto client = api::Client::make(options);
    if (!client) return give_up(client.error());
    std::vector<double> mine;
    while (next_.fetch_add(1) < run_.tasks && going_) {
      const auto from = Clock::now();
      if (const auto task = client->submit(request()); !task) return give_up(task.error());
      mine.push_back(std::chrono::duration<double, std::milli>(Clock::now() - from).count());
    }
    const std::lock_guard lock(mutex_);
    milliseconds_.insert(milliseconds_.end(), mine.begin(), mine.end());
  }
  void give_up(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (fault_.ok()) fault_ = error;
    going_ = false;
  }

  Run run_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> going_{true};
  std::mutex mutex_;
  std::vector<double> milliseconds_;
  Result<void> fault_;
};

double percentile(std::vector<double>& values, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

bool read(const char* text, std::int64_t& out) {
  const auto [end, fault] = std::from_chars(text, text + std::strlen(text), out);
  return fault == std::errc{} && *end == '\0' && out > 0;
}

}  // namespace

int main(int count, char** words) {
  Run run;
  std::int64_t clients = 0;
  if (count != 4 || !read(words[2], clients) || !read(words[3], run.tasks)) {
    std::fputs("usage: bench_clients SOCKET CLIENTS TASKS\n", stderr);
    return 2;
  }
  run.socket = words[1];
  run.clients = static_cast<std::size_t>(clients);
  const auto from = Clock::now();
  auto milliseconds = Crowd(run).submit_all();
  const double seconds = std::chrono::duration<double>(Clock::now() - from).count();
  if (!milliseconds) {
    std::fprintf(stderr, "bench_clients: %s\n", milliseconds.error().message.c_str());
    return 1;
  }
  std::printf("{\"per_second\":%.1f,\"ms_p50\":%.3f,\"ms_p99\":%.3f}\n",
              static_cast<double>(milliseconds->size()) / seconds, percentile(*milliseconds, 0.5),
              percentile(*milliseconds, 0.99));
  return 0;
}

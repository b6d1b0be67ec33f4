// bench_guard_slices: does a slice hold, measured with real programs under guard and keeper on this
// machine's first OpenCL device: shares, copy bandwidth, a service's wait, the guard's own cost,
// and the memory book under races and kills. Prints figures as loam-bench reads them.
//   bench_guard_slices [--seconds 10] [--rounds 1000000] [--kills 1000] [--only PART]
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/bench.hpp"
#include "bench/tenant.hpp"
#include "node/keeper/keeper_process.hpp"
#include "node/keeper/slice_page.hpp"

namespace loam::bench {
namespace {

using node::SliceLimits;
using node::SliceMode;
using node::SliceUsage;

struct Options {
  double seconds = 10;
  long rounds = 1'000'000;
  long kills = 1'000;
  std::string only;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_guard_slices: %s\n", what.c_str());
  std::exit(1);
}
template <class T>
requires(!std::is_void_v<T>) T must(Result<T> result) {
  if (!result.ok()) fail(to_text(result.error()));
  return std::move(result).value();
}

void must(const Result<void>& result) {
  if (!result.ok()) fail(to_text(result.error()));
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// A folder with a keeper and pages on the first OpenCL device.
class Site {
 public:
  Site() {
    char name[] = "/tmp/bench_guard.XXXXXX";
    if (!::mkdtemp(name)) fail("cannot make a folder in /tmp");
    root_ = name;
    folder_ = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
    key_ = first_device_key(device_);
  }
  ~Site() {
    for (const pid_t tenant : tenants_) kill_tenant(tenant);
    if (keeper_ > 0) ::kill(keeper_, SIGTERM);
    std::filesystem::remove_all(root_);
  }
  SliceLimits slice(int share_milli, SliceMode mode) const {
    SliceLimits limits;
    limits.device_key = key_;
    limits.device_name = device_;
    limits.memory_bytes = 512u << 20;
    limits.share_milli = share_milli;
    limits.mode = mode;
    return limits;
  }
  void open(const std::string& lease, const SliceLimits& limits) {
    must(node::create_page(root_, lease, {limits}));
    if (keeper_ == 0) keeper_ = must(node::ensure_keeper(root_, folder_ + "/loam-keeper"));
  }
  pid_t start(const std::string& lease, const std::vector<std::string>& arguments) {
    const pid_t tenant = start_tenant(environment(lease), arguments);
    tenants_.push_back(tenant);
    return tenant;
  }
  std::map<std::string, std::string> environment(const std::string& lease) const {
    if (lease.empty()) return {};
    return {{"LD_PRELOAD", folder_ + "/libloam-guard.so"},
            {"LOAM_SLICE_PAGE", node::page_prefix(root_, lease)}};
  }
  void end(pid_t tenant) {
    kill_tenant(tenant);
    std::erase(tenants_, tenant);
  }
  SliceUsage usage(const std::string& lease) const {
    return must(node::read_counters(root_, lease)).front();
  }
  Progress* progress(const std::string& name) const { return map_progress(path(name)); }
  std::string path(const std::string& name) const { return root_ + "/progress_" + name; }
  const std::string& root() const { return root_; }
  const std::string& device() const { return device_; }
  int rounds_for(int kernel_us) {
    finish_tenant(start_tenant({}, {"calibrate", std::to_string(kernel_us), path("rounds")}));
    return static_cast<int>(progress("rounds")->kernels);
  }

 private:
  std::string root_, folder_, device_;
  std::uint64_t key_ = 0;
  pid_t keeper_ = 0;
  std::vector<pid_t> tenants_;
};

std::vector<std::string> figures;
void tell(const char* name, double value, const std::string& note) {
  char text[512];
  std::snprintf(text, sizeof text, "{\"name\":\"guard.%s\",\"value\":%.6g,\"note\":\"%s\"}", name,
                value, note.c_str());
  figures.emplace_back(text);
}

// A program that computes in windows of the benchmark's choosing.
struct Runner {
  std::string lease;
  Progress* progress;

  Runner(Site& site, const std::string& name, const std::string& its_lease, int rounds)
      : lease(its_lease), progress(site.progress(name)) {
    site.start(lease, {"compute", std::to_string(rounds), site.path(name)});
    while (progress->kernels == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    progress->paused = true;
  }
};

// What a group of runners did in its windows.
struct Windows {
  double seconds = 0;
  double kernels = 0;
  double turns = 0;
  std::vector<double> busy_s, rates;

  void run(const Site& site, std::vector<Runner>& runners, double seconds_each) {
    const auto busy = [&](const Runner& runner) {
      return runner.lease.empty() ? SliceUsage{} : site.usage(runner.lease);
    };
    busy_s.resize(runners.size());
    for (Runner& runner : runners) runner.progress->paused = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::vector<SliceUsage> before;
    double kernels_before = 0, kernels_after = 0;
    for (Runner& runner : runners) {
      before.push_back(busy(runner));
      kernels_before += static_cast<double>(runner.progress->kernels);
    }
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_each));
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const SliceUsage after = busy(runners[i]);
      busy_s[i] += static_cast<double>(after.busy_ns - before[i].busy_ns) / 1e9;
      turns += static_cast<double>(after.turns - before[i].turns);
      kernels_after += static_cast<double>(runners[i].progress->kernels);
    }
    const double span = seconds_since(start);
    seconds += span;
    kernels += kernels_after - kernels_before;
    rates.push_back((kernels_after - kernels_before) / span);
    for (Runner& runner : runners) runner.progress->paused = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
};

// Two tenants that compute without end, 70/30, in turn with one that has no guard: what else the
// machine does meanwhile falls on both alike.
void measure_shares(const Options& options) {
  Site site;
  const int rounds = site.rounds_for(1000);
  site.open("a", site.slice(700, SliceMode::burstable));
  site.open("b", site.slice(300, SliceMode::burstable));
  std::vector<Runner> alone, both;
  alone.emplace_back(site, "alone", "", rounds);
  both.emplace_back(site, "a", "a", rounds);
  both.emplace_back(site, "b", "b", rounds);
  Windows without, with;
  std::vector<double> ratios;
  const int windows = std::max(2, static_cast<int>(options.seconds));
  for (int i = 0; i < windows; ++i) {
    without.run(site, alone, 0.5);
    with.run(site, both, 1.0);
    without.run(site, alone, 0.5);
    const std::size_t last = without.rates.size() - 1;
    ratios.push_back(2 * with.rates.back() / (without.rates[last] + without.rates[last - 1]));
  }
  const double share = 100 * with.busy_s[0] / (with.busy_s[0] + with.busy_s[1]);
  tell("ocl_share_error_points", std::abs(share - 70),
       "70/30 burstable on " + site.device() + " over " + two_digits(with.seconds) +
           " s: " + two_digits(share) + " of the time used");
  tell("ocl_throughput_ratio", percentile(ratios, 50),
       "kernels of 1 ms a second, both tenants, to one without the guard, " +
           two_digits(without.kernels / without.seconds) + " a second; median of " +
           std::to_string(windows) + " windows in turn, " + two_digits(percentile(ratios, 10)) +
           " to " + two_digits(percentile(ratios, 90)));
  tell("ocl_switch_ms", 1000 * (with.seconds - with.busy_s[0] - with.busy_s[1]) / with.turns,
       "time in which neither has work in flight, a turn; " + two_digits(with.turns) + " turns");
}

// Two tenants that copy without end, 70/30, in both directions.
void measure_copies(const Options& options) {
  double worst = 0;
  std::string note = "70/30, blocking copies of 16 MiB, time that each copied:";
  for (const bool in : {true, false}) {
    Site site;
    for (const auto& [lease, share] : {std::pair{"a", 700}, std::pair{"b", 300}}) {
      SliceLimits slice = site.slice(500, SliceMode::burstable);
      slice.copy_lanes = true;
      slice.copy_share_milli = share;
      site.open(lease, slice);
    }
    Progress *const a = site.progress("a"), *const b = site.progress("b");
    for (const char* lease : {"a", "b"})
      site.start(lease, {"copy", in ? "in" : "out", site.path(lease)});
    while (a->copied_bytes == 0 || b->copied_bytes == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const auto copied = [&](const char* lease) {
      const SliceUsage usage = site.usage(lease);
      const node::CopyUsage& lane = in ? usage.to_device : usage.from_device;
      return std::pair{static_cast<double>(lane.busy_ns), static_cast<double>(lane.bytes)};
    };
    const auto from_a = copied("a"), from_b = copied("b");
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 2));
    const auto to_a = copied("a"), to_b = copied("b");
    const double busy_a = to_a.first - from_a.first, busy_b = to_b.first - from_b.first;
    const double bytes_a = to_a.second - from_a.second, bytes_b = to_b.second - from_b.second;
    const double share = 100 * busy_a / (busy_a + busy_b);
    worst = std::max(worst, std::abs(share - 70));
    note += std::string(in ? " to" : ", from") + " the device " + two_digits(share) +
            " (of the bytes " + two_digits(100 * bytes_a / (bytes_a + bytes_b)) + ")";
  }
  tell("ocl_copy_share_error_points", worst, note);
}

// A service with a request every 37 ms, and a guest that fills its gaps in turns of 4 ms.
void measure_service(const Options& options) {
  Site site;
  const int rounds = site.rounds_for(1000);
  SliceLimits service = site.slice(300, SliceMode::burstable);
  service.service = true;
  service.quantum_ns = 4'000'000;
  SliceLimits guest = site.slice(0, SliceMode::burstable);
  guest.quantum_ns = 4'000'000;
  site.open("service", service);
  site.open("guest", guest);
  const std::vector<std::string> serve{"serve", std::to_string(rounds), "37"};
  const auto took = [&](const std::string& lease, bool beside_guest) {
    const std::string name = lease + (beside_guest ? "_beside" : "_alone");
    std::vector<std::string> arguments = serve;
    arguments.push_back(site.path(name));
    pid_t other = 0;
    if (beside_guest) {
      other = site.start("guest", {"compute", std::to_string(rounds), site.path("guest")});
      while (site.progress("guest")->kernels == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const pid_t tenant = site.start(lease, arguments);
    Progress* const progress = site.progress(name);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
    site.end(tenant);
    site.end(other);
    std::vector<double> took_ms;
    const std::uint64_t count = std::min<std::uint64_t>(progress->requests, Progress::waits_max);
    for (std::uint64_t i = 5; i < count; ++i)
      took_ms.push_back(static_cast<double>(progress->took_us[i]) / 1000);
    if (took_ms.empty()) fail("the service answered no request");
    return took_ms;
  };
  const std::vector<double> alone = took("service", false), beside = took("service", true);
  tell("ocl_service_wait_ms_p99", percentile(beside, 99) - percentile(alone, 50),
       "beyond the median of the service alone (" + two_digits(percentile(alone, 50)) +
           " ms; its own p99 " + two_digits(percentile(alone, 99)) +
           "); guest's kernels of 1 ms, " + std::to_string(beside.size()) + " requests; p50 " +
           two_digits(percentile(beside, 50) - percentile(alone, 50)));
}

// Processor time of a program alone on the device, with and without the guard.
void measure_cost() {
  Site site;
  const int rounds = site.rounds_for(200);
  site.open("a", site.slice(1000, SliceMode::burstable));
  constexpr int kernels = 1000;
  const std::vector<std::string> run{"run", std::to_string(rounds), std::to_string(kernels)};
  const auto cost = [&](const char* lease) {
    return [&, lease] { return finish_tenant(start_tenant(site.environment(lease), run)); };
  };
  const Median ratio = compare_alternating(cost("a"), cost(""));
  tell("ocl_cpu_ratio", ratio.value,
       "processor time of a program of 1,000 kernels of 200 us, with the guard to without; median "
       "of 20 alternating pairs, 95 % " +
           two_digits(ratio.interval.low) + " to " + two_digits(ratio.interval.high));
}

// Two processes that ask for the last memory at the same moment.
void measure_races(const Options& options) {
  Site site;
  must(node::create_page(site.root(), "a", {site.slice(1000, SliceMode::burstable)}));
  struct alignas(64) Side {
    std::atomic<long> step;
    std::atomic<int> got;
    std::atomic<bool> last;
    std::atomic<long> rounds;
  };
  constexpr double races_seconds_max = 120;
  auto* const sides = static_cast<Side*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  long wrong = 0;
  const auto play = [&](std::uint32_t slot) {
    const node::MappedPage page = must(node::MappedPage::open(site.root(), "a"));
    constexpr std::uint64_t quota = 1000, each = 600;
    auto meet = [&, step = 0L]() mutable {
      sides[slot].step = ++step;
      for (int spins = 0; sides[1 - slot].step < step; ++spins)
        if (spins > 200) ::sched_yield();
    };
    const auto start = Clock::now();
    for (long round = 0; round < options.rounds && !sides[0].last; ++round) {
      meet();
      // Two processes in step are slow where a third wants a processor: then fewer rounds. Said
      // between two meetings, so that both hear it at the same round.
      if (slot == 0 && seconds_since(start) > races_seconds_max) sides[0].last = true;
      sides[slot].got = loam_book_change(&page.counters(), 0, slot, each, quota);
      meet();
      if (sides[0].got + sides[1].got != 1) ++wrong;
      meet();
      if (sides[slot].got == 1) loam_book_change(&page.counters(), 0, slot, 0, quota);
      ++sides[slot].rounds;
    }
  };
  const pid_t child = ::fork();
  if (child == 0) {
    play(1);
    ::_exit(0);
  }
  const auto start = Clock::now();
  play(0);
  ::waitpid(child, nullptr, 0);
  const long rounds = sides[0].rounds;
  ::munmap(sides, 4096);
  tell("double_grants", static_cast<double>(wrong),
       "two processes in step, 600 of 1000 each; " + std::to_string(rounds) + " rounds in " +
           two_digits(seconds_since(start)) + " s; a round in which nobody got it would count too");
}

// Tenants that allocate, free and compute, killed at random moments; another one lives on.
void measure_kills(const Options& options) {
  Site site;
  site.open("a", site.slice(500, SliceMode::burstable));
  site.open("b", site.slice(500, SliceMode::burstable));
  Progress* const lives = site.progress("b");
  site.start("b", {"churn", site.path("b")});
  while (lives->kernels == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  constexpr double hang_s = 5;
  long hangs = 0;
  std::uint64_t leaked = 0;
  double longest = 0;
  for (long i = 0; i < options.kills; ++i) {
    Progress* const progress = site.progress("a");
    progress->kernels = 0;
    const pid_t victim = site.start("a", {"churn", site.path("a")});
    while (progress->kernels == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::this_thread::sleep_for(std::chrono::microseconds((i * 7919) % 5000));
    site.end(victim);
    leaked += site.usage("a").memory_used_bytes;
    // Sixteen steps hold at least one kernel: the survivor gets its turn.
    const std::uint64_t seen = lives->kernels;
    const auto start = Clock::now();
    while (lives->kernels < seen + 17 && seconds_since(start) < hang_s)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    const double took = seconds_since(start);
    longest = std::max(longest, took);
    if (took >= hang_s) ++hangs;
    ::munmap(progress, sizeof *progress);
  }
  const std::string note = std::to_string(options.kills) +
                           " tenants killed with kill -9 while they allocate, free and compute";
  tell("hangs", static_cast<double>(hangs),
       note + "; a survivor's longest wait for 17 steps " + two_digits(1000 * longest) + " ms");
  tell("leaked_bytes", static_cast<double>(leaked), note);
}

int run_all(const Options& options) {
  const std::vector<std::pair<std::string, std::function<void()>>> parts{
      {"shares", [&] { measure_shares(options); }},   {"copies", [&] { measure_copies(options); }},
      {"service", [&] { measure_service(options); }}, {"cost", [] { measure_cost(); }},
      {"races", [&] { measure_races(options); }},     {"kills", [&] { measure_kills(options); }}};
  for (const auto& [name, measure] : parts)
    if (options.only.empty() || options.only == name) measure();
  std::string all;
  for (const std::string& figure : figures) all += (all.empty() ? "" : ",\n") + figure;
  std::printf("{\"figures\":[%s]}\n", all.c_str());
  return 0;
}

}  // namespace
}  // namespace loam::bench

int main(int count, char** arguments) {
  using namespace loam::bench;
  if (count > 2 && std::strcmp(arguments[1], "--tenant") == 0)
    return tenant_main(count - 2, arguments + 2);
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    const char* const value = arguments[i + 1];
    if (name == "--seconds")
      options.seconds = std::atof(value);
    else if (name == "--rounds")
      options.rounds = std::atol(value);
    else if (name == "--kills")
      options.kills = std::atol(value);
    else if (name == "--only")
      options.only = value;
    else
      fail("unknown option '" + name + "'");
  }
  return run_all(options);
}

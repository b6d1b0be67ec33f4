// bench_shares: do two tenants that saturate one device get what they were promised? Makes two
// strict slices of the first OpenCL device, runs a saturating program on each under the guard and a
// keeper, and prints JSON: per window each lease's share of the device's time (by its books) and of
// the work it does alone (kernels per second).
//   bench_shares [--seconds 30] [--window 10] [--a 600] [--b 300] [--kernel-us 1000]
//                [--guard PATH] [--keeper PATH] [--mode strict|burstable] [--only-a]
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/tenant.hpp"
#include "node/keeper/keeper_process.hpp"
#include "node/keeper/slice_page.hpp"

namespace {

using namespace loam::bench;

struct Options {
  double seconds = 30, window = 10;
  int a = 600, b = 300;
  int kernel_us = 1000;
  std::string guard, keeper;
  bool strict = true, only_a = false;
  bool figures = false;  // printed as loam-bench reads them
};

// A tenant that keeps its queue full; without a lease it is not guarded.
pid_t start_busy(const std::string& root, const char* lease, const std::string& guard,
                 const std::string& progress, int rounds) {
  std::map<std::string, std::string> environment;
  if (lease != nullptr) {
    environment["LD_PRELOAD"] = guard;
    environment["LOAM_SLICE_PAGE"] = loam::node::page_prefix(root, lease);
  }
  return start_tenant(environment, {"compute", std::to_string(rounds), progress});
}

struct Sample {
  double at;
  double busy_a, busy_b;
  std::uint64_t kernels_a, kernels_b;
};

// house-allow function-length: one experiment from start to end
int measure(const Options& options) {
  std::string device_name;
  const std::uint64_t key = first_device_key(device_name);
  char directory[] = "/tmp/bench_shares.XXXXXX";
  if (!::mkdtemp(directory)) return 1;
  const std::string root = directory;

  // Alone and unguarded: what the device does at most.
  finish_tenant(
      start_tenant({}, {"calibrate", std::to_string(options.kernel_us), root + "/rounds"}));
  const auto rounds = static_cast<int>(map_progress(root + "/rounds")->kernels);
  if (rounds <= 0) return 1;
  Progress* alone = map_progress(root + "/alone");
  const double alone_seconds = std::min(5.0, options.seconds);
  const auto run_alone = [&] {
    const pid_t guest = start_busy(root, nullptr, "", root + "/alone", rounds);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const std::uint64_t before = alone->kernels;
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(alone_seconds));
    const double rate = static_cast<double>(alone->kernels - before) / seconds_since(start);
    kill_tenant(guest);
    return rate;
  };
  const double alone_before = run_alone();

  using loam::node::SliceLimits;
  const auto limits = [&](int share) {
    SliceLimits slice;
    slice.device_key = key;
    slice.device_name = device_name;
    slice.memory_bytes = 256u << 20;
    slice.share_milli = share;
    slice.mode = options.strict ? loam::node::SliceMode::strict : loam::node::SliceMode::burstable;
    return std::vector<SliceLimits>{slice};
  };
  for (const auto& [lease, share] : {std::pair{"a", options.a}, std::pair{"b", options.b}})
    if (const auto made = loam::node::create_page(root, lease, limits(share)); !made.ok()) {
      std::fprintf(stderr, "bench_shares: %s\n", loam::to_text(made.error()).c_str());
      return 1;
    }
  const auto keeper = loam::node::ensure_keeper(root, options.keeper);
  if (!keeper.ok()) {
    std::fprintf(stderr, "bench_shares: %s\n", loam::to_text(keeper.error()).c_str());
    return 1;
  }
  Progress* a = map_progress(root + "/progress_a");
  Progress* b = map_progress(root + "/progress_b");
  const pid_t guest_a = start_busy(root, "a", options.guard, root + "/progress_a", rounds);
  const pid_t guest_b =
      options.only_a ? 0 : start_busy(root, "b", options.guard, root + "/progress_b", rounds);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));

  const auto start = Clock::now();
  const auto sample = [&] {
    const auto usage_a = loam::node::read_counters(root, "a").value().front();
    const auto usage_b = loam::node::read_counters(root, "b").value().front();
    return Sample{seconds_since(start), static_cast<double>(usage_a.busy_ns) / 1e9,
                  static_cast<double>(usage_b.busy_ns) / 1e9, a->kernels, b->kernels};
  };
  std::vector<Sample> windows{sample()};
  std::vector<Sample> fine{windows.front()};
  double next_window = options.window;
  while (windows.back().at < options.seconds - 0.01) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fine.push_back(sample());
    if (fine.back().at >= next_window) {
      windows.push_back(fine.back());
      next_window += options.window;
    }
  }
  const auto last = loam::node::read_counters(root, "a").value().front();
  for (const pid_t guest : {guest_a, guest_b}) kill_tenant(guest);
  ::kill(keeper.value(), SIGTERM);
  const double alone_after = run_alone();
  const double alone_rate = (alone_before + alone_after) / 2;

  const auto list = [](const std::vector<double>& values) {
    std::string text;
    for (const double value : values) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.4f", text.empty() ? "" : ",", value);
      text += number;
    }
    return "[" + text + "]";
  };
  std::vector<double> time_a, time_b, work_a, work_b;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    const double span = windows[i].at - windows[i - 1].at;
    time_a.push_back((windows[i].busy_a - windows[i - 1].busy_a) / span);
    time_b.push_back((windows[i].busy_b - windows[i - 1].busy_b) / span);
    work_a.push_back(static_cast<double>(windows[i].kernels_a - windows[i - 1].kernels_a) / span /
                     alone_rate);
    work_b.push_back(static_cast<double>(windows[i].kernels_b - windows[i - 1].kernels_b) / span /
                     alone_rate);
  }
  double least = 1, most = 0;
  for (std::size_t i = 1; i < fine.size(); ++i) {
    const double share = (fine[i].busy_a - fine[i - 1].busy_a) / (fine[i].at - fine[i - 1].at);
    least = std::min(least, share);
    most = std::max(most, share);
  }
  if (options.figures) {
    // For loam-bench: the worst window of either tenant.
    double worst = 0;
    for (const double share : time_a) worst = std::max(worst, std::abs(share - options.a / 1000.0));
    for (const double share : time_b) worst = std::max(worst, std::abs(share - options.b / 1000.0));
    std::printf(
        "{\"figures\":[{\"name\":\"shares.worst_error_points\",\"value\":%.3f,\"note\":\"%d/%d "
        "strict on %s, windows of %g s: %s and %s\"}]}\n",
        100 * worst, options.a / 10, options.b / 10, device_name.c_str(), options.window,
        list(time_a).c_str(), list(time_b).c_str());
    std::filesystem::remove_all(root);
    return 0;
  }
  std::printf(
      "{\"device\":\"%s\",\"window_s\":%g,\"mode\":\"%s\",\"promised\":[%.3f,%.3f],"
      "\"a\":%s,\"b\":%s,\"work_a\":%s,\"work_b\":%s,\"kernel_us\":%d,"
      "\"alone_kernels_per_s\":[%.1f,%.1f],\"a_100ms_least\":%.4f,\"a_100ms_most\":%.4f,"
      "\"turns_a\":%llu}\n",
      device_name.c_str(), options.window, options.strict ? "strict" : "burstable",
      options.a / 1000.0, options.b / 1000.0, list(time_a).c_str(), list(time_b).c_str(),
      list(work_a).c_str(), list(work_b).c_str(), options.kernel_us, alone_before, alone_after,
      least, most, static_cast<unsigned long long>(last.turns));
  std::filesystem::remove_all(root);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string folder = std::filesystem::path(self).parent_path().string();
  if (count > 2 && std::strcmp(arguments[1], "--tenant") == 0)
    return tenant_main(count - 2, arguments + 2);
  Options options;
  options.guard = folder + "/libloam-guard.so";
  options.keeper = folder + "/loam-keeper";
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const char* value = i + 1 < count ? arguments[i + 1] : "";
    if (name == "--figures") {
      options.figures = true;
      continue;
    }
    if (name == "--only-a") {
      options.only_a = true;
      continue;
    }
    if (name == "--seconds")
      options.seconds = std::atof(value);
    else if (name == "--window")
      options.window = std::atof(value);
    else if (name == "--a")
      options.a = std::atoi(value);
    else if (name == "--b")
      options.b = std::atoi(value);
    else if (name == "--kernel-us")
      options.kernel_us = std::atoi(value);
    else if (name == "--guard")
      options.guard = value;
    else if (name == "--keeper")
      options.keeper = value;
    else if (name == "--mode")
      options.strict = std::strcmp(value, "burstable") != 0;
    else {
      std::fprintf(stderr, "bench_shares: unknown option '%s'\n", arguments[i]);
      return 2;
    }
    ++i;
  }
  return measure(options);
}

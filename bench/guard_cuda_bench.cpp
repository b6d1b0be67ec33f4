// The benchmarks of the guard's CUDA side (bench/guard_cuda.cpp): a program of its own over the
// fake driver, run as {bin}/bench_guard_cuda.
#include "bench/bench.hpp"

namespace {

using loam::bench::at_most;

// One figure for each card and kernel: the worst of the means at caps of 10, 30, 60 and 90 %.
std::vector<loam::bench::Promise> promises() {
  std::vector<loam::bench::Promise> list = {
      {"guard_cuda.alloc_free_ns_0", "ns", at_most(120)},
      {"guard_cuda.alloc_free_ns_10000", "ns", at_most(120)},
      {"guard_cuda.launch_ns", "ns", at_most(25)},
      {"guard_cuda.graph_launch_ns", "ns", at_most(25)},
      {"guard_cuda.extra_calls_per_launch", "calls", at_most(0.25)},
      {"guard_cuda.copy_to_device_error_points", "points", at_most(1.5)},
      {"guard_cuda.copy_from_device_error_points", "points", at_most(1.5)},
      {"guard_cuda.parked_wake_ms_p99", "ms", at_most(10)},
      {"guard_cuda.spilled_wake_ms", "ms", std::nullopt},
      {"guard_cuda.caps_mean_error_points", "points", at_most(1)},
      {"guard_cuda.caps_window_excess_points", "points", at_most(0)}};
  for (const char* kernel : {"1ms_20000", "1ms_1000000", "20ms_1024"})
    for (const char* card : {"132x2048", "188x1536", "40x1024", "108x2048", "142x1536", "80x2048"})
      list.push_back({std::string("guard_cuda.caps.") + card + "." + kernel, "points", at_most(1)});
  return list;
}

const bool enrolled =
    loam::bench::enroll("guard_cuda", promises(), loam::bench::command({"{bin}/bench_guard_cuda"}));

}  // namespace

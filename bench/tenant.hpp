// Tenants for benchmarks: OpenCL programs like any other, each a process of its own under the guard
// (or without it), that compute, copy or answer requests as fast as they may, and count.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace loam::bench {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start);

// What a tenant counts, in memory that it shares with the benchmark.
struct Progress {
  static constexpr std::size_t waits_max = 4096;
  std::atomic<bool> paused;  // the benchmark's: the tenant computes nothing meanwhile
  std::atomic<std::uint64_t> kernels;
  std::atomic<std::uint64_t> copied_bytes;
  std::atomic<std::uint64_t> requests;            // of a service
  std::atomic<std::uint64_t> took_us[waits_max];  // each request, from launch to result
};
Progress* map_progress(const std::string& path);

// Ends the process with a message where OpenCL says no.
void require(cl_int fault, const char* what);

class Tenant {
 public:
  Tenant();
  // Rounds for which one kernel takes about this long on an idle device.
  cl_int calibrate(int kernel_us);
  // For ever.
  [[noreturn]] void compute(cl_int rounds, Progress& progress);
  [[noreturn]] void copy(bool to_device, Progress& progress);
  // One kernel every `period_ms`, alone in its queue.
  [[noreturn]] void serve(cl_int rounds, int period_ms, Progress& progress);
  [[noreturn]] void churn(Progress& progress);
  // So many kernels one after the other.
  void run(cl_int rounds, int kernels);

 private:
  void run_once(cl_int rounds);
  void enqueue();

  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_kernel kernel_ = nullptr;
};

// The first OpenCL device's key on slice pages.
std::uint64_t first_device_key(std::string& name);

// Starts this program again as a tenant: `arguments` after "--tenant" go to tenant_main().
pid_t start_tenant(const std::map<std::string, std::string>& environment,
                   const std::vector<std::string>& arguments);
// Waits for a tenant that ends of itself; its processor time in seconds.
double finish_tenant(pid_t tenant);
void kill_tenant(pid_t tenant);

// What a started tenant does: "compute ROUNDS FILE", "copy in|out FILE", "serve ROUNDS PERIOD
// FILE", "churn FILE", "run ROUNDS KERNELS", "calibrate MICROSECONDS FILE".
int tenant_main(int count, char** arguments);

}  // namespace loam::bench

#include "bench/tenant.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "node/keeper/slice_page.hpp"

namespace loam::bench {

namespace {

constexpr std::size_t items = 512;
constexpr std::size_t copy_bytes = 16u << 20;  // beyond the caches

const char* const source =
    "kernel void spin(global float* out, int rounds) {"
    "  float x = get_global_id(0);"
    "  for (int i = 0; i < rounds; ++i) x = mad(x, 0.999f, 0.5f);"
    "  out[get_global_id(0)] = x;"
    "}";

}  // namespace

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void require(cl_int fault, const char* what) {
  if (fault == CL_SUCCESS) return;
  std::fprintf(stderr, "tenant: %s failed with OpenCL error %d\n", what, fault);
  ::_exit(1);
}

Progress* map_progress(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "a+");
  if (!file || ::ftruncate(fileno(file), sizeof(Progress)) != 0) {
    std::perror(path.c_str());
    ::_exit(1);
  }
  void* address =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  std::fclose(file);
  return static_cast<Progress*>(address);
}

Tenant::Tenant() {
  cl_platform_id platform = nullptr;
  require(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "clGetDeviceIDs");
  cl_int fault = 0;
  context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &fault);
  require(fault, "clCreateContext");
  queue_ = clCreateCommandQueue(context_, device_, 0, &fault);
  require(fault, "clCreateCommandQueue");
  cl_program program =
      clCreateProgramWithSource(context_, 1, const_cast<const char**>(&source), nullptr, &fault);
  require(fault, "clCreateProgramWithSource");
  require(clBuildProgram(program, 1, &device_, "", nullptr, nullptr), "clBuildProgram");
  kernel_ = clCreateKernel(program, "spin", &fault);
  require(fault, "clCreateKernel");
  cl_mem out = clCreateBuffer(context_, CL_MEM_READ_WRITE, items * sizeof(float), nullptr, &fault);
  require(fault, "clCreateBuffer");
  require(clSetKernelArg(kernel_, 0, sizeof out, static_cast<void*>(&out)), "clSetKernelArg");
  run_once(64);
}

void Tenant::enqueue() {
  const std::size_t global = items;
  require(
      clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &global, nullptr, 0, nullptr, nullptr),
      "clEnqueueNDRangeKernel");
}

void Tenant::run_once(cl_int rounds) {
  require(clSetKernelArg(kernel_, 1, sizeof rounds, &rounds), "clSetKernelArg");
  enqueue();
  require(clFinish(queue_), "clFinish");
}

cl_int Tenant::calibrate(int kernel_us) {
  // The shortest of many, several kernels on end: what else the machine does only adds to it.
  const auto measure_us = [&](cl_int rounds) {
    constexpr int tries = 25, kernels = 4;
    double best = 1e9;
    for (int i = 0; i < tries; ++i) {
      const auto start = Clock::now();
      run(rounds, kernels);
      best = std::min(best, seconds_since(start) * 1e6 / kernels);
    }
    return best;
  };
  cl_int rounds = 256;
  for (int i = 0; i < 24; ++i) {
    const double us = measure_us(rounds);
    if (us > kernel_us * 0.97 && us < kernel_us * 1.03) break;
    const double factor = std::clamp(kernel_us / us, 0.25, 4.0);
    rounds = static_cast<cl_int>(std::clamp(rounds * factor, 1.0, 1e9));
  }
  return rounds;
}

void Tenant::run(cl_int rounds, int kernels) {
  require(clSetKernelArg(kernel_, 1, sizeof rounds, &rounds), "clSetKernelArg");
  for (int i = 0; i < kernels; i += 4) {
    for (int k = i; k < std::min(i + 4, kernels); ++k) enqueue();
    require(clFinish(queue_), "clFinish");
  }
}

void Tenant::compute(cl_int rounds, Progress& progress) {
  for (;;) {
    while (progress.paused) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    run(rounds, 4);
    progress.kernels += 4;
  }
}

void Tenant::copy(bool to_device, Progress& progress) {
  cl_int fault = 0;
  std::vector<char> host(copy_bytes, 1);
  cl_mem buffer = clCreateBuffer(context_, CL_MEM_READ_WRITE, copy_bytes, nullptr, &fault);
  require(fault, "clCreateBuffer");
  for (;;) {
    const cl_int done = to_device ? clEnqueueWriteBuffer(queue_, buffer, CL_TRUE, 0, copy_bytes,
                                                         host.data(), 0, nullptr, nullptr)
                                  : clEnqueueReadBuffer(queue_, buffer, CL_TRUE, 0, copy_bytes,
                                                        host.data(), 0, nullptr, nullptr);
    require(done, "a copy");
    progress.copied_bytes += copy_bytes;
  }
}

void Tenant::serve(cl_int rounds, int period_ms, Progress& progress) {
  require(clSetKernelArg(kernel_, 1, sizeof rounds, &rounds), "clSetKernelArg");
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(period_ms));
    const auto start = Clock::now();
    enqueue();
    require(clFinish(queue_), "clFinish");
    const auto took_us = static_cast<std::uint64_t>(seconds_since(start) * 1e6);
    const std::uint64_t index = progress.requests;
    progress.took_us[index % Progress::waits_max] = took_us;
    progress.requests = index + 1;
  }
}

void Tenant::churn(Progress& progress) {
  for (std::uint64_t i = 0;; ++i) {
    cl_int fault = 0;
    cl_mem made = clCreateBuffer(context_, CL_MEM_READ_WRITE, (1 + i % 7) << 20, nullptr, &fault);
    if (made) clReleaseMemObject(made);
    if (i % 16 == 0) run_once(1);
    ++progress.kernels;
  }
}

std::uint64_t first_device_key(std::string& name) {
  cl_platform_id platform = nullptr;
  require(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  cl_device_id device = nullptr;
  require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  char platform_name[256] = {}, device_name[256] = {};
  clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, nullptr);
  clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof device_name, device_name, nullptr);
  name = device_name;
  return node::opencl_device_key(platform_name, device_name, 0);
}

pid_t start_tenant(const std::map<std::string, std::string>& environment,
                   const std::vector<std::string>& arguments) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> words{self, "--tenant"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(self.c_str(), pointers.data());
  ::_exit(127);
}

double finish_tenant(pid_t tenant) {
  rusage usage{};
  int status = 0;
  if (::wait4(tenant, &status, 0, &usage) != tenant || status != 0) {
    std::fprintf(stderr, "a tenant ended with status %d\n", status);
    ::_exit(1);
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void kill_tenant(pid_t tenant) {
  if (tenant <= 0) return;
  ::kill(tenant, SIGKILL);
  ::waitpid(tenant, nullptr, 0);
}

int tenant_main(int count, char** arguments) {
  const std::vector<std::string> words(arguments, arguments + count);
  const auto is = [&](const char* verb, std::size_t size) {
    return words.size() == size && words[0] == verb;
  };
  Tenant tenant;
  if (is("compute", 3)) tenant.compute(std::stoi(words[1]), *map_progress(words[2]));
  if (is("copy", 3)) tenant.copy(words[1] == "in", *map_progress(words[2]));
  if (is("serve", 4))
    tenant.serve(std::stoi(words[1]), std::stoi(words[2]), *map_progress(words[3]));
  if (is("churn", 2)) tenant.churn(*map_progress(words[1]));
  if (is("run", 3)) {
    tenant.run(std::stoi(words[1]), std::stoi(words[2]));
    return 0;
  }
  if (is("calibrate", 3)) {
    map_progress(words[2])->kernels =
        static_cast<std::uint64_t>(tenant.calibrate(std::stoi(words[1])));
    return 0;
  }
  std::fprintf(stderr, "tenant: what is '%s'?\n", words.empty() ? "" : words[0].c_str());
  return 2;
}

}  // namespace loam::bench

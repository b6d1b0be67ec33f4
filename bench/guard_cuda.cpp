// bench_guard_cuda: what the guard costs a CUDA program, and whether it gives it what its slice
// says, over the fake CUDA driver of the tests (tests/fakes/fake_cuda.hpp). No card is needed and
// none is measured.
//   bench_guard_cuda [--costs] [--caps] [--copies] [--wakes] [--seconds 1.5]   (none: all)
// Prints {"figures": [...], "caps": [...]} as JSON. It starts itself as the program under the
// guard: `bench_guard_cuda guest TASK ...`. Where it may, it runs its programs ahead of everything
// else on the machine (SCHED_RR), since a program that waits for a processor launches nothing.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "guard/cuda/signatures.hpp"
#include "node/keeper/keeper_process.hpp"
#include "node/keeper/slice_page.hpp"

namespace {

using namespace loam;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_guard_cuda: %s\n", what.c_str());
  ::_exit(1);
}

bool go_first() {
  sched_param first{};
  first.sched_priority = 1;
  return ::sched_setscheduler(0, SCHED_RR, &first) == 0;
}

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// ---- the program under the guard ----

struct Api {
// clang-format off
#define BENCH_FUNCTIONS(X) \
  X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuMemAlloc_v2) X(cuMemFree_v2) \
  X(cuModuleLoadData) X(cuModuleGetFunction) X(cuStreamCreate) X(cuStreamSynchronize) \
  X(cuLaunchKernel) X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) \
  X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuMemcpyHtoDAsync_v2) \
  X(cuMemcpyDtoHAsync_v2)
// clang-format on
#define BENCH_MEMBER(name) decltype(&::name) name = nullptr;
  BENCH_FUNCTIONS(BENCH_MEMBER)
  std::uint64_t (*calls)() = nullptr;
} cu;

void require(CUresult fault, const char* what) {
  if (fault != 0) fail(std::string(what) + " failed with CUDA error " + std::to_string(fault));
}

CUstream open_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(::dlerror());
#define BENCH_FIND(name) cu.name = reinterpret_cast<decltype(cu.name)>(::dlsym(library, #name));
  BENCH_FUNCTIONS(BENCH_FIND)
  cu.calls = reinterpret_cast<decltype(cu.calls)>(::dlsym(library, "fake_cuda_calls"));
  require(cu.cuInit(0), "cuInit");
  CUcontext context = nullptr;
  require(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUstream stream = nullptr;
  require(cu.cuStreamCreate(&stream, 1), "cuStreamCreate");
  return stream;
}

CUfunction kernel(std::uint64_t ns) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  require(cu.cuModuleLoadData(&module, ""), "cuModuleLoadData");
  require(cu.cuModuleGetFunction(&function, module, ("spin_" + std::to_string(ns)).c_str()),
          "cuModuleGetFunction");
  return function;
}

// Nanoseconds of one round of `work`: the lowest of several runs, since whatever else the machine
// does only adds to it.
template <class Work>
double cost_ns(int rounds, Work work) {
  std::vector<double> runs;
  for (int run = 0; run < 15; ++run) {
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) work();
    runs.push_back(ns_since(start) / rounds);
  }
  return *std::min_element(runs.begin(), runs.end());
}

double alloc_free_ns() {
  return cost_ns(20000, [] {
    CUdeviceptr address = 0;
    cu.cuMemAlloc_v2(&address, 4096);
    cu.cuMemFree_v2(address);
  });
}

// Prints six numbers: the costs of the fake driver's calls, guarded or not.
int measure_costs() {
  const CUstream stream = open_driver();
  const double empty = alloc_free_ns();
  std::vector<CUdeviceptr> live(10000);
  for (CUdeviceptr& address : live) require(cu.cuMemAlloc_v2(&address, 4096), "cuMemAlloc_v2");
  const double full = alloc_free_ns();
  const CUfunction function = kernel(1000);
  const auto launch = [&] {
    cu.cuLaunchKernel(function, 1024, 1, 1, 256, 1, 1, 0, stream, nullptr, nullptr);
  };
  for (int i = 0; i < 1000; ++i) launch();
  const double launched = cost_ns(100000, launch);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  require(cu.cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture_v2");
  for (int i = 0; i < 10; ++i) launch();
  require(cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  require(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  for (int i = 0; i < 1000; ++i) cu.cuGraphLaunch(exec, stream);
  const double replayed = cost_ns(100000, [&] { cu.cuGraphLaunch(exec, stream); });
  std::printf("%.3f %.3f %.3f %.3f\n", empty, full, launched, replayed);
  return 0;
}

// Launches kernels of so many ns for so many seconds; prints launches and driver calls.
int keep_launching(std::uint64_t ns, unsigned blocks, double seconds) {
  const CUstream stream = open_driver();
  const CUfunction function = kernel(ns);
  std::uint64_t launches = 0;
  const std::uint64_t before = cu.calls();
  const auto start = Clock::now();
  while (ns_since(start) < seconds * 1e9) {
    cu.cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream, nullptr, nullptr);
    ++launches;
  }
  cu.cuStreamSynchronize(stream);
  std::printf("%llu %llu\n", static_cast<unsigned long long>(launches),
              static_cast<unsigned long long>(cu.calls() - before));
  return 0;
}

int keep_copying(bool to_device, std::uint64_t bytes, double seconds) {
  const CUstream stream = open_driver();
  CUdeviceptr address = 0;
  require(cu.cuMemAlloc_v2(&address, bytes), "cuMemAlloc_v2");
  std::vector<char> host(4096);
  const auto start = Clock::now();
  while (ns_since(start) < seconds * 1e9) {
    // Larger than the fake driver moves: only the time counts.
    if (to_device)
      cu.cuMemcpyHtoDAsync_v2(address, host.data(), bytes, stream);
    else
      cu.cuMemcpyDtoHAsync_v2(host.data(), address, bytes, stream);
  }
  cu.cuStreamSynchronize(stream);
  std::printf("0\n");
  return 0;
}

// Holds so much memory, idles, and launches a kernel of 1 ms, so many times; prints what each took
// from its launch to its end, in ns.
int keep_waking(std::uint64_t bytes, int pause_ms, int times) {
  const CUstream stream = open_driver();
  const CUfunction function = kernel(1'000'000);
  CUdeviceptr address = 0;
  require(cu.cuMemAlloc_v2(&address, bytes), "cuMemAlloc_v2");
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    const auto start = Clock::now();
    require(cu.cuLaunchKernel(function, 1024, 1, 1, 256, 1, 1, 0, stream, nullptr, nullptr),
            "cuLaunchKernel");
    cu.cuStreamSynchronize(stream);
    std::printf("%.0f ", ns_since(start));
  }
  return 0;
}

int be_guest(int count, char** arguments) {
  if (!std::getenv("BENCH_POLITE")) go_first();
  const std::string task = count > 2 ? arguments[2] : "";
  const auto number = [&](int i) { return i < count ? std::atof(arguments[i]) : 0.0; };
  if (task == "costs") return measure_costs();
  if (task == "launch")
    return keep_launching(static_cast<std::uint64_t>(number(3)), static_cast<unsigned>(number(4)),
                          number(5));
  if (task == "copy")
    return keep_copying(number(3) > 0, static_cast<std::uint64_t>(number(4)), number(5));
  if (task == "wake")
    return keep_waking(static_cast<std::uint64_t>(number(3)), static_cast<int>(number(4)),
                       static_cast<int>(number(5)));
  fail("unknown task '" + task + "'");
}

// ---- the house around it ----

struct House {
  std::string root;
  fakes::FakeCudaBooks* books = nullptr;
  pid_t keeper = 0;

  House() {
    char name[] = "/tmp/bench_guard_cuda.XXXXXX";
    if (!::mkdtemp(name)) fail("no folder in /tmp");
    root = name;
    const int fd = ::open((root + "/cards").c_str(), O_RDWR | O_CREAT, 0600);
    if (::ftruncate(fd, sizeof(fakes::FakeCudaBooks)) != 0) fail("no space in /tmp");
    void* const address =
        ::mmap(nullptr, sizeof(fakes::FakeCudaBooks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (address == MAP_FAILED) fail("no memory");
    books = static_cast<fakes::FakeCudaBooks*>(address);
    fakes::describe(books->devices[0], 0, "Fake H100", 132, 2048, 80ull << 30);
    books->device_count = 1;
    books->version = 13000;
    books->ready = 1;
  }
  void start_keeper() {
    const auto started = node::ensure_keeper(root, LOAM_KEEPER_PROGRAM);
    if (!started.ok()) fail(to_text(started.error()));
    keeper = started.value();
  }
  ~House() {
    if (keeper > 0) ::kill(keeper, SIGTERM);
    ::munmap(books, sizeof(fakes::FakeCudaBooks));
    std::filesystem::remove_all(root);
  }
  static std::string uuid(const fakes::FakeCudaDevice& device) {
    char hex[33] = {};
    for (int i = 0; i < 16; ++i)
      std::snprintf(hex + 2 * i, 3, "%02x", static_cast<unsigned>(device.uuid[i]));
    char text[64];
    std::snprintf(text, sizeof text, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
                  hex + 16, hex + 20);
    return text;
  }
  void make_page(const std::string& lease, int share_milli, int copy_share_milli = 0,
                 bool spills = false) {
    node::SliceLimits slice;
    slice.device_key = node::uuid_device_key(uuid(books->devices[0]));
    slice.device_name = books->devices[0].name;
    slice.share_milli = share_milli;
    slice.copy_share_milli = copy_share_milli;
    slice.copy_lanes = copy_share_milli > 0;
    slice.quantum_ns = 4'000'000;
    if (spills) {
      slice.spills = true;
      slice.memory_bytes = 80ull << 20;
    }
    const auto made = node::create_page(root, lease, {slice});
    if (!made.ok()) fail(to_text(made.error()));
  }
  void drop_page(const std::string& lease) { (void)node::remove_page(root, lease); }
};

struct Child {
  pid_t pid = 0;
  int from = -1;

  Child(const House& house, const std::string& lease, std::vector<std::string> task) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe");
    task.insert(task.begin(), {"/proc/self/exe", "guest"});
    std::vector<char*> arguments;
    for (std::string& word : task) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], 1);
      ::setenv("LD_LIBRARY_PATH", LOAM_FAKE_CUDA_FOLDER, 1);
      ::setenv("LOAM_FAKE_CUDA", (house.root + "/cards").c_str(), 1);
      if (!lease.empty()) {
        ::setenv("LD_PRELOAD", LOAM_GUARD_LIBRARY, 1);
        ::setenv("LOAM_SLICE_PAGE", node::page_prefix(house.root, lease).c_str(), 1);
      }
      ::execv("/proc/self/exe", arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    from = ends[0];
  }
  std::string finish() {
    std::string said;
    char part[256];
    for (ssize_t n; (n = ::read(from, part, sizeof part)) > 0;)
      said.append(part, static_cast<std::size_t>(n));
    ::close(from);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) fail("a guest ended with status " + std::to_string(status));
    return said;
  }
};

std::vector<std::string> figures;
std::vector<std::string> caps;

void figure(const std::string& name, double value, const std::string& note) {
  char text[1024];
  std::snprintf(text, sizeof text, R"({"name":"guard_cuda.%s","value":%.4g,"note":"%s"})",
                name.c_str(), value, note.c_str());
  figures.emplace_back(text);
}

// ---- costs ----

std::array<double, 4> costs(House& house, const std::string& lease) {
  std::array<double, 4> values{};
  const std::string said = Child(house, lease, {"costs"}).finish();
  if (std::sscanf(said.c_str(), "%lf %lf %lf %lf", &values[0], &values[1], &values[2],
                  &values[3]) != 4)
    fail("the costs are '" + said + "'");
  return values;
}

void run_costs(House& house) {
  house.books->instant = 1;
  house.make_page("costs", 1000);
  constexpr std::size_t pairs = 20, low = 5, high = 14;  // in order: the median's 95 % interval
  std::array<std::vector<double>, 4> bare, added;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const auto a = costs(house, pair % 2 ? "costs" : ""), b = costs(house, pair % 2 ? "" : "costs");
    for (std::size_t i = 0; i < 4; ++i) {
      bare[i].push_back(pair % 2 ? b[i] : a[i]);
      added[i].push_back(pair % 2 ? a[i] - b[i] : b[i] - a[i]);
    }
  }
  const char* const names[] = {"alloc_free_ns_0", "alloc_free_ns_10000", "launch_ns",
                               "graph_launch_ns"};
  for (std::size_t i = 0; i < 4; ++i) {
    char note[200];
    std::sort(added[i].begin(), added[i].end());
    std::snprintf(note, sizeof note,
                  "beside the driver's own %.1f ns; 20 pairs; 95 %% %.1f to %.1f", median(bare[i]),
                  added[i][low], added[i][high]);
    figure(names[i], median(added[i]), note);
  }
  house.books->instant = 0;
  const std::string said = Child(house, "costs", {"launch", "5000", "1024", "2"}).finish();
  unsigned long long launches = 0, calls = 0;
  std::sscanf(said.c_str(), "%llu %llu", &launches, &calls);
  figure("extra_calls_per_launch",
         launches ? (static_cast<double>(calls) - static_cast<double>(launches)) /
                        static_cast<double>(launches)
                  : -1,
         std::to_string(launches) + " kernels of 5 us in 2 s");
  house.drop_page("costs");
}

// ---- caps ----

struct DeviceShape {
  std::uint32_t multiprocessors, threads;
};
constexpr DeviceShape device_shapes[] = {{132, 2048}, {188, 1536}, {40, 1024},
                                         {108, 2048}, {142, 1536}, {80, 2048}};
struct KernelShape {
  std::uint64_t ns;
  unsigned blocks;
};
constexpr KernelShape kernel_shapes[] = {
    {1'000'000, 20'000}, {1'000'000, 1'000'000}, {20'000'000, 1'024}};
constexpr int cap_percents[] = {10, 30, 60, 90};
constexpr double window_ns = 100e6;

// Busy nanoseconds of an engine within [begin, end), of one process or (0) of all.
double busy_within(const House& house, int engine, pid_t pid, double begin, double end) {
  const fakes::FakeCudaDevice& device = house.books->devices[0];
  double busy = 0;
  const std::uint32_t runs = std::min(device.runs.load(), fakes::cuda_log_max);
  for (std::uint32_t i = 0; i < runs; ++i) {
    const fakes::FakeCudaRun& run = device.log[i];
    if (run.engine != engine || (pid != 0 && run.pid != pid)) continue;
    busy += std::max(0.0, std::min(end, static_cast<double>(run.end_ns)) -
                              std::max(begin, static_cast<double>(run.begin_ns)));
  }
  return busy;
}

double now_in_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct CapResult {
  double mean = 0, worst_window = 0, excess = 0;  // percent, percent, points beyond the bound
};

CapResult measure_cap(House& house, const DeviceShape& shape, const KernelShape& kernel_shape,
                      int cap, double seconds) {
  // A long kernel at a small cap runs every now and then: a mean needs many of them.
  if (kernel_shape.ns >= 10'000'000) seconds *= 4;
  fakes::FakeCudaDevice& device = house.books->devices[0];
  device.multiprocessors = shape.multiprocessors;
  device.threads_per_multiprocessor = shape.threads;
  device.runs = 0;
  house.make_page("cap", cap * 10);
  const double started = now_in_ns();
  Child child(house, "cap",
              {"launch", std::to_string(kernel_shape.ns), std::to_string(kernel_shape.blocks),
               std::to_string(seconds + 0.7)});
  const std::string said = child.finish();
  // The first half second is not looked at: the program starts, and its first credit is spent.
  const double begin = started + 0.5e9;
  CapResult result;
  const int windows = static_cast<int>(seconds * 1e9 / window_ns);
  const double bound = 5 + static_cast<double>(kernel_shape.ns) / 1e6;
  result.mean = 100 * busy_within(house, 0, child.pid, begin, begin + windows * window_ns) /
                (windows * window_ns);
  double worst = 0;
  for (int i = 0; i < windows; ++i) {
    const double at = begin + i * window_ns;
    const double share = 100 * busy_within(house, 0, child.pid, at, at + window_ns) / window_ns;
    if (std::abs(share - cap) >= worst) {
      worst = std::abs(share - cap);
      result.worst_window = share;
    }
  }
  result.excess = worst - bound;
  house.drop_page("cap");
  return result;
}

void run_caps(House& house, double seconds) {
  double worst_mean = 0, worst_excess = -100;
  for (const KernelShape& kernel_shape : kernel_shapes)
    for (const DeviceShape& shape : device_shapes) {
      const std::string device =
          std::to_string(shape.multiprocessors) + "x" + std::to_string(shape.threads);
      const std::string kernel_text =
          std::to_string(kernel_shape.ns / 1'000'000) + "ms_" + std::to_string(kernel_shape.blocks);
      double worst_here = 0;
      std::string note;
      for (const int cap : cap_percents) {
        const CapResult result = measure_cap(house, shape, kernel_shape, cap, seconds);
        char text[256];
        std::snprintf(text, sizeof text,
                      R"({"device":"%s","kernel":"%s","cap":%d,"mean":%.2f,"worst_window":%.2f})",
                      device.c_str(), kernel_text.c_str(), cap, result.mean, result.worst_window);
        caps.emplace_back(text);
        std::snprintf(text, sizeof text, "%scap %d: mean %.2f, worst window %.1f",
                      note.empty() ? "" : "; ", cap, result.mean, result.worst_window);
        note += text;
        worst_here = std::max(worst_here, std::abs(result.mean - cap));
        worst_excess = std::max(worst_excess, result.excess);
        std::fprintf(stderr, "%s %s cap %d: mean %.2f, worst 100 ms %.1f\n", device.c_str(),
                     kernel_text.c_str(), cap, result.mean, result.worst_window);
      }
      figure("caps." + device + "." + kernel_text, worst_here, note);
      worst_mean = std::max(worst_mean, worst_here);
    }
  figure("caps_mean_error_points", worst_mean, "72 combinations");
  figure("caps_window_excess_points", worst_excess,
         "the worst 100 ms window's distance from the cap, less 5 points and the kernel's ms");
}

// ---- copies ----

void run_copies(House& house, double seconds) {
  for (const bool to_device : {true, false}) {
    house.books->devices[0].runs = 0;
    house.make_page("a", 500, 700);
    house.make_page("b", 500, 300);
    const std::vector<std::string> task{"copy", to_device ? "1" : "0", std::to_string(8u << 20),
                                        std::to_string(seconds + 0.7)};
    const double started = now_in_ns();
    Child a(house, "a", task), b(house, "b", task);
    a.finish();
    b.finish();
    const double begin = started + 0.5e9, end = begin + seconds * 1e9;
    const int engine = to_device ? 1 : 2;
    const double of_a = busy_within(house, engine, a.pid, begin, end);
    const double of_all = busy_within(house, engine, 0, begin, end);
    char note[160];
    std::snprintf(note, sizeof note,
                  "two tenants copying 8 MiB at a time at 70/30: %.1f/%.1f, engine %.1f %% busy",
                  100 * of_a / of_all, 100 - 100 * of_a / of_all, of_all / (seconds * 1e7));
    figure(to_device ? "copy_to_device_error_points" : "copy_from_device_error_points",
           std::abs(100 * of_a / of_all - 70), note);
    house.drop_page("a");
    house.drop_page("b");
  }
}

// ---- waking ----

std::vector<double> beyond_kernel_ms(const std::string& said) {
  std::vector<double> ms;
  std::istringstream numbers(said);
  for (double ns; numbers >> ns;) ms.push_back(ns / 1e6 - 1);
  if (ms.empty()) fail("a guest told nothing of its waking");
  std::sort(ms.begin(), ms.end());
  return ms;
}

// Two leases that wake in turn on a card that has room for one.
std::vector<double> spilled_wakes_ms(House& house, std::uint64_t bytes) {
  const std::uint64_t whole = house.books->devices[0].total_bytes;
  house.books->devices[0].total_bytes = bytes * 3 / 2;
  house.make_page("a", 500, 0, true);
  house.make_page("b", 500, 0, true);
  const std::vector<std::string> task{"wake", std::to_string(bytes), "400", "20"};
  Child a(house, "a", task);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Child b(house, "b", task);
  const std::vector<double> away = beyond_kernel_ms(a.finish());
  b.finish();
  house.drop_page("a");
  house.drop_page("b");
  house.books->devices[0].total_bytes = whole;
  return away;
}

void run_wakes(House& house) {
  char note[300];
  house.make_page("parked", 500, 0, true);
  const std::string memory = std::to_string(64u << 20);
  const std::vector<double> parked =
      beyond_kernel_ms(Child(house, "parked", {"wake", memory, "80", "100"}).finish());
  std::snprintf(note, sizeof note,
                "from a launch after 80 ms without a turn to its end, less its 1 ms; memory on the "
                "device; %zu times, median %.2f",
                parked.size(), parked[parked.size() / 2]);
  figure("parked_wake_ms_p99", parked[parked.size() * 99 / 100], note);
  house.drop_page("parked");

  const std::vector<double> little = spilled_wakes_ms(house, 8u << 20);
  const std::vector<double> much = spilled_wakes_ms(house, 64u << 20);
  std::snprintf(
      note, sizeof note,
      "the same where another's 8 MiB go to the host and its own 8 MiB come back first; %zu "
      "times, worst %.1f; with 64 MiB each %.1f (the fake card's bytes are moved by the "
      "processor)",
      little.size(), little.back(), much[much.size() / 2]);
  figure("spilled_wake_ms", little[little.size() / 2], note);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "guest") == 0) return be_guest(count, arguments);
  bool with_costs = false, with_caps = false, with_copies = false, with_wakes = false;
  double seconds = 1.5;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--costs")
      with_costs = true;
    else if (word == "--caps")
      with_caps = true;
    else if (word == "--copies")
      with_copies = true;
    else if (word == "--wakes")
      with_wakes = true;
    else if (word == "--seconds" && i + 1 < count)
      seconds = std::atof(arguments[++i]);
    else
      fail("unknown option '" + word + "'");
  }
  const bool all = !with_costs && !with_caps && !with_copies && !with_wakes;
  House house;
  house.start_keeper();
  if (all || with_costs) run_costs(house);
  if (all || with_copies) run_copies(house, seconds);
  if (all || with_wakes) run_wakes(house);
  if (all || with_caps) run_caps(house, seconds);
  std::printf("{\"figures\":[");
  for (std::size_t i = 0; i < figures.size(); ++i)
    std::printf("%s%s", i ? ",\n" : "", figures[i].c_str());
  std::printf("],\n\"caps\":[");
  for (std::size_t i = 0; i < caps.size(); ++i)
    std::printf("%s%s", i ? ",\n" : "", caps[i].c_str());
  std::printf("]}\n");
  return 0;
}

#include "guard/cuda/nvml.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "guard/cuda/places.hpp"
#include "guard/lock.hpp"
#include "guard/lookup.hpp"
#include "guard/memory.hpp"

// Declarations of our own, from NVIDIA's public NVML API reference.
namespace loam::guard::cuda {

using NvmlReturn = int;
using NvmlDevice = struct NvmlDeviceOpaque*;
constexpr NvmlReturn nvml_success = 0;
constexpr NvmlReturn nvml_uninitialized = 1;
constexpr NvmlReturn nvml_invalid_argument = 2;
constexpr NvmlReturn nvml_insufficient_size = 7;
constexpr NvmlReturn nvml_function_not_found = 13;

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlMemory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
// The first version of a process's line ends after `used`.
struct NvmlProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(NvmlProcess) == 24 && offsetof(NvmlProcess, used) == 8);
struct NvmlProcess1 {
  unsigned pid;
  unsigned long long used;
};

}  // namespace loam::guard::cuda

using loam::guard::cuda::NvmlDevice;
using loam::guard::cuda::NvmlReturn;

#define LOAM_NVML_HOOKS(X)                                                                         \
  X(nvmlDeviceGetMemoryInfo, NvmlDevice, loam::guard::cuda::NvmlMemory*)                           \
  X(nvmlDeviceGetMemoryInfo_v2, NvmlDevice, loam::guard::cuda::NvmlMemory2*)                       \
  X(nvmlDeviceGetComputeRunningProcesses, NvmlDevice, unsigned*, loam::guard::cuda::NvmlProcess1*) \
  X(nvmlDeviceGetComputeRunningProcesses_v2, NvmlDevice, unsigned*,                                \
    loam::guard::cuda::NvmlProcess*)                                                               \
  X(nvmlDeviceGetComputeRunningProcesses_v3, NvmlDevice, unsigned*,                                \
    loam::guard::cuda::NvmlProcess*)                                                               \
  X(nvmlDeviceGetGraphicsRunningProcesses, NvmlDevice, unsigned*,                                  \
    loam::guard::cuda::NvmlProcess1*)                                                              \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2, NvmlDevice, unsigned*,                               \
    loam::guard::cuda::NvmlProcess*)                                                               \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, NvmlDevice, unsigned*,                               \
    loam::guard::cuda::NvmlProcess*)                                                               \
  X(nvmlDeviceGetMPSComputeRunningProcesses, NvmlDevice, unsigned*,                                \
    loam::guard::cuda::NvmlProcess1*)                                                              \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v2, NvmlDevice, unsigned*,                             \
    loam::guard::cuda::NvmlProcess*)                                                               \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3, NvmlDevice, unsigned*,                             \
    loam::guard::cuda::NvmlProcess*)

extern "C" {
#define LOAM_NVML_DECLARE(symbol, ...) \
  __attribute__((visibility("default"))) NvmlReturn symbol(__VA_ARGS__);
LOAM_NVML_HOOKS(LOAM_NVML_DECLARE)
#undef LOAM_NVML_DECLARE
}

namespace loam::guard::cuda {

namespace {

struct Nvml {
#define LOAM_NVML_MEMBER(symbol, ...) NvmlReturn (*symbol)(__VA_ARGS__) = nullptr;
  LOAM_NVML_HOOKS(LOAM_NVML_MEMBER)
#undef LOAM_NVML_MEMBER
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*by_uuid)(const char*, NvmlDevice*) = nullptr;
};
constinit Nvml nvml;
std::atomic<bool> nvml_found{false};
pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;

struct Name {
  const char* text;
  void* function;
};
const Name hooks[] = {
#define LOAM_NVML_NAME(symbol, ...) {#symbol, reinterpret_cast<void*>(&::symbol)},
    LOAM_NVML_HOOKS(LOAM_NVML_NAME)
#undef LOAM_NVML_NAME
};

// `handle`: where the program looked; null: wherever the library is, opened if need be.
const Nvml* find_nvml(void* handle) {
  if (nvml_found.load(std::memory_order_acquire)) return &nvml;
  const Locked locked(nvml_lock);
  if (nvml_found.load(std::memory_order_acquire)) return &nvml;
  const Lookup lookup = real_lookup();
  if (!lookup) return nullptr;
  void* library = handle;
  if (!library && lookup(RTLD_NEXT, "nvmlInit_v2")) library = RTLD_NEXT;
  if (!library) library = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return nullptr;
#define LOAM_NVML_FIND(symbol, ...) \
  nvml.symbol = reinterpret_cast<decltype(nvml.symbol)>(lookup(library, #symbol));
  LOAM_NVML_HOOKS(LOAM_NVML_FIND)
#undef LOAM_NVML_FIND
  nvml.init = reinterpret_cast<decltype(nvml.init)>(lookup(library, "nvmlInit_v2"));
  nvml.uuid = reinterpret_cast<decltype(nvml.uuid)>(lookup(library, "nvmlDeviceGetUUID"));
  nvml.by_uuid =
      reinterpret_cast<decltype(nvml.by_uuid)>(lookup(library, "nvmlDeviceGetHandleByUUID"));
  if (!nvml.init || !nvml.uuid) return nullptr;
  nvml_found.store(true, std::memory_order_release);
  return &nvml;
}

// The page entry of NVML's device; not_on_page for a neighbour's.
int entry_of(const Page& page, NvmlDevice device) {
  char uuid[96] = {};
  return nvml.uuid(device, uuid, sizeof uuid) == nvml_success ? page_entry_named(page, uuid)
                                                              : not_on_page;
}

// What the slice has of a card: total, and what is left of it.
template <class Memory>
void show_slice(const Page& page, int entry, Memory* memory) {
  const std::uint64_t quota = loam_quota_bytes(&page.limits().device[entry]);
  if (quota == LOAM_SLICE_NO_LIMIT) return;
  const std::uint64_t used =
      __atomic_load_n(&page.counters().device[entry].memory.used, __ATOMIC_SEQ_CST);
  memory->total = std::min<unsigned long long>(memory->total, quota);
  memory->used = std::min<unsigned long long>(used, memory->total);
  memory->free = memory->total - memory->used;
}

// The lease's own processes, with what each holds; never a neighbour's.
template <class Process>
NvmlReturn list_processes(NvmlDevice device, unsigned* count, Process* list) {
  Page* const page = Page::of_process();
  if (!page || !count) return nvml_invalid_argument;
  const int entry = entry_of(*page, device);
  unsigned found = 0;
  const unsigned room = *count;
  const loam_slice_counters& counters = page->counters();
  const std::uint32_t slots = std::min<std::uint32_t>(
      __atomic_load_n(&counters.slots_used, __ATOMIC_SEQ_CST), LOAM_SLICE_SLOTS_MAX);
  for (std::uint32_t slot = 0; entry != not_on_page && slot < slots; ++slot) {
    const auto device_index = static_cast<std::uint32_t>(entry);
    const std::uint64_t held = loam_book_held(&page->counters(), device_index, slot);
    if (held == 0) continue;
    if (list && found < room) {
      list[found] = Process{};
      list[found].pid = static_cast<unsigned>(counters.slot[slot].pid);
      list[found].used = held;
    }
    ++found;
  }
  *count = found;
  return found > room ? nvml_insufficient_size : nvml_success;
}

}  // namespace

void* nvml_answer(const Asked& asked) {
  if (std::strncmp(asked.name, "nvml", 4) != 0 || asked.handle == RTLD_NEXT) return nullptr;
  for (const Name& hook : hooks) {
    if (std::strcmp(hook.text, asked.name) != 0) continue;
    if (!real_address(asked)) return nullptr;
    find_nvml(asked.handle);
    return hook.function;
  }
  return nullptr;
}

bool nvml_used_bytes(const char* uuid, std::uint64_t* used) {
  const Nvml* const real = find_nvml(nullptr);
  if (!real || !real->by_uuid || !real->nvmlDeviceGetMemoryInfo) return false;
  static std::atomic<bool> initialized{false};
  if (!initialized.load(std::memory_order_acquire)) {
    if (real->init() != nvml_success) return false;
    initialized.store(true, std::memory_order_release);
  }
  NvmlDevice device = nullptr;
  NvmlMemory memory{};
  if (real->by_uuid(uuid, &device) != nvml_success ||
      real->nvmlDeviceGetMemoryInfo(device, &memory) != nvml_success)
    return false;
  *used = memory.used;
  return true;
}

}  // namespace loam::guard::cuda

using namespace loam::guard;
using namespace loam::guard::cuda;

#define LOAM_NVML_MEMORY(symbol, Memory)                         \
  NvmlReturn symbol(NvmlDevice device, Memory* memory) {         \
    const auto* const real = find_nvml(nullptr);                 \
    if (!real) return nvml_uninitialized;                        \
    if (!real->symbol) return nvml_function_not_found;           \
    const NvmlReturn fault = real->symbol(device, memory);       \
    Page* const page = Page::of_process();                       \
    if (fault != nvml_success || !memory || !page) return fault; \
    const int entry = entry_of(*page, device);                   \
    if (entry != not_on_page) show_slice(*page, entry, memory);  \
    return fault;                                                \
  }
LOAM_NVML_MEMORY(nvmlDeviceGetMemoryInfo, NvmlMemory)
LOAM_NVML_MEMORY(nvmlDeviceGetMemoryInfo_v2, NvmlMemory2)

#define LOAM_NVML_PROCESSES(symbol, Process)                                              \
  NvmlReturn symbol(NvmlDevice device, unsigned* count, Process* list) {                  \
    return find_nvml(nullptr) ? list_processes(device, count, list) : nvml_uninitialized; \
  }
LOAM_NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses, NvmlProcess1)
LOAM_NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, NvmlProcess)
LOAM_NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, NvmlProcess)
LOAM_NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, NvmlProcess1)
LOAM_NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, NvmlProcess)
LOAM_NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, NvmlProcess)

// Slices do no graphics; a neighbour's graphics are nobody's business.
#define LOAM_NVML_NONE(symbol, Process)                      \
  NvmlReturn symbol(NvmlDevice, unsigned* count, Process*) { \
    if (!count) return nvml_invalid_argument;                \
    *count = 0;                                              \
    return nvml_success;                                     \
  }
LOAM_NVML_NONE(nvmlDeviceGetGraphicsRunningProcesses, NvmlProcess1)
LOAM_NVML_NONE(nvmlDeviceGetGraphicsRunningProcesses_v2, NvmlProcess)
LOAM_NVML_NONE(nvmlDeviceGetGraphicsRunningProcesses_v3, NvmlProcess)

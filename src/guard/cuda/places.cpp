#include "guard/cuda/places.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "guard/spin_lock.hpp"

namespace loam::guard::cuda {

thread_local constinit Remembered remembered;
std::atomic<std::uint32_t> contexts_generation{1};

namespace {

// Devices live as long as the process: what was found about them stays true. 0: not asked yet.
constexpr int devices_max = 64;
std::atomic<int> entry_of_device[devices_max] = {};

struct KnownContext {
  CUcontext context;
  CUdevice device;
  int entry;
};
constexpr int contexts_max = 256;
SpinLock contexts_lock;
KnownContext contexts[contexts_max] = {};
int find_entry(const Page& page, std::uint64_t key) {
  for (std::uint32_t i = 0; i < page.device_count(); ++i)
    if (page.limits().device[i].device_key == key) return static_cast<int>(i);
  return not_on_page;
}

bool look_up(CUcontext context, Here* here) {
  const Spinning locked(contexts_lock);
  for (const KnownContext& known : contexts)
    if (known.context == context) {
      *here = Here{context, known.device, known.entry};
      return true;
    }
  return false;
}

void learn(const Here& here) {
  const Spinning locked(contexts_lock);
  for (KnownContext& known : contexts)
    if (!known.context) {
      known = KnownContext{here.context, here.device, here.entry};
      return;
    }
}

}  // namespace

bool uuid_text(CUdevice device, char* text) {
  const Driver* const real = driver();
  Uuid uuid{};
  const auto ask = real->cuDeviceGetUuid_v2 ? real->cuDeviceGetUuid_v2 : real->cuDeviceGetUuid;
  if (ask(&uuid, device) != cuda_success) return false;
  char hex[33] = {};
  for (unsigned i = 0; i < 16; ++i)
    std::snprintf(hex + 2 * i, 3, "%02x", static_cast<unsigned>(uuid.bytes[i]));
  std::snprintf(text, 48, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                hex + 20);
  return true;
}

int page_entry_named(const Page& page, const char* uuid) {
  char text[96];
  std::size_t i = 0;
  for (; uuid[i] && i + 1 < sizeof text; ++i) {
    const bool upper = i >= 4 && uuid[i] >= 'A' && uuid[i] <= 'Z';  // the prefix keeps its case
    text[i] = upper ? static_cast<char>(uuid[i] - 'A' + 'a') : uuid[i];
  }
  text[i] = 0;
  return find_entry(page, loam_device_key(text));
}

int page_entry(const Page& page, CUdevice device) {
  if (device < 0) return not_on_page;
  const bool cached = device < devices_max;
  if (cached)
    if (const int known = entry_of_device[device].load(std::memory_order_acquire); known != 0)
      return known > 0 ? known - 1 : not_on_page;
  char text[48] = {};
  if (!uuid_text(device, text)) return not_on_page;
  int entry = page_entry_named(page, text);
  if (entry == not_on_page) {  // perhaps the page names a MIG instance
    std::memcpy(text, "MIG", 3);
    entry = page_entry_named(page, text);
  }
  if (cached)
    entry_of_device[device].store(entry == not_on_page ? -1 : entry + 1, std::memory_order_release);
  return entry;
}

CUresult find_here(const Page& page, Here* here) {
  const Driver* const real = driver();
  if (!real) return cuda_not_initialized;
  CUcontext context = nullptr;
  if (const CUresult fault = real->cuCtxGetCurrent(&context); fault != cuda_success) return fault;
  if (!context) return cuda_invalid_context;
  Remembered& mine = remembered;
  if (mine.here.context != context ||
      mine.generation != contexts_generation.load(std::memory_order_relaxed)) {
    Here found{context, -1, not_on_page};
    if (!look_up(context, &found)) {
      if (const CUresult fault = real->cuCtxGetDevice(&found.device); fault != cuda_success)
        return fault;
      found.entry = page_entry(page, found.device);
      learn(found);
    }
    mine.here = found;
    mine.generation = contexts_generation.load(std::memory_order_relaxed);
  }
  *here = mine.here;
  return here->entry == not_on_page ? cuda_no_device : cuda_success;
}

int ask_entry_here(const Page& page) {
  remembered.uses = 0;
  Here here;
  find_here(page, &here);
  return here.entry;
}

Within::Within(CUcontext context) {
  const Driver* const real = driver();
  CUcontext now = nullptr;
  if (!context || !real->cuCtxPushCurrent_v2 || !real->cuCtxPopCurrent_v2 ||
      real->cuCtxGetCurrent(&now) != cuda_success || now == context)
    return;
  pushed_ = real->cuCtxPushCurrent_v2(context) == cuda_success;
}

Within::~Within() {
  CUcontext popped = nullptr;
  if (pushed_) driver()->cuCtxPopCurrent_v2(&popped);
}

void forget_here() {
  remembered.generation = 0;
}

void forget_context(CUcontext context) {
  {
    const Spinning locked(contexts_lock);
    for (KnownContext& known : contexts)
      if (known.context == context) known = KnownContext{};
  }
  contexts_generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace loam::guard::cuda

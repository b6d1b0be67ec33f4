#include "guard/cuda/driver.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "guard/cuda/nvml.hpp"
#include "guard/lock.hpp"
#include "guard/lookup.hpp"
#include "guard/page.hpp"

// Entries with 32-bit addresses and the like, whatever their arguments are.
extern "C" {
#define HOOK(symbol, since, kind)
#define PASS(symbol, kind)
#define REFUSE(symbol, kind) __attribute__((visibility("default"))) CUresult symbol();
#include "guard/cuda/entries.def"
#undef REFUSE
#define REFUSE(symbol, kind)                      \
  CUresult symbol() {                             \
    return loam::guard::cuda::cuda_not_supported; \
  }
#include "guard/cuda/entries.def"
#undef REFUSE
#undef HOOK
#undef PASS
}

namespace loam::guard::cuda {

constinit Driver found_driver;
constinit std::atomic<bool> driver_is_found{false};

namespace {

struct Entry {
  const char* symbol;
  void* hook;  // null: goes to the driver
  int since;
};
const Entry entries[] = {
#define HOOK(symbol, since, kind) {#symbol, reinterpret_cast<void*>(&::symbol), since},
#define REFUSE(symbol, kind) {#symbol, reinterpret_cast<void*>(&::symbol), 2000},
#define PASS(symbol, kind) {#symbol, nullptr, 2000},
#include "guard/cuda/entries.def"
#undef HOOK
#undef REFUSE
#undef PASS
};

// Where the driver has each hooked entry, in the order of `entries`.
constexpr std::size_t entry_count = sizeof entries / sizeof entries[0];
void* driver_has[entry_count] = {};

// A library that the program itself looked a CUDA function up in.
std::atomic<void*> looked_up_library{nullptr};
const void* driver_base = nullptr;

int find_library(dl_phdr_info* info, std::size_t, void* out) {
  if (!info->dlpi_name || !std::strstr(info->dlpi_name, "libcuda.so")) return 0;
  *static_cast<void**>(out) = ::dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return *static_cast<void**>(out) != nullptr;
}

// Where the functions behind the guard are: in the library in which the program looked them up;
// else in the next one in its own order; else in any driver in the process.
void* implementation() {
  const Lookup lookup = real_lookup();
  if (!lookup) return nullptr;
  if (void* library = looked_up_library.load()) return library;
  if (lookup(RTLD_NEXT, "cuInit")) return RTLD_NEXT;
  void* library = nullptr;
  ::dl_iterate_phdr(&find_library, &library);
  return library;
}

const void* base_of(const void* address) {
  Dl_info place{};
  return address && ::dladdr(address, &place) ? place.dli_fbase : nullptr;
}

// Refused calls of entries that the table does not know.
CUresult refuse_unknown() {
  return cuda_not_supported;
}

void say_unknown(const char* symbol) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  char line[256];
  std::snprintf(line, sizeof line,
                "the driver's %s may allocate or launch and is unknown to this guard: refused",
                symbol);
  say(line);
}

// "cuMemAlloc" of "cuMemAlloc_v2_ptds"; its length.
std::size_t base_length(const char* symbol, bool* per_thread) {
  std::size_t length = std::strlen(symbol);
  const auto ends = [&](const char* tail) {
    return length > 5 && std::strncmp(symbol + length - 5, tail, 5) == 0;
  };
  *per_thread = ends("_ptsz") || ends("_ptds");
  if (*per_thread) length -= 5;
  if (length > 3 && symbol[length - 3] == '_' && symbol[length - 2] == 'v') length -= 3;
  return length;
}

// The entry that a driver gives for the name: the newest version that is no newer than asked, in
// the wanted flavour where there is one. Null for a name the table does not know.
const Entry* entry_for(const char* name, int version, bool per_thread) {
  const Entry* best = nullptr;
  bool best_flavour = false;
  const std::size_t wanted = std::strlen(name);
  for (const Entry& entry : entries) {
    bool flavour = false;
    const std::size_t length = base_length(entry.symbol, &flavour);
    if (length != wanted || std::strncmp(entry.symbol, name, wanted) != 0) continue;
    if (entry.since > version || (flavour && !per_thread)) continue;
    if (best && (entry.since < best->since || (entry.since == best->since && best_flavour)))
      continue;
    best = &entry;
    best_flavour = flavour;
  }
  return best;
}

// What the program gets in place of the driver's function: the hook of the entry that has this very
// address; where the driver hands out an address of its own, the hook of the entry it must be.
void* replacement(void* function, const char* name, int version, std::uint64_t flags) {
  for (std::size_t i = 0; i < entry_count; ++i)
    if (entries[i].hook && driver_has[i] == function) return entries[i].hook;
  const bool per_thread = (flags & proc_address_per_thread_stream) != 0;
  const Entry* const entry = entry_for(name, version, per_thread);
  if (entry) return entry->hook ? entry->hook : function;
  if (is_known_entry(name)) return function;
  if (!may_evade(name)) return function;
  say_unknown(name);
  return nullptr;
}

}  // namespace

bool find_driver() {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const Locked locked(lock);
  if (driver_is_found.load(std::memory_order_acquire)) return true;
  void* const library = implementation();
  if (!library) return false;
  const Lookup lookup = real_lookup();
#define LOAM_CUDA_FIND(symbol) \
  found_driver.symbol = reinterpret_cast<decltype(found_driver.symbol)>(lookup(library, #symbol));
#define HOOK(symbol, since, kind) LOAM_CUDA_FIND(symbol)
#define REFUSE(symbol, kind)
#define PASS(symbol, kind)
#include "guard/cuda/entries.def"
#undef HOOK
#undef REFUSE
#undef PASS
  LOAM_CUDA_CALLS(LOAM_CUDA_FIND)
#undef LOAM_CUDA_FIND
  for (std::size_t i = 0; i < entry_count; ++i)
    if (entries[i].hook) driver_has[i] = lookup(library, entries[i].symbol);
  driver_base = base_of(lookup(library, "cuInit"));
  // Without these no device can be told from another and nothing can be counted.
  const Driver& d = found_driver;
  const bool whole =
      d.cuCtxGetCurrent && d.cuCtxGetDevice && (d.cuDeviceGetUuid || d.cuDeviceGetUuid_v2);
  driver_is_found.store(whole, std::memory_order_release);
  return whole;
}

void* hook_named(const char* symbol) {
  for (const Entry& entry : entries)
    if (std::strcmp(entry.symbol, symbol) == 0) return entry.hook;
  return nullptr;
}

bool is_known_entry(const char* symbol) {
  bool flavour = false;
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.symbol, symbol) == 0) return true;
    const std::size_t length = base_length(entry.symbol, &flavour);
    if (length == std::strlen(symbol) && std::strncmp(entry.symbol, symbol, length) == 0)
      return true;
  }
  return false;
}

bool may_evade(const char* symbol) {
  if (symbol[0] != 'c' || symbol[1] != 'u') return false;
  for (const char* part : {"Alloc", "Launch", "MemCreate", "Memcpy", "Memset", "Import",
                           "CtxCreate", "ArrayCreate", "PoolCreate", "Prefetch"})
    if (std::strstr(symbol, part)) return true;
  return false;
}

}  // namespace loam::guard::cuda

namespace loam::guard {

void* cuda_answer(const Asked& asked, const void* caller) {
  using namespace cuda;
  const char* const name = asked.name;
  if (name[0] == 'n') return nvml_answer(asked);
  if (asked.handle == RTLD_NEXT) return nullptr;
  void* hook = hook_named(name);
  if (!hook && (is_known_entry(name) || !may_evade(name))) return nullptr;
  if (driver_base && base_of(caller) == driver_base) return nullptr;  // the driver's own business
  void* const real = real_address(asked);
  if (!real) return nullptr;  // the C library says so once more, and sets dlerror
  if (!hook) {
    say_unknown(name);
    return reinterpret_cast<void*>(&refuse_unknown);
  }
  Dl_info place{};
  if (real != hook && !looked_up_library.load() && ::dladdr(real, &place) && place.dli_fname) {
    void* const library = ::dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void* none = nullptr;
    if (library && !looked_up_library.compare_exchange_strong(none, library)) ::dlclose(library);
  }
  return hook;
}

}  // namespace loam::guard

using loam::guard::cuda::driver;

LOAM_GUARD_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                               std::uint64_t flags, int* status) {
  using namespace loam::guard::cuda;
  const Driver* const real = driver();
  if (!real || !real->cuGetProcAddress_v2) return cuda_not_supported;
  const CUresult fault = real->cuGetProcAddress_v2(name, function, version, flags, status);
  if (fault != cuda_success || !name || !function || !*function) return fault;
  *function = replacement(*function, name, version, flags);
  if (*function) return fault;
  if (status) *status = symbol_not_found;
  return status ? cuda_success : cuda_not_found;
}

LOAM_GUARD_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version,
                                            std::uint64_t flags) {
  using namespace loam::guard::cuda;
  const Driver* const real = driver();
  if (!real || !real->cuGetProcAddress) return cuda_not_supported;
  const CUresult fault = real->cuGetProcAddress(name, function, version, flags);
  if (fault != cuda_success || !name || !function || !*function) return fault;
  *function = replacement(*function, name, version, flags);
  return *function ? fault : cuda_not_found;
}

// NVIDIA's own libraries (the runtime among them) keep private tables of functions behind this, by
// identifiers that are not documented. They work only with them, so they get them; what those
// functions do is not counted. docs/isolation.md says so.
LOAM_GUARD_EXPORT CUresult cuGetExportTable(const void** table, const loam::guard::cuda::Uuid* id) {
  using namespace loam::guard::cuda;
  const Driver* const real = driver();
  if (!real || !real->cuGetExportTable) return cuda_not_supported;
  return real->cuGetExportTable(table, id);
}

#include "guard/opencl/driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "guard/lock.hpp"
#include "guard/lookup.hpp"

namespace loam::guard {

namespace {

struct Name {
  const char* text;
  void* function;
};

const Name hook_names[] = {
#define LOAM_GUARD_NAME(name) {#name, reinterpret_cast<void*>(&::name)},
    LOAM_GUARD_HOOKS(LOAM_GUARD_NAME)
#undef LOAM_GUARD_NAME
};

// A library that the program itself looked an OpenCL function up in.
std::atomic<void*> looked_up_library{nullptr};

int find_loader(dl_phdr_info* info, std::size_t, void* out) {
  if (!info->dlpi_name || !std::strstr(info->dlpi_name, "libOpenCL")) return 0;
  *static_cast<void**>(out) = ::dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return *static_cast<void**>(out) != nullptr;
}

// Where the functions behind the guard are: the next library in the program's own order; else the
// one the program opened; else any loader in the process (a dependency of an opened library).
void* implementation() {
  const Lookup lookup = real_lookup();
  if (!lookup) return nullptr;
  void* const next = lookup(RTLD_NEXT, "clGetPlatformIDs");
  if (next) return RTLD_NEXT;
  if (void* library = looked_up_library.load()) return library;
  void* loader = nullptr;
  ::dl_iterate_phdr(&find_loader, &loader);
  return loader;
}

void fill(Driver& driver, void* library) {
  const Lookup lookup = real_lookup();
#define LOAM_GUARD_FIND(name) \
  driver.name = reinterpret_cast<decltype(driver.name)>(lookup(library, #name));
  LOAM_GUARD_HOOKS(LOAM_GUARD_FIND)
  LOAM_GUARD_CALLS(LOAM_GUARD_FIND)
#undef LOAM_GUARD_FIND
  driver.found = driver.clGetPlatformIDs && driver.clGetDeviceIDs && driver.clGetDeviceInfo &&
                 driver.clGetPlatformInfo && driver.clGetContextInfo &&
                 driver.clGetCommandQueueInfo && driver.clReleaseMemObject &&
                 driver.clReleaseEvent && driver.clWaitForEvents && driver.clFlush;
}

// Whether the code at `address` is an OpenCL loader or driver: its lookups are its own business.
bool is_implementation(const void* address) {
  Dl_info caller{};
  if (!::dladdr(address, &caller) || !caller.dli_fname) return false;
  void* const library = ::dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return false;
  bool own = false;
  for (const char* name : {"clGetPlatformIDs", "clGetExtensionFunctionAddress"}) {
    void* const symbol = real_lookup()(library, name);
    Dl_info place{};
    own = own || (symbol && ::dladdr(symbol, &place) && place.dli_fbase == caller.dli_fbase);
  }
  ::dlclose(library);
  return own;
}

}  // namespace

void* opencl_answer(const Asked& asked, const void* caller) {
  void* const hook = hook_named(asked.name);
  if (!hook || asked.handle == RTLD_NEXT || is_implementation(caller)) return nullptr;
  void* const real = real_address(asked);
  if (!real) return nullptr;  // the C library says so once more, and sets dlerror
  if (real != hook) {
    Dl_info place{};
    if (::dladdr(real, &place) && place.dli_fname && !looked_up_library.load()) {
      void* const library = ::dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
      void* none = nullptr;
      if (library && !looked_up_library.compare_exchange_strong(none, library)) ::dlclose(library);
    }
  }
  return hook;
}

void* hook_named(const char* name) {
  if (!name || name[0] != 'c' || name[1] != 'l') return nullptr;
  for (const Name& entry : hook_names)
    if (std::strcmp(entry.text, name) == 0) return entry.function;
  return nullptr;
}

const Driver& driver() {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static Driver found;
  static std::atomic<bool> ready{false};
  static const Driver nothing;
  if (ready.load(std::memory_order_acquire)) return found;
  const Locked locked(lock);
  if (ready.load(std::memory_order_acquire)) return found;
  void* const library = implementation();
  if (!library) return nothing;
  fill(found, library);
  if (!found.found) return nothing;
  ready.store(true, std::memory_order_release);
  return found;
}

}  // namespace loam::guard

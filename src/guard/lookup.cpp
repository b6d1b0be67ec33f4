#include "guard/lookup.hpp"

#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

namespace loam::guard {

Lookup real_lookup() {
  static std::atomic<Lookup> cached{nullptr};
  Lookup lookup = cached.load(std::memory_order_acquire);
  if (lookup) return lookup;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.0"}) {
    lookup = reinterpret_cast<Lookup>(::dlvsym(RTLD_NEXT, "dlsym", version));
    if (lookup) break;
  }
  cached.store(lookup, std::memory_order_release);
  return lookup;
}

namespace {

// Which layer is asked: by the first two letters, since programs look up a great deal else.
void* answer(void* handle, const char* name, const void* caller) {
  if (name[0] == 'c' && name[1] == 'l') return opencl_answer(handle, name, caller);
  const bool nvidia = (name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'v');
  return nvidia && &cuda_answer != nullptr ? cuda_answer(handle, name, caller) : nullptr;
}

}  // namespace

}  // namespace loam::guard

// Everything that is not one of the guard's names leaves by a jump, so that the C library sees the
// true caller.
LOAM_GUARD_EXPORT void* dlsym(void* handle, const char* name) noexcept {
  if (name[0] == 'c' || name[0] == 'n') [[unlikely]] {
    if (void* hook = loam::guard::answer(handle, name, __builtin_return_address(0))) return hook;
  }
  const loam::guard::Lookup lookup = loam::guard::real_lookup();
  if (!lookup) [[unlikely]]
    return nullptr;
  return lookup(handle, name);
}

// Programs that open a driver themselves look its functions up with dlsym() or dlvsym(), which are
// the guard's: it asks the layer whose names begin so first. Not pure: the dynamic linker.
#pragma once

namespace loam::guard {

// The C library's own dlsym and dlvsym, which ours hide from every plain reference. Null where
// there is none.
using Lookup = void* (*)(void* handle, const char* name);
using VersionedLookup = void* (*)(void* handle, const char* name, const char* version);
Lookup real_lookup();
VersionedLookup real_versioned_lookup();

// What a program asks for: `version` is null where it asked with dlsym().
struct Asked {
  void* handle;
  const char* name;
  const char* version;
};
// What the C library would answer, seen from the guard. Null where it has nothing.
void* real_address(const Asked& asked);

// A layer's answer to a lookup by the code at `caller`; null to let the C library answer.
void* opencl_answer(const Asked& asked, const void* caller);  // "cl..."
void* cuda_answer(const Asked& asked, const void* caller)     // "cu...", "nvml..."
    __attribute__((weak));

}  // namespace loam::guard

#define LOAM_GUARD_EXPORT extern "C" __attribute__((visibility("default")))

// Programs that open a driver themselves look its functions up with dlsym(), which is the guard's:
// it asks the layer whose names begin so first. Not pure: the dynamic linker.
#pragma once

namespace loam::guard {

// The C library's own dlsym, which ours hides from every plain reference. Null where there is none.
using Lookup = void* (*)(void* handle, const char* name);
Lookup real_lookup();

// A layer's answer to a lookup of `name` in `handle` by the code at `caller`; null to let the C
// library answer.
void* opencl_answer(void* handle, const char* name, const void* caller);  // "cl..."
void* cuda_answer(void* handle, const char* name, const void* caller)     // "cu...", "nvml..."
    __attribute__((weak));

}  // namespace loam::guard

#define LOAM_GUARD_EXPORT extern "C" __attribute__((visibility("default")))

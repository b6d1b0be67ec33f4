// NVML inside a process of the task: its memory and process queries show the slice. Not pure: the
// driver's library, the slice page.
#pragma once

#include <cstdint>

#include "guard/lookup.hpp"

namespace loam::guard::cuda {

// The guard's answer to a lookup of an "nvml..." name; null to let the C library answer.
void* nvml_answer(const Asked& asked);

// Bytes in use on the device with that UUID text ("GPU-..." or "MIG-..."), by everybody, as NVML
// says; false where there is no NVML. Opens the library at the first call.
bool nvml_used_bytes(const char* uuid, std::uint64_t* used);

}  // namespace loam::guard::cuda

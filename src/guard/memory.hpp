// Device memory of this process: reserved on the slice page before it is allocated, given back when
// the object is gone. Not pure: the slice page.
#pragma once

#include <cstdint>

#include "guard/driver.hpp"
#include "guard/page.hpp"

namespace loam::guard {

// What one object holds. Plain data.
struct Holding {
  std::uint32_t entries = 0;  // bits: the page's devices it is charged to
  std::uint64_t bytes = 0;    // on each of them
};

// Takes `bytes` on every device of the context, or on none. On failure returns the driver's own
// error: CL_MEM_OBJECT_ALLOCATION_FAILURE over the quota (counted as a refusal),
// CL_OUT_OF_RESOURCES where the process may not use the device, or what the driver says about the
// context.
cl_int reserve(Page& page, cl_context context, std::uint64_t bytes, Holding* holding);

// Raises a holding to `bytes`; false over the quota.
bool grow(Page& page, Holding* holding, std::uint64_t bytes);

void give_back(Page& page, const Holding& holding);

// Gives the holding back when the last reference to the object is gone. CL_SUCCESS, or the driver's
// error, and then the object is released and the holding given back already.
cl_int tie_to(Page& page, cl_mem object, const Holding& holding);

// The same for shared virtual memory, by address.
bool remember_svm(void* address, const Holding& holding);
// The holding of an address, forgotten by this call; false for an address that is not known.
bool forget_svm(void* address, Holding* holding);

}  // namespace loam::guard

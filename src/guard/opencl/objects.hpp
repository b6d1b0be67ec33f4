// What OpenCL objects hold of the slice: memory objects by their contexts' devices, given back with
// the last reference. Not pure: driver, slice page.
#pragma once

#include <cstdint>

#include "guard/memory.hpp"
#include "guard/opencl/driver.hpp"

namespace loam::guard {

// Takes `bytes` on every device of the context, or on none. On failure returns the driver's own
// error: CL_MEM_OBJECT_ALLOCATION_FAILURE over the quota (counted as a refusal),
// CL_OUT_OF_RESOURCES where the process may not use the device, or what the driver says about the
// context.
cl_int reserve(Page& page, cl_context context, std::uint64_t bytes, std::uint32_t kind,
               Holding* holding);

// Gives the holding back when the last reference to the object is gone. CL_SUCCESS, or the driver's
// error, and then the object is released and the holding given back already.
cl_int tie_to(Page& page, cl_mem object, const Holding& holding);

}  // namespace loam::guard

// Which entry of the slice page an OpenCL device is. Not pure: asks the driver.
#pragma once

#include <cstdint>

#include "guard/opencl/driver.hpp"
#include "guard/page.hpp"

namespace loam::guard {

inline constexpr int not_on_page = -1;

// The index of the device's entry; a sub-device is its root device. Cost after the first call: one
// look into a small table.
int page_entry(const Page& page, cl_device_id device);

// Set bits: entries of all the context's devices. False if the driver does not know the context or
// a device of it is not on the page.
bool page_entries(const Page& page, cl_context context, std::uint32_t* entries, cl_int* fault);

}  // namespace loam::guard

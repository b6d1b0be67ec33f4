// The one way in which the guard's hooks give a command to the driver: admit, call, follow the
// command's event to its end. Not pure: driver, slice page.
#pragma once

#include <cstdint>

#include "guard/opencl/driver.hpp"
#include "guard/turns.hpp"

namespace loam::guard {

// A command as its hook sees it.
struct Command {
  cl_command_queue queue = nullptr;
  Work work = Work::kernel;
  std::uint64_t bytes = 0;    // moved, for transfers
  std::uint64_t similar = 0;  // commands with the same value are expected to take equally long
  cl_uint wait_count = 0;
  const cl_event* wait_list = nullptr;
  cl_event* event = nullptr;  // the program's; may be null
  bool blocking = false;
  bool is_barrier = false;
};

// What the driver is called through: the blocking flag and where it puts the event.
using DriverCall = cl_int (*)(void* closure, cl_bool blocking, cl_event* event);

cl_int submit_through(const Command& command, DriverCall call, void* closure);

template <class Call>
cl_int submit(const Command& command, Call call) {
  return submit_through(
      command,
      [](void* closure, cl_bool blocking, cl_event* event) {
        return (*static_cast<Call*>(closure))(blocking, event);
      },
      &call);
}

}  // namespace loam::guard

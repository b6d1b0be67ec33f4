#include "guard/opencl/submit.hpp"

#include <cstdlib>
#include <new>

#include "guard/opencl/deferred.hpp"
#include "guard/opencl/devices.hpp"
#include "guard/page.hpp"

namespace loam::guard {

namespace {

void CL_CALLBACK command_over(cl_event, cl_int, void* data) {
  Follow* const follow = static_cast<Follow*>(data);
  const cl_event own_event = follow->own_event;
  if (leave(follow)) {
    if (Page* const page = Page::of_process()) finish(*page, follow->ticket, true);
    std::free(follow);
  }
  if (own_event) driver().clReleaseEvent(own_event);
}

// Sees the command to its end. Drivers without event callbacks make the program wait here instead.
void follow_to_end(Follow* follow, cl_event event) {
  if (driver().clSetEventCallback &&
      driver().clSetEventCallback(event, CL_COMPLETE, &command_over, follow) == CL_SUCCESS)
    return;
  driver().clWaitForEvents(1, &event);
  command_over(event, CL_COMPLETE, follow);
}

}  // namespace

cl_int submit_through(const Command& command, DriverCall call, void* closure) {
  const Driver& real = driver();
  if (!real.found) return CL_INVALID_COMMAND_QUEUE;
  Page* const page = Page::of_process();
  if (!page) return CL_OUT_OF_RESOURCES;
  cl_device_id device = nullptr;
  if (const cl_int fault = real.clGetCommandQueueInfo(command.queue, CL_QUEUE_DEVICE, sizeof device,
                                                      static_cast<void*>(&device), nullptr);
      fault != CL_SUCCESS)
    return fault;
  const int entry = page_entry(*page, device);
  if (entry == not_on_page) return CL_OUT_OF_RESOURCES;

  Follow* const follow = static_cast<Follow*>(std::malloc(sizeof(Follow)));
  if (!follow) return CL_OUT_OF_HOST_MEMORY;
  new (follow) Follow();
  follow->device = static_cast<std::uint32_t>(entry);
  follow->lane = lane_of(*page, follow->device, command.work);
  follow->queue = command.queue;
  follow->needs_turn = command.work != Work::none;
  follow->is_barrier = command.is_barrier;
  follow->roots = roots_of(command.queue, command.wait_count, command.wait_list);
  const bool defers = follow->roots.count > 0;
  if (!defers && command.work == Work::none) {
    std::free(follow);
    return call(closure, CL_FALSE, command.event);
  }

  if (!defers) follow->ticket = admit(*page, follow->device, follow->lane, command.similar);
  cl_event event = nullptr;
  // A deferred command cannot keep the caller inside the driver: its turn is taken later.
  const bool waits_here = defers && command.blocking;
  const cl_int fault = call(closure, command.blocking && !defers ? CL_TRUE : CL_FALSE, &event);
  if (fault != CL_SUCCESS || !event) {
    if (!defers) finish(*page, follow->ticket, fault == CL_SUCCESS);
    std::free(follow);
    return fault;
  }
  count_work(*page, follow->device, command.work, command.bytes);
  follow->event = event;
  if (command.event)
    *command.event = event;
  else
    follow->own_event = event;
  if (waits_here) real.clRetainEvent(event);
  if (defers) defer(follow);
  follow_to_end(follow, event);
  // Work that sits in a queue holds the turn: it is to start now.
  if (!command.blocking || defers) real.clFlush(command.queue);
  if (!waits_here) return CL_SUCCESS;
  const cl_int waited = real.clWaitForEvents(1, &event);
  real.clReleaseEvent(event);
  return waited;
}

}  // namespace loam::guard

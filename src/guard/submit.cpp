#include "guard/submit.hpp"

#include <cstdlib>

#include "guard/devices.hpp"
#include "guard/page.hpp"

namespace loam::guard {

namespace {

// Follows one command to its end.
struct Follow {
  Ticket ticket;
  cl_event own_event;  // released at the end; null where the event is the program's
};

void CL_CALLBACK command_over(cl_event, cl_int, void* data) {
  Follow* const follow = static_cast<Follow*>(data);
  if (Page* const page = Page::of_process()) finish(*page, follow->ticket, true);
  if (follow->own_event) driver().clReleaseEvent(follow->own_event);
  std::free(follow);
}

// Drivers without event callbacks, or out of memory: then the program waits here instead.
void wait_for_end(Page& page, const Ticket& ticket, cl_event event, bool own) {
  driver().clWaitForEvents(1, &event);
  finish(page, ticket, true);
  if (own) driver().clReleaseEvent(event);
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

  const Ticket ticket = admit(*page, static_cast<std::uint32_t>(entry), command.similar);
  cl_event event = nullptr;
  const cl_int fault = call(closure, command.blocking ? CL_TRUE : CL_FALSE, &event);
  if (fault != CL_SUCCESS || !event) {
    finish(*page, ticket, fault == CL_SUCCESS);
    return fault;
  }
  count_work(*page, ticket.device, command.work, command.bytes);
  const bool own = command.event == nullptr;
  if (!own) *command.event = event;

  Follow* const follow = static_cast<Follow*>(std::malloc(sizeof(Follow)));
  if (follow) *follow = Follow{ticket, own ? event : nullptr};
  if (!follow || !real.clSetEventCallback ||
      real.clSetEventCallback(event, CL_COMPLETE, &command_over, follow) != CL_SUCCESS) {
    std::free(follow);
    wait_for_end(*page, ticket, event, own);
    return CL_SUCCESS;
  }
  // Work that sits in a queue holds the turn: it is to start now.
  if (!command.blocking) real.clFlush(command.queue);
  return CL_SUCCESS;
}

}  // namespace loam::guard

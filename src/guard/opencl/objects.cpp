#include "guard/opencl/objects.hpp"

#include <unistd.h>

#include <cstdlib>

#include "guard/opencl/devices.hpp"

namespace loam::guard {

namespace {

struct Tie {
  Holding holding;
  pid_t process;
};

void CL_CALLBACK object_gone(cl_mem, void* data) {
  Tie* const tie = static_cast<Tie*>(data);
  Page* const page = Page::of_process();
  // An object of the parent that dies in a forked child was never the child's.
  if (page && tie->process == ::getpid()) give_back(*page, tie->holding);
  std::free(tie);
}

}  // namespace

cl_int reserve(Page& page, cl_context context, std::uint64_t bytes, std::uint32_t kind,
               Holding* holding) {
  *holding = Holding{0, kind, bytes};
  std::uint32_t entries = 0;
  cl_int fault = CL_SUCCESS;
  if (!page_entries(page, context, &entries, &fault)) return fault;
  return take_all(page, entries, holding) ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

cl_int tie_to(Page& page, cl_mem object, const Holding& holding) {
  Tie* const tie = static_cast<Tie*>(std::malloc(sizeof(Tie)));
  cl_int fault = CL_OUT_OF_HOST_MEMORY;
  if (tie) {
    *tie = Tie{holding, ::getpid()};
    fault = driver().clSetMemObjectDestructorCallback
                ? driver().clSetMemObjectDestructorCallback(object, &object_gone, tie)
                : CL_OUT_OF_RESOURCES;
  }
  if (fault == CL_SUCCESS) return CL_SUCCESS;
  // An object that cannot be followed is not handed out.
  std::free(tie);
  driver().clReleaseMemObject(object);
  give_back(page, holding);
  return fault;
}

}  // namespace loam::guard

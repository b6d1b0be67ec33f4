#include "node/device/calibrate_session.hpp"

#include <algorithm>
#include <utility>

namespace loam::node {

Result<void> CalibrateSession::said(cl_int code, const std::string& action) {
  if (code == CL_SUCCESS) return {};
  return Error{ErrorKind::unavailable, action + ": " + opencl_error_text(code),
               "see that the device is idle and its driver works (clinfo), then calibrate again"};
}

Result<CalibrateSession> CalibrateSession::open(OpenCl cl, const OpenClPlace& place,
                                                const std::string& name) {
  Finding notes;
  const std::vector<OpenClListed> listed = list_opencl(cl, notes);
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const OpenClListed& one) {
    return one.place == place && opencl_text(cl, one.device, CL_DEVICE_NAME) == name;
  });
  if (found == listed.end()) {
    return Error{ErrorKind::not_found,
                 "OpenCL no longer shows '" + name + "' as device " + std::to_string(place.device) +
                     " of platform '" + place.platform_name + "'",
                 "look for devices again: loam device list"};
  }
  CalibrateSession session(std::move(cl));
  session.device_ = found->device;
  const OpenCl& api = session.cl_;
  session.extensions_ = opencl_text(api, session.device_, CL_DEVICE_EXTENSIONS);
  LOAM_CHECK(
      said(api.get_device_info(session.device_, CL_DEVICE_GLOBAL_MEM_SIZE,
                               sizeof session.memory_bytes_, &session.memory_bytes_, nullptr),
           "clGetDeviceInfo(CL_DEVICE_GLOBAL_MEM_SIZE)"));
  LOAM_CHECK(said(api.get_device_info(session.device_, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                                      sizeof session.allocation_bytes_max_,
                                      &session.allocation_bytes_max_, nullptr),
                  "clGetDeviceInfo(CL_DEVICE_MAX_MEM_ALLOC_SIZE)"));
  cl_int code = CL_SUCCESS;
  session.context_ = api.create_context(nullptr, 1, &session.device_, nullptr, nullptr, &code);
  LOAM_CHECK(said(code, "clCreateContext"));
  session.queue_ = api.create_command_queue(session.context_, session.device_, 0, &code);
  LOAM_CHECK(said(code, "clCreateCommandQueue"));
  return session;
}

CalibrateSession::CalibrateSession(CalibrateSession&& other) noexcept
    : cl_(other.cl_),
      device_(other.device_),
      context_(std::exchange(other.context_, nullptr)),
      queue_(std::exchange(other.queue_, nullptr)),
      program_(std::exchange(other.program_, nullptr)),
      kernels_(std::exchange(other.kernels_, {})),
      buffers_(std::exchange(other.buffers_, {})),
      extensions_(std::move(other.extensions_)),
      memory_bytes_(other.memory_bytes_),
      allocation_bytes_max_(other.allocation_bytes_max_) {}

CalibrateSession::~CalibrateSession() {
  // Nothing may still run on what is about to go; there is no one left to tell of a failure.
  if (queue_ != nullptr) cl_.finish(queue_);
  release_buffers();
  for (const cl_kernel kernel : kernels_) cl_.release_kernel(kernel);
  if (program_ != nullptr) cl_.release_program(program_);
  if (queue_ != nullptr) cl_.release_command_queue(queue_);
  if (context_ != nullptr) cl_.release_context(context_);
}

Result<void> CalibrateSession::build(const char* source, const std::string& options) {
  cl_int code = CL_SUCCESS;
  program_ = cl_.create_program_with_source(context_, 1, &source, nullptr, &code);
  LOAM_CHECK(said(code, "clCreateProgramWithSource"));
  code = cl_.build_program(program_, 1, &device_, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return {};
  std::string log(8192, '\0');
  cl_.get_program_build_info(program_, device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(),
                             nullptr);
  return said(code, "clBuildProgram: " + std::string(log.c_str()));
}

Result<cl_kernel> CalibrateSession::kernel(const char* name) {
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = cl_.create_kernel(program_, name, &code);
  LOAM_CHECK(said(code, std::string("clCreateKernel(") + name + ")"));
  kernels_.push_back(kernel);
  return kernel;
}

Result<cl_mem> CalibrateSession::buffer(std::size_t bytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem made = cl_.create_buffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  LOAM_CHECK(said(code, "clCreateBuffer of " + std::to_string(bytes) + " bytes"));
  buffers_.push_back(made);
  return made;
}

Result<void> CalibrateSession::write(cl_mem buffer, const void* from, std::size_t bytes) {
  return said(
      cl_.enqueue_write_buffer(queue_, buffer, CL_TRUE, 0, bytes, from, 0, nullptr, nullptr),
      "clEnqueueWriteBuffer");
}

Result<void> CalibrateSession::read(cl_mem buffer, void* to, std::size_t bytes) {
  return said(cl_.enqueue_read_buffer(queue_, buffer, CL_TRUE, 0, bytes, to, 0, nullptr, nullptr),
              "clEnqueueReadBuffer");
}

Result<void> CalibrateSession::enqueue(cl_kernel kernel, const std::vector<std::size_t>& items,
                                       const std::vector<std::size_t>& group) {
  LOAM_ASSERT(group.empty() || group.size() == items.size());
  return said(cl_.enqueue_nd_range_kernel(
                  queue_, kernel, static_cast<cl_uint>(items.size()), nullptr, items.data(),
                  group.empty() ? nullptr : group.data(), 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
}

void CalibrateSession::release_buffers() {
  for (const cl_mem buffer : buffers_) cl_.release_mem_object(buffer);
  buffers_.clear();
}

}  // namespace loam::node

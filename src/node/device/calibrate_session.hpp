// One device opened for measuring: context, queue, program and buffers, released together.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "node/device/opencl_binding.hpp"

namespace loam::node {

// One thread. Operating failures carry the driver's code and words.
class CalibrateSession {
 public:
  // Opens the device at `place`, which must still be called `name`: indices shift when drivers
  // come and go.
  static Result<CalibrateSession> open(OpenCl cl, const OpenClPlace& place,
                                       const std::string& name);
  ~CalibrateSession();
  CalibrateSession(CalibrateSession&& other) noexcept;
  CalibrateSession& operator=(CalibrateSession&&) = delete;

  const std::string& extensions() const { return extensions_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }
  std::uint64_t allocation_bytes_max() const { return allocation_bytes_max_; }

  Result<void> build(const char* source, const std::string& options);
  Result<cl_kernel> kernel(const char* name);
  Result<cl_mem> buffer(std::size_t bytes);
  Result<void> write(cl_mem buffer, const void* from, std::size_t bytes);
  Result<void> read(cl_mem buffer, void* to, std::size_t bytes);
  template <class Value>
  Result<void> set(cl_kernel kernel, cl_uint at, const Value& value) {
    return said(cl_.set_kernel_arg(kernel, at, sizeof value, &value), "clSetKernelArg");
  }
  // `group` empty: the driver chooses.
  Result<void> enqueue(cl_kernel kernel, const std::vector<std::size_t>& items,
                       const std::vector<std::size_t>& group);
  Result<void> finish() { return said(cl_.finish(queue_), "clFinish"); }
  // Frees every buffer made so far.
  void release_buffers();

 private:
  explicit CalibrateSession(OpenCl cl) : cl_(std::move(cl)) {}
  static Result<void> said(cl_int code, const std::string& action);

  OpenCl cl_;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  std::vector<cl_kernel> kernels_;
  std::vector<cl_mem> buffers_;
  std::string extensions_;
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t allocation_bytes_max_ = 0;
};

}  // namespace loam::node

// A small network trained on an OpenCL device: Y = relu(X·W1)·W2, all matrices n×n, fitted by
// gradient descent to the outputs of a fixed network of the same shape. Seven kernels a step.
//
// Every sum runs in a fixed order, so the same device gives the same weights for the same steps,
// whether or not the run was interrupted between them.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace demo {

// An OpenCL call that failed: what was tried, and the driver's own code.
struct DeviceFault {
  std::string action;
  cl_int code = CL_SUCCESS;
};

// "CL_OUT_OF_RESOURCES", or "unknown error" for codes that no specification names.
const char* error_name(cl_int code);
// "clCreateBuffer: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)".
std::string to_text(const DeviceFault& fault);

struct Weights {
  std::vector<float> in;   // W1, row major
  std::vector<float> out;  // W2
};

// Kernels that one step enqueues.
inline constexpr std::uint64_t kernels_per_step = 7;

// One device, its queue and the network on it. Throws DeviceFault from every member that talks to
// the driver: this program's main catches it. One thread.
class Network {
 public:
  // Opens device `device` of platform `platform` (counted from 0 as `clinfo -l` shows them) and
  // builds the kernels. `size` is a multiple of 16.
  Network(unsigned platform, unsigned device, std::size_t size);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const std::string& device_name() const;
  // Fills the data set and the first weights; the same for the same size, on every machine.
  void start_fresh();
  // The same data set, but these weights.
  void start_from(const Weights& weights);
  // Allocates and touches `mebibytes` more device memory, in blocks, and holds it.
  void hold_memory(std::uint64_t mebibytes);
  // Enqueues one step; returns when at most two steps are in flight, so that the device stays
  // busy and the queue short.
  void step();
  // Waits for everything enqueued.
  void finish();
  // The mean squared error as of the last step's forward pass. Waits.
  double loss();
  // Waits.
  Weights weights();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace demo

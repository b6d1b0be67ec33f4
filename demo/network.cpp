#include "network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <utility>

namespace demo {
namespace {

// One work item computes 4 rows × 16 columns, which suits wide registers and keeps the sum over k
// in one fixed order. `finish_as` says what becomes of the product.
constexpr const char* kernel_source = R"CL(
#define KEEP 0
#define RELU 1      /* max(0, product) */
#define DIFFERENCE 2 /* product - other */
#define MASK 3      /* product where other > 0 */
#define DESCEND 4   /* target - rate * product */

float8 finished(float8 product, float8 other, float8 target, float rate, int finish_as) {
  if (finish_as == RELU) return fmax(product, 0.0f);
  if (finish_as == DIFFERENCE) return product - other;
  if (finish_as == MASK) return select((float8)(0.0f), product, other > 0.0f);
  if (finish_as == DESCEND) return target - rate * product;
  return product;
}

__kernel void multiply(__global const float* a, __global const float* b, __global float* target,
                       __global const float* other, int n, float rate, int finish_as) {
  const int column = get_global_id(0) * 16;
  const int row = get_global_id(1) * 4;
  float8 sum[4][2];
  for (int r = 0; r < 4; ++r) sum[r][0] = sum[r][1] = (float8)(0.0f);
  for (int k = 0; k < n; ++k) {
    const float8 left = vload8(0, b + k * n + column);
    const float8 right = vload8(0, b + k * n + column + 8);
    for (int r = 0; r < 4; ++r) {
      const float8 factor = (float8)(a[(row + r) * n + k]);
      sum[r][0] = fma(factor, left, sum[r][0]);
      sum[r][1] = fma(factor, right, sum[r][1]);
    }
  }
  for (int r = 0; r < 4; ++r) {
    for (int half_block = 0; half_block < 2; ++half_block) {
      const int at = (row + r) * n + column + half_block * 8;
      const float8 result = finished(sum[r][half_block], vload8(0, other + at),
                                     vload8(0, target + at), rate, finish_as);
      vstore8(result, 0, target + at);
    }
  }
}

__kernel void transpose(__global const float* from, __global float* to, int n) {
  const int column = get_global_id(0);
  const int row = get_global_id(1) * 16;
  for (int r = 0; r < 16; ++r) to[column * n + row + r] = from[(row + r) * n + column];
}
)CL";

enum class FinishAs : cl_int { keep = 0, relu = 1, difference = 2, mask = 3, descend = 4 };

// The steepest direction of this loss grows with the size (the hidden values have a mean above
// zero), so the rate falls with it; tried for sizes 16 to 1024. 0.2 already diverges at 384.
float learning_rate(std::size_t size) {
  return std::min(0.25F, 40.0F / static_cast<float>(size));
}
constexpr std::size_t steps_in_flight = 2;
constexpr std::uint64_t block_mebibytes = 64;  // blocks in which extra memory is asked for

void check(cl_int code, std::string action) {
  if (code != CL_SUCCESS) throw DeviceFault{std::move(action), code};
}

// A fixed stream of numbers in [-1, 1): xorshift64*, the same on every machine.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : state_(seed) {}
  float next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const std::uint64_t mixed = state_ * 2685821657736338717ULL;
    return static_cast<float>(static_cast<double>(mixed >> 11) * 0x1p-52 - 1.0);
  }

 private:
  std::uint64_t state_;
};

std::vector<float> random_matrix(std::size_t size, std::uint64_t seed, float scale) {
  Stream stream(seed);
  std::vector<float> values(size * size);
  for (float& value : values) value = stream.next() * scale;
  return values;
}

template <class T, cl_int (*Release)(T)>
struct Handle {
  Handle() = default;
  explicit Handle(T value_) : value(value_) {}
  ~Handle() {
    if (value != nullptr) Release(value);
  }
  Handle(Handle&& other) noexcept : value(std::exchange(other.value, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  T value = nullptr;
};
using Context = Handle<cl_context, clReleaseContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Program = Handle<cl_program, clReleaseProgram>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;
using Buffer = Handle<cl_mem, clReleaseMemObject>;
using Event = Handle<cl_event, clReleaseEvent>;

cl_device_id choose_device(unsigned platform, unsigned device) {
  cl_uint count = 0;
  check(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  if (platform >= count) {
    throw DeviceFault{"platform " + std::to_string(platform) + " of " + std::to_string(count),
                      CL_INVALID_PLATFORM};
  }
  check(clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, 0, nullptr, &count),
        "clGetDeviceIDs");
  std::vector<cl_device_id> devices(count);
  check(clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr),
        "clGetDeviceIDs");
  if (device >= count) {
    throw DeviceFault{"device " + std::to_string(device) + " of " + std::to_string(count),
                      CL_INVALID_DEVICE};
  }
  return devices[device];
}

std::string name_of(cl_device_id device) {
  std::array<char, 256> name{};
  check(clGetDeviceInfo(device, CL_DEVICE_NAME, name.size() - 1, name.data(), nullptr),
        "clGetDeviceInfo(CL_DEVICE_NAME)");
  return name.data();
}

}  // namespace

const char* error_name(cl_int code) {
  switch (code) {
#define LOAM_DEMO_CODE(name) \
  case name:                 \
    return #name
    LOAM_DEMO_CODE(CL_DEVICE_NOT_FOUND);
    LOAM_DEMO_CODE(CL_DEVICE_NOT_AVAILABLE);
    LOAM_DEMO_CODE(CL_COMPILER_NOT_AVAILABLE);
    LOAM_DEMO_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE);
    LOAM_DEMO_CODE(CL_OUT_OF_RESOURCES);
    LOAM_DEMO_CODE(CL_OUT_OF_HOST_MEMORY);
    LOAM_DEMO_CODE(CL_MEM_COPY_OVERLAP);
    LOAM_DEMO_CODE(CL_BUILD_PROGRAM_FAILURE);
    LOAM_DEMO_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    LOAM_DEMO_CODE(CL_INVALID_VALUE);
    LOAM_DEMO_CODE(CL_INVALID_PLATFORM);
    LOAM_DEMO_CODE(CL_INVALID_DEVICE);
    LOAM_DEMO_CODE(CL_INVALID_CONTEXT);
    LOAM_DEMO_CODE(CL_INVALID_COMMAND_QUEUE);
    LOAM_DEMO_CODE(CL_INVALID_MEM_OBJECT);
    LOAM_DEMO_CODE(CL_INVALID_KERNEL_ARGS);
    LOAM_DEMO_CODE(CL_INVALID_WORK_GROUP_SIZE);
    LOAM_DEMO_CODE(CL_INVALID_OPERATION);
    LOAM_DEMO_CODE(CL_INVALID_BUFFER_SIZE);
#undef LOAM_DEMO_CODE
    case -1001:  // cl_khr_icd: the loader found no driver
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return "unknown error";
  }
}

std::string to_text(const DeviceFault& fault) {
  return fault.action + ": " + error_name(fault.code) + " (" + std::to_string(fault.code) + ")";
}

// Members are released last to first: events and buffers before the queue and the context.
struct Network::State {
  std::size_t size = 0;
  cl_device_id device = nullptr;
  std::string name;
  Context context;
  Queue queue;
  Program program;
  Kernel multiply;
  Kernel transpose;
  Buffer inputs, inputs_turned, targets;
  Buffer weights_in, weights_out, weights_out_turned;
  Buffer hidden, hidden_turned, hidden_slope, error;
  std::vector<Buffer> held;
  std::deque<Event> in_flight;

  std::size_t bytes() const { return size * size * sizeof(float); }

  Buffer allocate(std::size_t byte_count, const std::string& what) const {
    cl_int code = CL_SUCCESS;
    Buffer buffer(clCreateBuffer(context.value, CL_MEM_READ_WRITE, byte_count, nullptr, &code));
    check(code, "clCreateBuffer: " + what);
    return buffer;
  }

  void write(const Buffer& buffer, const std::vector<float>& values) const {
    check(clEnqueueWriteBuffer(queue.value, buffer.value, CL_TRUE, 0, values.size() * sizeof(float),
                               values.data(), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  }

  std::vector<float> read(const Buffer& buffer) const {
    std::vector<float> values(size * size);
    check(clEnqueueReadBuffer(queue.value, buffer.value, CL_TRUE, 0, bytes(), values.data(), 0,
                              nullptr, nullptr),
          "clEnqueueReadBuffer");
    return values;
  }

  template <class T>
  static void set_argument(const Kernel& kernel, cl_uint at, const T& value) {
    check(clSetKernelArg(kernel.value, at, sizeof value, &value), "clSetKernelArg");
  }

  void run(const Kernel& kernel, std::size_t columns, std::size_t rows, cl_event* done) const {
    const std::array<std::size_t, 2> items{columns, rows};
    check(clEnqueueNDRangeKernel(queue.value, kernel.value, 2, nullptr, items.data(), nullptr, 0,
                                 nullptr, done),
          "clEnqueueNDRangeKernel");
  }

  // target = a·b, finished as said; `other` is a matrix that the finish reads.
  void product(const Buffer& a, const Buffer& b, const Buffer& target, const Buffer& other,
               FinishAs finish_as, cl_event* done = nullptr) const {
    const float rate = learning_rate(size) / static_cast<float>(size);
    set_argument(multiply, 0, a.value);
    set_argument(multiply, 1, b.value);
    set_argument(multiply, 2, target.value);
    set_argument(multiply, 3, other.value);
    set_argument(multiply, 4, static_cast<cl_int>(size));
    set_argument(multiply, 5, rate);
    set_argument(multiply, 6, static_cast<cl_int>(finish_as));
    run(multiply, size / 16, size / 4, done);
  }

  void turn(const Buffer& from, const Buffer& to) const {
    set_argument(transpose, 0, from.value);
    set_argument(transpose, 1, to.value);
    set_argument(transpose, 2, static_cast<cl_int>(size));
    run(transpose, size, size / 16, nullptr);
  }

  void build() {
    cl_int code = CL_SUCCESS;
    const char* source = kernel_source;
    program = Program(clCreateProgramWithSource(context.value, 1, &source, nullptr, &code));
    check(code, "clCreateProgramWithSource");
    code = clBuildProgram(program.value, 1, &device, "", nullptr, nullptr);
    if (code != CL_SUCCESS) {
      std::string log(16384, '\0');
      std::size_t length = 0;
      clGetProgramBuildInfo(program.value, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(),
                            &length);
      throw DeviceFault{"clBuildProgram: " + std::string(log.c_str()), code};
    }
    multiply = Kernel(clCreateKernel(program.value, "multiply", &code));
    check(code, "clCreateKernel(multiply)");
    transpose = Kernel(clCreateKernel(program.value, "transpose", &code));
    check(code, "clCreateKernel(transpose)");
  }

  // The data set: random inputs and what the fixed network answers to them.
  void make_data() const {
    const float scale = std::sqrt(3.0F / static_cast<float>(size));
    write(inputs, random_matrix(size, 0x5EED0001, 1.0F));
    write(weights_in, random_matrix(size, 0x5EED0002, 2.0F * scale));
    write(weights_out, random_matrix(size, 0x5EED0003, scale));
    turn(inputs, inputs_turned);
    product(inputs, weights_in, hidden, hidden, FinishAs::relu);
    product(hidden, weights_out, targets, targets, FinishAs::keep);
    check(clFinish(queue.value), "clFinish");
  }
};

Network::Network(unsigned platform, unsigned device, std::size_t size)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.size = size;
  s.device = choose_device(platform, device);
  s.name = name_of(s.device);
  cl_int code = CL_SUCCESS;
  s.context = Context(clCreateContext(nullptr, 1, &s.device, nullptr, nullptr, &code));
  check(code, "clCreateContext");
  s.queue = Queue(clCreateCommandQueueWithProperties(s.context.value, s.device, nullptr, &code));
  check(code, "clCreateCommandQueueWithProperties");
  s.build();
  for (Buffer* buffer :
       {&s.inputs, &s.inputs_turned, &s.targets, &s.weights_in, &s.weights_out,
        &s.weights_out_turned, &s.hidden, &s.hidden_turned, &s.hidden_slope, &s.error}) {
    *buffer = s.allocate(s.bytes(), "a matrix of " + std::to_string(s.bytes()) + " bytes");
  }
}

Network::~Network() {
  // Nothing may still run on buffers that are about to go; a fault here has no one to tell.
  if (state_ && state_->queue.value != nullptr) clFinish(state_->queue.value);
}

const std::string& Network::device_name() const {
  return state_->name;
}

void Network::start_fresh() {
  const std::size_t size = state_->size;
  const float scale = std::sqrt(3.0F / static_cast<float>(size));
  start_from(
      Weights{random_matrix(size, 0x5EED0004, scale), random_matrix(size, 0x5EED0005, scale)});
}

void Network::start_from(const Weights& weights) {
  state_->make_data();
  state_->write(state_->weights_in, weights.in);
  state_->write(state_->weights_out, weights.out);
}

void Network::hold_memory(std::uint64_t mebibytes) {
  State& s = *state_;
  std::uint64_t held = 0;
  while (held < mebibytes) {
    const std::uint64_t block = std::min(block_mebibytes, mebibytes - held);
    s.held.push_back(s.allocate(static_cast<std::size_t>(block) << 20U,
                                "block of " + std::to_string(block) + " MiB after " +
                                    std::to_string(held) + " of " + std::to_string(mebibytes) +
                                    " MiB"));
    // Drivers may put an allocation off until it is first used.
    const cl_uint zero = 0;
    check(clEnqueueFillBuffer(s.queue.value, s.held.back().value, &zero, sizeof zero, 0, 4096, 0,
                              nullptr, nullptr),
          "clEnqueueFillBuffer: block after " + std::to_string(held) + " MiB");
    check(clFinish(s.queue.value), "clFinish: block after " + std::to_string(held) + " MiB");
    held += block;
  }
}

void Network::step() {
  State& s = *state_;
  s.product(s.inputs, s.weights_in, s.hidden, s.hidden, FinishAs::relu);
  s.product(s.hidden, s.weights_out, s.error, s.targets, FinishAs::difference);
  s.turn(s.hidden, s.hidden_turned);
  s.turn(s.weights_out, s.weights_out_turned);
  s.product(s.error, s.weights_out_turned, s.hidden_slope, s.hidden, FinishAs::mask);
  s.product(s.hidden_turned, s.error, s.weights_out, s.error, FinishAs::descend);
  cl_event done = nullptr;
  s.product(s.inputs_turned, s.hidden_slope, s.weights_in, s.error, FinishAs::descend, &done);
  s.in_flight.emplace_back(done);
  check(clFlush(s.queue.value), "clFlush");
  if (s.in_flight.size() > steps_in_flight) {
    check(clWaitForEvents(1, &s.in_flight.front().value), "clWaitForEvents");
    s.in_flight.pop_front();
  }
}

void Network::finish() {
  check(clFinish(state_->queue.value), "clFinish");
  state_->in_flight.clear();
}

double Network::loss() {
  const std::vector<float> error = state_->read(state_->error);
  double sum = 0;
  for (const float e : error) sum += static_cast<double>(e) * static_cast<double>(e);
  return sum / static_cast<double>(error.size());
}

Weights Network::weights() {
  return Weights{state_->read(state_->weights_in), state_->read(state_->weights_out)};
}

}  // namespace demo

// An OpenCL program that does what its standard input says, one line in, one line out; the tests
// run it under the guard. It is linked to libOpenCL like any program, or (first argument "dlopen")
// opens it and looks every function up. On a real device a kernel's "nanoseconds" are rounds.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

// clang-format off
#define FUNCTIONS(X) \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) \
  X(clCreateContext) X(clCreateCommandQueue) X(clCreateProgramWithSource) X(clBuildProgram) \
  X(clCreateKernel) X(clSetKernelArg) X(clCreateBuffer) X(clCreateImage) X(clCreateSubBuffer) \
  X(clReleaseMemObject) X(clRetainMemObject) X(clSVMAlloc) X(clSVMFree) \
  X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clFinish) \
  X(clWaitForEvents) X(clReleaseEvent) X(clCreateUserEvent) X(clSetUserEventStatus) \
  X(clGetExtensionFunctionAddressForPlatform)
// clang-format on

struct Api {
#define MEMBER(name) decltype(&::name) name = nullptr;
  FUNCTIONS(MEMBER)
} cl;

const char* const source =
    "kernel void spin(ulong rounds, global uint* out) {"
    "  uint x = 1;"
    "  for (ulong i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;"
    "  out[0] = x;"
    "}";

struct Guest {
  cl_platform_id platform = nullptr;
  std::vector<cl_device_id> devices;
  cl_context context = nullptr;
  std::vector<cl_command_queue> queues;
  cl_kernel kernel = nullptr;
  std::map<int, cl_mem> memory;
  std::map<int, void*> shared;
  std::map<int, cl_event> events;
  int last_id = 0;

  cl_int open() {
    cl_int fault = cl.clGetPlatformIDs(1, &platform, nullptr);
    if (fault != CL_SUCCESS) return fault;
    cl_uint count = 0;
    devices.resize(8);
    fault = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, devices.data(), &count);
    if (fault != CL_SUCCESS) return fault;
    devices.resize(count);
    context = cl.clCreateContext(nullptr, count, devices.data(), nullptr, nullptr, &fault);
    if (fault != CL_SUCCESS) return fault;
    queues.push_back(cl.clCreateCommandQueue(context, devices[0], 0, &fault));
    queues.push_back(cl.clCreateCommandQueue(context, devices[0], 0, &fault));
    return fault;
  }
  cl_int build() {
    if (kernel) return CL_SUCCESS;
    cl_int fault = 0;
    cl_program program = cl.clCreateProgramWithSource(context, 1, const_cast<const char**>(&source),
                                                      nullptr, &fault);
    if (fault == CL_SUCCESS) fault = cl.clBuildProgram(program, 0, nullptr, "", nullptr, nullptr);
    if (fault == CL_SUCCESS) kernel = cl.clCreateKernel(program, "spin", &fault);
    if (fault != CL_SUCCESS) return fault;
    cl_mem out = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &fault);
    if (fault == CL_SUCCESS)
      fault = cl.clSetKernelArg(kernel, 1, sizeof out, static_cast<void*>(&out));
    return fault;
  }
  cl_int launch(cl_ulong ns, std::size_t queue, cl_uint waits, const cl_event* list,
                cl_event* event) {
    cl_int fault = build();
    const std::size_t one = 1;
    if (fault == CL_SUCCESS) fault = cl.clSetKernelArg(kernel, 0, sizeof ns, &ns);
    if (fault == CL_SUCCESS)
      fault = cl.clEnqueueNDRangeKernel(queues.at(queue), kernel, 1, nullptr, &one, nullptr, waits,
                                        list, event);
    return fault;
  }
  std::string obey(const std::string& line);
  // Each answers the verbs of its kind; nothing for another.
  std::optional<std::string> obey_memory(const std::string& verb, unsigned long long a,
                                         unsigned long long b);
  std::optional<std::string> obey_queries(const std::string& verb, const std::string& line);
  std::optional<std::string> obey_work(const std::string& verb, unsigned long long a,
                                       unsigned long long b);
};

std::string answer(cl_int fault) {
  return fault == CL_SUCCESS ? "ok" : "error " + std::to_string(fault);
}

std::optional<std::string> Guest::obey_memory(const std::string& verb, unsigned long long a,
                                              unsigned long long b) {
  cl_int fault = CL_SUCCESS;
  const auto kept = [&](cl_mem made) {
    if (!made) return answer(fault);
    memory[++last_id] = made;
    return "ok " + std::to_string(last_id);
  };
  if (verb == "alloc")
    return kept(cl.clCreateBuffer(context, CL_MEM_READ_WRITE, a, nullptr, &fault));
  if (verb == "alloc_null") {  // the error goes nowhere
    cl_mem made = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, a, nullptr, nullptr);
    fault = CL_OUT_OF_HOST_MEMORY;
    return kept(made);
  }
  if (verb == "alloc_nowhere")  // without a context
    return kept(cl.clCreateBuffer(nullptr, CL_MEM_READ_WRITE, a, nullptr, &fault));
  if (verb == "host") {
    std::vector<char>& bytes = *new std::vector<char>(a);
    return kept(cl.clCreateBuffer(context, CL_MEM_USE_HOST_PTR, a, bytes.data(), &fault));
  }
  if (verb == "image") {
    const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
    cl_image_desc image{};
    image.image_type = CL_MEM_OBJECT_IMAGE2D;
    image.image_width = a;
    image.image_height = b;
    return kept(cl.clCreateImage(context, CL_MEM_READ_WRITE, &format, &image, nullptr, &fault));
  }
  if (verb == "sub") {
    const cl_buffer_region region{0, b};
    return kept(cl.clCreateSubBuffer(memory.at(static_cast<int>(a)), CL_MEM_READ_WRITE,
                                     CL_BUFFER_CREATE_TYPE_REGION, &region, &fault));
  }
  if (verb == "retain") return answer(cl.clRetainMemObject(memory.at(static_cast<int>(a))));
  if (verb == "free") return answer(cl.clReleaseMemObject(memory.at(static_cast<int>(a))));
  if (verb == "churn") {  // allocates and frees for ever
    for (unsigned long long i = 0;; ++i) {
      cl_mem made = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, a, nullptr, &fault);
      if (i == 10) std::cout << "ok" << std::endl;
      if (made) cl.clReleaseMemObject(made);
    }
  }
  if (verb == "svm") {
    void* made = cl.clSVMAlloc(context, CL_MEM_READ_WRITE, a, 0);
    if (!made) return "error";
    shared[++last_id] = made;
    return "ok " + std::to_string(last_id);
  }
  if (verb == "svm_free") {
    cl.clSVMFree(context, shared.at(static_cast<int>(a)));
    return "ok";
  }
  return std::nullopt;
}

std::optional<std::string> Guest::obey_queries(const std::string& verb, const std::string& line) {
  if (verb == "names") {
    char platform_name[256] = {}, device_name[256] = {};
    if (const cl_int fault = open(); fault != CL_SUCCESS) return answer(fault);
    cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, nullptr);
    cl.clGetDeviceInfo(devices[0], CL_DEVICE_NAME, sizeof device_name, device_name, nullptr);
    return "ok " + std::string(platform_name) + "|" + device_name;
  }
  if (verb == "devices") return "ok " + std::to_string(devices.size());
  if (verb == "info") {
    cl_ulong global = 0, most = 0;
    cl.clGetDeviceInfo(devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, nullptr);
    cl.clGetDeviceInfo(devices[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, nullptr);
    return "ok " + std::to_string(global) + " " + std::to_string(most);
  }
  if (verb == "info_null") {
    std::size_t size = 0;
    cl_uint half = 0;
    const cl_int none =
        cl.clGetDeviceInfo(devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, 0, nullptr, nullptr);
    const cl_int asked =
        cl.clGetDeviceInfo(devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, 0, nullptr, &size);
    const cl_int cut =
        cl.clGetDeviceInfo(devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof half, &half, nullptr);
    return "ok " + std::to_string(none) + " " + std::to_string(asked) + " " + std::to_string(size) +
           " " + std::to_string(cut);
  }
  if (verb == "extensions") {
    char text[4096] = {};
    cl.clGetDeviceInfo(devices[0], CL_DEVICE_EXTENSIONS, sizeof text, text, nullptr);
    return "ok " + std::string(text);
  }
  if (verb == "extension") {
    std::string name;
    std::istringstream(line) >> name >> name;
    return cl.clGetExtensionFunctionAddressForPlatform(platform, name.c_str()) ? "found" : "none";
  }
  return std::nullopt;
}

std::optional<std::string> Guest::obey_work(const std::string& verb, unsigned long long a,
                                            unsigned long long b) {
  cl_int fault = CL_SUCCESS;
  if (verb == "kernel") {  // NS COUNT, and waits
    for (unsigned long long i = 0; i < b && fault == CL_SUCCESS; ++i)
      fault = launch(a, 0, 0, nullptr, nullptr);
    if (fault == CL_SUCCESS) fault = cl.clFinish(queues[0]);
    return answer(fault);
  }
  if (verb == "async") {  // NS COUNT, does not wait
    for (unsigned long long i = 0; i < b && fault == CL_SUCCESS; ++i)
      fault = launch(a, 0, 0, nullptr, nullptr);
    return answer(fault);
  }
  if (verb == "read") {  // MEMORY BYTES, and waits
    std::vector<char> to(b);
    return answer(cl.clEnqueueReadBuffer(queues[1], memory.at(static_cast<int>(a)), CL_TRUE, 0, b,
                                         to.data(), 0, nullptr, nullptr));
  }
  if (verb == "peek") {  // MEMORY: its first word
    cl_ulong word = 0;
    fault = cl.clEnqueueReadBuffer(queues[1], memory.at(static_cast<int>(a)), CL_TRUE, 0,
                                   sizeof word, &word, 0, nullptr, nullptr);
    return fault == CL_SUCCESS ? "ok " + std::to_string(word) : answer(fault);
  }
  if (verb == "poke") {  // MEMORY WORD
    const cl_ulong word = b;
    return answer(cl.clEnqueueWriteBuffer(queues[1], memory.at(static_cast<int>(a)), CL_TRUE, 0,
                                          sizeof word, &word, 0, nullptr, nullptr));
  }
  if (verb == "finish") return answer(cl.clFinish(queues[0]));
  if (verb == "saturate") {  // MS NS: kernels for so long; tells how many
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(a);
    unsigned long long kernels = 0;
    while (std::chrono::steady_clock::now() < end && fault == CL_SUCCESS) {
      for (int i = 0; i < 4 && fault == CL_SUCCESS; ++i, ++kernels)
        fault = launch(b, 0, 0, nullptr, nullptr);
      if (fault == CL_SUCCESS) fault = cl.clFinish(queues[0]);
    }
    return fault == CL_SUCCESS ? "ok " + std::to_string(kernels) : answer(fault);
  }
  if (verb == "user_event") {
    events[++last_id] = cl.clCreateUserEvent(context, &fault);
    return fault == CL_SUCCESS ? "ok " + std::to_string(last_id) : answer(fault);
  }
  if (verb == "after") {  // EVENT NS: a kernel behind the event; tells the kernel's event
    cl_event event = nullptr;
    fault = launch(b, 0, 1, &events.at(static_cast<int>(a)), &event);
    events[++last_id] = event;
    return fault == CL_SUCCESS ? "ok " + std::to_string(last_id) : answer(fault);
  }
  if (verb == "set")
    return answer(cl.clSetUserEventStatus(events.at(static_cast<int>(a)), CL_COMPLETE));
  if (verb == "wait") return answer(cl.clWaitForEvents(1, &events.at(static_cast<int>(a))));
  return std::nullopt;
}

std::string Guest::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  unsigned long long a = 0, b = 0;
  words >> verb >> a >> b;
  if (verb == "pid") return "ok " + std::to_string(::getpid());
  if (verb == "open") return answer(open());
  if (verb == "build") return answer(build());
  if (auto said = obey_memory(verb, a, b)) return *said;
  if (auto said = obey_queries(verb, line)) return *said;
  if (auto said = obey_work(verb, a, b)) return *said;
  if (verb == "fork") {  // the child opens the device itself and allocates A bytes; its answer
    std::cout << std::flush;
    int ends[2];
    if (::pipe(ends) != 0) return "error";
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // tests kill the parent alone
      Guest child;
      std::string said = answer(child.open());
      if (said == "ok") said = child.obey("alloc " + std::to_string(a));
      (void)!::write(ends[1], said.data(), said.size());
      ::pause();
    }
    char said[64] = {};
    (void)!::read(ends[0], said, sizeof said - 1);
    return said;
  }
  if (verb == "close_descriptors") {
    for (int fd = 3; fd < 1024; ++fd) ::close(fd);
    return "ok";
  }
  return "error unknown " + verb;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "dlopen") == 0) {
    void* const library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 3;
#define LOOK_UP(name) cl.name = reinterpret_cast<decltype(cl.name)>(::dlsym(library, #name));
    FUNCTIONS(LOOK_UP)
  } else {
#ifndef GUEST_WITHOUT_OPENCL
#define REFER(name) cl.name = &::name;
    FUNCTIONS(REFER)
#endif
  }
  Guest guest;
  std::string line;
  while (std::getline(std::cin, line)) std::cout << guest.obey(line) << std::endl;
  return 0;
}

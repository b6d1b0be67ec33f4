// A CUDA program that does what its standard input says, one line in, one line out; the tests run
// it under the guard. Its first argument says how it finds the driver's functions: "linked",
// "dlsym", "dlvsym", "behind" (a dlsym that was itself looked up, by version), "proc"
// (cuGetProcAddress_v2) or "proc_ptsz" (the same, per-thread default streams); a second argument is
// the path of the driver to open.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "guard/cuda/signatures.hpp"

// Of the C library's dlsym: those from before its first release on a processor are that release's.
#if defined(__x86_64__)
#define LOAM_GUEST_DLSYM_VERSION "GLIBC_2.2.5"
#else
#define LOAM_GUEST_DLSYM_VERSION "GLIBC_2.17"
#endif

extern "C" CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count);

namespace {

using namespace loam::guard::cuda;

// Symbol, name that cuGetProcAddress knows it by.
#define FUNCTIONS(X)                                            \
  X(cuInit, "cuInit")                                           \
  X(cuDeviceGet, "cuDeviceGet")                                 \
  X(cuDeviceGetCount, "cuDeviceGetCount")                       \
  X(cuDeviceTotalMem_v2, "cuDeviceTotalMem")                    \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")       \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease")  \
  X(cuCtxCreate_v2, "cuCtxCreate")                              \
  X(cuCtxDestroy_v2, "cuCtxDestroy")                            \
  X(cuCtxSetCurrent, "cuCtxSetCurrent")                         \
  X(cuCtxSetLimit, "cuCtxSetLimit")                             \
  X(cuCtxSynchronize, "cuCtxSynchronize")                       \
  X(cuMemGetInfo_v2, "cuMemGetInfo")                            \
  X(cuMemAlloc_v2, "cuMemAlloc")                                \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch")                      \
  X(cuMemAllocManaged, "cuMemAllocManaged")                     \
  X(cuMemFree_v2, "cuMemFree")                                  \
  X(cuMemAllocAsync, "cuMemAllocAsync")                         \
  X(cuMemFreeAsync, "cuMemFreeAsync")                           \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo")                         \
  X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool")     \
  X(cuMemCreate, "cuMemCreate")                                 \
  X(cuMemRelease, "cuMemRelease")                               \
  X(cuMemAddressReserve, "cuMemAddressReserve")                 \
  X(cuMemMap, "cuMemMap")                                       \
  X(cuMemUnmap, "cuMemUnmap")                                   \
  X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle") \
  X(cuArrayCreate_v2, "cuArrayCreate")                          \
  X(cuArrayDestroy, "cuArrayDestroy")                           \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate")           \
  X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy")         \
  X(cuImportExternalMemory, "cuImportExternalMemory")           \
  X(cuDestroyExternalMemory, "cuDestroyExternalMemory")         \
  X(cuIpcGetMemHandle, "cuIpcGetMemHandle")                     \
  X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle")                \
  X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle")                 \
  X(cuModuleLoadData, "cuModuleLoadData")                       \
  X(cuModuleUnload, "cuModuleUnload")                           \
  X(cuModuleGetFunction, "cuModuleGetFunction")                 \
  X(cuStreamCreate, "cuStreamCreate")                           \
  X(cuStreamSynchronize, "cuStreamSynchronize")                 \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture")            \
  X(cuStreamEndCapture, "cuStreamEndCapture")                   \
  X(cuLaunchKernel, "cuLaunchKernel")                           \
  X(cuLaunchKernelEx, "cuLaunchKernelEx")                       \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel")     \
  X(cuGraphCreate, "cuGraphCreate")                             \
  X(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode")           \
  X(cuGraphGetNodes, "cuGraphGetNodes")                         \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags") \
  X(cuGraphLaunch, "cuGraphLaunch")                             \
  X(cuMemcpyHtoD_v2, "cuMemcpyHtoD")                            \
  X(cuMemcpyDtoH_v2, "cuMemcpyDtoH")                            \
  X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync")                  \
  X(cuMemsetD8_v2, "cuMemsetD8")                                \
  X(cuPointerGetAttribute, "cuPointerGetAttribute")

struct Api {
#define MEMBER(symbol, name) decltype(&::symbol) symbol = nullptr;
  FUNCTIONS(MEMBER)
#undef MEMBER
} cu;
void* driver_library = nullptr;

std::string answer(CUresult fault) {
  return fault == cuda_success ? "ok" : "error " + std::to_string(fault);
}

struct Thing {
  char kind = 0;
  std::uint64_t value = 0, size = 0;
};

struct Guest {
  std::map<int, CUcontext> contexts;
  std::map<int, Thing> things;
  std::vector<CUstream> streams{nullptr};
  std::map<std::uint64_t, CUfunction> functions;
  CUmodule module = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  int last = 0;

  std::string keep(CUresult fault, char kind, std::uint64_t value, std::uint64_t size = 0) {
    if (fault != cuda_success) return answer(fault);
    things[++last] = Thing{kind, value, size};
    return "ok " + std::to_string(last);
  }
  std::string memory(const std::string& verb, std::uint64_t a, std::uint64_t b, std::uint64_t c);
  std::string contents(const std::string& verb, std::uint64_t a, std::uint64_t b);
  std::string end(const Thing& thing);
  std::string work(const std::string& verb, std::uint64_t a, std::uint64_t b, std::uint64_t c);
  std::string obey(const std::string& line);
  CUfunction function(std::uint64_t ns) {
    CUfunction& found = functions[ns];
    if (!found) {
      if (!module) cu.cuModuleLoadData(&module, "");
      cu.cuModuleGetFunction(&found, module, ("spin_" + std::to_string(ns)).c_str());
    }
    return found;
  }
};

template <class Handle>
std::uint64_t number(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

std::string Guest::end(const Thing& thing) {
  switch (thing.kind) {
    case 'p':
      return answer(cu.cuMemFree_v2(thing.value));
    case 's':
      return answer(cu.cuMemFreeAsync(thing.value, nullptr));
    case 'v':
      return answer(cu.cuMemRelease(thing.value));
    case 'm':
      return answer(cu.cuMemUnmap(thing.value, thing.size));
    case 'a':
      return answer(cu.cuArrayDestroy(reinterpret_cast<CUarray>(thing.value)));
    case 'i':
      return answer(cu.cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(thing.value)));
    case 'x':
      return answer(cu.cuDestroyExternalMemory(reinterpret_cast<CUexternalMemory>(thing.value)));
    case 'o':
      return answer(cu.cuIpcCloseMemHandle(thing.value));
    case 'u':
      return answer(cu.cuModuleUnload(reinterpret_cast<CUmodule>(thing.value)));
    case 'c':
      return answer(cu.cuCtxDestroy_v2(reinterpret_cast<CUcontext>(thing.value)));
    default:
      return "error unknown thing";
  }
}

std::string Guest::memory(const std::string& verb, std::uint64_t a, std::uint64_t b,
                          std::uint64_t c) {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  if (verb == "alloc") {
    const CUresult fault = cu.cuMemAlloc_v2(&address, a);
    return keep(fault, 'p', address, a);
  }
  if (verb == "pitch") {
    const CUresult fault = cu.cuMemAllocPitch_v2(&address, &size, a, b, 4);
    return keep(fault, 'p', address);
  }
  if (verb == "managed") {
    const CUresult fault = cu.cuMemAllocManaged(&address, a, 1);
    return keep(fault, 'p', address);
  }
  if (verb == "async") {
    const CUresult fault = cu.cuMemAllocAsync(&address, a, streams[b]);
    return keep(fault, 's', address);
  }
  if (verb == "trim") {
    CUmemoryPool pool = nullptr;
    cu.cuDeviceGetDefaultMemPool(&pool, static_cast<CUdevice>(a));
    return answer(cu.cuMemPoolTrimTo(pool, 0));
  }
  if (verb == "create" || verb == "create_host") {  // bytes, device
    MemAllocationProp prop{};
    prop.type = 1;
    prop.location = {verb == "create" ? location_device : location_host_numa, static_cast<int>(b)};
    CUmemGenericAllocationHandle handle = 0;
    const CUresult fault = cu.cuMemCreate(&handle, a, &prop, 0);
    return keep(fault, 'v', handle, a);
  }
  if (verb == "map") {  // what
    const Thing what = things.at(static_cast<int>(a));
    cu.cuMemAddressReserve(&address, what.size, 0, 0, 0);
    const CUresult fault = cu.cuMemMap(address, what.size, 0, what.value, 0);
    return keep(fault, 'm', address, what.size);
  }
  if (verb == "retain") {  // mapping
    CUmemGenericAllocationHandle handle = 0;
    const CUresult fault = cu.cuMemRetainAllocationHandle(
        &handle, reinterpret_cast<void*>(things.at(static_cast<int>(a)).value));
    return keep(fault, 'v', handle, things.at(static_cast<int>(a)).size);
  }
  if (verb == "array") {
    const ArrayDescriptor shape{a, b, 0x20, 1};
    CUarray array = nullptr;
    const CUresult fault = cu.cuArrayCreate_v2(&array, &shape);
    return keep(fault, 'a', number(array));
  }
  if (verb == "mipmap") {
    const Array3dDescriptor shape{a, b, 0, 0x20, 4, 0};
    CUmipmappedArray array = nullptr;
    const CUresult fault = cu.cuMipmappedArrayCreate(&array, &shape, static_cast<unsigned>(c));
    return keep(fault, 'i', number(array));
  }
  if (verb == "external") {
    ExternalMemoryDesc desc{};
    desc.bytes = a;
    CUexternalMemory memory = nullptr;
    const CUresult fault = cu.cuImportExternalMemory(&memory, &desc);
    return keep(fault, 'x', number(memory));
  }
  if (verb == "ipc") {  // an address of this process, opened again
    IpcMemHandle handle;
    cu.cuIpcGetMemHandle(&handle, things.at(static_cast<int>(a)).value);
    const CUresult fault = cu.cuIpcOpenMemHandle_v2(&address, handle, 1);
    return keep(fault, 'o', address);
  }
  if (verb == "module") {
    CUmodule made = nullptr;
    const CUresult fault = cu.cuModuleLoadData(&made, "");
    return keep(fault, 'u', number(made));
  }
  if (verb == "context") {
    CUcontext made = nullptr;
    const CUresult fault = cu.cuCtxCreate_v2(&made, 0, static_cast<CUdevice>(a));
    return keep(fault, 'c', number(made));
  }
  if (verb == "heap") return answer(cu.cuCtxSetLimit(2, a));
  if (verb == "free" || verb == "free_async") {
    const auto found = things.find(static_cast<int>(a));
    if (found == things.end()) return "error no such thing";
    if (verb == "free_async") found->second.kind = 's';
    const std::string said = end(found->second);
    if (said == "ok") things.erase(found);
    return said;
  }
  if (verb == "many") {  // allocations of `b` bytes; says how many there are
    std::uint64_t made = 0;
    while (made < a && cu.cuMemAlloc_v2(&address, b) == cuda_success) {
      things[++last] = Thing{'p', address, 0};
      ++made;
    }
    return "ok " + std::to_string(made);
  }
  return {};
}

// What is in memory, and doing it often.
std::string Guest::contents(const std::string& verb, std::uint64_t a, std::uint64_t b) {
  CUdeviceptr address = 0;
  if (verb == "write" || verb == "peek") {  // what, byte: all of it, from the host; its two ends
    const Thing what = things.at(static_cast<int>(a));
    if (verb == "write") {
      const std::vector<char> from(what.size, static_cast<char>(b));
      return answer(cu.cuMemcpyHtoD_v2(what.value, from.data(), what.size));
    }
    unsigned char ends[2] = {};
    CUresult fault = cu.cuMemcpyDtoH_v2(&ends[0], what.value, 1);
    if (fault == cuda_success) fault = cu.cuMemcpyDtoH_v2(&ends[1], what.value + what.size - 1, 1);
    return fault == cuda_success ? "ok " + std::to_string(ends[0]) + " " + std::to_string(ends[1])
                                 : answer(fault);
  }
  if (verb == "pointer") {  // what the driver says the memory behind it is
    unsigned type = 0;
    const CUresult fault = cu.cuPointerGetAttribute(&type, 2, things.at(static_cast<int>(a)).value);
    return fault == cuda_success ? "ok " + std::to_string(type) : answer(fault);
  }
  if (verb == "timed_launch") {  // one kernel of `a` ns, waited for: microseconds that took
    const auto began = std::chrono::steady_clock::now();
    CUresult fault =
        cu.cuLaunchKernel(function(a), 1024, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr);
    if (fault == cuda_success) fault = cu.cuStreamSynchronize(nullptr);
    const auto took = std::chrono::steady_clock::now() - began;
    return fault == cuda_success
               ? "ok " + std::to_string(
                             std::chrono::duration_cast<std::chrono::microseconds>(took).count())
               : answer(fault);
  }
  if (verb == "churn") {  // allocates and frees until it is killed
    std::cout << "ok" << std::endl;
    for (std::uint64_t i = 0;; ++i) {
      CUdeviceptr held[4] = {};
      for (CUdeviceptr& one : held) cu.cuMemAlloc_v2(&one, a + (i % 7) * 4096);
      for (CUdeviceptr& one : held)
        if (one) cu.cuMemFree_v2(one);
    }
  }
  if (verb == "read") {  // the first byte of a new allocation of `a` bytes, after writing 0xab
    unsigned char byte = 0;
    if (const CUresult fault = cu.cuMemAlloc_v2(&address, a); fault != cuda_success)
      return answer(fault);
    cu.cuMemcpyDtoH_v2(&byte, address, 1);
    cu.cuMemsetD8_v2(address, 0xab, a);
    cu.cuMemFree_v2(address);
    return "ok " + std::to_string(byte);
  }
  return {};
}

std::string Guest::work(const std::string& verb, std::uint64_t a, std::uint64_t b,
                        std::uint64_t c) {
  using Clock = std::chrono::steady_clock;
  const auto launch_one = [&](std::uint64_t ns, CUstream stream) {
    return cu.cuLaunchKernel(function(ns), 1024, 1, 1, 256, 1, 1, 0, stream, nullptr, nullptr);
  };
  if (verb == "stream") {
    CUstream made = nullptr;
    const CUresult fault = cu.cuStreamCreate(&made, 1);
    if (fault != cuda_success) return answer(fault);
    streams.push_back(made);
    return "ok " + std::to_string(streams.size() - 1);
  }
  if (verb == "launch") {  // nanoseconds, stream, how often
    CUresult fault = cuda_success;
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(c, 1) && fault == cuda_success; ++i)
      fault = launch_one(a, streams.at(b));
    return answer(fault);
  }
  if (verb == "launch_ex") {
    LaunchConfig config{};
    config.grid[0] = config.grid[1] = config.grid[2] = 1;
    config.stream = streams.at(b);
    return answer(cu.cuLaunchKernelEx(&config, function(a), nullptr, nullptr));
  }
  if (verb == "launch_cooperative")
    return answer(
        cu.cuLaunchCooperativeKernel(function(a), 1, 1, 1, 32, 1, 1, 0, streams.at(b), nullptr));
  if (verb == "sync") return answer(cu.cuStreamSynchronize(streams.at(a)));
  if (verb == "sync_all") return answer(cu.cuCtxSynchronize());
  if (verb == "saturate") {  // kernels of `a` ns for `b` ms; says how many
    std::uint64_t done = 0;
    const auto until = Clock::now() + std::chrono::milliseconds(b);
    while (Clock::now() < until && launch_one(a, streams.back()) == cuda_success) ++done;
    cu.cuStreamSynchronize(streams.back());
    return "ok " + std::to_string(done);
  }
  if (verb == "capture") {  // `a` ns, `c` times, on stream `b`; says how many nodes it caught
    CUresult fault = cu.cuStreamBeginCapture_v2(streams.at(b), capture_mode_global);
    for (std::uint64_t i = 0; i < c && fault == cuda_success; ++i)
      fault = launch_one(a, streams.at(b));
    const CUresult ended = cu.cuStreamEndCapture(streams.at(b), &graph);
    if (fault == cuda_success) fault = ended;
    if (fault == cuda_success) fault = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    std::size_t nodes = 0;
    if (fault == cuda_success) cu.cuGraphGetNodes(graph, nullptr, &nodes);
    return fault == cuda_success ? "ok " + std::to_string(nodes) : answer(fault);
  }
  if (verb == "graph") return answer(cu.cuGraphLaunch(exec, streams.at(a)));
  if (verb == "graph_alloc") {  // a graph that allocates `a` bytes on device `b`
    cu.cuGraphCreate(&graph, 0);
    MemAllocNodeParams params{};
    params.pool.location = {location_device, static_cast<int>(b)};
    params.bytes = a;
    CUgraphNode node = nullptr;
    CUresult fault = cu.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params);
    if (fault == cuda_success) fault = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    return answer(fault);
  }
  if (verb == "upload") {  // `a` bytes to the device `c` times, asynchronously on stream `b`
    CUdeviceptr to = 0;
    std::vector<char> from(a);
    CUresult fault = cu.cuMemAlloc_v2(&to, a);
    for (std::uint64_t i = 0; i < c && fault == cuda_success; ++i)
      fault = cu.cuMemcpyHtoDAsync_v2(to, from.data(), a, streams.at(b));
    cu.cuCtxSynchronize();
    cu.cuMemFree_v2(to);
    return answer(fault);
  }
  return {};
}

std::string Guest::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  std::uint64_t a = 0, b = 0, c = 0;
  words >> verb >> a >> b >> c;
  if (verb == "open") {
    CUresult fault = cu.cuInit(0);
    CUdevice device = 0;
    if (fault == cuda_success) fault = cu.cuDeviceGet(&device, static_cast<int>(a));
    CUcontext context = nullptr;
    if (fault == cuda_success) fault = cu.cuDevicePrimaryCtxRetain(&context, device);
    if (fault == cuda_success) fault = cu.cuCtxSetCurrent(context);
    contexts[static_cast<int>(a)] = context;
    return answer(fault);
  }
  if (verb == "init") return answer(cu.cuInit(0));
  if (verb == "close") return answer(cu.cuDevicePrimaryCtxRelease_v2(static_cast<CUdevice>(a)));
  if (verb == "use") return answer(cu.cuCtxSetCurrent(contexts[static_cast<int>(a)]));
  if (verb == "use_none") return answer(cu.cuCtxSetCurrent(nullptr));
  if (verb == "pid") return "ok " + std::to_string(::getpid());
  if (verb == "info" || verb == "info_null") {
    std::size_t free = 0, total = 0;
    const CUresult fault =
        verb == "info" ? cu.cuMemGetInfo_v2(&free, &total) : cu.cuMemGetInfo_v2(nullptr, &total);
    return fault == cuda_success ? "ok " + std::to_string(free) + " " + std::to_string(total)
                                 : answer(fault);
  }
  if (verb == "total" || verb == "total_null") {
    std::size_t total = 0;
    const CUresult fault =
        cu.cuDeviceTotalMem_v2(verb == "total" ? &total : nullptr, static_cast<CUdevice>(a));
    return fault == cuda_success ? "ok " + std::to_string(total) : answer(fault);
  }
  if (verb == "calls") {
    using Calls = std::uint64_t (*)();
    static const auto calls = reinterpret_cast<Calls>(::dlsym(RTLD_DEFAULT, "fake_cuda_calls"));
    return calls ? "ok " + std::to_string(calls()) : "error";
  }
  if (verb == "unknown") {  // an entry newer than the guard: what it is and what it says
    std::string name;
    std::istringstream again(line);
    again >> verb >> name;
    void* const found = ::dlsym(driver_library ? driver_library : RTLD_DEFAULT, name.c_str());
    if (!found) return "none";
    return answer(reinterpret_cast<CUresult (*)()>(found)());
  }
  if (verb == "where") {  // which library the function lies in, found by name
    std::string name;
    std::istringstream again(line);
    again >> verb >> name;
    void* const found = ::dlsym(driver_library ? driver_library : RTLD_DEFAULT, name.c_str());
    Dl_info place{};
    if (!found || !::dladdr(found, &place)) return "none";
    const char* const slash = std::strrchr(place.dli_fname, '/');
    return slash ? slash + 1 : place.dli_fname;
  }
  if (verb == "where_version") {  // the same, found by name and version
    std::string name, version;
    std::istringstream again(line);
    again >> verb >> name >> version;
    void* const found =
        ::dlvsym(driver_library ? driver_library : RTLD_DEFAULT, name.c_str(), version.c_str());
    Dl_info place{};
    if (!found || !::dladdr(found, &place)) return ::dlerror() ? "none, said" : "none";
    const char* const slash = std::strrchr(place.dli_fname, '/');
    return slash ? slash + 1 : place.dli_fname;
  }
  if (verb == "proc") {  // name, version, flags: where cuGetProcAddress's answer lies
    std::string name;
    int version = 0;
    std::uint64_t flags = 0;
    std::istringstream again(line);
    again >> verb >> name >> version >> flags;
    void* found = nullptr;
    int status = -1;
    const CUresult fault = ::cuGetProcAddress_v2(name.c_str(), &found, version, flags, &status);
    Dl_info place{};
    if (fault != cuda_success || !found || !::dladdr(found, &place))
      return "none " + std::to_string(status);
    const char* const slash = std::strrchr(place.dli_fname, '/');
    return std::string(slash ? slash + 1 : place.dli_fname) + " " +
           (place.dli_sname ? place.dli_sname : "?");
  }
  for (const std::string& said : {memory(verb, a, b, c), contents(verb, a, b), work(verb, a, b, c)})
    if (!said.empty()) return said;
  return "error unknown " + verb;
}

bool find_functions(const std::string& way, const char* path) {
  if (way == "linked") {
#define REFER(symbol, name) cu.symbol = &::symbol;
    FUNCTIONS(REFER)
    return true;
  }
  driver_library = ::dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver_library) return false;
  if (way == "dlsym") {
#define LOOK_UP(symbol, name) \
  cu.symbol = reinterpret_cast<decltype(cu.symbol)>(::dlsym(driver_library, #symbol));
    FUNCTIONS(LOOK_UP)
    return true;
  }
  if (way == "dlvsym") {
#define LOOK_UP_VERSION(symbol, name) \
  cu.symbol = reinterpret_cast<decltype(cu.symbol)>(::dlvsym(driver_library, #symbol, "CUDA_1"));
    FUNCTIONS(LOOK_UP_VERSION)
    return true;
  }
  if (way == "behind") {
    using Lookup = void* (*)(void*, const char*);
    const auto lookup =
        reinterpret_cast<Lookup>(::dlvsym(RTLD_NEXT, "dlsym", LOAM_GUEST_DLSYM_VERSION));
    if (!lookup) return false;
#define LOOK_BEHIND(symbol, name) \
  cu.symbol = reinterpret_cast<decltype(cu.symbol)>(lookup(driver_library, #symbol));
    FUNCTIONS(LOOK_BEHIND)
    return true;
  }
  using Ask = CUresult (*)(const char*, void**, int, std::uint64_t, int*);
  const auto ask = reinterpret_cast<Ask>(::dlsym(driver_library, "cuGetProcAddress_v2"));
  if (!ask) return false;
  const std::uint64_t flags = way == "proc_ptsz" ? proc_address_per_thread_stream : 0;
#define ASK(symbol, name)                                          \
  {                                                                \
    void* found = nullptr;                                         \
    int status = 0;                                                \
    ask(name, &found, 12080, flags, &status);                      \
    cu.symbol = reinterpret_cast<decltype(cu.symbol)>(found);      \
    if (!found) std::fprintf(stderr, "no %s: %d\n", name, status); \
  }
  FUNCTIONS(ASK)
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string way = count > 1 ? arguments[1] : "linked";
  if (!find_functions(way, count > 2 ? arguments[2] : nullptr)) return 3;
  Guest guest;
  std::string line;
  while (std::getline(std::cin, line)) std::cout << guest.obey(line) << std::endl;
  return 0;
}

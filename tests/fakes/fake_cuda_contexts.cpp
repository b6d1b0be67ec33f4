// The fake CUDA driver: devices, contexts, modules, and how its entries are found.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "fakes/fake_cuda_inside.hpp"

using namespace loam::fakes;

namespace {

thread_local std::vector<CUcontext> stack;
thread_local constinit CUcontext top = nullptr;  // the stack's, at hand
std::mutex guard_of_contexts;
CUcontext primaries[cuda_devices_max] = {};
bool initialized = false;

void look_at_top() {
  top = stack.empty() ? nullptr : stack.back();
}

CUresult make_context(CUcontext* context, CUdevice device, bool primary) {
  if (!initialized) return cuda_not_initialized;
  if (!context) return cuda_invalid_value;
  if (!known_device(device)) return cuda_invalid_device;
  const std::uint64_t bytes = books().devices[device].context_bytes;
  if (!charge(device, bytes)) return cuda_out_of_memory;
  *context = new CUctx_st{device, primary, false, 1, 0, bytes};
  return cuda_success;
}

void end_context(CUcontext context) {
  unplace_all_of(context);
  credit(context->device, context->charged_bytes);
  std::erase(stack, context);
  look_at_top();
  if (!context->green) delete context;
}

CUresult take_module(int* device, std::uint64_t* bytes) {
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  *device = context->device;
  *bytes = books().devices[context->device].module_bytes;
  return charge(*device, *bytes) ? cuda_success : cuda_out_of_memory;
}

template <class Module>
CUresult load(Module** module) {
  FAKE_CALL();
  if (!module) return cuda_invalid_value;
  int device = 0;
  std::uint64_t bytes = 0;
  if (const CUresult fault = take_module(&device, &bytes); fault != cuda_success) return fault;
  *module = new Module{device, bytes};
  return cuda_success;
}

struct Export {
  const char* symbol;
  int since;
};
const Export exports[] = {
#define HOOK(symbol, since, kind) {#symbol, since},
#define REFUSE(symbol, kind) {#symbol, 2000},
#define PASS(symbol, kind) {#symbol, 2000},
#include "guard/cuda/entries.def"
#undef HOOK
#undef REFUSE
#undef PASS
};

// "cuMemAlloc" of "cuMemAlloc_v2_ptds"; tells the flavour.
std::string base_of(std::string symbol, bool* per_thread) {
  *per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
  if (*per_thread) symbol.resize(symbol.size() - 5);
  const std::size_t at = symbol.rfind("_v");
  if (at != std::string::npos && at + 3 == symbol.size()) symbol.resize(at);
  return symbol;
}

void* own_symbol(const char* name) {
  static void* const self = [] {
    Dl_info place{};
    ::dladdr(reinterpret_cast<void*>(&own_symbol), &place);
    return ::dlopen(place.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return ::dlsym(self, name);
}

// 0 found, 1 no such symbol, 2 the version is older than it.
int find(const char* name, int version, std::uint64_t flags, void** function) {
  int best = 0;
  bool best_flavour = false, exists = false;
  *function = nullptr;
  const bool wants_per_thread = (flags & proc_address_per_thread_stream) != 0;
  for (const Export& entry : exports) {
    bool per_thread = false;
    if (base_of(entry.symbol, &per_thread) != name) continue;
    void* const found = own_symbol(entry.symbol);
    if (!found) continue;
    exists = true;
    if (entry.since > version || (per_thread && !wants_per_thread)) continue;
    if (*function && (entry.since < best || (entry.since == best && best_flavour))) {
      // An older version of the wanted flavour does not beat a newer one.
      if (!(per_thread && !best_flavour && entry.since >= best)) continue;
    }
    best = entry.since;
    best_flavour = per_thread;
    *function = found;
  }
  return *function ? 0 : exists ? 2 : 1;
}

}  // namespace

namespace loam::fakes {
CUcontext current() {
  return top;
}
}  // namespace loam::fakes

FAKE_EXPORT CUresult cuInit(unsigned) {
  FAKE_CALL();
  initialized = true;
  return cuda_success;
}
FAKE_EXPORT CUresult cuDriverGetVersion(int* version) {
  FAKE_CALL();
  if (!version) return cuda_invalid_value;
  *version = static_cast<int>(books().version);
  return cuda_success;
}
FAKE_EXPORT CUresult cuGetErrorName(CUresult code, const char** name) {
  FAKE_CALL();
  *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGetCount(int* count) {
  FAKE_CALL();
  if (!initialized) return cuda_not_initialized;
  if (!count) return cuda_invalid_value;
  *count = static_cast<int>(books().device_count);
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_CALL();
  if (!initialized) return cuda_not_initialized;
  if (!device) return cuda_invalid_value;
  if (!known_device(ordinal)) return cuda_invalid_device;
  *device = ordinal;
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  FAKE_CALL();
  if (!known_device(device)) return cuda_invalid_device;
  std::strncpy(name, books().devices[device].name, static_cast<std::size_t>(bytes));
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGetUuid_v2(Uuid* uuid, CUdevice device) {
  FAKE_CALL();
  if (!known_device(device)) return cuda_invalid_device;
  std::memcpy(uuid, books().devices[device].uuid, 16);
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGetUuid(Uuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
FAKE_EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  FAKE_CALL();
  if (!value || !known_device(device)) return cuda_invalid_value;
  const FakeCudaDevice& card = books().devices[device];
  *value = attribute == 16   ? static_cast<int>(card.multiprocessors)
           : attribute == 39 ? static_cast<int>(card.threads_per_multiprocessor)
                             : 0;
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  FAKE_CALL();
  if (!bytes) return cuda_invalid_value;
  if (!known_device(device)) return cuda_invalid_device;
  *bytes = books().devices[device].total_bytes;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  FAKE_CALL();
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  if (!free || !total) return cuda_invalid_value;
  const FakeCudaDevice& card = books().devices[context->device];
  *total = card.total_bytes;
  *free = card.total_bytes - card.used_bytes;
  return cuda_success;
}

// ---- contexts ----

FAKE_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  FAKE_CALL();
  const CUresult fault = make_context(context, device, false);
  if (fault == cuda_success) stack.push_back(*context);
  look_at_top();
  return fault;
}
FAKE_EXPORT CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
FAKE_EXPORT CUresult cuCtxCreate_v3(CUcontext* context, void*, int, unsigned flags,
                                    CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
FAKE_EXPORT CUresult cuCtxCreate_v4(CUcontext* context, void*, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
FAKE_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  FAKE_CALL();
  if (!context || context->primary) return cuda_invalid_context;
  end_context(context);
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxDestroy(CUcontext context) {
  return cuCtxDestroy_v2(context);
}
FAKE_EXPORT CUresult cuCtxDetach(CUcontext context) {
  return cuCtxDestroy_v2(context);
}
FAKE_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  FAKE_CALL();
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  look_at_top();
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_CALL();
  if (!context) return cuda_invalid_value;
  *context = current();
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKE_CALL();
  if (!context) return cuda_invalid_context;
  stack.push_back(context);
  look_at_top();
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxPushCurrent(CUcontext context) {
  return cuCtxPushCurrent_v2(context);
}
FAKE_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  FAKE_CALL();
  if (stack.empty()) return cuda_invalid_context;
  if (context) *context = stack.back();
  stack.pop_back();
  look_at_top();
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxPopCurrent(CUcontext* context) {
  return cuCtxPopCurrent_v2(context);
}
FAKE_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_CALL();
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  if (!device) return cuda_invalid_value;
  *device = context->device;
  return cuda_success;
}
// The stack and heap that a context keeps: limit 2 is the heap's size.
FAKE_EXPORT CUresult cuCtxSetLimit(int limit, std::size_t value) {
  FAKE_CALL();
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  if (limit != 2) return cuda_success;
  if (!charge(context->device, value)) return cuda_out_of_memory;
  context->charged_bytes += value;
  return cuda_success;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_CALL();
  if (!known_device(device)) return cuda_invalid_device;
  const std::lock_guard lock(guard_of_contexts);
  if (!primaries[device])
    return make_context(context, device, true) == cuda_success
               ? (primaries[device] = *context, cuda_success)
               : cuda_out_of_memory;
  ++primaries[device]->references;
  *context = primaries[device];
  return cuda_success;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_contexts);
  if (!known_device(device) || !primaries[device]) return cuda_invalid_context;
  if (--primaries[device]->references > 0) return cuda_success;
  end_context(primaries[device]);
  primaries[device] = nullptr;
  return cuda_success;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_contexts);
  if (!known_device(device)) return cuda_invalid_device;
  if (!primaries[device]) return cuda_success;
  end_context(primaries[device]);
  primaries[device] = nullptr;
  return cuda_success;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  FAKE_CALL();
  if (!known_device(device)) return cuda_invalid_device;
  if (flags) *flags = 0;
  if (active) *active = primaries[device] != nullptr;
  return cuda_success;
}
FAKE_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* context, void*, CUdevice device, unsigned) {
  FAKE_CALL();
  if (!context || !known_device(device)) return cuda_invalid_value;
  const std::uint64_t bytes = books().devices[device].context_bytes / 4;
  if (!charge(device, bytes)) return cuda_out_of_memory;
  *context = new CUgreenCtx_st{{device, false, true, 1, 0, bytes}};
  return cuda_success;
}
FAKE_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  FAKE_CALL();
  if (!context) return cuda_invalid_context;
  end_context(&context->context);
  delete context;
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  FAKE_CALL();
  if (!context || !green) return cuda_invalid_value;
  *context = &green->context;
  return cuda_success;
}

// ---- modules ----

FAKE_EXPORT CUresult cuModuleLoad(CUmodule* module, const char*) {
  return load(module);
}
FAKE_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void*) {
  return load(module);
}
FAKE_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned, void*, void**) {
  return load(module);
}
FAKE_EXPORT CUresult cuModuleLoadFatBinary(CUmodule* module, const void*) {
  return load(module);
}
FAKE_EXPORT CUresult cuModuleUnload(CUmodule module) {
  FAKE_CALL();
  credit(module->device, module->bytes);
  delete module;
  return cuda_success;
}
// "spin" runs as many nanoseconds as its first parameter says, "spin_N" N nanoseconds.
FAKE_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  FAKE_CALL();
  if (!function || !name || std::strncmp(name, "spin", 4) != 0) return cuda_not_found;
  *function = new CUfunc_st{name[4] == '_' ? std::strtoull(name + 5, nullptr, 10) : 0};
  return cuda_success;
}
FAKE_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void*, void*, void**, unsigned,
                                       void*, void**, unsigned) {
  return load(library);
}
FAKE_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* library, const char*, void*, void**, unsigned,
                                           void*, void**, unsigned) {
  return load(library);
}
FAKE_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  FAKE_CALL();
  credit(library->device, library->bytes);
  delete library;
  return cuda_success;
}

// ---- how entries are found ----

FAKE_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                         std::uint64_t flags, int* status) {
  FAKE_CALL();
  if (!name || !function) return cuda_invalid_value;
  const int found = find(name, version, flags, function);
  if (status) *status = found;
  return found == 0 || status ? cuda_success : cuda_not_found;
}
FAKE_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version,
                                      std::uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
FAKE_EXPORT CUresult cuGetExportTable(const void** table, const Uuid* id) {
  FAKE_CALL();
  static const void* const functions[] = {nullptr};
  if (!table || !id) return cuda_invalid_value;
  *table = functions;
  return cuda_success;
}

#ifdef FAKE_WITH_UNKNOWN
// Entries of a driver newer than the table.
FAKE_EXPORT CUresult cuMemAllocFancy(CUdeviceptr*, std::size_t) {
  return cuda_success;
}
FAKE_EXPORT CUresult cuShinyQuery() {
  return cuda_success;
}
#endif

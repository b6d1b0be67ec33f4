// Hooks of the CUDA entries that take device memory without saying how much: contexts, green
// contexts, modules, libraries, a context's limits. What they took is measured: by how far the
// device's free memory fell. Other tenants allocate at the same time, so a difference may be off by
// what they took in between; differences that cannot be are not charged.
#include <algorithm>

#include "guard/cuda/charge.hpp"
#include "guard/cuda/gate.hpp"
#include "guard/cuda/nvml.hpp"
#include "guard/cuda/spill.hpp"

namespace loam::guard::cuda {

namespace {

// A context, a module or a heap beyond this is somebody else's allocation.
constexpr std::uint64_t implicit_max = 8ull << 30;

// Free memory where the thread's context is; false where there is none.
bool free_here(std::uint64_t* free) {
  std::size_t bytes = 0, total = 0;
  const Driver* const real = driver();
  if (!real->cuMemGetInfo_v2 || real->cuMemGetInfo_v2(&bytes, &total) != cuda_success) return false;
  *free = bytes;
  return true;
}

std::uint64_t fallen(std::uint64_t before, std::uint64_t after) {
  return before > after && before - after <= implicit_max ? before - after : 0;
}

// Charges `bytes` that are taken already; false over the quota.
bool charge(Page& page, int entry, std::uint64_t bytes, Held held, std::uint64_t handle,
            CUcontext context) {
  Record record;
  record.bytes = bytes;
  record.context = context;
  record.entry = static_cast<std::uint8_t>(entry);
  record.memory_kind = LOAM_MEMORY_IMPLICIT;
  if (bytes > 0 && !reserve(page, record.entry, bytes, LOAM_MEMORY_IMPLICIT)) return false;
  if (remember(held, handle, record)) return true;
  give_back(page, record);
  return false;
}

// What is in use on a device, as far as it can be told without a context of it: NVML says so.
struct UsedBefore {
  bool known = false;
  std::uint64_t bytes = 0;
  char uuid[48] = {};
};
UsedBefore used_before(CUdevice device) {
  UsedBefore used;
  used.known = uuid_text(device, used.uuid) && nvml_used_bytes(used.uuid, &used.bytes);
  return used;
}
std::uint64_t taken_since(const UsedBefore& before) {
  std::uint64_t now = 0;
  if (!before.known || !nvml_used_bytes(before.uuid, &now)) return 0;
  return fallen(now, before.bytes);
}

// Everything that ended with a context is given back.
void end_context(CUcontext context) {
  Page* const page = Page::of_process();
  end_spillable_of(context);
  if (page)
    forget_all_of(
        context,
        [](const Record& record, void* closure) {
          give_back(*static_cast<Page*>(closure), record);
        },
        page);
  forget_context(context);
}

// A new context on the device, through `make`; `end` undoes it.
template <class Make, class End>
CUresult create_context(CUcontext* context, CUdevice device, Make make, End end) {
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  const int entry = page_entry(*page, device);
  // What the driver says of a device that is not there: the slice has no such one.
  if (entry == not_on_page) return context ? cuda_invalid_device : make();
  const UsedBefore before = used_before(device);
  const CUresult fault = make();
  forget_here();
  if (fault != cuda_success || !context) return fault;
  Record known;
  const auto handle = reinterpret_cast<std::uint64_t>(*context);
  if (find(Held::context, handle, &known)) return fault;  // a primary context, there already
  if (charge(*page, entry, taken_since(before), Held::context, handle, *context)) return fault;
  end(*context);
  forget_here();
  *context = nullptr;
  return cuda_out_of_memory;
}

template <class Destroy>
CUresult destroy_context(CUcontext context, Destroy destroy) {
  leave_context(context);
  const CUresult fault = destroy();
  forget_here();
  if (fault == cuda_success) end_context(context);
  return fault;
}

// A primary context may have ended: ask the driver.
template <class Release>
CUresult release_primary(CUdevice device, Release release_it) {
  const Driver* const real = driver();
  CUcontext context = nullptr;
  // Its handle, without making it: retain what is active and give that reference back at once.
  unsigned flags = 0;
  int active = 0;
  if (real->cuDevicePrimaryCtxGetState &&
      real->cuDevicePrimaryCtxGetState(device, &flags, &active) == cuda_success && active &&
      real->cuDevicePrimaryCtxRetain &&
      real->cuDevicePrimaryCtxRetain(&context, device) == cuda_success) {
    if (real->cuDevicePrimaryCtxRelease_v2)
      real->cuDevicePrimaryCtxRelease_v2(device);
    else if (real->cuDevicePrimaryCtxRelease)
      real->cuDevicePrimaryCtxRelease(device);
  }
  if (context) leave_context(context);
  const CUresult fault = release_it();
  forget_here();
  active = 0;
  if (fault == cuda_success && context &&
      (real->cuDevicePrimaryCtxGetState(device, &flags, &active) != cuda_success || !active))
    end_context(context);
  return fault;
}

// Something loaded into the current context (or, for libraries, perhaps into none).
template <class Load, class Handle, class Unload>
CUresult load(Held held, Load load_it, Handle handle, Unload unload) {
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  Here here;
  const bool placed = find_here(*page, &here) == cuda_success;
  std::uint64_t before = 0, after = 0;
  const bool measured = placed && free_here(&before);
  const CUresult fault = load_it();
  if (fault != cuda_success || !measured || !free_here(&after)) return fault;
  if (charge(*page, here.entry, fallen(before, after), held, handle(), here.context)) return fault;
  unload();
  return cuda_out_of_memory;
}

}  // namespace

}  // namespace loam::guard::cuda

using namespace loam::guard;
using namespace loam::guard::cuda;

namespace {

void destroy_new(CUcontext context) {
  const Driver* const real = driver();
  if (real->cuCtxDestroy_v2) real->cuCtxDestroy_v2(context);
}

}  // namespace

LOAM_GUARD_EXPORT CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  LOAM_CUDA_REQUIRE(cuCtxCreate);
  return create_context(
      context, device, [&] { return real->cuCtxCreate(context, flags, device); }, &destroy_new);
}
LOAM_GUARD_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  LOAM_CUDA_REQUIRE(cuCtxCreate_v2);
  return create_context(
      context, device, [&] { return real->cuCtxCreate_v2(context, flags, device); }, &destroy_new);
}
LOAM_GUARD_EXPORT CUresult cuCtxCreate_v3(CUcontext* context, void* affinity, int count,
                                          unsigned flags, CUdevice device) {
  LOAM_CUDA_REQUIRE(cuCtxCreate_v3);
  return create_context(
      context, device,
      [&] { return real->cuCtxCreate_v3(context, affinity, count, flags, device); }, &destroy_new);
}
LOAM_GUARD_EXPORT CUresult cuCtxCreate_v4(CUcontext* context, void* params, unsigned flags,
                                          CUdevice device) {
  LOAM_CUDA_REQUIRE(cuCtxCreate_v4);
  return create_context(
      context, device, [&] { return real->cuCtxCreate_v4(context, params, flags, device); },
      &destroy_new);
}
LOAM_GUARD_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  LOAM_CUDA_REQUIRE(cuDevicePrimaryCtxRetain);
  return create_context(
      context, device, [&] { return real->cuDevicePrimaryCtxRetain(context, device); },
      [&](CUcontext) {
        if (real->cuDevicePrimaryCtxRelease_v2) real->cuDevicePrimaryCtxRelease_v2(device);
      });
}

LOAM_GUARD_EXPORT CUresult cuCtxDestroy(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxDestroy);
  return destroy_context(context, [&] { return real->cuCtxDestroy(context); });
}
LOAM_GUARD_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxDestroy_v2);
  return destroy_context(context, [&] { return real->cuCtxDestroy_v2(context); });
}
// Of a context that was attached, an older way to count references: it may live on, and then stays
// charged until the process ends.
LOAM_GUARD_EXPORT CUresult cuCtxDetach(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxDetach);
  forget_here();
  return real->cuCtxDetach(context);
}
LOAM_GUARD_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  LOAM_CUDA_REQUIRE(cuDevicePrimaryCtxRelease);
  return release_primary(device, [&] { return real->cuDevicePrimaryCtxRelease(device); });
}
LOAM_GUARD_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  LOAM_CUDA_REQUIRE(cuDevicePrimaryCtxRelease_v2);
  return release_primary(device, [&] { return real->cuDevicePrimaryCtxRelease_v2(device); });
}
LOAM_GUARD_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  LOAM_CUDA_REQUIRE(cuDevicePrimaryCtxReset);
  return release_primary(device, [&] { return real->cuDevicePrimaryCtxReset(device); });
}
LOAM_GUARD_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  LOAM_CUDA_REQUIRE(cuDevicePrimaryCtxReset_v2);
  return release_primary(device, [&] { return real->cuDevicePrimaryCtxReset_v2(device); });
}

LOAM_GUARD_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* context, void* desc, CUdevice device,
                                            unsigned flags) {
  LOAM_CUDA_REQUIRE(cuGreenCtxCreate);
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  const int entry = page_entry(*page, device);
  if (entry == not_on_page) return cuda_invalid_device;
  const UsedBefore before = used_before(device);
  const CUresult fault = real->cuGreenCtxCreate(context, desc, device, flags);
  if (fault != cuda_success || !context) return fault;
  if (loam::guard::cuda::charge(*page, entry, taken_since(before), Held::green,
                                reinterpret_cast<std::uint64_t>(*context), nullptr))
    return fault;
  if (real->cuGreenCtxDestroy) real->cuGreenCtxDestroy(*context);
  return cuda_out_of_memory;
}

LOAM_GUARD_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  LOAM_CUDA_REQUIRE(cuGreenCtxDestroy);
  CUcontext plain = nullptr;
  if (real->cuCtxFromGreenCtx && real->cuCtxFromGreenCtx(&plain, context) == cuda_success)
    leave_context(plain);
  const CUresult fault = release(Held::green, reinterpret_cast<std::uint64_t>(context),
                                 [&] { return real->cuGreenCtxDestroy(context); });
  forget_here();
  if (fault == cuda_success && plain) end_context(plain);
  return fault;
}

// The same context under another handle: nothing is taken.
LOAM_GUARD_EXPORT CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  LOAM_CUDA_REQUIRE(cuCtxFromGreenCtx);
  return real->cuCtxFromGreenCtx(context, green);
}

LOAM_GUARD_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxSetCurrent);
  forget_here();
  return real->cuCtxSetCurrent(context);
}
LOAM_GUARD_EXPORT CUresult cuCtxPushCurrent(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxPushCurrent);
  forget_here();
  return real->cuCtxPushCurrent(context);
}
LOAM_GUARD_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxPushCurrent_v2);
  forget_here();
  return real->cuCtxPushCurrent_v2(context);
}
LOAM_GUARD_EXPORT CUresult cuCtxPopCurrent(CUcontext* context) {
  LOAM_CUDA_REQUIRE(cuCtxPopCurrent);
  forget_here();
  return real->cuCtxPopCurrent(context);
}
LOAM_GUARD_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  LOAM_CUDA_REQUIRE(cuCtxPopCurrent_v2);
  forget_here();
  return real->cuCtxPopCurrent_v2(context);
}

// Heap, stacks and queues of a context: charged to it.
LOAM_GUARD_EXPORT CUresult cuCtxSetLimit(int limit, std::size_t value) {
  LOAM_CUDA_REQUIRE(cuCtxSetLimit);
  Page* const page = Page::of_process();
  Here here;
  std::uint64_t before = 0, after = 0;
  const bool measured = page && find_here(*page, &here) == cuda_success && free_here(&before);
  const CUresult fault = real->cuCtxSetLimit(limit, value);
  if (fault != cuda_success || !measured || !free_here(&after)) return fault;
  const std::uint64_t more = fallen(before, after);
  if (more == 0) return fault;
  const auto entry = static_cast<std::uint32_t>(here.entry);
  if (!reserve(*page, entry, more, LOAM_MEMORY_IMPLICIT)) return cuda_out_of_memory;
  const bool known =
      change(Held::context, reinterpret_cast<std::uint64_t>(here.context), [&](Record* record) {
        record->bytes += more;
        return false;
      });
  if (!known) take_off(*page, entry, more, LOAM_MEMORY_IMPLICIT);
  return fault;
}

// ---- modules and libraries ----

#define LOAM_CUDA_MODULE(symbol, parameters, ...)                 \
  LOAM_GUARD_EXPORT CUresult symbol parameters {                  \
    LOAM_CUDA_REQUIRE(symbol);                                    \
    if (!module) return real->symbol(__VA_ARGS__);                \
    return load(                                                  \
        Held::module, [&] { return real->symbol(__VA_ARGS__); },  \
        [&] { return reinterpret_cast<std::uint64_t>(*module); }, \
        [&] { real->cuModuleUnload(*module); });                  \
  }
LOAM_CUDA_MODULE(cuModuleLoad, (CUmodule * module, const char* file), module, file)
LOAM_CUDA_MODULE(cuModuleLoadData, (CUmodule * module, const void* image), module, image)
LOAM_CUDA_MODULE(cuModuleLoadDataEx,
                 (CUmodule * module, const void* image, unsigned count, void* options,
                  void** values),
                 module, image, count, options, values)
LOAM_CUDA_MODULE(cuModuleLoadFatBinary, (CUmodule * module, const void* image), module, image)

LOAM_GUARD_EXPORT CUresult cuModuleUnload(CUmodule module) {
  LOAM_CUDA_REQUIRE(cuModuleUnload);
  return release(Held::module, reinterpret_cast<std::uint64_t>(module),
                 [&] { return real->cuModuleUnload(module); });
}

LOAM_GUARD_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* code, void* jit,
                                             void** jit_values, unsigned jit_count, void* options,
                                             void** values, unsigned count) {
  LOAM_CUDA_REQUIRE(cuLibraryLoadData);
  if (!library)
    return real->cuLibraryLoadData(library, code, jit, jit_values, jit_count, options, values,
                                   count);
  return load(
      Held::library,
      [&] {
        return real->cuLibraryLoadData(library, code, jit, jit_values, jit_count, options, values,
                                       count);
      },
      [&] { return reinterpret_cast<std::uint64_t>(*library); },
      [&] { real->cuLibraryUnload(*library); });
}

LOAM_GUARD_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, void* jit,
                                                 void** jit_values, unsigned jit_count,
                                                 void* options, void** values, unsigned count) {
  LOAM_CUDA_REQUIRE(cuLibraryLoadFromFile);
  if (!library)
    return real->cuLibraryLoadFromFile(library, file, jit, jit_values, jit_count, options, values,
                                       count);
  return load(
      Held::library,
      [&] {
        return real->cuLibraryLoadFromFile(library, file, jit, jit_values, jit_count, options,
                                           values, count);
      },
      [&] { return reinterpret_cast<std::uint64_t>(*library); },
      [&] { real->cuLibraryUnload(*library); });
}

LOAM_GUARD_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  LOAM_CUDA_REQUIRE(cuLibraryUnload);
  return release(Held::library, reinterpret_cast<std::uint64_t>(library),
                 [&] { return real->cuLibraryUnload(library); });
}

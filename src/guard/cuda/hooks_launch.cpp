// Hooks of the CUDA entries that launch: kernels in every form, and graphs, which are charged by
// what they were measured to take.
#include "guard/cuda/charge.hpp"
#include "guard/cuda/gate.hpp"

namespace loam::guard::cuda {

namespace {

// Sizes of one kernel are told apart by powers of the square root of two: a program whose shapes
// vary by a little does not meet a new kind of work at every launch.
std::uint32_t size_class(std::uint64_t blocks) {
  if (blocks < 2) return 0;
  const auto power = static_cast<std::uint32_t>(63 - __builtin_clzll(blocks));
  return power * 2 + static_cast<std::uint32_t>(blocks >> (power - 1) & 1u);
}

inline Kind kernel_kind(const void* function, std::uint64_t blocks) {
  const auto what = reinterpret_cast<std::uint64_t>(function);
  return Kind{kind_of(what ^ (std::uint64_t{size_class(blocks)} + 1) << 48), kind_of(what)};
}

// One launch into the thread's context, through `call`.
template <class Call>
inline CUresult launch(Kind kind, CUstream stream, bool per_thread, Call call) {
  Page* const page = Page::of_process();
  if (!page) [[unlikely]]
    return cuda_no_device;
  const int entry = entry_here(*page);
  if (entry == not_on_page) [[unlikely]] {
    Here here;
    const CUresult fault = find_here(*page, &here);
    return fault == cuda_success ? cuda_no_device : fault;
  }
  Command work;
  work.entry = static_cast<std::uint32_t>(entry);
  work.kind = kind;
  work.stream = stream;
  work.per_thread = per_thread;
  return submit(*page, work, call);
}

}  // namespace

}  // namespace loam::guard::cuda

using namespace loam::guard;
using namespace loam::guard::cuda;

#define LOAM_CUDA_LAUNCHES(suffix, flavour)                                                       \
  LOAM_GUARD_EXPORT CUresult cuLaunchKernel##suffix(                                              \
      CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
      unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {           \
    LOAM_CUDA_REQUIRE(cuLaunchKernel##suffix);                                                    \
    return launch(kernel_kind(function, std::uint64_t{gx} * gy * gz), stream, flavour, [&] {      \
      return real->cuLaunchKernel##suffix(function, gx, gy, gz, bx, by, bz, shared, stream,       \
                                          parameters, extra);                                     \
    });                                                                                           \
  }                                                                                               \
  LOAM_GUARD_EXPORT CUresult cuLaunchKernelEx##suffix(                                            \
      const LaunchConfig* config, CUfunction function, void** parameters, void** extra) {         \
    LOAM_CUDA_REQUIRE(cuLaunchKernelEx##suffix);                                                  \
    if (!config) return real->cuLaunchKernelEx##suffix(config, function, parameters, extra);      \
    const std::uint64_t blocks =                                                                  \
        std::uint64_t{config->grid[0]} * config->grid[1] * config->grid[2];                       \
    return launch(kernel_kind(function, blocks), config->stream, flavour, [&] {                   \
      return real->cuLaunchKernelEx##suffix(config, function, parameters, extra);                 \
    });                                                                                           \
  }                                                                                               \
  LOAM_GUARD_EXPORT CUresult cuLaunchCooperativeKernel##suffix(                                   \
      CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
      unsigned bz, unsigned shared, CUstream stream, void** parameters) {                         \
    LOAM_CUDA_REQUIRE(cuLaunchCooperativeKernel##suffix);                                         \
    return launch(kernel_kind(function, std::uint64_t{gx} * gy * gz), stream, flavour, [&] {      \
      return real->cuLaunchCooperativeKernel##suffix(function, gx, gy, gz, bx, by, bz, shared,    \
                                                     stream, parameters);                         \
    });                                                                                           \
  }                                                                                               \
  LOAM_GUARD_EXPORT CUresult cuGraphLaunch##suffix(CUgraphExec exec, CUstream stream) {           \
    LOAM_CUDA_REQUIRE(cuGraphLaunch##suffix);                                                     \
    const auto what = reinterpret_cast<std::uint64_t>(exec);                                      \
    const Kind kind{kind_of(what ^ 0x5bull << 56), kind_of(what ^ 0x5bull << 56)};                \
    const CUresult fault =                                                                        \
        launch(kind, stream, flavour, [&] { return real->cuGraphLaunch##suffix(exec, stream); }); \
    if (fault == cuda_success) [[likely]] {                                                       \
      Page* const page = Page::of_process();                                                      \
      if (const int entry = entry_here(*page); entry != not_on_page)                              \
        settle_graph_memory(*page, static_cast<std::uint32_t>(entry));                            \
    }                                                                                             \
    return fault;                                                                                 \
  }
LOAM_CUDA_LAUNCHES(, false)
LOAM_CUDA_LAUNCHES(_ptsz, true)

// One kernel on several devices at once: the first device's turn stands for all of them. Removed
// from CUDA 13.
LOAM_GUARD_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(LaunchParams* list, unsigned count,
                                                                unsigned flags) {
  LOAM_CUDA_REQUIRE(cuLaunchCooperativeKernelMultiDevice);
  if (!list || count == 0) return real->cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  const std::uint64_t blocks = std::uint64_t{list[0].grid[0]} * list[0].grid[1] * list[0].grid[2];
  return launch(kernel_kind(list[0].function, blocks), list[0].stream, false,
                [&] { return real->cuLaunchCooperativeKernelMultiDevice(list, count, flags); });
}

LOAM_GUARD_EXPORT CUresult cuLaunch(CUfunction function) {
  LOAM_CUDA_REQUIRE(cuLaunch);
  return launch(kernel_kind(function, 1), nullptr, false, [&] { return real->cuLaunch(function); });
}
LOAM_GUARD_EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  LOAM_CUDA_REQUIRE(cuLaunchGrid);
  const auto blocks = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  return launch(kernel_kind(function, blocks), nullptr, false,
                [&] { return real->cuLaunchGrid(function, width, height); });
}
LOAM_GUARD_EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height,
                                             CUstream stream) {
  LOAM_CUDA_REQUIRE(cuLaunchGridAsync);
  const auto blocks = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  return launch(kernel_kind(function, blocks), stream, false,
                [&] { return real->cuLaunchGridAsync(function, width, height, stream); });
}

// Stream capture: which streams record what is launched instead of running it. It is never held
// back, counted or disturbed.
#include "guard/cuda/gate.hpp"

namespace loam::guard::cuda {

std::atomic<int> captures{0};

bool asks_capturing(CUstream stream, bool per_thread) {
  const Driver* const real = driver();
  const auto ask = per_thread && real->cuStreamIsCapturing_ptsz ? real->cuStreamIsCapturing_ptsz
                                                                : real->cuStreamIsCapturing;
  int status = capture_none;
  return ask && ask(stream, &status) == cuda_success && status != capture_none;
}

Undisturbing::Undisturbing() {
  if (captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const Driver* const real = driver();
  mode_ = capture_mode_relaxed;
  changed_ = real->cuThreadExchangeStreamCaptureMode &&
             real->cuThreadExchangeStreamCaptureMode(&mode_) == cuda_success;
}

Undisturbing::~Undisturbing() {
  if (changed_) driver()->cuThreadExchangeStreamCaptureMode(&mode_);
}

namespace {

CUresult began(CUresult fault) {
  if (fault == cuda_success) captures.fetch_add(1, std::memory_order_relaxed);
  return fault;
}

}  // namespace

}  // namespace loam::guard::cuda

using namespace loam::guard::cuda;

#define LOAM_CUDA_CAPTURE(suffix, flavour)                                                    \
  LOAM_GUARD_EXPORT CUresult cuStreamBeginCapture##suffix(CUstream stream) {                  \
    LOAM_CUDA_REQUIRE(cuStreamBeginCapture##suffix);                                          \
    return began(real->cuStreamBeginCapture##suffix(stream));                                 \
  }                                                                                           \
  LOAM_GUARD_EXPORT CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, int mode) {     \
    LOAM_CUDA_REQUIRE(cuStreamBeginCapture_v2##suffix);                                       \
    return began(real->cuStreamBeginCapture_v2##suffix(stream, mode));                        \
  }                                                                                           \
  LOAM_GUARD_EXPORT CUresult cuStreamBeginCaptureToGraph##suffix(                             \
      CUstream stream, CUgraph graph, const void* after, const void* data, std::size_t count, \
      int mode) {                                                                             \
    LOAM_CUDA_REQUIRE(cuStreamBeginCaptureToGraph##suffix);                                   \
    return began(                                                                             \
        real->cuStreamBeginCaptureToGraph##suffix(stream, graph, after, data, count, mode));  \
  }                                                                                           \
  LOAM_GUARD_EXPORT CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph* graph) {    \
    LOAM_CUDA_REQUIRE(cuStreamEndCapture##suffix);                                            \
    const bool was_capturing = is_capturing(stream, flavour);                                 \
    const CUresult fault = real->cuStreamEndCapture##suffix(stream, graph);                   \
    if (was_capturing && !asks_capturing(stream, flavour)) captures.fetch_sub(1);             \
    return fault;                                                                             \
  }
LOAM_CUDA_CAPTURE(, false)
LOAM_CUDA_CAPTURE(_ptsz, true)

// ---- what waits ----

#define LOAM_CUDA_WAIT(suffix, flavour)                                     \
  LOAM_GUARD_EXPORT CUresult cuStreamSynchronize##suffix(CUstream stream) { \
    LOAM_CUDA_REQUIRE(cuStreamSynchronize##suffix);                         \
    const CUresult fault = real->cuStreamSynchronize##suffix(stream);       \
    if (fault == cuda_success) waited_for(stream, flavour);                 \
    return fault;                                                           \
  }
LOAM_CUDA_WAIT(, false)
LOAM_CUDA_WAIT(_ptsz, true)

LOAM_GUARD_EXPORT CUresult cuCtxSynchronize() {
  LOAM_CUDA_REQUIRE(cuCtxSynchronize);
  const CUresult fault = real->cuCtxSynchronize();
  if (fault == cuda_success) waited_for_context();
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
  LOAM_CUDA_REQUIRE(cuCtxSynchronize_v2);
  return real->cuCtxSynchronize_v2(context);
}

// What lies behind the event may still run: the clerk finds out.
LOAM_GUARD_EXPORT CUresult cuEventSynchronize(CUevent event) {
  LOAM_CUDA_REQUIRE(cuEventSynchronize);
  return real->cuEventSynchronize(event);
}

LOAM_GUARD_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  LOAM_CUDA_REQUIRE(cuStreamDestroy_v2);
  leave_stream(stream);
  return real->cuStreamDestroy_v2(stream);
}

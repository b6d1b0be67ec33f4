// The fake CUDA driver: streams, events, capturing, launches, graphs, copies and fills. Work has a
// beginning and an end on the clock from the moment it is given; nothing runs, waiting waits. Each
// device has three engines that serve one piece of work at a time, in the order given, whoever
// gave it. Copies of at most 1 MiB also move their bytes.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "fakes/fake_cuda_inside.hpp"

using namespace loam::fakes;

namespace {

std::mutex guard_of_streams;
std::set<CUstream> streams;
std::map<CUcontext, CUstream> legacy_streams;
thread_local std::map<CUcontext, CUstream> thread_streams;
std::atomic<int> global_captures{0};
thread_local constinit int capture_mode = capture_mode_global;
constexpr std::size_t moved_bytes_max = 1u << 20;

CUstream make_stream(CUcontext context, bool non_blocking) {
  auto* const stream = new CUstream_st{context, 0, nullptr, false, non_blocking};
  const std::lock_guard lock(guard_of_streams);
  streams.insert(stream);
  return stream;
}

CUresult add_node(CUstream stream, int type, std::uint64_t duration_ns) {
  auto* const node = new CUgraphNode_st{type, duration_ns, 0};
  stream->capture->nodes.push_back(node);
  return cuda_success;
}

CUresult launch(CUfunction function, CUstream given, void** parameters, bool per_thread) {
  FAKE_CALL();
  if (!function) return cuda_invalid_handle;
  const CUstream stream = stream_or_default(given, per_thread);
  if (!stream) return cuda_invalid_context;
  std::uint64_t duration = function->duration_ns;
  if (duration == 0 && parameters && parameters[0])
    std::memcpy(&duration, parameters[0], sizeof duration);
  if (stream->capture) return add_node(stream, node_kernel, duration);
  auto& launches = books().devices[stream->context->device].launches;
  launches.store(launches.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!books().instant) run(stream, duration, 0);
  return cuda_success;
}

std::uint64_t copy_ns(CUstream stream, std::size_t bytes) {
  const std::uint64_t rate = books().devices[stream->context->device].copy_bytes_per_s;
  return rate == 0 ? 0 : bytes * 1'000'000'000ull / rate;
}

// A copy or fill: engine by direction; `wait`: the call returns when it is over.
CUresult transfer(CUstream given, bool per_thread, std::size_t bytes, int engine, bool wait) {
  FAKE_CALL();
  const CUstream stream = stream_or_default(given, per_thread);
  if (!stream) return cuda_invalid_context;
  if (stream->capture) return add_node(stream, 1, copy_ns(stream, bytes));
  if (books().instant) return cuda_success;
  const std::uint64_t over = run(stream, copy_ns(stream, bytes), engine);
  if (wait) wait_until(over);
  return cuda_success;
}

constexpr CUresult illegal_address = 700;

// Of memory behind reserved addresses all bytes move. False where there is none behind them.
bool is_there(const void* address, bool* moves_all) {
  bool has_memory = false;
  if (!is_reserved(reinterpret_cast<CUdeviceptr>(address), &has_memory)) return true;
  *moves_all = true;
  return has_memory;
}
bool move(void* to, const void* from, std::size_t bytes) {
  bool all = bytes <= moved_bytes_max;
  if (!is_there(to, &all) || !is_there(from, &all)) return false;
  if (all) std::memcpy(to, from, bytes);
  return true;
}
bool fill(void* to, unsigned char value, std::size_t count) {
  bool all = count <= moved_bytes_max;
  if (!is_there(to, &all)) return false;
  if (all) std::memset(to, value, count);
  return true;
}
void* host(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

int engine_of(int from, int to) {
  if (from == memory_host && to != memory_host) return 1;
  if (to == memory_host && from != memory_host) return 2;
  return 0;
}

CUresult elapsed(float* ms, CUevent from, CUevent to) {
  FAKE_CALL();
  if (!ms || !from || !to || !from->recorded || !to->recorded) return cuda_invalid_handle;
  const std::uint64_t now = now_ns();
  if (from->at_ns > now || to->at_ns > now) return cuda_not_ready;
  *ms =
      static_cast<float>(static_cast<double>(to->at_ns) - static_cast<double>(from->at_ns)) / 1e6f;
  return cuda_success;
}

CUresult begin_capture(CUstream stream, CUgraph graph, int mode) {
  FAKE_CALL();
  if (!stream || stream->capture) return 901;
  stream->capture = graph ? graph : new CUgraph_st;
  stream->capture_broken = false;
  if (mode == capture_mode_global) ++global_captures;
  return cuda_success;
}

}  // namespace

namespace loam::fakes {

bool breaks_capture() {
  if (global_captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  if (capture_mode == capture_mode_relaxed) return false;
  const std::lock_guard lock(guard_of_streams);
  for (CUstream stream : streams)
    if (stream->capture) stream->capture_broken = true;
  return true;
}

CUstream stream_or_default(CUstream stream, bool per_thread) {
  const auto value = reinterpret_cast<std::uintptr_t>(stream);
  if (value > 2) return stream;
  const CUcontext context = current();
  if (!context) return nullptr;
  thread_local constinit CUcontext last_context = nullptr;
  thread_local constinit CUstream last_stream = nullptr;
  thread_local constinit bool last_flavour = false;
  const bool own = value == 2 || (value == 0 && per_thread);
  if (context == last_context && own == last_flavour && last_stream) return last_stream;
  CUstream found = nullptr;
  if (own) {
    CUstream& slot = thread_streams[context];
    if (!slot) slot = make_stream(context, false);
    found = slot;
  } else {
    std::unique_lock lock(guard_of_streams);
    CUstream& slot = legacy_streams[context];
    if (!slot) {
      slot = new CUstream_st{context, 0, nullptr, false, false};
      streams.insert(slot);
    }
    found = slot;
  }
  last_context = context;
  last_stream = found;
  last_flavour = own;
  return found;
}

std::uint64_t run(CUstream stream, std::uint64_t duration_ns, int engine) {
  FakeCudaDevice& card = books().devices[stream->context->device];
  const std::uint64_t now = now_ns();
  auto& free_at = card.free_at_ns[engine];
  std::uint64_t seen = free_at.load(), begin = 0;
  do {
    begin = std::max({now, stream->tail_ns, seen});
  } while (!free_at.compare_exchange_weak(seen, begin + duration_ns));
  stream->tail_ns = begin + duration_ns;
  stream->context->last_tail_ns = std::max(stream->context->last_tail_ns, stream->tail_ns);
  card.busy_ns[engine] += duration_ns;
  const std::uint32_t at = card.runs.fetch_add(1);
  card.log[at % cuda_log_max] = {begin, begin + duration_ns, ::getpid(), engine};
  return stream->tail_ns;
}

void wait_until(std::uint64_t at_ns) {
  const timespec until{static_cast<time_t>(at_ns / 1'000'000'000u),
                       static_cast<long>(at_ns % 1'000'000'000u)};
  while (now_ns() < at_ns) ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace loam::fakes

// ---- streams and events ----

FAKE_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE_CALL();
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  if (!stream) return cuda_invalid_value;
  *stream = make_stream(context, flags != 0);
  return cuda_success;
}
FAKE_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_streams);
  if (streams.erase(stream) == 0) return cuda_invalid_handle;
  delete stream;
  return cuda_success;
}
FAKE_EXPORT CUresult cuStreamDestroy(CUstream stream) {
  return cuStreamDestroy_v2(stream);
}

#define FAKE_STREAMS(suffix, per_thread)                                                     \
  FAKE_EXPORT CUresult cuStreamGetCtx##suffix(CUstream stream, CUcontext* context) {         \
    FAKE_CALL();                                                                             \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!on || !context) return cuda_invalid_value;                                          \
    *context = on->context;                                                                  \
    return cuda_success;                                                                     \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamSynchronize##suffix(CUstream stream) {                        \
    FAKE_CALL();                                                                             \
    if (breaks_capture()) return 900;                                                        \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!on) return cuda_invalid_context;                                                    \
    wait_until(on->tail_ns);                                                                 \
    release_idle_pools(on->context->device);                                                 \
    return cuda_success;                                                                     \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamQuery##suffix(CUstream stream) {                              \
    FAKE_CALL();                                                                             \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!on) return cuda_invalid_context;                                                    \
    return now_ns() >= on->tail_ns ? cuda_success : cuda_not_ready;                          \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamWaitEvent##suffix(CUstream stream, CUevent event, unsigned) { \
    FAKE_CALL();                                                                             \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!on || !event) return cuda_invalid_handle;                                           \
    on->tail_ns = std::max(on->tail_ns, event->at_ns);                                       \
    return cuda_success;                                                                     \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamIsCapturing##suffix(CUstream stream, int* status) {           \
    FAKE_CALL();                                                                             \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!on || !status) return cuda_invalid_value;                                           \
    *status = !on->capture         ? capture_none                                            \
              : on->capture_broken ? capture_invalidated                                     \
                                   : capture_active;                                         \
    return cuda_success;                                                                     \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamBeginCapture##suffix(CUstream stream) {                       \
    return begin_capture(stream, nullptr, capture_mode_global);                              \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, int mode) {          \
    return begin_capture(stream, nullptr, mode);                                             \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamBeginCaptureToGraph##suffix(                                  \
      CUstream stream, CUgraph graph, const void*, const void*, std::size_t, int mode) {     \
    return begin_capture(stream, graph, mode);                                               \
  }                                                                                          \
  FAKE_EXPORT CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph* graph) {         \
    FAKE_CALL();                                                                             \
    if (!stream || !stream->capture || !graph) return 904;                                   \
    if (global_captures > 0) --global_captures;                                              \
    *graph = stream->capture_broken ? nullptr : stream->capture;                             \
    stream->capture = nullptr;                                                               \
    return *graph ? cuda_success : 901;                                                      \
  }                                                                                          \
  FAKE_EXPORT CUresult cuEventRecord##suffix(CUevent event, CUstream stream) {               \
    FAKE_CALL();                                                                             \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!event || !on) return cuda_invalid_handle;                                           \
    if (on->capture) return add_node(on, 7, 0);                                              \
    event->at_ns = books().instant ? 0 : std::max(now_ns(), on->tail_ns);                    \
    event->recorded = true;                                                                  \
    return cuda_success;                                                                     \
  }                                                                                          \
  FAKE_EXPORT CUresult cuLaunchHostFunc##suffix(CUstream stream, void (*function)(void*),    \
                                                void* data) {                                \
    FAKE_CALL();                                                                             \
    const CUstream on = stream_or_default(stream, per_thread);                               \
    if (!on || !function) return cuda_invalid_value;                                         \
    if (on->capture) return add_node(on, 3, 0);                                              \
    std::thread([at = on->tail_ns, function, data] {                                         \
      wait_until(at);                                                                        \
      function(data);                                                                        \
    }).detach();                                                                             \
    return cuda_success;                                                                     \
  }
FAKE_STREAMS(, false)
FAKE_STREAMS(_ptsz, true)

FAKE_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  FAKE_CALL();
  std::swap(*mode, capture_mode);
  return cuda_success;
}
FAKE_EXPORT CUresult cuCtxSynchronize() {
  FAKE_CALL();
  if (breaks_capture()) return 900;
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  wait_until(context->last_tail_ns);
  release_idle_pools(context->device);
  return cuda_success;
}
FAKE_EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE_CALL();
  if (!current()) return cuda_invalid_context;
  *event = new CUevent_st;
  return cuda_success;
}
FAKE_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_CALL();
  delete event;
  return cuda_success;
}
FAKE_EXPORT CUresult cuEventQuery(CUevent event) {
  FAKE_CALL();
  if (!event) return cuda_invalid_handle;
  if (breaks_capture()) return 900;
  return !event->recorded || event->at_ns == 0 || now_ns() >= event->at_ns ? cuda_success
                                                                           : cuda_not_ready;
}
FAKE_EXPORT CUresult cuEventSynchronize(CUevent event) {
  FAKE_CALL();
  if (!event) return cuda_invalid_handle;
  if (breaks_capture()) return 900;
  if (event->recorded) wait_until(event->at_ns);
  return cuda_success;
}
FAKE_EXPORT CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  return elapsed(ms, from, to);
}
FAKE_EXPORT CUresult cuEventElapsedTime_v2(float* ms, CUevent from, CUevent to) {
  return elapsed(ms, from, to);
}

// ---- launches and graphs ----

#define FAKE_LAUNCHES(suffix, per_thread)                                                          \
  FAKE_EXPORT CUresult cuLaunchKernel##suffix(CUfunction function, unsigned, unsigned, unsigned,   \
                                              unsigned, unsigned, unsigned, unsigned,              \
                                              CUstream stream, void** parameters, void**) {        \
    return launch(function, stream, parameters, per_thread);                                       \
  }                                                                                                \
  FAKE_EXPORT CUresult cuLaunchKernelEx##suffix(const LaunchConfig* config, CUfunction function,   \
                                                void** parameters, void**) {                       \
    return config ? launch(function, config->stream, parameters, per_thread) : cuda_invalid_value; \
  }                                                                                                \
  FAKE_EXPORT CUresult cuLaunchCooperativeKernel##suffix(                                          \
      CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
      CUstream stream, void** parameters) {                                                        \
    return launch(function, stream, parameters, per_thread);                                       \
  }                                                                                                \
  FAKE_EXPORT CUresult cuGraphLaunch##suffix(CUgraphExec exec, CUstream given) {                   \
    FAKE_CALL();                                                                                   \
    const CUstream stream = stream_or_default(given, per_thread);                                  \
    if (!exec || !stream) return cuda_invalid_value;                                               \
    if (stream->capture) return add_node(stream, 4, exec->duration_ns);                            \
    if (exec->alloc_bytes > 0) charge_graph_memory(stream->context->device, exec->alloc_bytes);    \
    if (!books().instant) run(stream, exec->duration_ns, 0);                                       \
    return cuda_success;                                                                           \
  }                                                                                                \
  FAKE_EXPORT CUresult cuGraphUpload##suffix(CUgraphExec exec, CUstream) {                         \
    FAKE_CALL();                                                                                   \
    return exec ? cuda_success : cuda_invalid_value;                                               \
  }
FAKE_LAUNCHES(, false)
FAKE_LAUNCHES(_ptsz, true)

FAKE_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(LaunchParams* list, unsigned count,
                                                          unsigned) {
  for (unsigned i = 0; i < count; ++i)
    launch(list[i].function, list[i].stream, list[i].parameters, false);
  return cuda_success;
}
FAKE_EXPORT CUresult cuLaunch(CUfunction function) {
  return launch(function, nullptr, nullptr, false);
}
FAKE_EXPORT CUresult cuLaunchGrid(CUfunction function, int, int) {
  return launch(function, nullptr, nullptr, false);
}
FAKE_EXPORT CUresult cuLaunchGridAsync(CUfunction function, int, int, CUstream stream) {
  return launch(function, stream, nullptr, false);
}
FAKE_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  FAKE_CALL();
  *graph = new CUgraph_st;
  return cuda_success;
}
FAKE_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  FAKE_CALL();
  for (CUgraphNode node : graph->nodes) delete node;
  delete graph;
  return cuda_success;
}
// How many nodes of any kind: what a capture caught.
FAKE_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  FAKE_CALL();
  if (!graph || !count) return cuda_invalid_value;
  for (std::size_t i = 0; nodes && i < std::min(*count, graph->nodes.size()); ++i)
    nodes[i] = graph->nodes[i];
  *count = graph->nodes.size();
  return cuda_success;
}
FAKE_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                                 unsigned long long) {
  FAKE_CALL();
  if (!exec || !graph) return cuda_invalid_value;
  *exec = new CUgraphExec_st;
  for (CUgraphNode node : graph->nodes) {
    (*exec)->duration_ns += node->duration_ns;
    (*exec)->alloc_bytes += node->bytes;
    if (node->type == node_kernel) ++(*exec)->kernels;
  }
  return cuda_success;
}
FAKE_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  FAKE_CALL();
  delete exec;
  return cuda_success;
}
FAKE_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*,
                                            std::size_t, MemAllocNodeParams* params) {
  FAKE_CALL();
  if (!graph || !params) return cuda_invalid_value;
  auto* const made = new CUgraphNode_st{node_mem_alloc, 0, params->bytes};
  graph->nodes.push_back(made);
  if (node) *node = made;
  params->address = place(params->pool.location.id, params->bytes, Owner::reserved, nullptr);
  return cuda_success;
}
FAKE_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*,
                                       const void*, std::size_t, GraphNodeParams* params) {
  if (params && params->type == node_mem_alloc)
    return cuGraphAddMemAllocNode(node, graph, nullptr, 0, &params->mem_alloc);
  FAKE_CALL();
  return cuda_not_supported;
}
FAKE_EXPORT CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                    std::size_t count, GraphNodeParams* params) {
  return cuGraphAddNode_v2(node, graph, after, nullptr, count, params);
}
FAKE_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value) {
  FAKE_CALL();
  const std::uint64_t bytes = attribute == graph_memory_reserved_current ? graph_memory(device) : 0;
  std::memcpy(value, &bytes, sizeof bytes);
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice) {
  FAKE_CALL();
  return cuda_success;
}

// ---- copies and fills ----

#define FAKE_COPIES(sync, async, per_thread)                                                      \
  FAKE_EXPORT CUresult cuMemcpy##sync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {      \
    if (!move(host(to), host(from), bytes)) return illegal_address;                               \
    return transfer(nullptr, per_thread, bytes, 0, true);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyPeer##sync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext,         \
                                          std::size_t bytes) {                                    \
    return transfer(nullptr, per_thread, bytes, 0, true);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyHtoD_v2##sync(CUdeviceptr to, const void* from,                    \
                                             std::size_t bytes) {                                 \
    if (!move(host(to), from, bytes)) return illegal_address;                                     \
    return transfer(nullptr, per_thread, bytes, 1, true);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyDtoH_v2##sync(void* to, CUdeviceptr from, std::size_t bytes) {     \
    if (!move(to, host(from), bytes)) return illegal_address;                                     \
    return transfer(nullptr, per_thread, bytes, 2, true);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyDtoD_v2##sync(CUdeviceptr to, CUdeviceptr from,                    \
                                             std::size_t bytes) {                                 \
    if (!move(host(to), host(from), bytes)) return illegal_address;                               \
    return transfer(nullptr, per_thread, bytes, 0, true);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpy2D_v2##sync(const Memcpy2d* c) {                                   \
    return transfer(nullptr, per_thread, c->width_bytes * c->height,                              \
                    engine_of(c->from_type, c->to_type), true);                                   \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpy2DUnaligned_v2##sync(const Memcpy2d* c) {                          \
    return cuMemcpy2D_v2##sync(c);                                                                \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpy3D_v2##sync(const Memcpy3d* c) {                                   \
    return transfer(nullptr, per_thread, c->width_bytes * c->height * c->depth,                   \
                    engine_of(c->from_type, c->to_type), true);                                   \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyAsync##async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,  \
                                            CUstream stream) {                                    \
    if (!move(host(to), host(from), bytes)) return illegal_address;                               \
    return transfer(stream, per_thread, bytes, 0, false);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyHtoDAsync_v2##async(CUdeviceptr to, const void* from,              \
                                                   std::size_t bytes, CUstream stream) {          \
    if (!move(host(to), from, bytes)) return illegal_address;                                     \
    return transfer(stream, per_thread, bytes, 1, false);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyDtoHAsync_v2##async(void* to, CUdeviceptr from, std::size_t bytes, \
                                                   CUstream stream) {                             \
    if (!move(to, host(from), bytes)) return illegal_address;                                     \
    return transfer(stream, per_thread, bytes, 2, false);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyDtoDAsync_v2##async(CUdeviceptr to, CUdeviceptr from,              \
                                                   std::size_t bytes, CUstream stream) {          \
    if (!move(host(to), host(from), bytes)) return illegal_address;                               \
    return transfer(stream, per_thread, bytes, 0, false);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpy2DAsync_v2##async(const Memcpy2d* c, CUstream stream) {            \
    return transfer(stream, per_thread, c->width_bytes * c->height,                               \
                    engine_of(c->from_type, c->to_type), false);                                  \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpy3DAsync_v2##async(const Memcpy3d* c, CUstream stream) {            \
    return transfer(stream, per_thread, c->width_bytes * c->height * c->depth,                    \
                    engine_of(c->from_type, c->to_type), false);                                  \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyBatchAsync_v2##async(CUdeviceptr*, CUdeviceptr*,                   \
                                                    std::size_t* bytes, std::size_t count, void*, \
                                                    std::size_t*, std::size_t, CUstream stream) { \
    std::size_t total = 0;                                                                        \
    for (std::size_t i = 0; i < count; ++i) total += bytes[i];                                    \
    return transfer(stream, per_thread, total, 0, false);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemcpyBatchAsync##async(                                                 \
      CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes, std::size_t count, void* a,         \
      std::size_t* i, std::size_t n, std::size_t*, CUstream stream) {                             \
    return cuMemcpyBatchAsync_v2##async(to, from, bytes, count, a, i, n, stream);                 \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemsetD8_v2##sync(CUdeviceptr to, unsigned char value,                   \
                                           std::size_t count) {                                   \
    if (!fill(host(to), value, count)) return illegal_address;                                    \
    return transfer(nullptr, per_thread, count, 0, true);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemsetD32_v2##sync(CUdeviceptr, unsigned, std::size_t count) {           \
    return transfer(nullptr, per_thread, count * 4, 0, true);                                     \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemsetD8Async##async(CUdeviceptr to, unsigned char value,                \
                                              std::size_t count, CUstream stream) {               \
    if (!fill(host(to), value, count)) return illegal_address;                                    \
    return transfer(stream, per_thread, count, 0, false);                                         \
  }                                                                                               \
  FAKE_EXPORT CUresult cuMemsetD32Async##async(CUdeviceptr, unsigned, std::size_t count,          \
                                               CUstream stream) {                                 \
    return transfer(stream, per_thread, count * 4, 0, false);                                     \
  }
FAKE_COPIES(, , false)
FAKE_COPIES(_ptds, _ptsz, true)

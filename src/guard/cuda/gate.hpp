// The gate in front of a CUDA device's engines: work goes to the driver only while the lease holds
// the lane's turn, and only as much as the rest of the turn is expected to take.
//
// A launch must cost next to nothing, so the turn is not asked for launch by launch. A thread is
// given a chunk of expected device time and spends it without any locked instruction, clock or
// driver call; the slow path between chunks looks at the clock, records an event behind what was
// launched (a mark), learns from the marks that have come to pass how long work of each kind takes,
// and gives the next chunk. Closing the gate makes all chunks void: the closer raises the lane's
// epoch, has the kernel put a barrier into every thread (membarrier), and waits for those that are
// inside a driver call. Then it marks what was launched and sees it to its end.
//
// Not pure: driver, slice page, clock, one thread a process (the clerk, clerk.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/barrier.hpp"
#include "guard/cuda/estimates.hpp"
#include "guard/cuda/places.hpp"
#include "guard/page.hpp"
#include "guard/turns.hpp"

namespace loam::guard::cuda {

// What one thread may still launch on one lane. Written by its thread only, but under the lane's
// lock or with the gate closed and the thread outside.
struct alignas(64) Chunk {
  std::atomic<std::uint32_t> inside{0};  // 1 while its thread is in the driver
  std::uint32_t epoch = 0;               // the lane's, when it was given
  std::uint32_t state = 0;               // the turn's, when it was given
  std::uint32_t launches = 0;            // since it was given
  std::uint32_t copies = 0;              // of them: no kernels
  std::uint64_t left_ns = 0;             // expected time that may still be launched
  std::uint64_t given_ns = 0;
  static constexpr int streams_max = 4;
  CUstream streams[streams_max] = {};  // where it was spent
  bool per_thread[streams_max] = {};
  int stream_count = 0;
  CUcontext context = nullptr;  // the thread's; others mark the chunk in it
  Mixture mixture;              // on what
  Chunk* next = nullptr;
  std::uint32_t lane = 0;  // entry * LOAM_LANES + lane

  bool knows(CUstream stream, bool flavour) const {
    for (int i = 0; i < stream_count; ++i)
      if (streams[i] == stream && per_thread[i] == flavour) return true;
    return false;
  }
};

inline constexpr std::uint32_t lanes_max = LOAM_SLICE_DEVICES_MAX * LOAM_LANES;

// Read on every launch; the rest of a lane is gate.cpp's.
struct alignas(64) LaneWord {
  std::atomic<std::uint32_t> epoch{1};
};
extern LaneWord lane_words[lanes_max];
extern thread_local constinit Chunk* chunks[lanes_max];

// One piece of work, as its hook sees it.
struct Command {
  std::uint32_t entry = 0;
  std::uint32_t lane = LOAM_LANE_COMPUTE;
  Kind kind;
  CUstream stream = nullptr;
  bool per_thread = false;
  bool blocking = false;       // the driver call returns when the work is over
  std::uint64_t guess_ns = 0;  // for work never seen before; 0: nothing is known
  Work what = Work::kernel;
  std::uint64_t bytes = 0;  // that it moves
};

// The slow path: returns when the work may go to the driver, with its thread marked inside.
Chunk* admit(Page& page, const Command& work);
// After a blocking call.
void blocking_call_over(Page& page, const Command& work, bool ran, std::uint64_t began_ns);

// Whether the work may go at once; then its thread is marked inside.
[[gnu::always_inline]] inline Chunk* try_enter(const Page& page, const Command& work) {
  const std::uint32_t index = work.entry * LOAM_LANES + work.lane;
  Chunk* const chunk = chunks[index];
  if (!chunk) [[unlikely]]
    return nullptr;
  chunk->inside.store(1, std::memory_order_relaxed);
  paired_with_barrier();
  if (!barriers_work) [[unlikely]]
    std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t estimate = estimate_of(index, work.kind);
  const loam_turn& turn = page.counters().device[work.entry].turn[work.lane];
  if (chunk->epoch == lane_words[index].epoch.load(std::memory_order_relaxed) &&
      chunk->state == __atomic_load_n(&turn.state, __ATOMIC_RELAXED) && estimate != 0 &&
      estimate <= chunk->left_ns && chunk->knows(work.stream, work.per_thread) &&
      chunk->mixture.add(work.kind)) [[likely]] {
    chunk->left_ns -= estimate;
    ++chunk->launches;
    chunk->copies += work.what != Work::kernel;
    return chunk;
  }
  chunk->inside.store(0, std::memory_order_release);
  return nullptr;
}

// ---- capturing ----

extern std::atomic<int> captures;  // streams of this process that capture, as far as it is known
bool asks_capturing(CUstream stream, bool per_thread);
inline bool is_capturing(CUstream stream, bool per_thread) {
  return captures.load(std::memory_order_relaxed) > 0 && asks_capturing(stream, per_thread);
}
// While somebody captures, the driver forbids calls like those the guard makes for itself; in this
// mode a thread may make them without disturbing the capture.
class Undisturbing {
 public:
  Undisturbing();
  ~Undisturbing();
  Undisturbing(const Undisturbing&) = delete;
  Undisturbing& operator=(const Undisturbing&) = delete;

 private:
  int mode_ = 0;
  bool changed_ = false;
};

// Gives work to the driver through `call`. Work on a stream that captures is only recorded: it is
// neither held back nor counted.
template <class Call>
CUresult submit(Page& page, const Command& work, Call call) {
  if (captures.load(std::memory_order_relaxed) > 0) [[unlikely]]
    if (asks_capturing(work.stream, work.per_thread)) return call();
  if (!work.blocking) [[likely]] {
    Chunk* chunk = try_enter(page, work);
    if (!chunk) [[unlikely]]
      chunk = admit(page, work);
    const CUresult fault = call();
    chunk->inside.store(0, std::memory_order_release);
    return fault;
  }
  admit(page, work);
  const std::uint64_t began = now_ns();
  const CUresult fault = call();
  blocking_call_over(page, work, fault == cuda_success, began);
  return fault;
}

// ---- what else touches the gate ----

// The thread has waited for the stream, or for its whole context: what was launched there is over.
void waited_for(CUstream stream, bool per_thread);
void waited_for_context();
// Before the stream or context ends: what is open there is marked, and marks are dropped.
void leave_stream(CUstream stream);
void leave_context(CUcontext context);

// Calls `then` with nothing of this process on any lane of the entry and nothing let through: what
// it sets is seen by whoever next gives work to the device (is_away()). `not_yet` where work of a
// turn that is over has not ended; `no` where the lease has a turn.
enum class Quiet : std::uint8_t { yes, not_yet, no };
Quiet when_quiet(Page& page, std::uint32_t entry, void (*then)(std::uint32_t entry));

// The clerk's look at all lanes; returns after how many nanoseconds to look again, 0: not before
// something is opened.
std::uint64_t look_after_lanes();

}  // namespace loam::guard::cuda

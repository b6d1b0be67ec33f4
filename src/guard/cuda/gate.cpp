#include "guard/cuda/gate.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>

#include "guard/barrier.hpp"
#include "guard/cuda/charge.hpp"
#include "guard/cuda/clerk.hpp"
#include "guard/cuda/marks.hpp"
#include "guard/cuda/spill.hpp"
#include "guard/lock.hpp"
#include "guard/page_lane.hpp"

namespace loam::guard::cuda {

LaneWord lane_words[lanes_max];
thread_local constinit Chunk* chunks[lanes_max] = {};

namespace {

// A chunk is at most this much expected time: what a turn may be overrun by, unnoticed.
constexpr std::uint64_t chunk_max_ns = 500'000;
// Waiting for the device: how soon it is looked at again. Its end may be late by the first.
constexpr std::uint64_t nap_min_ns = 20'000;
constexpr std::uint64_t nap_max_ns = 1'000'000;
constexpr std::uint32_t measure_every = 16;

// What this process has on one lane of a device. Guarded by `lock`.
struct Lane {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  bool open = false;              // in_flight is 1 on the page
  std::uint32_t blocking = 0;     // driver calls that return with their work
  std::uint64_t blocking_ns = 0;  // expected of them
  std::uint64_t given_ns = 0;     // chunks that threads have now
  std::uint64_t opened_ns = 0;
  std::uint32_t openings = 0;
  std::uint32_t measured_state = 0;  // the turn in which an opening was last measured
  std::uint64_t launches_seen = 0;   // by the clerk
  std::uint32_t progress = 0;        // a futex: counted up when something is over
  Chunk* threads = nullptr;
  int thread_count = 0;
  Marks marks;
};
Lane lanes[lanes_max];

// One lane with everything that belongs to it.
struct Place : PageLane {
  std::uint32_t index;

  Place(Page& p, std::uint32_t device_entry, std::uint32_t l)
      : PageLane{p, device_entry, l}, index(device_entry * LOAM_LANES + l) {}
  Lane& mine() const { return lanes[index]; }
};

// ---- threads ----

void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  for (std::uint32_t i = 0; i < lanes_max; ++i) {
    Lane& lane = lanes[i];
    if (lane.threads || lane.open) {
      lane.open = false;
      lane.blocking = 0;
      lane.blocking_ns = lane.given_ns = 0;
      lane.threads = nullptr;
      lane.thread_count = 0;
      lane.marks.forget();
    }
    std::memcpy(&lane.lock, &fresh, sizeof fresh);
    chunks[i] = nullptr;  // the parent's; left in memory
  }
  captures = 0;
}
[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

void mark_chunk(Lane& lane, Chunk& chunk, std::uint64_t now);

pthread_key_t exit_key;
pthread_once_t exit_once = PTHREAD_ONCE_INIT;

// A thread ends: what it launched stays marked, its chunks go.
void thread_exits(void*) {
  for (std::uint32_t i = 0; i < lanes_max; ++i) {
    Chunk* const chunk = chunks[i];
    if (!chunk) continue;
    Lane& lane = lanes[i];
    const Locked locked(lane.lock);
    mark_chunk(lane, *chunk, now_ns());
    for (Chunk** link = &lane.threads; *link; link = &(*link)->next)
      if (*link == chunk) {
        *link = chunk->next;
        --lane.thread_count;
        break;
      }
    chunks[i] = nullptr;
    std::free(chunk);
  }
}
void make_exit_key() {
  ::pthread_key_create(&exit_key, &thread_exits);
}

// Under the lane's lock. Null without memory.
Chunk* own_chunk(Lane& lane, std::uint32_t index) {
  if (chunks[index]) return chunks[index];
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignof(Chunk), sizeof(Chunk)) != 0) return nullptr;
  auto* const chunk = new (memory) Chunk();
  chunk->lane = index;
  chunk->next = lane.threads;
  lane.threads = chunk;
  ++lane.thread_count;
  chunks[index] = chunk;
  ::pthread_once(&exit_once, &make_exit_key);
  ::pthread_setspecific(exit_key, chunk);
  return chunk;
}

// ---- marking, settling; all under the lane's lock ----

void void_chunk(Lane& lane, Chunk& chunk) {
  lane.given_ns -= std::min(lane.given_ns, chunk.given_ns);
  chunk.launches = chunk.copies = 0;
  chunk.left_ns = chunk.given_ns = 0;
  chunk.stream_count = 0;
  chunk.mixture.clear();
}

// Puts marks behind what the chunk was spent on and makes it void.
void mark_chunk(Lane& lane, Chunk& chunk, std::uint64_t now) {
  if (chunk.launches > 0) {
    const std::uint64_t spent = chunk.given_ns - std::min(chunk.left_ns, chunk.given_ns);
    const Undisturbing quiet;
    const Within within(chunk.context);
    // The last mark speaks for all of it; the others only for their streams' ends.
    for (int i = 0; i < chunk.stream_count; ++i) {
      const bool last = i + 1 == chunk.stream_count;
      lane.marks.record(chunk.streams[i], chunk.per_thread[i], last ? spent : 0,
                        last ? &chunk.mixture : nullptr, now);
    }
  }
  void_chunk(lane, chunk);
}

// Kernels; copies are counted one by one, with their bytes.
void count_launches(const Place& place, const Chunk& chunk) {
  if (chunk.launches > chunk.copies)
    __atomic_add_fetch(&place.usage().commands, chunk.launches - chunk.copies, __ATOMIC_RELAXED);
}

// Makes every chunk void; afterwards all that was launched is marked.
void gather(const Place& place, std::uint64_t now) {
  Lane& lane = place.mine();
  const bool alone = lane.thread_count == 1 && chunks[place.index] == lane.threads;
  if (!lane.threads) return;
  lane_words[place.index].epoch.fetch_add(1, std::memory_order_seq_cst);
  if (!alone) barrier_in_all_threads();
  for (Chunk* chunk = lane.threads; chunk; chunk = chunk->next) {
    while (chunk != chunks[place.index] && chunk->inside.load(std::memory_order_acquire) != 0)
      ::sched_yield();
    count_launches(place, *chunk);
    mark_chunk(lane, *chunk, now);
  }
}

void tell_progress(Lane& lane) {
  constexpr int wake = FUTEX_WAKE | FUTEX_PRIVATE_FLAG;
  __atomic_add_fetch(&lane.progress, 1u, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &lane.progress, wake, INT_MAX, nullptr, nullptr, 0);
}

// Nothing of this process is on the lane since `end`.
void become_idle(const Place& place, std::uint64_t end, std::uint64_t now) {
  Lane& lane = place.mine();
  count_busy(place, end);
  store(place.own().idle_since_ns, end);
  store(place.own().in_flight, 0u);
  lane.open = false;
  lane.marks.do_not_measure();
  if (turn_is_over(place.turn(), now)) place.page.ring();
}

// The device's own account of when what was launched since the opening was over, where there is
// one; the clock's otherwise.
std::uint64_t end_of_work(const Lane& lane, std::uint64_t now) {
  const std::uint64_t measured = lane.marks.measured_ns();
  return measured > 0 ? std::min(now, lane.opened_ns + measured) : now;
}

// True when nothing of this process is on the lane.
bool settle(const Place& place, std::uint64_t now) {
  Lane& lane = place.mine();
  if (!lane.open) return true;
  gather(place, now);
  const Undisturbing quiet;
  lane.marks.poll(place.index, now);
  if (lane.blocking > 0 || !lane.marks.empty()) return false;
  become_idle(place, end_of_work(lane, now), now);
  tell_progress(lane);
  return true;
}

std::uint64_t pending_ns(const Lane& lane) {
  return lane.marks.expected_ns() + lane.given_ns + lane.blocking_ns;
}

// ---- the slow path ----

// Lets others at the lane until something is over, or so long.
void nap(Lane& lane, std::uint64_t most_ns) {
  const std::uint32_t seen = load(lane.progress);
  ::pthread_mutex_unlock(&lane.lock);
  sleep_on(lane.progress, seen, std::clamp(most_ns, nap_min_ns, nap_max_ns), FUTEX_PRIVATE_FLAG);
  ::pthread_mutex_lock(&lane.lock);
}

// The lease does not have the turn. What this process has on the lane is seen to its end, and a
// turn is asked for.
class TurnWait {
 public:
  explicit TurnWait(const Place& place) : place_(place) {}
  ~TurnWait() { stop(now_ns()); }

  void once(std::uint32_t state, std::uint64_t now) {
    Lane& lane = place_.mine();
    if (!settle(place_, now)) {
      nap(lane, pending_ns(lane));
      return;
    }
    if (began_ns_ == 0) began_ns_ = now;
    if (!wanting_) __atomic_add_fetch(&place_.own().wanting, 1u, __ATOMIC_SEQ_CST);
    wanting_ = true;
    ::pthread_mutex_unlock(&lane.lock);
    place_.page.ring();
    sleep_on(place_.turn().state, state, ask_again_ns, 0);
    ::pthread_mutex_lock(&lane.lock);
    if (!said_ && now - began_ns_ > say_after_ns) {
      say(no_turn_line);
      said_ = true;
    }
  }
  void stop(std::uint64_t now) {
    if (wanting_) __atomic_sub_fetch(&place_.own().wanting, 1u, __ATOMIC_SEQ_CST);
    if (began_ns_ != 0)
      __atomic_add_fetch(&place_.usage().waiting_ns, now - began_ns_, __ATOMIC_SEQ_CST);
    wanting_ = false;
    began_ns_ = 0;
  }

 private:
  const Place& place_;
  bool wanting_ = false, said_ = false;
  std::uint64_t began_ns_ = 0;
};

// Counting first and looking at the turn afterwards is what keeps the keeper and the process from
// missing each other: the keeper takes the turn first and looks at the count afterwards.
bool open(const Place& place, std::uint32_t state, std::uint64_t now) {
  store(place.own().busy_since_ns, now);
  store(place.own().in_flight, 1u);
  if (load(place.turn().state) != state) {
    store(place.own().in_flight, 0u);
    place.page.ring();
    return false;
  }
  Lane& lane = place.mine();
  lane.open = true;
  lane.opened_ns = now;
  ++lane.openings;
  wake_clerk();
  return true;
}

// Whether this opening is worth two events and a question: the first of a turn, whose length is
// charged; work that nothing is known of; and now and then.
bool is_measured(Lane& lane, std::uint32_t state, bool is_new) {
  const bool first_of_turn = lane.measured_state != state;
  lane.measured_state = state;
  return is_new || first_of_turn || lane.openings % measure_every == 0;
}

void give_chunk(Lane& lane, Chunk& chunk, const Command& work, std::uint32_t state,
                std::uint64_t estimate, std::uint64_t room, bool is_new) {
  // Work that was never seen goes alone.
  const std::uint64_t most = is_new ? estimate : std::max(estimate, std::min(room, chunk_max_ns));
  chunk.epoch = lane_words[chunk.lane].epoch.load(std::memory_order_relaxed);
  chunk.state = state;
  chunk.given_ns = most;
  chunk.left_ns = is_new ? 0 : most - estimate;
  chunk.launches = 1;
  chunk.copies = work.what != Work::kernel;
  chunk.streams[0] = work.stream;
  chunk.per_thread[0] = work.per_thread;
  chunk.stream_count = 1;
  chunk.context = remembered.here.context;
  chunk.mixture.clear();
  chunk.mixture.add(work.kind);
  lane.given_ns += most;
}

// A further stream or kind within a chunk that has room for it.
bool widen_chunk(const Place& place, Chunk& chunk, const Command& work, std::uint64_t estimate) {
  if (chunk.launches == 0 || estimate == 0 || estimate > chunk.left_ns ||
      chunk.epoch != lane_words[place.index].epoch.load(std::memory_order_relaxed) ||
      chunk.state != load(place.turn().state))
    return false;
  const bool known = chunk.knows(work.stream, work.per_thread);
  if (!known && chunk.stream_count == Chunk::streams_max) return false;
  if (!chunk.mixture.add(work.kind)) return false;
  if (!known) {
    chunk.streams[chunk.stream_count] = work.stream;
    chunk.per_thread[chunk.stream_count++] = work.per_thread;
  }
  chunk.left_ns -= estimate;
  ++chunk.launches;
  chunk.copies += work.what != Work::kernel;
  return true;
}

void end_chunk(const Place& place, Chunk& chunk, std::uint64_t now) {
  count_launches(place, chunk);
  mark_chunk(place.mine(), chunk, now);
}

void say_no_room() {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    say("memory that went to the host finds no room on the device; still waiting");
}

}  // namespace

Chunk* admit(Page& page, const Command& work) {
  const Place place(page, work.entry, work.lane);
  Lane& lane = place.mine();
  const Locked locked(lane.lock);
  Chunk* const chunk = own_chunk(lane, place.index);
  static Chunk spare;  // no memory: its launches go unmarked
  if (!chunk) return &spare;
  if (!work.blocking && widen_chunk(place, *chunk, work, estimate_of(place.index, work.kind))) {
    chunk->inside.store(1, std::memory_order_relaxed);
    return chunk;
  }
  end_chunk(place, *chunk, now_ns());
  TurnWait waiting(place);
  for (;;) {
    const std::uint32_t state = load(place.turn().state);
    const std::uint64_t now = now_ns();
    const std::uint64_t deadline = load(place.turn().deadline_ns);
    if ((state & LOAM_TURN_MASK) != LOAM_TURN_GRANTED || now >= deadline) {
      waiting.once(state, now);
      continue;
    }
    {
      const Undisturbing quiet;
      lane.marks.poll(place.index, now);
    }
    const std::uint64_t known = first_estimate(place.index, work.kind, work.guess_ns);
    const std::uint64_t estimate = known ? known : place.quantum_ns();
    const std::uint64_t turn_left = std::min(place.quantum_ns(), deadline - now);
    const std::uint64_t pending = pending_ns(lane);
    const bool nothing_pending = pending == 0 && lane.marks.empty() && lane.blocking == 0;
    // What begins within the turn may begin; but room for one short kernel is not worth a mark of
    // its own: wait until there is some.
    const std::uint64_t worth = std::min(turn_left / 4, chunk_max_ns / 2);
    const std::uint64_t wanted = estimate >= worth ? 0 : worth;
    if (!nothing_pending && (known == 0 || pending + wanted > turn_left)) {
      nap(lane, known == 0 ? pending : pending + wanted - turn_left);
      continue;
    }
    if (!lane.open) {
      if (!open(place, state, now)) continue;
      if (is_away(work.entry)) [[unlikely]] {
        // As part of the turn: what comes back keeps the device from nobody else's work.
        if (bring_back(page, work.entry)) {
          lane.opened_ns = now_ns();
        } else {
          say_no_room();
          become_idle(place, now_ns(), now_ns());
        }
        continue;
      }
      if (is_measured(lane, state, known == 0) && !work.blocking) {
        const Undisturbing quiet;
        lane.marks.begin(work.stream, work.per_thread);
      }
    }
    waiting.stop(now);
    if (work.blocking) {
      ++lane.blocking;
      lane.blocking_ns += estimate;
      return nullptr;
    }
    const std::uint64_t room = turn_left > pending ? turn_left - pending : 0;
    give_chunk(lane, *chunk, work, state, estimate, room, known == 0);
    chunk->inside.store(1, std::memory_order_relaxed);
    return chunk;
  }
}

void blocking_call_over(Page& page, const Command& work, bool ran, std::uint64_t began_ns) {
  const Place place(page, work.entry, work.lane);
  Lane& lane = place.mine();
  const std::uint64_t now = now_ns();
  if (ran) {
    learn_one(place.index, work.kind, now - began_ns);
    count_work(page, work.entry, work.what, work.bytes);
  }
  const Locked locked(lane.lock);
  --lane.blocking;
  lane.blocking_ns = lane.blocking == 0 ? 0 : lane.blocking_ns / 2;
  if (lane.open && lane.blocking == 0 && lane.marks.empty() && lane.given_ns == 0)
    become_idle(place, now, now);
  tell_progress(lane);
}

// ---- waiting and ending ----

namespace {

// Each lane on which this process has ever launched, under its lock.
template <class Do>
void in_each_lane_begun(Do what) {
  Page* const page = Page::of_process();
  if (!page) return;
  for (std::uint32_t index = 0; index < page->device_count() * LOAM_LANES; ++index) {
    const Place place(*page, index / LOAM_LANES, index % LOAM_LANES);
    if (!place.mine().threads) continue;
    const Locked locked(place.mine().lock);
    what(place);
  }
}

// What this thread launched is over if it all went where `is_over` says; cheap where it is the only
// one that launches, and left to the clerk otherwise.
template <class IsOver>
void settle_after_wait(IsOver is_over) {
  Page* const page = Page::of_process();
  const int entry = page ? entry_here(*page) : not_on_page;
  if (entry == not_on_page) return;
  for (std::uint32_t i = 0; i < LOAM_LANES; ++i) {
    const Place place(*page, static_cast<std::uint32_t>(entry), i);
    Lane& lane = place.mine();
    if (!chunks[place.index]) continue;
    const Locked locked(lane.lock);
    Chunk* const chunk = chunks[place.index];
    if (!lane.open || lane.thread_count != 1 || lane.threads != chunk || lane.blocking > 0)
      continue;
    if (!is_over(lane, *chunk)) continue;
    const std::uint64_t now = now_ns();
    std::uint64_t end = now;
    if (lane.marks.measuring()) {
      end_chunk(place, *chunk, now);
      const Undisturbing quiet;
      lane.marks.poll(place.index, now);
      if (lane.marks.empty()) end = end_of_work(lane, now);
    } else {
      count_launches(place, *chunk);
      void_chunk(lane, *chunk);
    }
    lane.marks.all_over();
    become_idle(place, end, now);
  }
}

}  // namespace

void waited_for(CUstream stream, bool per_thread) {
  settle_after_wait([&](const Lane& lane, const Chunk& chunk) {
    for (int i = 0; i < chunk.stream_count; ++i)
      if (chunk.streams[i] != stream || chunk.per_thread[i] != per_thread) return false;
    return lane.marks.all_on(stream, per_thread);
  });
  settle_all_pools();
}

void waited_for_context() {
  settle_after_wait([](const Lane&, const Chunk&) { return true; });
  settle_all_pools();
}

void leave_stream(CUstream) {
  in_each_lane_begun([](const Place& place) {
    if (place.mine().open) gather(place, now_ns());
  });
}

void leave_context(CUcontext context) {
  in_each_lane_begun([&](const Place& place) {
    if (place.mine().open) gather(place, now_ns());
    place.mine().marks.drop_context(context);
  });
}

Quiet when_quiet(Page& page, std::uint32_t entry, void (*then)(std::uint32_t entry)) {
  const Place places[LOAM_LANES] = {
      {page, entry, LOAM_LANE_COMPUTE},
      {page, entry, LOAM_LANE_TO_DEVICE},
      {page, entry, LOAM_LANE_FROM_DEVICE},
  };
  for (const Place& place : places) ::pthread_mutex_lock(&place.mine().lock);
  Quiet quiet = Quiet::yes;
  const std::uint64_t now = now_ns();
  for (const Place& place : places) {
    if (!turn_is_over(place.turn(), now))
      quiet = Quiet::no;
    else if (quiet == Quiet::yes && !settle(place, now))
      quiet = Quiet::not_yet;
  }
  if (quiet == Quiet::yes) then(entry);
  for (const Place& place : places) ::pthread_mutex_unlock(&place.mine().lock);
  return quiet;
}

// ---- the clerk's part ----

namespace {

std::uint64_t launches_of(const Lane& lane) {
  std::uint64_t sum = 0;
  for (const Chunk* chunk = lane.threads; chunk; chunk = chunk->next)
    sum += chunk->launches * 31u + chunk->left_ns;
  return sum;
}

std::uint64_t look_after(const Place& place, std::uint64_t now) {
  Lane& lane = place.mine();
  const bool over = turn_is_over(place.turn(), now);
  {
    const Undisturbing quiet;
    lane.marks.poll(place.index, now);
  }
  const std::uint64_t launches = launches_of(lane);
  const bool quiet = launches == lane.launches_seen;
  lane.launches_seen = launches;
  if ((over || quiet) && lane.marks.empty() && settle(place, now)) return 0;
  if (over && settle(place, now)) return 0;
  if (!lane.marks.empty() || lane.blocking > 0) count_busy(place, now);
  tell_progress(lane);
  const std::uint64_t deadline = load(place.turn().deadline_ns);
  std::uint64_t next = lane.marks.empty() ? nap_max_ns : std::max(pending_ns(lane), nap_min_ns);
  if (over) next = std::min<std::uint64_t>(next, nap_min_ns * 2);
  if (deadline > now) next = std::min(next, deadline - now);
  return std::clamp(next, nap_min_ns, nap_max_ns);
}

}  // namespace

std::uint64_t look_after_lanes() {
  std::uint64_t soonest = 0;
  in_each_lane_begun([&](const Place& place) {
    if (!place.mine().open) return;
    const std::uint64_t next = look_after(place, now_ns());
    if (next > 0 && (soonest == 0 || next < soonest)) soonest = next;
  });
  return soonest;
}

}  // namespace loam::guard::cuda

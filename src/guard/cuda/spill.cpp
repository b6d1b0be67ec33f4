#include "guard/cuda/spill.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "guard/cuda/charge.hpp"
#include "guard/cuda/clerk.hpp"
#include "guard/cuda/gate.hpp"
#include "guard/lock.hpp"
#include "guard/page_lane.hpp"

namespace loam::guard::cuda {

namespace {

// Less is not worth a step of the driver's (2 MiB): it stays where it is.
constexpr std::uint64_t spill_min_bytes = 1u << 20;
constexpr std::uint64_t usual_step_bytes = 2u << 20;
// Copied at a time: long enough for the link's full speed, short beside a turn.
constexpr std::uint64_t piece_bytes = 8u << 20;
constexpr std::uint64_t ask_room_again_ns = 20'000'000;
constexpr std::uint64_t look_again_ns = 200'000;

struct Block {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  void* host = nullptr;  // what was in it, while it is not resident
  bool resident = false;
  CUcontext context = nullptr;
  CUdevice device = -1;
  std::uint32_t entry = 0;
  Block* next = nullptr;
};

// Guards the blocks and what they are at; held while memory goes and comes.
pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
Block* blocks = nullptr;
std::atomic<bool> begun{false};
std::atomic<bool> away[LOAM_SLICE_DEVICES_MAX];

void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  std::memcpy(&blocks_lock, &fresh, sizeof fresh);
  blocks = nullptr;  // the parent's; left in memory
  begun = false;
  for (std::atomic<bool>& one : away) one = false;
}
[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

bool driver_can(const Driver& real) {
  return real.cuMemAddressReserve && real.cuMemAddressFree && real.cuMemCreate &&
         real.cuMemRelease && real.cuMemMap && real.cuMemUnmap && real.cuMemSetAccess &&
         real.cuStreamCreate && real.cuStreamDestroy_v2 && real.cuStreamSynchronize &&
         real.cuMemcpyDtoHAsync_v2 && real.cuMemcpyHtoDAsync_v2;
}

MemAllocationProp memory_of(CUdevice device) {
  constexpr int pinned = 1;
  MemAllocationProp prop{};
  prop.type = pinned;
  prop.location = {location_device, device};
  return prop;
}

std::uint64_t step_of(CUdevice device) {
  constexpr int minimum = 0;
  const MemAllocationProp prop = memory_of(device);
  std::size_t step = 0;
  const Driver* const real = driver();
  if (real->cuMemGetAllocationGranularity &&
      real->cuMemGetAllocationGranularity(&step, &prop, minimum) == cuda_success && step > 0)
    return step;
  return usual_step_bytes;
}

// ---- one block's memory ----

// The keeper asks others to leave; `shows_waiting`: the lease has no turn, and must seem to want
// one, so that who has it does not keep it.
class RoomWait {
 public:
  RoomWait(Page& page, std::uint32_t entry, bool shows_waiting)
      : page_(page), entry_(entry), shows_waiting_(shows_waiting), began_ns_(now_ns()) {}
  ~RoomWait() {
    if (waiting_) __atomic_sub_fetch(&wanting(), 1u, __ATOMIC_SEQ_CST);
  }
  std::uint32_t answers() const { return load(book().answers); }
  // False when there was none for too long.
  bool once(std::uint32_t answers, std::uint64_t bytes) {
    if (now_ns() - began_ns_ >= room_wait_ns) return false;
    if (shows_waiting_ && !waiting_) {
      __atomic_add_fetch(&wanting(), 1u, __ATOMIC_SEQ_CST);
      waiting_ = true;
    }
    loam_raise(&book().short_bytes, bytes);
    page_.ring();
    sleep_on(book().answers, answers, ask_room_again_ns, 0);
    return true;
  }

 private:
  loam_memory_book& book() const { return page_.counters().device[entry_].memory; }
  std::uint32_t& wanting() const { return page_.own(entry_).lane[LOAM_LANE_COMPUTE].wanting; }

  Page& page_;
  std::uint32_t entry_;
  bool shows_waiting_, waiting_ = false;
  std::uint64_t began_ns_;
};

// Device memory behind the block's addresses.
CUresult settle_in(Page& page, Block& block, bool shows_waiting) {
  const Driver* const real = driver();
  const MemAllocationProp prop = memory_of(block.device);
  RoomWait room(page, block.entry, shows_waiting);
  for (;;) {
    const std::uint32_t answers = room.answers();
    const CUresult fault = real->cuMemCreate(&block.handle, block.bytes, &prop, 0);
    if (fault == cuda_success) break;
    if (fault != cuda_out_of_memory || !room.once(answers, block.bytes)) return fault;
  }
  CUresult fault = real->cuMemMap(block.address, block.bytes, 0, block.handle, 0);
  if (fault == cuda_success) {
    const MemAccessDesc access{prop.location, access_read_write};
    fault = real->cuMemSetAccess(block.address, block.bytes, &access, 1);
    if (fault != cuda_success) real->cuMemUnmap(block.address, block.bytes);
  }
  if (fault != cuda_success)
    real->cuMemRelease(block.handle);
  else
    block.resident = true;
  return fault;
}

void move_out(Block& block) {
  const Driver* const real = driver();
  real->cuMemUnmap(block.address, block.bytes);
  real->cuMemRelease(block.handle);
  block.resident = false;
}

void end_block(Block* block) {
  if (block->resident) move_out(*block);
  if (block->host) ::munmap(block->host, block->bytes);
  driver()->cuMemAddressFree(block->address, block->bytes);
  std::free(block);
}

// A stream of the guard's own, which waits for none of the program's and is waited for by none.
class CopyStream {
 public:
  explicit CopyStream(CUcontext context) : within_(context) {
    constexpr unsigned non_blocking = 1;
    if (driver()->cuStreamCreate(&stream_, non_blocking) != cuda_success) stream_ = nullptr;
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  ~CopyStream() {
    if (stream_) driver()->cuStreamDestroy_v2(stream_);
  }
  // Returns when all of it is there.
  bool copy(const Block& block, bool out) {
    if (!stream_) return false;
    const Driver* const real = driver();
    for (std::uint64_t at = 0; at < block.bytes; at += piece_bytes) {
      const std::uint64_t bytes = std::min(piece_bytes, block.bytes - at);
      char* const host = static_cast<char*>(block.host) + at;
      const CUresult fault =
          out ? real->cuMemcpyDtoHAsync_v2(host, block.address + at, bytes, stream_)
              : real->cuMemcpyHtoDAsync_v2(block.address + at, host, bytes, stream_);
      if (fault != cuda_success) return false;
    }
    return real->cuStreamSynchronize(stream_) == cuda_success;
  }

 private:
  Undisturbing quiet_;
  Within within_;
  CUstream stream_ = nullptr;
};

// To the host. The block stays as it is where that fails.
bool spill(Block& block) {
  void* const host = ::mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED) return false;
  ::madvise(host, block.bytes, MADV_HUGEPAGE);
  block.host = host;
  if (CopyStream(block.context).copy(block, true)) {
    move_out(block);
    return true;
  }
  ::munmap(host, block.bytes);
  block.host = nullptr;
  return false;
}

// Back to the device. What was saved stays where that fails.
bool unspill(Page& page, Block& block) {
  if (settle_in(page, block, false) != cuda_success) return false;
  if (!CopyStream(block.context).copy(block, false)) {
    move_out(block);
    return false;
  }
  ::munmap(block.host, block.bytes);
  block.host = nullptr;
  return true;
}

// Under the blocks' lock: says on the page what is in the host's memory.
void tell_spilled(Page& page, std::uint32_t entry) {
  std::uint64_t bytes = 0;
  for (const Block* block = blocks; block; block = block->next)
    if (block->entry == entry && !block->resident) bytes += block->bytes;
  store(page.own(entry).spilled_bytes, bytes);
}

bool any_resident(std::uint32_t entry) {
  const Locked locked(blocks_lock);
  for (const Block* block = blocks; block; block = block->next)
    if (block->entry == entry && block->resident) return true;
  return false;
}

// Under the blocks' lock. Null where the address is in none.
const Block* block_at(CUdeviceptr address) {
  for (const Block* block = blocks; block; block = block->next)
    if (address >= block->address && address - block->address < block->bytes) return block;
  return nullptr;
}

void unlink_block(Block* block) {
  for (Block** link = &blocks; *link; link = &(*link)->next)
    if (*link == block) {
      *link = block->next;
      return;
    }
}

bool spills(const Page& page, std::uint32_t entry) {
  return loam_limits_have(&page.limits().device[entry], LOAM_LIMIT_SPILLS);
}

}  // namespace

bool any_spillable() {
  return begun.load(std::memory_order_relaxed);
}

bool is_to_spill(const Page& page, std::uint32_t entry, std::uint64_t bytes) {
  return spills(page, entry) && bytes >= spill_min_bytes && driver_can(*driver());
}

CUresult allocate_spillable(Page& page, CUdeviceptr* address, std::uint64_t bytes) {
  const Driver* const real = driver();
  Here here;
  if (const CUresult fault = find_here(page, &here); fault != cuda_success) return fault;
  const auto entry = static_cast<std::uint32_t>(here.entry);
  const std::uint64_t step = step_of(here.device);
  if (bytes > UINT64_MAX - step) return cuda_out_of_memory;
  Record record;
  record.bytes = (bytes + step - 1) / step * step;
  record.entry = static_cast<std::uint8_t>(entry);
  record.memory_kind = LOAM_MEMORY_BUFFER;
  if (!reserve(page, entry, record.bytes, LOAM_MEMORY_BUFFER)) return cuda_out_of_memory;
  auto* const memory = std::malloc(sizeof(Block));
  Block* const block = memory ? new (memory) Block() : nullptr;
  CUresult fault = block ? cuda_success : cuda_out_of_memory;
  if (fault == cuda_success) {
    block->bytes = record.bytes;
    block->context = here.context;
    block->device = here.device;
    block->entry = entry;
    fault = real->cuMemAddressReserve(&block->address, block->bytes, 0, 0, 0);
  }
  if (fault == cuda_success) {
    const Undisturbing quiet;
    fault = settle_in(page, *block, true);
    const bool clears = loam_limits_have(&page.limits().device[entry], LOAM_LIMIT_CLEAR);
    if (fault == cuda_success && clears)
      fault = real->cuMemsetD8_v2 ? real->cuMemsetD8_v2(block->address, 0, block->bytes)
                                  : cuda_not_supported;
    record.other = reinterpret_cast<std::uint64_t>(block);
    if (fault == cuda_success && !remember(Held::spillable, block->address, record))
      fault = cuda_out_of_memory;
    if (fault != cuda_success) end_block(block);
  } else {
    std::free(block);
  }
  if (fault != cuda_success) {
    give_back(page, record);
    return fault;
  }
  *address = block->address;
  {
    const Locked locked(blocks_lock);
    block->next = blocks;
    blocks = block;
  }
  begun.store(true, std::memory_order_relaxed);
  wake_clerk();
  return cuda_success;
}

bool free_spillable(CUdeviceptr address, CUresult* fault) {
  Record record;
  if (!any_spillable() || !forget(Held::spillable, address, &record)) return false;
  Page* const page = Page::of_process();
  {
    const Locked locked(blocks_lock);
    auto* const block = reinterpret_cast<Block*>(record.other);
    unlink_block(block);
    end_block(block);
    if (page) tell_spilled(*page, record.entry);
  }
  if (page) give_back(*page, record);
  *fault = cuda_success;
  return true;
}

void end_spillable_of(CUcontext context) {
  if (!any_spillable()) return;
  for (;;) {
    CUdeviceptr address = 0;
    {
      const Locked locked(blocks_lock);
      for (const Block* block = blocks; block && address == 0; block = block->next)
        if (block->context == context) address = block->address;
    }
    CUresult fault = cuda_success;
    if (address == 0 || !free_spillable(address, &fault)) return;
  }
}

bool is_away(std::uint32_t entry) {
  return away[entry].load(std::memory_order_acquire);
}

bool bring_back(Page& page, std::uint32_t entry) {
  const Locked locked(blocks_lock);
  bool all = true;
  for (Block* block = blocks; block && all; block = block->next)
    if (block->entry == entry && !block->resident) all = unspill(page, *block);
  tell_spilled(page, entry);
  if (all) away[entry].store(false, std::memory_order_release);
  return all;
}

CUresult call_with_memory_through(CUdeviceptr address, DriverCall call, void* closure) {
  Page* const page = Page::of_process();
  Command question;
  {
    const Locked locked(blocks_lock);
    const Block* const block = block_at(address);
    // Under the lock nothing leaves.
    if (!page || !block || block->resident) return call(closure);
    question.entry = block->entry;
  }
  question.kind.exact = question.kind.like = kind_of(0xa5ull << 56);
  question.blocking = true;
  question.guess_ns = 1000;
  question.what = Work::none;
  return submit(*page, question, [&] { return call(closure); });
}

std::uint64_t look_after_memory() {
  Page* const page = any_spillable() ? Page::of_process() : nullptr;
  if (!page) return 0;
  std::uint64_t again = 0;
  for (std::uint32_t entry = 0; entry < page->device_count(); ++entry) {
    if (!spills(*page, entry)) continue;
    const std::uint32_t asked = load(page->counters().device[entry].leave);
    if (asked == load(page->own(entry).left)) continue;
    Quiet quiet = Quiet::yes;
    if (any_resident(entry))
      quiet = when_quiet(*page, entry,
                         [](std::uint32_t e) { away[e].store(true, std::memory_order_release); });
    if (quiet == Quiet::not_yet) {
      again = look_again_ns;
      continue;
    }
    // Who has got the turn meanwhile keeps its memory; the keeper asks again if need be.
    if (quiet == Quiet::yes) {
      const Locked locked(blocks_lock);
      for (Block* block = blocks; block; block = block->next)
        if (block->entry == entry && block->resident) spill(*block);
      tell_spilled(*page, entry);
    }
    store(page->own(entry).left, asked);
    page->ring();
  }
  return again;
}

int leave_words(futex_waitv* words, int most) {
  Page* const page = any_spillable() ? Page::of_process() : nullptr;
  if (!page) return 0;
  int count = 0;
  for (std::uint32_t entry = 0; entry < page->device_count() && count < most; ++entry) {
    if (!spills(*page, entry)) continue;
    words[count].val = load(page->own(entry).left);
    words[count].uaddr = reinterpret_cast<std::uintptr_t>(&page->counters().device[entry].leave);
    words[count++].flags = FUTEX_32;
  }
  return count;
}

}  // namespace loam::guard::cuda

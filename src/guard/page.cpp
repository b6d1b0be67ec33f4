#include "guard/page.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace loam::guard {

namespace {

enum class State : int { unopened, open, refused };

constinit Page process_page;
constinit std::atomic<State> state{State::unopened};
pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
constexpr int forgetters_max = 16;
void (*forgetters[forgetters_max])() = {};
int forgetter_count = 0;
bool fork_handlers_set = false;

bool lock_slot(int fd, std::uint32_t slot, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

struct File {
  int fd;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

bool is_whole(int fd, std::size_t bytes) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_size >= static_cast<off_t>(bytes);
}

// Field 22 of /proc/self/stat (proc(5)); 0 where it cannot be read.
std::uint64_t own_start_ticks() {
  const File file{::open("/proc/self/stat", O_RDONLY | O_CLOEXEC)};
  char text[1024] = {};
  if (file.fd < 0 || ::read(file.fd, text, sizeof text - 1) <= 0) return 0;
  // The program's name may hold blanks and parentheses: the last one ends it.
  const char* at = std::strrchr(text, ')');
  constexpr int fields_after_name = 20;
  for (int i = 0; at && i < fields_after_name; ++i) at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at + 1, nullptr, 10) : 0;
}

// Fork waits while a slot is being claimed: its lock must not travel into the child.
void before_fork() {
  ::pthread_mutex_lock(&opening);
}
void after_fork_in_parent() {
  ::pthread_mutex_unlock(&opening);
}
void after_fork_in_child() {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  std::memcpy(&opening, &fresh, sizeof fresh);
  for (int i = 0; i < forgetter_count; ++i) forgetters[i]();
  // The parent's slot is the parent's; the mappings stay (they are only memory).
  if (state.load() == State::open) state.store(State::unopened);
}

}  // namespace

void say(const char* line) {
  char text[640];
  const int length = std::snprintf(text, sizeof text, "loam-guard: %s\n", line);
  if (length > 0) (void)!::write(2, text, std::strlen(text));
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void at_fork_in_child(void (*forget)()) {
  for (int i = 0; i < forgetter_count; ++i)
    if (forgetters[i] == forget) return;
  if (forgetter_count < forgetters_max) forgetters[forgetter_count++] = forget;
}

Page* Page::of_process() {
  State now = state.load(std::memory_order_acquire);
  if (now == State::open) [[likely]]
    return &process_page;
  if (now == State::refused) return nullptr;
  ::pthread_mutex_lock(&opening);
  now = state.load(std::memory_order_acquire);
  if (now == State::unopened) {
    if (!fork_handlers_set) {
      ::pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
      fork_handlers_set = true;
    }
    new (&process_page) Page();
    const char* const fault = process_page.open_files();
    if (fault) {
      char line[600];
      std::snprintf(line, sizeof line, "%s (%s%s); OpenCL devices are refused to this process",
                    fault, process_page.prefix_[0] ? process_page.prefix_ : LOAM_SLICE_PATH, ".*");
      say(line);
    }
    now = fault ? State::refused : State::open;
    state.store(now, std::memory_order_release);
  }
  ::pthread_mutex_unlock(&opening);
  return now == State::open ? &process_page : nullptr;
}

// Returns what is wrong, or null.
const char* Page::open_files() {
  // The well-known path first: what the sandbox binds there cannot be changed by the environment.
  if (::access(LOAM_SLICE_PATH LOAM_SLICE_LIMITS_SUFFIX, F_OK) == 0)
    return open_at(LOAM_SLICE_PATH);
  const char* const prefix = std::getenv(LOAM_SLICE_VARIABLE);
  if (!prefix || !*prefix) return "no slice page";
  return open_at(prefix);
}

const char* Page::open_at(const char* prefix) {
  if (std::strlen(prefix) >= sizeof prefix_ - 16) return "the slice page's path is too long";
  std::strcpy(prefix_, prefix);
  char path[sizeof prefix_ + 16];

  std::snprintf(path, sizeof path, "%s" LOAM_SLICE_LIMITS_SUFFIX, prefix_);
  const File limits_file{::open(path, O_RDONLY | O_CLOEXEC)};
  if (limits_file.fd < 0) return "the slice page's limits cannot be opened";
  if (!is_whole(limits_file.fd, sizeof(loam_slice_limits))) return "the slice page is cut short";
  void* const limits =
      ::mmap(nullptr, sizeof(loam_slice_limits), PROT_READ, MAP_SHARED, limits_file.fd, 0);
  if (limits == MAP_FAILED) return "the slice page's limits cannot be mapped";
  limits_ = static_cast<const loam_slice_limits*>(limits);

  std::snprintf(path, sizeof path, "%s" LOAM_SLICE_COUNTERS_SUFFIX, prefix_);
  const File counters_file{::open(path, O_RDWR | O_CLOEXEC)};
  if (counters_file.fd < 0) return "the slice page's counters cannot be opened";
  if (!is_whole(counters_file.fd, sizeof(loam_slice_counters)))
    return "the slice page is cut short";
  void* const counters = ::mmap(nullptr, sizeof(loam_slice_counters), PROT_READ | PROT_WRITE,
                                MAP_SHARED, counters_file.fd, 0);
  if (counters == MAP_FAILED) return "the slice page's counters cannot be mapped";
  counters_ = static_cast<loam_slice_counters*>(counters);

  if (limits_->magic != LOAM_SLICE_LIMITS_MAGIC || counters_->magic != LOAM_SLICE_COUNTERS_MAGIC)
    return "this is not a slice page";
  if (limits_->version != LOAM_SLICE_VERSION || counters_->version != LOAM_SLICE_VERSION)
    return "the slice page is of another version than this guard";
  device_count_ = limits_->device_count;
  if (device_count_ == 0 || device_count_ > LOAM_SLICE_DEVICES_MAX ||
      counters_->device_count != device_count_ || counters_->slot_count != LOAM_SLICE_SLOTS_MAX ||
      std::memcmp(limits_->lease, counters_->lease, LOAM_SLICE_LEASE_CHARS) != 0)
    return "the slice page's two files do not belong together";
  return claim_slot(counters_file.fd);
}

const char* Page::claim_slot(int fd) {
  for (std::uint32_t slot = 0; slot < LOAM_SLICE_SLOTS_MAX; ++slot) {
    if (!lock_slot(fd, slot, F_WRLCK)) {
      if (errno == EAGAIN || errno == EACCES) continue;
      return "slots of the slice page cannot be locked";
    }
    // The lock belongs to the open file, and a mapping keeps that open: so it lasts exactly as long
    // as this process's memory, even if the program closes every descriptor it does not know.
    // A forked child does not get this mapping.
    void* const hold = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (hold == MAP_FAILED) return "the slice page's lock cannot be kept";
    if (::madvise(hold, 4096, MADV_DONTFORK) != 0) return "the slice page's lock cannot be kept";
    loam_slot_reclaim(counters_, slot);
    slot_ = slot;
    std::uint32_t used = __atomic_load_n(&counters_->slots_used, __ATOMIC_SEQ_CST);
    while (used < slot + 1 &&
           !__atomic_compare_exchange_n(&counters_->slots_used, &used, slot + 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    __atomic_add_fetch(&counters_->slot[slot].claims, 1u, __ATOMIC_SEQ_CST);
    __atomic_store_n(&counters_->slot[slot].started_ticks, own_start_ticks(), __ATOMIC_SEQ_CST);
    __atomic_store_n(&counters_->slot[slot].pid, static_cast<std::uint64_t>(::getpid()),
                     __ATOMIC_SEQ_CST);
    return nullptr;
  }
  return "more processes of the task use devices than a slice page has slots";
}

void Page::reclaim_dead() const {
  char path[sizeof prefix_ + 16];
  std::snprintf(path, sizeof path, "%s" LOAM_SLICE_COUNTERS_SUFFIX, prefix_);
  const File file{::open(path, O_RDWR | O_CLOEXEC)};
  if (file.fd < 0) return;  // nothing is given back; the keeper or the daemon will do it
  std::uint32_t used = __atomic_load_n(&counters_->slots_used, __ATOMIC_SEQ_CST);
  if (used > LOAM_SLICE_SLOTS_MAX) used = LOAM_SLICE_SLOTS_MAX;
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    if (slot == slot_ || !lock_slot(file.fd, slot, F_WRLCK)) continue;
    loam_slot_reclaim(counters_, slot);
    lock_slot(file.fd, slot, F_UNLCK);
  }
}

void Page::ring() const {
  __atomic_add_fetch(&counters_->doorbell, 1u, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &counters_->doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace loam::guard

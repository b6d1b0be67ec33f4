// The fake CUDA driver's books: which memory of which device is whose, in the shared file and in
// this process. A process that was killed gives its memory back when somebody next asks, as the
// kernel's part of a real driver does at once.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "fakes/fake_cuda_inside.hpp"

namespace loam::fakes {

std::uint64_t calls = 0;

namespace {

// Start time in ticks since boot, field 22 of /proc/PID/stat; 0 where there is no such process.
std::uint64_t started(std::int32_t pid) {
  char path[64], text[1024] = {};
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const auto size = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (size <= 0) return 0;
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at, nullptr, 10) : 0;
}

FakeCudaBooks* map_books() {
  const char* const path = std::getenv("LOAM_FAKE_CUDA");
  const int fd = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  void* const address =
      fd >= 0 ? ::mmap(nullptr, sizeof(FakeCudaBooks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
              : ::mmap(nullptr, sizeof(FakeCudaBooks), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fd >= 0) ::close(fd);
  if (address == MAP_FAILED) std::abort();
  auto* const found = static_cast<FakeCudaBooks*>(address);
  if (found->ready == 0) {
    describe(found->devices[0], 0, "Fake H100", 132, 2048, 80ull << 30);
    found->device_count = 1;
    found->version = 13000;
    found->ready = 1;
  }
  return found;
}

FakeCudaProcess* own_process = nullptr;
std::int32_t own_pid = 0;

void forget_dead() {
  for (FakeCudaProcess& process : books().processes) {
    std::int32_t pid = process.pid.load();
    if (pid == 0 || pid == own_pid || started(pid) == process.started_ticks) continue;
    if (!process.pid.compare_exchange_strong(pid, -1)) continue;
    for (int device = 0; device < cuda_devices_max; ++device)
      books().devices[device].used_bytes -= process.used_bytes[device].exchange(0);
    process.pid = 0;
  }
}

FakeCudaProcess& own() {
  if (own_process) [[likely]]
    return *own_process;
  own_pid = ::getpid();
  // A forked child has books of its own.
  ::pthread_atfork(nullptr, nullptr, [] { own_process = nullptr; });
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (FakeCudaProcess& process : books().processes) {
      std::int32_t none = 0;
      if (!process.pid.compare_exchange_strong(none, own_pid)) continue;
      process.started_ticks = started(own_pid);
      own_process = &process;
      return process;
    }
    forget_dead();
  }
  std::abort();
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

FakeCudaBooks& books() {
  static FakeCudaBooks* const mapped = map_books();
  return *mapped;
}

bool known_device(CUdevice device) {
  return device >= 0 && static_cast<std::uint32_t>(device) < books().device_count;
}

bool charge(int device, std::uint64_t bytes) {
  FakeCudaDevice& card = books().devices[device];
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::uint64_t used = card.used_bytes.load();
    while (bytes <= card.total_bytes && used <= card.total_bytes - bytes)
      if (card.used_bytes.compare_exchange_weak(used, used + bytes)) {
        auto& mine = own().used_bytes[device];
        mine.store(mine.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
        return true;
      }
    forget_dead();
  }
  return false;
}

void credit(int device, std::uint64_t bytes) {
  books().devices[device].used_bytes -= bytes;
  auto& mine = own().used_bytes[device];
  mine.store(mine.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
}

// ---- addresses ----

namespace {

constexpr std::uint64_t space_bytes = 256ull << 30;  // of addresses, for each device
constexpr std::uint64_t granule = 512;
constexpr int classes = 64;

// One device's addresses. A block is a power of two; a freed one is handed out again as it is, with
// what was written into it.
struct Space {
  char* base = nullptr;
  std::uint64_t* bytes = nullptr;    // by granule: what was asked; a free block's next
  Owner* owner = nullptr;            // by granule
  CUcontext* context = nullptr;      // by granule
  std::uint64_t next = 0;            // granules handed out so far
  std::uint64_t free[classes] = {};  // granule + 1, by power of two
  std::atomic<bool> locked{false};
};
Space spaces[cuda_devices_max];

struct Hold {
  Space& space;
  explicit Hold(Space& s) : space(s) {
    while (space.locked.exchange(true, std::memory_order_acquire)) ::usleep(1);
  }
  ~Hold() { space.locked.store(false, std::memory_order_release); }
};

void* reserve(std::uint64_t bytes) {
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) std::abort();
  return address;
}

int class_of(std::uint64_t granules) {
  return granules <= 1 ? 0 : 64 - __builtin_clzll(granules - 1);
}

}  // namespace

CUdeviceptr place(int device, std::uint64_t bytes, Owner owner, CUcontext context) {
  Space& space = spaces[device];
  const Hold hold(space);
  if (!space.base) [[unlikely]] {
    space.base = static_cast<char*>(reserve(space_bytes));
    const std::uint64_t granules = space_bytes / granule;
    space.bytes = static_cast<std::uint64_t*>(reserve(granules * sizeof(std::uint64_t)));
    space.owner = static_cast<Owner*>(reserve(granules));
    space.context = static_cast<CUcontext*>(reserve(granules * sizeof(CUcontext)));
  }
  const int power = class_of((bytes + granule - 1) / granule);
  std::uint64_t at;
  if (space.free[power] != 0) {
    at = space.free[power] - 1;
    space.free[power] = space.bytes[at];
  } else {
    at = space.next;
    if ((at + (1ull << power)) * granule > space_bytes) return 0;
    space.next += 1ull << power;
  }
  space.bytes[at] = bytes;
  space.owner[at] = owner;
  space.context[at] = context;
  return reinterpret_cast<CUdeviceptr>(space.base + at * granule);
}

Placed find_placed(CUdeviceptr address) {
  for (int device = 0; device < cuda_devices_max; ++device) {
    Space& space = spaces[device];
    const auto base = reinterpret_cast<CUdeviceptr>(space.base);
    if (!space.base || address < base || address >= base + space_bytes) continue;
    const std::uint64_t at = (address - base) / granule;
    if ((address - base) % granule != 0 || space.owner[at] == Owner::none) return {};
    return {device, space.bytes[at], space.owner[at]};
  }
  return {};
}

void unplace(CUdeviceptr address) {
  const Placed placed = find_placed(address);
  if (placed.device < 0) return;
  Space& space = spaces[placed.device];
  const Hold hold(space);
  const std::uint64_t at = (address - reinterpret_cast<CUdeviceptr>(space.base)) / granule;
  const int power = class_of((space.bytes[at] + granule - 1) / granule);
  space.owner[at] = Owner::none;
  space.bytes[at] = space.free[power];
  space.free[power] = at + 1;
}

void unplace_all_of(CUcontext context) {
  for (int device = 0; device < cuda_devices_max; ++device) {
    Space& space = spaces[device];
    for (std::uint64_t at = 0; at < space.next; ++at) {
      if (space.owner[at] == Owner::none || space.context[at] != context) continue;
      if (space.owner[at] == Owner::plain || space.owner[at] == Owner::managed)
        credit(device, space.bytes[at]);
      unplace(reinterpret_cast<CUdeviceptr>(space.base + at * granule));
    }
  }
}

}  // namespace loam::fakes

FAKE_EXPORT loam::fakes::FakeCudaBooks* fake_cuda_books() {
  return &loam::fakes::books();
}
FAKE_EXPORT std::uint64_t fake_cuda_calls() {
  return loam::fakes::calls;
}

#include "node/keeper/keeper.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "node/keeper/device_arena.hpp"
#include "node/keeper/device_memory.hpp"
#include "node/keeper/lease_watch.hpp"
#include "node/keeper/reports.hpp"
#include "node/keeper/residence.hpp"

namespace loam::node {

namespace {

// The kernel waits on at most this many futexes at once (FUTEX_WAITV_MAX).
constexpr std::size_t futexes_max = 128;
// With more leases than that, the rest are looked at this often.
constexpr Nanoseconds overflow_poll_ns = 2'000'000;
// A page that could not be mapped (a full table of files, say) is tried again this often.
constexpr Nanoseconds retry_ns = 1'000'000'000;
constexpr int lock_tries = 20;

Nanoseconds clock_now(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
Nanoseconds monotonic_now() {
  return clock_now(CLOCK_MONOTONIC);
}

Error failed(const std::string& what) {
  return Error{ErrorKind::unavailable, "keeper cannot " + what + ": " + std::strerror(errno), ""};
}

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  explicit Descriptor(int value) : fd(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Turns what only descriptors tell (a page came or went, a signal) into a futex that the main loop
// can wait on together with the doorbells.
class Watcher {
 public:
  Result<void> start(const std::string& pages) {
    // SIGTERM and SIGINT come through the descriptor alone.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signals_.fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    inotify_.fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    end_.fd = ::eventfd(0, EFD_CLOEXEC);
    if (signals_.fd < 0 || inotify_.fd < 0 || end_.fd < 0) return failed("open its descriptors");
    if (::inotify_add_watch(inotify_.fd, pages.c_str(),
                            IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_DELETE_SELF) <
        0)
      return failed("watch " + pages);
    thread_ = std::thread([this] { watch(); });
    return {};
  }
  ~Watcher() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    (void)!::write(end_.fd, &one, sizeof one);
    thread_.join();
  }
  const std::uint32_t* word() const { return &changes_; }
  std::uint32_t changes() const { return __atomic_load_n(&changes_, __ATOMIC_SEQ_CST); }
  bool stop_asked() const { return stop_; }

 private:
  // Whether the pages' folder itself is gone, or its disk: then nobody is left to serve.
  static bool says_deleted(std::string_view events) {
    while (events.size() >= sizeof(inotify_event)) {
      inotify_event event{};
      std::memcpy(&event, events.data(), sizeof event);
      if ((event.mask & (IN_DELETE_SELF | IN_UNMOUNT)) != 0) return true;
      events.remove_prefix(sizeof event + event.len);
    }
    return false;
  }

  void watch() {
    for (;;) {
      std::array<pollfd, 3> ready{
          {{signals_.fd, POLLIN, 0}, {inotify_.fd, POLLIN, 0}, {end_.fd, POLLIN, 0}}};
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
      if (ready[2].revents != 0) return;
      signalfd_siginfo signal{};
      if (ready[0].revents != 0 && ::read(signals_.fd, &signal, sizeof signal) > 0) stop_ = true;
      alignas(8) std::array<char, 4096> events;
      ssize_t size = 0;
      while ((size = ::read(inotify_.fd, events.data(), events.size())) > 0) {
        if (says_deleted({events.data(), static_cast<std::size_t>(size)})) stop_ = true;
      }
      __atomic_add_fetch(&changes_, 1u, __ATOMIC_SEQ_CST);
      ::syscall(SYS_futex, &changes_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

  Descriptor signals_, inotify_, end_;
  std::thread thread_;
  std::uint32_t changes_ = 0;
  std::atomic<bool> stop_ = false;
};

// A grant that waits behind busy programs for a processor idles the device: the keeper works for a
// few microseconds at a time and goes first. Without the right to, it runs like everybody.
void prefer_this_thread() {
  sched_param first{};
  first.sched_priority = 1;
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) != 0)
    ::setpriority(PRIO_PROCESS, 0, -15);
}

class Keeper {
 public:
  explicit Keeper(const KeeperOptions& options) : options_(options), reports_(options.root) {}
  Result<void> run();

 private:
  struct Lease {
    std::string name;
    std::unique_ptr<MappedPage> page;
    ino_t inode = 0;
    std::vector<LeaseWatch> watches;  // by the page's devices
  };

  Result<void> look_for_pages();
  void adopt(const std::string& name, ino_t inode);
  void drop(std::uint64_t id);
  void drop_torn();
  Nanoseconds step(Nanoseconds now);
  void watch_leases(Nanoseconds now);
  KeeperReport act_on_idle(KeeperReport report, std::uint64_t id, const loam_device_limits& limits);
  void tell(KeeperReport report);
  void wait(const std::vector<std::uint32_t>& bells, std::uint32_t changes, Nanoseconds until);

  const KeeperOptions& options_;
  Watcher watcher_;
  std::map<std::uint64_t, Lease> leases_;                // by order of adoption
  using Lane = std::pair<std::uint64_t, std::uint32_t>;  // device key, lane
  std::map<Lane, DeviceArena> arenas_;
  std::map<std::uint64_t, DeviceMemory> memories_;  // by device key
  std::map<std::uint64_t, Residence> residences_;   // the same
  ReportWriter reports_;
  Nanoseconds idle_look_ns_ = 0;
  std::map<std::string, ino_t> refused_;  // pages that mean nothing, until made anew
  std::map<std::string, ino_t> said_;     // pages whose fault was reported
  std::uint64_t last_id_ = 0;
  bool retry_ = false;
};

void Keeper::drop(std::uint64_t id) {
  for (auto arena = arenas_.begin(); arena != arenas_.end();) {
    arena->second.remove(id);
    arena = arena->second.empty() ? arenas_.erase(arena) : std::next(arena);
  }
  for (auto memory = memories_.begin(); memory != memories_.end();) {
    memory->second.remove(id);
    memory = memory->second.empty() ? memories_.erase(memory) : std::next(memory);
  }
  for (auto residence = residences_.begin(); residence != residences_.end();) {
    residence->second.remove(id);
    residence = residence->second.empty() ? residences_.erase(residence) : std::next(residence);
  }
  leases_.erase(id);
}

void Keeper::adopt(const std::string& name, ino_t inode) {
  auto page = MappedPage::open(options_.root, name);
  if (!page.ok()) {
    // Gone again between the listing and now: nothing to say.
    if (page.error().kind == ErrorKind::not_found) return;
    if (said_[name] != inode) options_.report(to_text(page.error()));
    said_[name] = inode;
    if (page.error().kind == ErrorKind::corrupt)
      refused_[name] = inode;
    else
      retry_ = true;
    return;
  }
  said_.erase(name);
  const std::uint64_t id = ++last_id_;
  Lease lease{name, std::make_unique<MappedPage>(std::move(page).value()), inode, {}};
  lease.page->reclaim_dead();
  const Nanoseconds now = monotonic_now();
  std::set<std::uint64_t> keys;
  for (std::uint32_t i = 0; i < lease.page->limits().device_count; ++i) {
    const std::uint64_t key = lease.page->limits().device[i].device_key;
    const std::uint32_t lanes = lease.page->limits().device[i].lanes == LOAM_LANES ? LOAM_LANES : 1;
    lease.watches.emplace_back(options_.promise, options_.idle, name, i, now);
    if (!keys.insert(key).second) {
      options_.report("lease " + name + " names one device twice; its second entry gets no turns");
      continue;
    }
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
      arenas_.try_emplace(Lane{key, lane}, lane).first->second.add(id, lease.page.get(), i, now);
    ResidenceTerms residence = options_.residence;
    residence.park_again_ns = options_.idle.look_ns();
    residences_.try_emplace(key, residence).first->second.add(id, lease.page.get(), i, now);
    memories_
        .try_emplace(key, options_.root, options_.loans,
                     [this](const KeeperReport& report) { tell(report); })
        .first->second.add(id, name, lease.page.get(), i);
  }
  leases_.emplace(id, std::move(lease));
}

Result<void> Keeper::look_for_pages() {
  retry_ = false;
  LOAM_TRY(names, list_pages(options_.root));
  std::map<std::string, ino_t> present;
  for (const std::string& name : names) {
    struct stat facts {};
    const std::string path = page_prefix(options_.root, name) + LOAM_SLICE_LIMITS_SUFFIX;
    if (::stat(path.c_str(), &facts) == 0) present[name] = facts.st_ino;
  }
  // A page that was removed and made anew under the same name is another page.
  std::vector<std::uint64_t> gone;
  for (const auto& [id, lease] : leases_) {
    const auto entry = present.find(lease.name);
    if (entry == present.end() || entry->second != lease.inode)
      gone.push_back(id);
    else
      present.erase(entry);
  }
  for (const std::uint64_t id : gone) drop(id);
  const auto is_gone = [&](const auto& entry) {
    return !std::binary_search(names.begin(), names.end(), entry.first);
  };
  std::erase_if(refused_, is_gone);
  std::erase_if(said_, is_gone);
  for (const auto& [name, inode] : present) {
    const auto known = refused_.find(name);
    if (known == refused_.end() || known->second != inode) adopt(name, inode);
  }
  return {};
}

void Keeper::drop_torn() {
  std::vector<std::uint64_t> torn;
  for (const auto& [id, lease] : leases_)
    if (lease.page->torn()) torn.push_back(id);
  for (const std::uint64_t id : torn) {
    const Lease& lease = leases_.at(id);
    options_.report("lease " + lease.name +
                    " cut its counters short; it gets no more turns until its page is made anew");
    refused_[lease.name] = lease.inode;
    drop(id);
  }
}

// Reports are in the daemon's clock, which runs on while the machine is suspended.
void Keeper::tell(KeeperReport report) {
  const Nanoseconds ahead = clock_now(CLOCK_BOOTTIME) - monotonic_now();
  report.from_ns += ahead;
  report.until_ns += ahead;
  if (const Result<void> told = reports_.append(report); !told.ok())
    options_.report(to_text(told.error()));
}

// What the device's limits say about a lease that idles. Returns the report with what was done.
KeeperReport Keeper::act_on_idle(KeeperReport report, std::uint64_t id,
                                 const loam_device_limits& limits) {
  const bool idle = report.kind == ReportKind::idle;
  if (!idle && report.kind != ReportKind::active) return report;
  const auto residence = residences_.find(limits.device_key);
  if (loam_limits_have(&limits, LOAM_LIMIT_PARK_IDLE) && residence != residences_.end()) {
    residence->second.park(id, idle);
    const bool spills = loam_limits_have(&limits, LOAM_LIMIT_SPILLS);
    report.bytes = idle && spills ? residence->second.resident_bytes(id) : 0;
  }
  report.end = idle && loam_limits_have(&limits, LOAM_LIMIT_END_IDLE);
  return report;
}

void Keeper::watch_leases(Nanoseconds now) {
  for (auto& [id, lease] : leases_)
    for (std::uint32_t i = 0; i < lease.watches.size(); ++i) {
      const auto arena =
          arenas_.find(Lane{lease.page->limits().device[i].device_key, LOAM_LANE_COMPUTE});
      if (arena == arenas_.end() || !arena->second.serves(id, i)) continue;
      lease.watches[i].note(arena->second.standing(id), now,
                            [this, id = id, &page = *lease.page, i](const KeeperReport& report) {
                              tell(act_on_idle(report, id, page.limits().device[i]));
                            });
    }
  if (now >= idle_look_ns_) idle_look_ns_ = now + options_.idle.look_ns();
}

Nanoseconds Keeper::step(Nanoseconds now) {
  Nanoseconds next = never_ns;
  for (auto& [key, residence] : residences_) next = std::min(next, residence.step(now));
  for (auto& [key, arena] : arenas_) {
    arena.hold_back(residences_.at(key.first).held_back());
    next = std::min(next, arena.step(now));
    for (const HungLease& hung : arena.take_hung()) {
      KeeperReport report;
      report.kind = ReportKind::hung;
      report.lease = leases_.at(hung.lease).name;
      report.device = arena.device_of(hung.lease);
      report.lane = key.second;
      report.from_ns = now - hung.overdue_ns;
      report.until_ns = now;
      report.end = hung.end;
      options_.report("lease " + report.lease + " has work on device " +
                      std::to_string(report.device) + " that does not end with its turn");
      tell(report);
    }
  }
  for (auto& [key, memory] : memories_) next = std::min(next, memory.step(now));
  watch_leases(now);
  return leases_.empty() ? next : std::min(next, idle_look_ns_);
}

void Keeper::wait(const std::vector<std::uint32_t>& bells, std::uint32_t changes,
                  Nanoseconds until) {
  std::array<futex_waitv, futexes_max> waiters{};
  unsigned count = 0;
  waiters[count].val = changes;
  waiters[count].uaddr = reinterpret_cast<std::uintptr_t>(watcher_.word());
  waiters[count++].flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
  std::size_t i = 0;
  for (const auto& [id, lease] : leases_) {
    if (count == futexes_max) {
      until = std::min(until, monotonic_now() + overflow_poll_ns);
      break;
    }
    waiters[count].val = bells[i++];
    waiters[count].uaddr = reinterpret_cast<std::uintptr_t>(&lease.page->counters().doorbell);
    waiters[count++].flags = FUTEX_32;
  }
  if (retry_) until = std::min(until, monotonic_now() + retry_ns);
  timespec time{};
  time.tv_sec = until / 1'000'000'000;
  time.tv_nsec = until % 1'000'000'000;
  ::syscall(SYS_futex_waitv, waiters.data(), count, 0, until == never_ns ? nullptr : &time,
            CLOCK_MONOTONIC);
}

Result<void> Keeper::run() {
  LOAM_CHECK(watcher_.start(options_.root + "/pages"));
  prefer_this_thread();
  std::uint32_t seen = watcher_.changes() - 1;
  std::vector<std::uint32_t> bells;
  while (!watcher_.stop_asked()) {
    const std::uint32_t changes = watcher_.changes();
    if (changes != seen || retry_) {
      seen = changes;
      LOAM_CHECK(look_for_pages());
    }
    // Bells before the work: one that rings during it ends the wait at once.
    bells.clear();
    for (const auto& [id, lease] : leases_)
      bells.push_back(__atomic_load_n(&lease.page->counters().doorbell, __ATOMIC_SEQ_CST));
    const Nanoseconds next = step(monotonic_now());
    drop_torn();
    if (next != never_ns && next <= monotonic_now()) continue;
    wait(bells, changes, next);
  }
  return {};
}

}  // namespace

Result<void> run_keeper(const KeeperOptions& options) {
  const std::string pages = options.root + "/pages";
  if (::mkdir(options.root.c_str(), 0755) != 0 && errno != EEXIST)
    return failed("make " + options.root);
  if (::mkdir(pages.c_str(), 0711) != 0 && errno != EEXIST) return failed("make " + pages);
  const std::string lock_path = options.root + "/keeper.lock";
  const Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd < 0) return failed("open " + lock_path);
  // Somebody who only asks whether a keeper runs holds the lock for an instant: try again.
  bool locked = false;
  for (int i = 0; i < lock_tries && !locked; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    locked = ::flock(lock.fd, LOCK_EX | LOCK_NB) == 0;
  }
  if (!locked)
    return Error{ErrorKind::conflict, "another keeper serves " + options.root,
                 "stop it first, or leave it: one is enough"};
  const std::string pid = std::to_string(::getpid()) + "\n";
  (void)!::ftruncate(lock.fd, 0);
  (void)!::pwrite(lock.fd, pid.data(), pid.size(), 0);
  return Keeper(options).run();
}

}  // namespace loam::node

#include "node/keeper/slice_page.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "guard/slice_page.h"
#include "node/keeper/page_words.hpp"

namespace loam::node {

namespace {

constexpr std::int64_t quantum_min_ns = 100'000;
constexpr std::int64_t quantum_max_ns = 1'000'000'000;

Error system_error(const std::string& what, const std::string& path, int code) {
  ErrorKind kind = ErrorKind::unavailable;
  if (code == ENOENT) kind = ErrorKind::not_found;
  if (code == EACCES || code == EPERM) kind = ErrorKind::permission_denied;
  return Error{kind, "cannot " + what + " " + path + ": " + std::strerror(code),
               code == ENOSPC ? "free some space there" : ""};
}

std::string pages_directory(const std::string& root) {
  return root + "/pages";
}

bool lease_name_ok(std::string_view lease) {
  if (lease.empty() || lease.size() >= LOAM_SLICE_LEASE_CHARS || lease.front() == '.') return false;
  return std::all_of(lease.begin(), lease.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Result<void> check(std::string_view lease, const std::vector<SliceLimits>& slices) {
  if (!lease_name_ok(lease))
    return invalid("lease name '" + std::string(lease) + "' cannot name a slice page",
                   "use 1 to 47 letters, digits, '.', '_', '-'");
  if (slices.empty() || slices.size() > LOAM_SLICE_DEVICES_MAX)
    return invalid("a slice page holds 1 to 16 devices, not " + std::to_string(slices.size()));
  for (const SliceLimits& slice : slices) {
    if (slice.share_milli < 0 || slice.share_milli > 1000)
      return invalid("share of " + std::to_string(slice.share_milli) + " milli-device",
                     "give 0 to 1000");
    if (slice.cap_milli < 1 || slice.cap_milli > 1000)
      return invalid("cap of " + std::to_string(slice.cap_milli) + " milli-device",
                     "give 1 to 1000");
    if (slice.hung_ns < 0)
      return invalid("hung after " + std::to_string(slice.hung_ns) + " ns", "give 0 for never");
    if (slice.weight < 0 || slice.weight > 1'000'000)
      return invalid("weight " + std::to_string(slice.weight), "give 0 to 1000000");
    if (slice.copy_share_milli < 0 || slice.copy_share_milli > 1000)
      return invalid("copy share of " + std::to_string(slice.copy_share_milli) + " milli-device",
                     "give 0 to 1000");
    if (slice.quantum_ns < quantum_min_ns || slice.quantum_ns > quantum_max_ns)
      return invalid("quantum of " + std::to_string(slice.quantum_ns) + " ns",
                     "give 100000 (100 us) to 1000000000 (1 s)");
    if (slice.linger_ns < 0 || slice.linger_ns > quantum_max_ns)
      return invalid("linger of " + std::to_string(slice.linger_ns) + " ns",
                     "give 0 to 1000000000 (1 s)");
  }
  return {};
}

void fill(loam_device_limits& out, const SliceLimits& slice) {
  const auto put = [](auto& field, auto value) {
    __atomic_store_n(&field, static_cast<std::remove_reference_t<decltype(field)>>(value),
                     __ATOMIC_SEQ_CST);
  };
  put(out.device_key, slice.device_key);
  put(out.memory_bytes, slice.memory_bytes);
  put(out.share_milli, slice.share_milli);
  put(out.weight, slice.weight > 0 ? slice.weight : std::max(slice.share_milli, 1));
  put(out.mode, slice.mode == SliceMode::strict ? LOAM_SLICE_STRICT : LOAM_SLICE_BURSTABLE);
  put(out.copy_share_milli,
      slice.copy_share_milli > 0 ? slice.copy_share_milli : slice.share_milli);
  put(out.cap_milli, slice.cap_milli);
  put(out.lanes, slice.copy_lanes ? LOAM_LANES : 1);
  put(out.hung_ns, slice.hung_ns);
  put(out.flags,
      (slice.clear_memory ? LOAM_LIMIT_CLEAR : 0u) |
          (slice.concurrent ? LOAM_LIMIT_CONCURRENT : 0u) |
          (slice.end_hung ? LOAM_LIMIT_END_HUNG : 0u) | (slice.lends ? LOAM_LIMIT_LENDS : 0u) |
          (slice.borrows ? LOAM_LIMIT_BORROWS : 0u) | (slice.spills ? LOAM_LIMIT_SPILLS : 0u) |
          (slice.leaves_first ? LOAM_LIMIT_LEAVES_FIRST : 0u) |
          (slice.when_idle == WhenIdle::park ? LOAM_LIMIT_PARK_IDLE : 0u) |
          (slice.when_idle == WhenIdle::end ? LOAM_LIMIT_END_IDLE : 0u));
  put(out.quantum_ns, slice.quantum_ns);
  put(out.linger_ns, slice.linger_ns);
  put(out.turns, slice.turns == SliceTurns::fixed ? LOAM_TURNS_FIXED : LOAM_TURNS_DYNAMIC);
  put(out.service, slice.service ? 1 : 0);
  std::memset(out.name, 0, sizeof out.name);
  std::memcpy(out.name, slice.device_name.data(),
              std::min(slice.device_name.size(), sizeof out.name - 1));
}

// A file descriptor that closes itself.
struct File {
  int fd = -1;
  explicit File(int descriptor) : fd(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return system_error("make directory", path, errno);
  return {};
}

// Writes a whole file of `bytes` that starts with `head`, under a name that nobody looks for.
Result<void> write_file(const std::string& path, const void* head, std::size_t head_bytes,
                        std::size_t bytes, mode_t mode, const std::optional<PageOwner>& owner) {
  ::unlink(path.c_str());
  const File file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.fd < 0) return system_error("create", path, errno);
  // Space is taken now: a full disk must not show as SIGBUS inside a guest.
  if (const int fault = ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes)); fault != 0) {
    ::unlink(path.c_str());
    return system_error("reserve space for", path, fault);
  }
  if (::pwrite(file.fd, head, head_bytes, 0) != static_cast<ssize_t>(head_bytes)) {
    const int fault = errno;
    ::unlink(path.c_str());
    return system_error("write", path, fault);
  }
  if (owner && ::fchown(file.fd, owner->uid, owner->gid) != 0) {
    const int fault = errno;
    ::unlink(path.c_str());
    return system_error("change the owner of", path, fault);
  }
  if (::fchmod(file.fd, mode) != 0) return system_error("change the mode of", path, errno);
  return {};
}

Result<void*> map_file(const std::string& path, int flags, int protection, std::size_t bytes,
                       int* keep_fd) {
  File file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.fd < 0) return system_error("open", path, errno);
  struct stat facts {};
  if (::fstat(file.fd, &facts) != 0) return system_error("look at", path, errno);
  if (static_cast<std::size_t>(facts.st_size) < bytes)
    return Error{
        ErrorKind::corrupt,
        path + " has " + std::to_string(facts.st_size) + " bytes, not " + std::to_string(bytes),
        "remove the lease's page and start the task again"};
  void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) return system_error("map", path, errno);
  if (keep_fd) *keep_fd = std::exchange(file.fd, -1);
  return address;
}

// The file is read-only to keep guests out; its owner may open it up for this moment.
Result<loam_slice_limits*> map_limits_writable(const std::string& prefix) {
  const std::string path = prefix + LOAM_SLICE_LIMITS_SUFFIX;
  ::chmod(path.c_str(), 0644);
  auto mapped = map_file(path, O_RDWR, PROT_READ | PROT_WRITE, sizeof(loam_slice_limits), nullptr);
  ::chmod(path.c_str(), 0444);
  if (!mapped.ok()) return mapped.error();
  return static_cast<loam_slice_limits*>(mapped.value());
}

void ring(loam_slice_counters& counters) {
  count_up_and_wake(counters.doorbell);
}

}  // namespace

std::uint64_t opencl_device_key(std::string_view platform_name, std::string_view device_name,
                                unsigned index) {
  const auto trimmed = [](std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return std::string(text);
  };
  const std::string identity =
      "opencl:" + trimmed(platform_name) + "/" + trimmed(device_name) + "/" + std::to_string(index);
  return loam_device_key(identity.c_str());
}

std::uint64_t uuid_device_key(std::string_view uuid) {
  std::string identity(uuid);
  // The prefix is in capitals, the digits in small letters.
  for (std::size_t i = 4; i < identity.size(); ++i)
    if (identity[i] >= 'A' && identity[i] <= 'F')
      identity[i] = static_cast<char>(identity[i] - 'A' + 'a');
  return loam_device_key(identity.c_str());
}

std::string page_prefix(const std::string& root, std::string_view lease) {
  return pages_directory(root) + "/" + std::string(lease);
}

Result<void> create_page(const std::string& root, std::string_view lease,
                         const std::vector<SliceLimits>& slices, std::optional<PageOwner> owner) {
  LOAM_CHECK(check(lease, slices));
  LOAM_CHECK(make_directory(root, 0755));
  LOAM_CHECK(make_directory(pages_directory(root), 0711));

  loam_slice_limits limits{};
  limits.magic = LOAM_SLICE_LIMITS_MAGIC;
  limits.version = LOAM_SLICE_VERSION;
  limits.bytes = sizeof limits;
  limits.device_count = static_cast<std::uint32_t>(slices.size());
  std::memcpy(limits.lease, lease.data(), lease.size());
  for (std::size_t i = 0; i < slices.size(); ++i) fill(limits.device[i], slices[i]);

  // The counters' head has the layout of the whole file's first page.
  alignas(16) std::uint8_t head[4096] = {};
  auto* counters = reinterpret_cast<loam_slice_counters*>(head);
  counters->magic = LOAM_SLICE_COUNTERS_MAGIC;
  counters->version = LOAM_SLICE_VERSION;
  counters->bytes = sizeof(loam_slice_counters);
  counters->device_count = limits.device_count;
  counters->slot_count = LOAM_SLICE_SLOTS_MAX;
  std::memcpy(counters->lease, lease.data(), lease.size());

  const std::string prefix = page_prefix(root, lease);
  const std::string counters_path = prefix + LOAM_SLICE_COUNTERS_SUFFIX;
  const std::string limits_path = prefix + LOAM_SLICE_LIMITS_SUFFIX;
  if (::access(limits_path.c_str(), F_OK) == 0)
    return Error{ErrorKind::conflict, "lease " + std::string(lease) + " has a slice page already",
                 "remove it first"};
  LOAM_CHECK(write_file(counters_path + ".new", head, sizeof head, sizeof(loam_slice_counters),
                        0600, owner));
  LOAM_CHECK(write_file(limits_path + ".new", &limits, sizeof limits, sizeof limits, 0444, {}));
  if (::rename((counters_path + ".new").c_str(), counters_path.c_str()) != 0)
    return system_error("rename", counters_path, errno);
  if (::rename((limits_path + ".new").c_str(), limits_path.c_str()) != 0)
    return system_error("rename", limits_path, errno);
  return {};
}

Result<void> update_limits(const std::string& root, std::string_view lease,
                           const std::vector<SliceLimits>& slices) {
  LOAM_CHECK(check(lease, slices));
  LOAM_TRY(page, MappedPage::open(root, lease));
  if (page.limits().device_count != slices.size())
    return invalid("lease " + std::string(lease) + " has " +
                   std::to_string(page.limits().device_count) + " devices, not " +
                   std::to_string(slices.size()));
  for (std::size_t i = 0; i < slices.size(); ++i)
    if (page.limits().device[i].device_key != slices[i].device_key)
      return invalid("device " + std::to_string(i) + " of lease " + std::string(lease) +
                     " is another one; a page keeps its devices");

  LOAM_TRY(limits, map_limits_writable(page_prefix(root, lease)));
  for (std::size_t i = 0; i < slices.size(); ++i) fill(limits->device[i], slices[i]);
  ::munmap(limits, sizeof *limits);
  ring(page.counters());
  return {};
}

Result<void> write_loan(const std::string& root, std::string_view lease, std::uint32_t device,
                        std::uint64_t lent_bytes, std::uint64_t borrowed_bytes) {
  if (!lease_name_ok(lease) || device >= LOAM_SLICE_DEVICES_MAX)
    return invalid("device " + std::to_string(device) + " of lease '" + std::string(lease) + "'");
  LOAM_TRY(limits, map_limits_writable(page_prefix(root, lease)));
  __atomic_store_n(&limits->device[device].lent_bytes, lent_bytes, __ATOMIC_SEQ_CST);
  __atomic_store_n(&limits->device[device].borrowed_bytes, borrowed_bytes, __ATOMIC_SEQ_CST);
  ::munmap(limits, sizeof *limits);
  return {};
}

namespace {

CopyUsage copies_of(const loam_usage& lane) {
  return {static_cast<std::int64_t>(load(lane.busy_ns)), load(lane.commands),
          load(lane.bytes_copied)};
}

SliceUsage usage_of(const MappedPage& page, std::uint32_t index) {
  const loam_device_counters& device = page.counters().device[index];
  const loam_usage& compute = device.usage[LOAM_LANE_COMPUTE];
  SliceUsage usage;
  usage.device_key = page.limits().device[index].device_key;
  usage.memory_used_bytes = load(device.memory.used);
  usage.memory_peak_bytes = load(device.memory.peak);
  usage.refusals = load(device.memory.refusals);
  usage.lent_bytes = load(page.limits().device[index].lent_bytes);
  usage.borrowed_bytes = load(page.limits().device[index].borrowed_bytes);
  const std::uint32_t slots = std::min(load(page.counters().slots_used), LOAM_SLICE_SLOTS_MAX);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const loam_slot_device& process = page.counters().slot[slot].device[index];
    for (std::size_t kind = 0; kind < LOAM_MEMORY_KINDS; ++kind)
      usage.memory_by_kind[kind] += load(process.kind_bytes[kind]);
    usage.spilled_bytes += load(process.spilled_bytes);
  }
  usage.busy_ns = static_cast<std::int64_t>(load(compute.busy_ns));
  usage.launches = load(compute.commands);
  usage.to_device = copies_of(device.usage[LOAM_LANE_TO_DEVICE]);
  usage.from_device = copies_of(device.usage[LOAM_LANE_FROM_DEVICE]);
  usage.transfers = load(compute.transfers) + usage.to_device.copies + usage.from_device.copies;
  usage.bytes_copied = load(compute.bytes_copied) + usage.to_device.bytes + usage.from_device.bytes;
  usage.turns = load(device.turn[LOAM_LANE_COMPUTE].turns);
  for (const loam_usage& lane : device.usage) {
    usage.waiting_ns += static_cast<std::int64_t>(load(lane.waiting_ns));
    usage.hung += load(lane.hung);
  }
  return usage;
}

}  // namespace

Result<std::vector<SliceUsage>> read_counters(const std::string& root, std::string_view lease) {
  LOAM_TRY(page, MappedPage::open(root, lease));
  page.reclaim_dead();
  std::vector<SliceUsage> usages;
  for (std::uint32_t i = 0; i < page.limits().device_count; ++i)
    usages.push_back(usage_of(page, i));
  if (page.torn())
    return Error{ErrorKind::corrupt,
                 "the counters of lease " + std::string(lease) + " were cut short while in use",
                 "the task tampered with its slice page: stop it"};
  return usages;
}

Result<void> remove_page(const std::string& root, std::string_view lease) {
  if (!lease_name_ok(lease))
    return invalid("lease name '" + std::string(lease) + "' cannot name a slice page");
  for (const char* suffix : {LOAM_SLICE_LIMITS_SUFFIX, LOAM_SLICE_COUNTERS_SUFFIX}) {
    const std::string path = page_prefix(root, lease) + suffix;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("remove", path, errno);
  }
  return {};
}

Result<std::vector<std::string>> list_pages(const std::string& root) {
  std::vector<std::string> leases;
  const std::string path = pages_directory(root);
  DIR* directory = ::opendir(path.c_str());
  if (!directory) {
    if (errno == ENOENT) return leases;
    return system_error("list", path, errno);
  }
  const std::string_view suffix = LOAM_SLICE_LIMITS_SUFFIX;
  while (const dirent* entry = ::readdir(directory)) {
    std::string_view name = entry->d_name;
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    if (lease_name_ok(name)) leases.emplace_back(name);
  }
  ::closedir(directory);
  std::sort(leases.begin(), leases.end());
  return leases;
}

Result<MappedPage> MappedPage::open(const std::string& root, std::string_view lease) {
  if (!lease_name_ok(lease))
    return invalid("lease name '" + std::string(lease) + "' cannot name a slice page");
  const std::string prefix = page_prefix(root, lease);
  MappedPage page;
  LOAM_TRY(limits, map_file(prefix + LOAM_SLICE_LIMITS_SUFFIX, O_RDONLY, PROT_READ,
                            sizeof(loam_slice_limits), nullptr));
  page.limits_ = static_cast<const loam_slice_limits*>(limits);
  LOAM_TRY(counters, map_file(prefix + LOAM_SLICE_COUNTERS_SUFFIX, O_RDWR, PROT_READ | PROT_WRITE,
                              sizeof(loam_slice_counters), &page.lock_fd_));
  page.counters_ = static_cast<loam_slice_counters*>(counters);
  page.watched_ = watch_mapping(counters, sizeof(loam_slice_counters));
  if (!page.watched_)
    return Error{ErrorKind::exhausted, "more slice pages are mapped than can be watched",
                 "end some leases on this node"};
  const bool known =
      page.limits_->magic == LOAM_SLICE_LIMITS_MAGIC &&
      page.counters_->magic == LOAM_SLICE_COUNTERS_MAGIC &&
      page.limits_->version == LOAM_SLICE_VERSION &&
      page.counters_->version == LOAM_SLICE_VERSION && page.limits_->device_count >= 1 &&
      page.limits_->device_count <= LOAM_SLICE_DEVICES_MAX &&
      page.counters_->device_count == page.limits_->device_count &&
      std::memcmp(page.limits_->lease, page.counters_->lease, LOAM_SLICE_LEASE_CHARS) == 0;
  if (!known)
    return Error{ErrorKind::corrupt,
                 prefix + " is not a slice page of version " + std::to_string(LOAM_SLICE_VERSION) +
                     " (versions " + std::to_string(page.limits_->version) + " and " +
                     std::to_string(page.counters_->version) + ")",
                 "remove the page, or run the loam that made it"};
  return page;
}

MappedPage::MappedPage(MappedPage&& other) noexcept
    : limits_(std::exchange(other.limits_, nullptr)),
      counters_(std::exchange(other.counters_, nullptr)),
      watched_(std::exchange(other.watched_, nullptr)),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

MappedPage& MappedPage::operator=(MappedPage&& other) noexcept {
  std::swap(limits_, other.limits_);
  std::swap(counters_, other.counters_);
  std::swap(watched_, other.watched_);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

MappedPage::~MappedPage() {
  unwatch_mapping(watched_);
  if (limits_) ::munmap(const_cast<loam_slice_limits*>(limits_), sizeof *limits_);
  if (counters_) ::munmap(counters_, sizeof *counters_);
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

bool MappedPage::reclaim_dead() const {
  bool found = false;
  const std::uint32_t used = std::min(load(counters_->slots_used), LOAM_SLICE_SLOTS_MAX);
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = slot;
    lock.l_len = 1;
    if (::fcntl(lock_fd_, F_OFD_SETLK, &lock) != 0) continue;  // its process lives
    if (loam_slot_reclaim(counters_, slot)) found = true;
    lock.l_type = F_UNLCK;
    ::fcntl(lock_fd_, F_OFD_SETLK, &lock);
  }
  return found;
}

}  // namespace loam::node

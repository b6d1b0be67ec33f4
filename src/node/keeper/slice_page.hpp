// The slice page as the node sees it: makes, changes, reads and removes the two files of a lease
// (guard/slice_page.h has the layout, docs/formats/slice_page.md the specification).
// ROOT/pages/LEASE.limits and ROOT/pages/LEASE.counters. Not pure: files.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "guard/slice_page.h"
#include "node/keeper/torn_mapping.hpp"

namespace loam::node {

inline constexpr std::uint64_t no_memory_limit = UINT64_MAX;

enum class SliceMode { strict, burstable };
// For tasks of predictable length, or for short ones of unknown length (schedule/quantum.hpp).
enum class SliceTurns { fixed, dynamic };

// What is done about a lease that leaves its device unused for long: only told; parked, its memory
// going to the host where it may spill, until it works again; or to be ended.
enum class WhenIdle { report, park, end };

// One device of the slice.
struct SliceLimits {
  std::uint64_t device_key = 0;  // opencl_device_key()
  std::string device_name;       // for people
  std::uint64_t memory_bytes = no_memory_limit;
  std::int32_t share_milli = 1000;  // 0..1000 of the device's time
  std::int32_t cap_milli = 1000;    // 1..1000 of the device's time, never more
  std::int32_t weight = 0;          // 0: the share (at least 1)
  SliceMode mode = SliceMode::strict;
  std::int32_t copy_share_milli = 0;     // 0: the share
  bool copy_lanes = false;               // copies take turns of their own, in each direction
  std::int64_t quantum_ns = 10'000'000;  // one turn, the first where dynamic; 100 us to 1 s
  std::int64_t linger_ns = 500'000;      // idle time after which a wanted turn is taken back
  SliceTurns turns = SliceTurns::fixed;
  bool service = false;  // goes before leases that are none; its guests run in its gaps
  // Work in flight this long after its turn's end is reported as hung; 0: never. A lease that is to
  // be ended for it is reported so.
  std::int64_t hung_ns = 0;
  bool end_hung = false;
  bool clear_memory = false;  // memory is cleared before the task sees it
  bool lends = false;         // memory that it does not use may be lent to those that borrow
  bool borrows = false;
  // While it has no turn, its memory may go to the host for others' sake, and comes back with its
  // turn. So the quotas of a device may come to more than the device has. CUDA alone.
  bool spills = false;
  bool leaves_first = false;  // before those of which this is not said
  WhenIdle when_idle = WhenIdle::report;
  bool concurrent = false;  // leases of the device may have work in flight at the same time
};

// Who the task runs as: its counters file belongs to them. Without it, the caller's own ids.
struct PageOwner {
  uid_t uid = 0;
  gid_t gid = 0;
};

// One direction of copies.
struct CopyUsage {
  std::int64_t busy_ns = 0;  // where copies have lanes of their own
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
};

// What one device of the lease has used so far.
struct SliceUsage {
  std::uint64_t device_key = 0;
  std::uint64_t memory_used_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::array<std::uint64_t, LOAM_MEMORY_KINDS> memory_by_kind{};  // of memory_used_bytes
  std::uint64_t refusals = 0;  // allocations refused for the quota
  std::uint64_t lent_bytes = 0, borrowed_bytes = 0;
  std::uint64_t spilled_bytes = 0;  // of memory_used_bytes: in the host's memory now
  std::int64_t busy_ns = 0;         // device time used exclusively
  std::uint64_t launches = 0;       // kernels
  std::uint64_t transfers = 0;      // copies, fills, reads, writes, maps
  std::uint64_t bytes_copied = 0;
  CopyUsage to_device, from_device;  // within `transfers` and `bytes_copied`
  std::uint64_t hung = 0;            // times that work did not end with its turn
  std::int64_t waiting_ns = 0;       // time that threads waited for turns
  std::uint64_t turns = 0;
};

// The identities that guard and node derive alike. By place: platform and device name as OpenCL
// gives them, and the device's index among all of the platform's devices, from 0.
std::uint64_t opencl_device_key(std::string_view platform_name, std::string_view device_name,
                                unsigned index);
// By CL_DEVICE_UUID_KHR, where the OpenCL driver gives one: "GPU-…", any case. Lasts when the
// program hides devices from the driver, which changes the places.
std::uint64_t uuid_device_key(std::string_view uuid);

// ROOT/pages/LEASE: what loam-launch binds (with .limits and .counters) or puts into
// LOAM_SLICE_PAGE.
std::string page_prefix(const std::string& root, std::string_view lease);

// Makes both files whole, then shows them (the limits' appearance is what the keeper waits for).
// `lease`: 1..47 characters of A-Z a-z 0-9 . _ -, not starting with a dot. 1..16 devices.
// conflict if the page exists.
Result<void> create_page(const std::string& root, std::string_view lease,
                         const std::vector<SliceLimits>& slices,
                         std::optional<PageOwner> owner = std::nullopt);
// Changes the limits of a live page; the same devices in the same order. A quota below what is in
// use refuses new allocations and takes nothing away.
Result<void> update_limits(const std::string& root, std::string_view lease,
                           const std::vector<SliceLimits>& slices);
// Writes what one device of the lease has lent and borrowed (the keeper's two fields).
Result<void> write_loan(const std::string& root, std::string_view lease, std::uint32_t device,
                        std::uint64_t lent_bytes, std::uint64_t borrowed_bytes);
// Reads the counters, one entry per device in the page's order; first gives back what dead
// processes held. not_found where there is no page.
Result<std::vector<SliceUsage>> read_counters(const std::string& root, std::string_view lease);
// Removes both files; done if there are none. Processes that still map them keep their old view.
Result<void> remove_page(const std::string& root, std::string_view lease);
// The leases that have a page, in order.
Result<std::vector<std::string>> list_pages(const std::string& root);

// Both files mapped: limits read-only, counters writable. Movable, unmaps at its end.
class MappedPage {
 public:
  static Result<MappedPage> open(const std::string& root, std::string_view lease);
  MappedPage(MappedPage&& other) noexcept;
  MappedPage& operator=(MappedPage&& other) noexcept;
  ~MappedPage();

  const loam_slice_limits& limits() const { return *limits_; }
  loam_slice_counters& counters() const { return *counters_; }
  // Gives back what dead processes held; true if there was anything. One thread at a time.
  bool reclaim_dead() const;
  // Whether the task has cut the counters short: what they say means nothing any more.
  bool torn() const { return watched_->torn; }

 private:
  MappedPage() = default;
  const loam_slice_limits* limits_ = nullptr;
  loam_slice_counters* counters_ = nullptr;
  WatchedMapping* watched_ = nullptr;
  int lock_fd_ = -1;
};

}  // namespace loam::node

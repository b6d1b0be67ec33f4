// DeviceMemory: one device's memory among the leases that share it: follows what each uses, and
// carries out on their pages what MemoryLoans decides. Sleeps where nobody lends or nobody borrows.
// Not pure: shared memory, files, futex wake-ups; the caller gives the time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "node/keeper/memory_loans.hpp"
#include "node/keeper/memory_phases.hpp"
#include "node/keeper/reports.hpp"
#include "node/keeper/slice_page.hpp"

namespace loam::node {

class DeviceMemory {
 public:
  // `tell` gets notices (reclaim) and the names of those who did not heed them (overdue).
  DeviceMemory(std::string root, const LoanTerms& terms,
               std::function<void(const KeeperReport&)> tell)
      : root_(std::move(root)), terms_(terms), loans_(terms), tell_(std::move(tell)) {}

  // `page` must stay alive until remove().
  void add(std::uint64_t lease, std::string name, const MappedPage* page, std::uint32_t device);
  void remove(std::uint64_t lease);
  bool empty() const { return members_.empty(); }

  // Does what is due; returns when to call again at the latest.
  Nanoseconds step(Nanoseconds now);

 private:
  struct Member {
    std::string name;
    const MappedPage* page = nullptr;
    std::uint32_t device = 0;
    MemoryPhases phases;
    std::size_t samples = 0;

    const loam_device_limits& limits() const { return page->limits().device[device]; }
    loam_memory_book& book() const { return page->counters().device[device].memory; }
  };

  bool anything_to_do() const;
  LoanParty party_of(const Member& member) const;
  bool round(Nanoseconds now);
  void tell(ReportKind kind, std::uint64_t lease, Nanoseconds now);
  static void answer(const Member& member);

  std::string root_;
  LoanTerms terms_;
  MemoryLoans loans_;
  std::function<void(const KeeperReport&)> tell_;
  std::map<std::uint64_t, Member> members_;
  Nanoseconds sample_due_ns_ = 0;
};

}  // namespace loam::node

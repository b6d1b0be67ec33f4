// ConcurrentBook: leases of one device whose kernels may run at the same time (as NVIDIA's MPS
// allows). Who had how much of the device cannot be measured then, so each moment is divided
// equally among the leases with work in flight: the sum never passes the time on the clock. A lease
// may put work on the device while its account allows it; a strict one while it has credit, a
// burstable one also while nobody who is behind asks for the device. Pure: the caller gives the
// time, nanoseconds on a clock that never falls.
#pragma once

#include <cstdint>
#include <map>

#include "schedule/turns.hpp"

namespace loam::node {

using schedule::Nanoseconds;
using schedule::TurnTerms;

class ConcurrentBook {
 public:
  void set_terms(std::uint64_t lease, const TurnTerms& terms, Nanoseconds now);
  void remove(std::uint64_t lease) { accounts_.erase(lease); }

  // What the lease does from now on. Call pass() first, with the same time.
  void set_state(std::uint64_t lease, bool works, bool waits);
  // Divides the time since the last call among those that worked in it.
  void pass(Nanoseconds now);

  // Whether it may put work on the device now. Requires a known lease.
  bool may_work(std::uint64_t lease) const;
  // Device time that it has been given in all.
  Nanoseconds used_ns(std::uint64_t lease) const { return accounts_.at(lease).used_ns; }

 private:
  struct Account {
    TurnTerms terms;
    std::int64_t credit = 0;     // thousandths of a nanosecond, under its share
    std::int64_t allowance = 0;  // the same, under its cap
    Nanoseconds used_ns = 0;
    bool works = false, waits = false;
  };
  static std::int64_t credit_max(const Account& account) {
    return account.terms.quantum_ns * account.terms.share_milli;
  }

  std::map<std::uint64_t, Account> accounts_;
  Nanoseconds now_ = 0;
  bool started_ = false;
  std::size_t next_remainder_ = 0;  // whose turn it is to get the nanoseconds that do not divide
};

}  // namespace loam::node

// Quantum: how long a turn on a shared device should be. Pure; integers; nanoseconds.
//
// A switch between residents costs c, so turns of length q lose the part c / (q + c) of the device
// (Silberschatz, Galvin & Gagne, "Operating System Concepts", section 5.3.3); a resident among n
// waits up to (n - 1)(q + c). The first bounds q from below, the second from above; where the two
// cross, the wait gives way, since a device that only switches serves nobody.
#pragma once

#include <cstdint>
#include <limits>

namespace loam::schedule {

using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds never_ns = std::numeric_limits<Nanoseconds>::max();

struct QuantumTerms {
  Nanoseconds switch_ns = 500'000;        // c: what a change of residents costs
  std::int32_t overhead_permille = 50;    // 1..999: of the device's time that switching may take
  Nanoseconds wait_max_ns = 200'000'000;  // that a resident should wait for its next turn, at most
};

// The shortest quantum that keeps switching within its part: q >= c (1000 - o) / o.
// Requires switch_ns >= 0.
Nanoseconds quantum_min_ns(const QuantumTerms& terms);

// For predictable long tasks: the longest quantum after which each of `residents` still has its
// next turn within wait_max, q = wait_max / (residents - 1) - c, and at least quantum_min. Long
// quanta switch least, and a task of known length gains nothing from short ones. Requires residents
// >= 1.
Nanoseconds fixed_quantum_ns(const QuantumTerms& terms, std::int64_t residents);

// For short tasks of unknown length. The quantum doubles each time the task has been served as
// long as all its turns so far (Corbato, Merwin-Daggett & Daley, "An Experimental Time-Sharing
// System", 1962): what is short ends in a turn or two without waiting behind long turns, what is
// long is switched ever less. It shrinks with the queue: each of `waiting` others has its turn
// within wait_max. At least `base_ns`, at most 32 times as long.
// Requires base_ns > 0, progress_ns >= 0, waiting >= 0.
Nanoseconds dynamic_quantum_ns(const QuantumTerms& terms, Nanoseconds base_ns,
                               Nanoseconds progress_ns, std::int64_t waiting);

// For a guest beside a service that promises to add at most `promised_ns` to a request: q + c must
// fit, so q = promised - c; never below 0, which says that no guest can be admitted.
Nanoseconds guest_quantum_ns(const QuantumTerms& terms, Nanoseconds promised_ns);

}  // namespace loam::schedule

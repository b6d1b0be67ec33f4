#include "schedule/quantum.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

constexpr int doublings_max = 5;

}  // namespace

Nanoseconds quantum_min_ns(const QuantumTerms& terms) {
  LOAM_ASSERT(terms.switch_ns >= 0 && terms.overhead_permille >= 1 &&
              terms.overhead_permille <= 999);
  return (terms.switch_ns * (1000 - terms.overhead_permille) + terms.overhead_permille - 1) /
         terms.overhead_permille;
}

Nanoseconds fixed_quantum_ns(const QuantumTerms& terms, std::int64_t residents) {
  LOAM_ASSERT(residents >= 1);
  const Nanoseconds least = quantum_min_ns(terms);
  if (residents == 1) return std::max(least, terms.wait_max_ns);
  return std::max(least, terms.wait_max_ns / (residents - 1) - terms.switch_ns);
}

Nanoseconds dynamic_quantum_ns(const QuantumTerms& terms, Nanoseconds base_ns,
                               Nanoseconds progress_ns, std::int64_t waiting) {
  LOAM_ASSERT(base_ns > 0 && progress_ns >= 0 && waiting >= 0);
  // Turns of base, base, 2 base, 4 base, ... : each as long as all before it.
  Nanoseconds quantum = base_ns;
  for (int i = 0; i < doublings_max && progress_ns >= 2 * quantum; ++i) quantum *= 2;
  if (waiting == 0) return quantum;
  return std::max(base_ns, std::min(quantum, terms.wait_max_ns / waiting - terms.switch_ns));
}

Nanoseconds guest_quantum_ns(const QuantumTerms& terms, Nanoseconds promised_ns) {
  return std::max<Nanoseconds>(promised_ns - terms.switch_ns, 0);
}

}  // namespace loam::schedule

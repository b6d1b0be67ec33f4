// Auditor, rule 1 where devices are lent more than once: what a lease is promised is all that it
// has, or of a burstable one at least its part by the factor; and no device is lent beyond that.
#include "sim/auditor.hpp"

namespace loam::sim {
namespace {

constexpr std::int64_t once = 1000;  // permille

}  // namespace

std::int64_t Auditor::divided(std::int64_t amount, std::int64_t permille) {
  return (amount * once + permille - 1) / permille;
}

// By the settings in force.
Oversubscription Auditor::lent_to(const TaskSpec& spec, std::int64_t share,
                                  const DeviceBook& device) const {
  const bool bursts = spec.request.mode == ShareMode::burstable;
  const bool reserved = spec.purchase_model == PurchaseModel::reservation;
  if (!bursts || reserved || share == whole_device.value) return {};
  Oversubscription lent = settings_.oversubscription;
  const Backend backend = device.facts.backend;
  if (backend == Backend::opencl || backend == Backend::rocm) lent.memory_permille = once;
  return lent;
}

void Auditor::check_lent(const TaskBook& book, const LeaseGranted& lease, const Slice& slice,
                         const DeviceBook& device) {
  const std::string who = lease.lease.text() + " on " + device.name;
  if (slice.unpromised.value < 0 || slice.memory_unpromised.value < 0)
    fail(1, who + " is promised more than it has");
  const bool bursts = book.spec.request.mode == ShareMode::burstable;
  const bool reserved = lease.purchase_model == PurchaseModel::reservation;
  if (!bursts || reserved || slice.share == whole_device) {
    if (slice.unpromised.value != 0 || slice.memory_unpromised.value != 0)
      fail(1, who + " is not promised all that it has");
    return;
  }
  if (slice.promised().value < divided(slice.share.value, lent_.ce_permille) ||
      slice.memory_promised().value < divided(slice.memory.value, lent_.memory_permille)) {
    fail(1, who + " is promised " + to_text(slice.promised()) + " of " + to_text(slice.share) +
                " and " + to_text(slice.memory_promised()) + " of " + to_text(slice.memory) +
                ", less than its part by the factor");
  }
  if (device.used.value * once > whole_device.value * lent_.ce_permille ||
      device.memory_used.value * once > device.facts.memory.value * lent_.memory_permille) {
    fail(1, device.name + " is lent beyond the factor: " + to_text(device.used) + " and " +
                to_text(device.memory_used));
  }
}

}  // namespace loam::sim

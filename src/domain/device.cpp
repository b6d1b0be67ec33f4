#include "domain/device.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam {

MilliCe CeFactors::of(WorkClass work_class) const {
  switch (work_class) {
    case WorkClass::general:
      return general;
    case WorkClass::train:
      return train;
    case WorkClass::prefill:
      return prefill;
    case WorkClass::decode:
      return decode;
  }
  return general;
}

std::string device_name(const Node& node, const Device& device) {
  return node.name + "/" + std::to_string(device.index);
}

MilliDevice share_for(MilliCe wanted, MilliCe device_ce) {
  LOAM_ASSERT(wanted.value > 0 && device_ce.value > 0);
  // milli_ce_max * 1000 fits in 64 bits.
  return MilliDevice{std::max<std::int64_t>(1, wanted.value * 1000 / device_ce.value)};
}

MilliCe ce_of(MilliDevice share, MilliCe device_ce) {
  return MilliCe{std::max<std::int64_t>(1, share.value * device_ce.value / 1000)};
}

Mebibytes memory_of(MilliDevice share, Mebibytes device_memory) {
  return Mebibytes{std::max<std::int64_t>(1, share.value * device_memory.value / 1000)};
}

}  // namespace loam

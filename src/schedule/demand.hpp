// What a waiting task needs of a pool, in the scheduler's terms. Pure.
#pragma once

#include <optional>
#include <string>

#include "domain/task.hpp"

namespace loam::schedule {

struct Demand {
  std::optional<MilliCe> ce;  // exactly one of ce and share is set
  std::optional<MilliDevice> share;
  std::optional<Mebibytes> memory;  // absent: in proportion to the share
  DeviceId device;                  // a certain device; none: any
  std::string device_type;          // empty: any
  WorkClass work_class = WorkClass::general;
};

// Where one slice goes and what it takes.
struct Placement {
  DeviceId device;
  MilliDevice share;
  Mebibytes memory;
  MilliCe ce;  // bought: what was asked, or the share's worth
};

// What `demand` takes of a device of this kind when it is empty; may be more than it has.
Placement needs_on(const Demand& demand, const DeviceFacts& facts);

}  // namespace loam::schedule

// What a task holds and moves besides the device: storage on its node and bytes over the network.
// Counted by the node, rated and journaled by the engine. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>

#include "base/quantity.hpp"

namespace loam {

// Sums of one attempt since it began.
struct ServiceUse {
  std::int64_t storage_mib_ms = 0;  // MiB held × milliseconds
  std::int64_t received_bytes = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t backup_mib_ms = 0;  // likewise of backups: the engine's sum, since these do not grow

  bool empty() const {
    return storage_mib_ms == 0 && received_bytes == 0 && sent_bytes == 0 && backup_mib_ms == 0;
  }
  friend bool operator==(const ServiceUse&, const ServiceUse&) = default;
};
BOOST_DESCRIBE_STRUCT(ServiceUse, (), (storage_mib_ms, received_bytes, sent_bytes, backup_mib_ms))

// As a node reports it: the sums, what of the storage stays while the task does not run (its
// checkpoints), as last measured, and the copies of earlier ones, as when the attempt began.
struct ServiceReport {
  ServiceUse use;
  Mebibytes kept;
  Mebibytes backed_up{};

  friend bool operator==(const ServiceReport&, const ServiceReport&) = default;
};
BOOST_DESCRIBE_STRUCT(ServiceReport, (), (use, kept, backed_up))

}  // namespace loam

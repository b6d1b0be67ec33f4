// The typed ids of the nouns. Pure.
#pragma once

#include "base/id.hpp"

namespace loam {

struct DeviceTag {
  static constexpr const char* prefix = "d";
};
struct NodeTag {
  static constexpr const char* prefix = "n";
};
struct PoolTag {
  static constexpr const char* prefix = "p";
};
struct TenantTag {
  static constexpr const char* prefix = "tenant-";
};
struct TaskTag {
  static constexpr const char* prefix = "t";
};
struct LeaseTag {
  static constexpr const char* prefix = "l";
};
struct RateCardTag {
  static constexpr const char* prefix = "r";
};
struct UsageTag {
  static constexpr const char* prefix = "u";
};
struct TransactionTag {
  static constexpr const char* prefix = "x";
};
struct InvoiceTag {
  static constexpr const char* prefix = "inv-";
};
struct CreditNoteTag {
  static constexpr const char* prefix = "cn-";
};
struct CommitmentTag {
  static constexpr const char* prefix = "com-";
};
struct ReservationTag {
  static constexpr const char* prefix = "rsv-";
};

using DeviceId = Id<DeviceTag>;
using NodeId = Id<NodeTag>;
using PoolId = Id<PoolTag>;
using TenantId = Id<TenantTag>;
using TaskId = Id<TaskTag>;
using LeaseId = Id<LeaseTag>;
using RateCardId = Id<RateCardTag>;
using UsageId = Id<UsageTag>;
using TransactionId = Id<TransactionTag>;
using InvoiceId = Id<InvoiceTag>;
using CreditNoteId = Id<CreditNoteTag>;
using CommitmentId = Id<CommitmentTag>;
using ReservationId = Id<ReservationTag>;

// Counts the leases of one task; a report with an older epoch than the task's changes nothing.
struct Epoch {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(Epoch, Epoch) = default;
};

}  // namespace loam

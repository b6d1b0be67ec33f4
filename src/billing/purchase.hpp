// Purchase models: what a right to capacity covers and leaves over, fees by the period, hybrid
// groups. Pure and exact.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "billing/spot.hpp"
#include "billing/usage.hpp"

namespace loam::billing {

// --- Fees by the period
// ---------------------------------------------------------------------------

// A period's fee for the days of [active_from, active_to) that lie in [from, to), by the day: fee ×
// active days / days of the period, rounded once. Nothing, never less, where none does: what ended
// before it began costs nothing. Requires from < to.
Money prorated(Money fee, Date from, Date to, Date active_from, Date active_to);

// An amount bought by the month or the year.
struct CommitmentPlan {
  std::string id;
  Date anchor;     // periods begin on this day of the month, or on the last one of a short month
  int months = 1;  // of a period: 1, 3 or 12
  Date starts;     // covers from here
  Date ends;       // and up to here
  Money fee;       // of a whole period
  MilliCe ce;      // covered at any time
};

struct FeeLine {
  Date from;
  Date to;
  std::int64_t days = 0;  // active
  std::int64_t days_of_period = 0;
  Money amount;
};
// The fee of every period that the commitment touches, in order.
std::vector<FeeLine> fees(const CommitmentPlan& commitment);

// --- Covering
// -------------------------------------------------------------------------------------

// A right to `ce` at every instant of a period: a reservation, or a commitment's capacity.
struct CapacityRight {
  std::string id;
  Period period;
  MilliCe ce;
};

// A stretch of a record, of which `covered` is under the right and `rest` is not.
struct CoveredPiece {
  std::size_t usage = 0;  // index of the record
  Period period;
  MilliCe covered;
  MilliCe rest;
};
struct UnusedPiece {
  Period period;
  MilliCe ce;
};
struct Coverage {
  std::vector<CoveredPiece> pieces;  // tile every record
  std::vector<UnusedPiece> unused;
};
// Usage covered first come, first served: at every instant the records in force, by their start and
// id, take of the right until it is used up. Covered and unused add up to the whole right; covered
// and rest to all usage. O((n + pieces) log n).
Coverage cover(const std::vector<Usage>& usages, const CapacityRight& right);

// --- Hybrid
// ---------------------------------------------------------------------------------------

// critical: on demand. auxiliary: spot, or on demand while spot is tight: less supply than the task
// needs, or a price of `tight` of on demand or more.
PurchaseModel hybrid_model(GroupRole role, MilliCe needs, SpotMarket market, Money spot,
                           Money on_demand, BasisPoints tight);

}  // namespace loam::billing

// Use by the hour, for what rights to capacity come to: what commitments cover of it, and what of a
// reservation was not used. An hour is settled once it is over and metered, and again where use of
// it is told or taken back later. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <map>
#include <vector>

#include "billing/calendar.hpp"
#include "domain/event.hpp"

namespace loam::engine {

inline constexpr Duration cover_interval = Duration::hours(1);
// After the metering of its end, which comes metering_slack after it, and as long again.
inline constexpr Duration cover_slack = Duration::minutes(2);
// The start of the hour that it lies in.
Instant hour_of(Instant instant);

// A stretch of a usage record within an hour, which may be covered.
struct CoverPiece {
  LeaseId lease;
  Instant since;  // when the lease began
  Instant from;
  Instant to;
  MilliCe ce;
  Money list;  // of the whole record
  Money net;
  Duration length;  // likewise
  LineKey key;      // of the line that it is given back on
  RateCardId card;
  Instant month_end;  // likewise
};
BOOST_DESCRIBE_STRUCT(CoverPiece, (),
                      (lease, since, from, to, ce, list, net, length, key, card, month_end))

struct CoverHour {
  std::vector<CoverPiece> pieces;
  std::vector<AdjustmentLine> given;  // so far: one a lease, key, card and month
  bool due = false;                   // its pieces changed since
};

using CoverHours = std::map<Instant, CoverHour>;  // by their start; old ones are forgotten

// What is told of an hour later than this changes nothing.
inline constexpr Duration cover_hours_kept = Duration::hours(24 * 8);

// The part of a record that lies in `period`, to be given back on a line of `model`.
CoverPiece piece_of(const UsageRecord& record, const Lease& lease, const Task& task,
                    const billing::Period& period, PurchaseModel model);
// What of a lease was taken back, from `end` on, is use no more. True where that changed anything.
bool trim_pieces(CoverHours& hours, LeaseId lease, Instant end);
// The line that gives back what of a piece comes to `milli_ce_ms`. Below zero, or nothing.
AdjustmentLine given_back(const CoverPiece& piece, Int128 milli_ce_ms);
// Adds to the line of that lease, key, card and month, or begins one.
void add_to(std::vector<AdjustmentLine>& lines, const AdjustmentLine& line);
// What has to be booked so that `given` comes to `lines`.
std::vector<AdjustmentLine> change_from(const std::vector<AdjustmentLine>& given,
                                        std::vector<AdjustmentLine> lines);
// Hours before this one that nothing is due of are forgotten where they are old.
void forget_hours(CoverHours& hours, Instant before);

}  // namespace loam::engine

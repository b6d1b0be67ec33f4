// Parts of charges: what of a usage record or an adjustment lies in a period. The parts of any
// cutting add up to the whole to the last unit. Pure.
#pragma once

#include <optional>

#include "billing/calendar.hpp"
#include "domain/ledger.hpp"
#include "domain/rate.hpp"

namespace loam::billing {

// By time: of its length, its amounts and its billed units. Nothing where they do not meet. A
// record without length, and one that is priced per task, lies whole where it begins (one that runs
// backwards: where it ends).
std::optional<UsageRecord> part_in(const UsageRecord& record, const Period& period);

// Likewise of what an adjustment over `span` gives back. Fees and tokens are not cut: they lie
// whole where their time begins, and so does what has no length.
std::optional<AdjustmentLine> part_in(const AdjustmentLine& line, const Period& span,
                                      const Period& period);

// The discount that a charge was given, from its two amounts; nothing where they are too small to
// tell it to the basis point.
std::optional<BasisPoints> discount_of(Money list, Money net);

}  // namespace loam::billing

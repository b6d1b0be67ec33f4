// Advice: how much to commit to, from a curve of usage. Pure and exact.
//
// Usage is seen as layers of one unit of amount each: layer k is busy whenever more than k units
// are used. What a layer costs is a line over its busy time: on demand it begins at zero and is
// steep, an option begins at what it costs unused. Each layer takes the lowest line (the lower
// envelope), which is the true optimum for any curve; with one option a layer is committed where
// its share of busy time reaches the committed price over the on-demand price.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "billing/calendar.hpp"

namespace loam::billing {

// Amounts are thousandths of a unit (milli-CE).
struct UsageStep {
  Instant from;
  Duration length;
  std::int64_t amount = 0;
};

// "time,amount" with a head line, in either order; a time is an instant ("2025-03-01T00:00:00Z"),
// or a whole number of hours. Each row lasts until the next one; the last as long as the one before
// it (one hour where it is alone). Rows rise in time. The error begins with "FILE:LINE: "; `file`
// is for that.
Result<std::vector<UsageStep>> read_usage_csv(std::string_view text,
                                              std::string_view file = "usage");

struct CommitOption {
  std::string name;
  Money price;           // per unit and hour of the whole time, used or not
  Money used;            // on top, per used unit and hour
  Money hidden;          // on top, per committed unit and hour: operators, idle power, set-up
  Money upfront;         // per unit, once for `term`: fees
  BasisPoints interest;  // a year, on the upfront payment for that time
  Duration term;         // zero: the time looked at
};

struct AdviceRequest {
  Money on_demand;         // per unit and hour
  Money on_demand_hidden;  // per used unit and hour: start-up time, lost work, recovery
  std::vector<CommitOption> options;
  std::optional<Money> spot;  // per unit and hour
  BasisPoints spot_lost;      // of spot work that is lost and paid again
  BasisPoints interruptible;  // share of the work that may run on spot
};

struct CommitLayer {
  std::size_t option = 0;
  std::int64_t amount = 0;  // committed under it
};

struct Advice {
  std::int64_t commitment = 0;      // thousandths, all options together
  std::vector<CommitLayer> layers;  // from the base up; empty: commit to nothing
  Money cost_mixed;
  Money cost_on_demand;
  Money cost_committed;                   // all of the peak, each layer under its best option
  std::optional<BasisPoints> break_even;  // share of busy time from which the first option pays;
                                          // nothing where it never does
  std::int64_t base = 0;                  // used 95 % of the time or more
  std::int64_t peak = 0;
  std::int64_t average = 0;
  std::int64_t valley = 0;  // the least used
  Duration length;
  // Where spot is given: the share of the work that it takes over from on demand, and the optimum
  // with it. Layers that are cheaper so than committed are not committed.
  std::optional<BasisPoints> spot_share;
  std::optional<Money> cost_with_spot;
  std::int64_t commitment_with_spot = 0;
};

// Requires steps of positive length and amounts >= 0, prices of one currency.
// O(n log n) in the number of steps.
Result<Advice> advise(const std::vector<UsageStep>& usage, const AdviceRequest& request);

// The same hours of the zone's week again, for as long as `ahead`: the mean of what was used at
// that hour of the week, which a seasonal curve is planned on; where it was never seen, the mean of
// that hour of the day; where that was not either, of all. Requires usage.
std::vector<UsageStep> forecast(const std::vector<UsageStep>& usage, Duration ahead,
                                const Zone& zone = Zone());

}  // namespace loam::billing

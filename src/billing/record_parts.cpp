#include "billing/record_parts.hpp"

#include <algorithm>

namespace loam::billing {
namespace {

// A stretch of a whole: from `begin` to `end` of `length`.
struct Part {
  Int128 begin = 0;
  Int128 end = 0;
  Int128 length = 1;

  // What grew by then, rounded at both ends: parts side by side add up to the whole.
  Money of(Money amount) const {
    return amount.times_ratio(end, length, Rounding::half_even) -
           amount.times_ratio(begin, length, Rounding::half_even);
  }
  std::int64_t of(std::int64_t count) const {
    const Int128 whole = count;
    return static_cast<std::int64_t>(whole * end / length - whole * begin / length);
  }
};

}  // namespace

std::optional<UsageRecord> part_in(const UsageRecord& record, const Period& period) {
  const Instant begin = std::min(record.from, record.to), end = std::max(record.from, record.to);
  if (begin == end || record.tasks != 0) {
    if (!period.contains(begin)) return std::nullopt;
    return record;
  }
  const Instant from = std::max(begin, period.from), to = std::min(end, period.to);
  if (from >= to) return std::nullopt;
  if (from == begin && to == end) return record;
  const Part part{(from - begin).ms, (to - begin).ms, (end - begin).ms};
  UsageRecord cut = record;
  const bool backwards = record.to < record.from;
  cut.from = backwards ? to : from;
  cut.to = backwards ? from : to;
  cut.billed = Duration{part.of(record.billed.ms)};
  cut.list = part.of(record.list);
  cut.net = part.of(record.net);
  return cut;
}

std::optional<AdjustmentLine> part_in(const AdjustmentLine& line, const Period& span,
                                      const Period& period) {
  const bool whole = line.key.kind == InvoiceLineKind::fee || counts_tokens(line.key.kind) ||
                     line.key.kind == InvoiceLineKind::network || span.to <= span.from;
  if (whole) {
    if (!period.contains(span.from)) return std::nullopt;
    return line;
  }
  const Instant from = std::max(span.from, period.from), to = std::min(span.to, period.to);
  if (from >= to) return std::nullopt;
  const Part part{(from - span.from).ms, (to - span.from).ms, (span.to - span.from).ms};
  AdjustmentLine cut = line;
  cut.milli_ce_ms = part.of(line.milli_ce_ms);
  cut.list = part.of(line.list);
  cut.net = part.of(line.net);
  return cut;
}

std::optional<BasisPoints> discount_of(Money list, Money net) {
  constexpr Int128 least_units = 100'000;  // an amount's last decimal is a tenth of a basis point
  constexpr std::int64_t whole = 10'000;
  if (list.units() > -least_units && list.units() < least_units) return std::nullopt;
  const Int128 magnitude = list.units() < 0 ? -list.units() : list.units();
  const Money off = list.units() < 0 ? net - list : list - net;
  const Int128 share =
      Money(whole, off.currency()).times_ratio(off.units(), magnitude, Rounding::half_even).units();
  return BasisPoints{static_cast<std::int64_t>(std::clamp<Int128>(share, 0, whole))};
}

}  // namespace loam::billing

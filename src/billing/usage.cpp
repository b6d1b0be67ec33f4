#include "billing/usage.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr Duration length_max = Duration::hours(24 * 366 * 10);
constexpr std::int64_t bytes_max = std::int64_t{1} << 60;

Error bad(const Usage& usage, const std::string& what, std::string next_step) {
  return invalid("the usage record '" + usage.id + "' " + what, std::move(next_step));
}

}  // namespace

Result<void> check(const Usage& usage) {
  if (usage.id.empty())
    return invalid("a usage record has no id", "give each its own, such as node7/e1");
  if (usage.to <= usage.from) {
    return bad(usage,
               "ends at " + to_text(usage.to) + ", not after its start " + to_text(usage.from),
               "send it with the end after the start");
  }
  if (usage.length() > length_max)
    return bad(usage, "lasts " + to_text(usage.length()), "the most is ten years");
  if (usage.run_from > usage.from) {
    return bad(
        usage,
        "begins at " + to_text(usage.from) + ", before its run at " + to_text(usage.run_from),
        "send when the run began");
  }
  const bool negative = usage.billable_ce.value < 0 || usage.memory.value < 0 ||
                        usage.measured.value < 0 || usage.storage_mib_ms < 0 ||
                        usage.backup_mib_ms < 0 || usage.network_bytes < 0;
  if (negative) return bad(usage, "has a negative quantity", "usage is never below zero");
  const Int128 held_max = static_cast<Int128>(mebibytes_max.value) * usage.length().ms;
  const bool beyond = usage.billable_ce > milli_ce_max || usage.memory > mebibytes_max ||
                      usage.storage_mib_ms > held_max || usage.backup_mib_ms > held_max ||
                      usage.network_bytes > bytes_max;
  if (beyond) return bad(usage, "has a quantity beyond any machine", "check the meter's unit");
  return {};
}

std::vector<Period> tiles(Instant from, Instant to, Duration step) {
  LOAM_ASSERT(step.ms > 0);
  std::vector<Period> all;
  while (from < to) {
    const std::int64_t past = ((from.ms % step.ms) + step.ms) % step.ms;
    const Instant end = std::min(to, from + Duration{step.ms - past});
    all.push_back({from, end});
    from = end;
  }
  return all;
}

Duration billed_length(Duration run, Granularity granularity) {
  LOAM_ASSERT(run.ms >= 0);
  std::int64_t unit = 1;
  switch (granularity) {
    case Granularity::exact:
    case Granularity::task:
      return run;
    case Granularity::second:
      unit = 1000;
      break;
    case Granularity::minute:
      unit = 60'000;
      break;
    case Granularity::hour:
      unit = 3'600'000;
      break;
  }
  return Duration{(run.ms + unit - 1) / unit * unit};
}

}  // namespace loam::billing

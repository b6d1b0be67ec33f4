// Cron expressions: no input crashes the parser; what it accepts has a text that means the same,
// and a next time that it is due.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "schedule/recurrence.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loam;
  const auto cron =
      schedule::Cron::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!cron.ok()) {
    LOAM_ASSERT(!cron.error().message.empty() && !cron.error().next_step.empty());
    return 0;
  }
  const auto again = schedule::Cron::parse(cron->text());
  LOAM_ASSERT(again.ok() && *again == *cron);
  const schedule::UtcClock utc;
  const Instant now{1'772'409'600'000};
  const auto first = cron->next(now, utc);
  LOAM_ASSERT(first && *first > now);
  const auto second = cron->next(*first, utc);
  LOAM_ASSERT(second && *second > *first);
  // Nothing is due in between.
  LOAM_ASSERT(cron->next(*second - Duration{1}, utc) == second);
  return 0;
}

#include "app/loamd/anchored_clock.hpp"

#include <ctime>
#include <fstream>
#include <sstream>

namespace loam::daemon {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

std::int64_t clock_ns(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::string to_text(const ClockAnchor& anchor) {
  return anchor.boot_id + " " + std::to_string(anchor.boottime_ns) + " " +
         std::to_string(anchor.instant.ms);
}

Result<ClockAnchor> parse_anchor(std::string_view text) {
  std::istringstream words{std::string(text)};
  ClockAnchor anchor;
  if (words >> anchor.boot_id >> anchor.boottime_ns >> anchor.instant.ms) return anchor;
  return Error{
      ErrorKind::corrupt, "the clock anchor '" + std::string(text) + "' cannot be read", {}};
}

ClockAnchor choose_anchor(const ClockAnchor& old, const std::string& boot_id,
                          std::int64_t boottime_ns, Instant wall, Instant last) {
  const bool same_boot =
      !boot_id.empty() && old.boot_id == boot_id && old.boottime_ns <= boottime_ns;
  if (same_boot) {
    const Instant now = AnchoredClock(old).at(boottime_ns);
    if (now >= last) return old;
  }
  return {boot_id, boottime_ns, std::max(wall, last)};
}

Instant AnchoredClock::now() {
  return at(boottime_ns());
}

Instant AnchoredClock::at(std::int64_t boottime) const {
  return anchor_.instant + Duration{(boottime - anchor_.boottime_ns) / ns_per_ms};
}

std::int64_t boottime_ns() {
  return clock_ns(CLOCK_BOOTTIME);
}

Instant wall_clock() {
  return Instant{clock_ns(CLOCK_REALTIME) / ns_per_ms};
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace loam::daemon

// The daemon's clock: instants that never fall and never jump while the machine is up. It follows
// CLOCK_BOOTTIME from an anchor (one instant at one boot time of one boot), so that stepping the
// wall clock by an hour changes no bill. The anchor is kept in the store: a restarted daemon, and
// what an attempt measured while no daemon ran, are on the same line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/ports.hpp"

namespace loam::daemon {

struct ClockAnchor {
  std::string boot_id;
  std::int64_t boottime_ns = 0;
  Instant instant;

  friend bool operator==(const ClockAnchor&, const ClockAnchor&) = default;
};

// "BOOT_ID BOOTTIME_NS INSTANT_MS", and back.
std::string to_text(const ClockAnchor& anchor);
Result<ClockAnchor> parse_anchor(std::string_view text);

// The anchor to go on with: the old one within the same boot, else the wall clock, but not before
// `last` (the newest instant in the journal).
ClockAnchor choose_anchor(const ClockAnchor& old, const std::string& boot_id,
                          std::int64_t boottime_ns, Instant wall, Instant last);

class AnchoredClock final : public engine::Clock {
 public:
  explicit AnchoredClock(ClockAnchor anchor) : anchor_(std::move(anchor)) {}

  Instant now() override;
  // The instant of a boot time of this boot.
  Instant at(std::int64_t boottime_ns) const;
  const ClockAnchor& anchor() const { return anchor_; }

 private:
  ClockAnchor anchor_;
};

std::int64_t boottime_ns();
Instant wall_clock();
// The kernel's id of this boot; an empty text where it gives none.
std::string boot_id();

}  // namespace loam::daemon

// decide: one command against one state, giving events or a rejection. Pure: no clock (the
// instant is an argument), no I/O, no change to the state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "domain/command.hpp"
#include "engine/state.hpp"

namespace loam::engine {

struct Decision {
  std::vector<Event> events;     // empty: nothing changes
  std::string subject;           // what was made or touched: "t17"
  std::optional<Reject> reject;  // then there are no events
  // Of a scheduling pass that was cut short: where the next one goes on; none where it went
  // through.
  std::vector<PassMark> beyond;
};

// Requires `now` not before state.now. Cost: logarithmic in what is alive, independent of the
// number of devices and of what has finished.
Decision decide(const State& state, Instant now, const Command& command);

// The same for a write with an idempotency key: a repeated key gives the first answer and no
// events; the same key with another fingerprint is rejected.
Decision decide(const State& state, Instant now, const Command& command, const RequestKey& key);

// How long an idempotency key is remembered at least.
inline constexpr Duration request_memory = Duration::hours(24);
// Time beyond limit and grace that a hold covers: what stopping may take on a busy node.
inline constexpr Duration hold_margin = Duration::seconds(10);

}  // namespace loam::engine

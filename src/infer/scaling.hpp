// How many instances an endpoint needs: from what is asked of it now, from what is expected by the
// time a new instance would serve, and from its bounds. Growth is at once, shrinking waits until
// less has been enough for a while, and the last instance goes only after a long silence. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "base/time.hpp"

namespace loam::infer {

struct ScalingTerms {
  std::uint32_t instances_min = 0;
  std::uint32_t instances_max = 1;
  Duration idle_after = Duration::minutes(5);    // without a request: down to the minimum
  Duration shrink_after = Duration::minutes(1);  // how long less must have been enough
  // How full an instance's slots should be, so that a burst finds room while another starts.
  std::uint32_t load_permille = 800;
};

struct ScaledInstance {
  std::uint64_t id = 0;
  enum class State : std::uint8_t { starting, serving, draining } state = State::starting;
  std::uint32_t in_flight = 0;
};

struct EndpointLoad {
  std::uint32_t in_flight = 0;  // at instances
  std::uint32_t waiting = 0;    // for an instance
  std::uint32_t slots = 1;      // of one instance
  // Requests in flight at once that the forecast expects by the time that an instance started now
  // would serve, in thousandths.
  std::uint64_t expected_milli = 0;
  std::optional<Instant> last_request = {};
  std::vector<ScaledInstance> instances = {};
};

// What is remembered between two decisions.
struct ScalingMemory {
  std::optional<Instant> less_since;  // fewer instances have been enough since
  std::uint32_t failed_starts = 0;    // in a row
  Instant no_start_before{};
};

struct ScalingDecision {
  std::uint32_t start = 0;
  std::vector<std::uint64_t> drain;  // instance ids: the ones with the least to do
};

// Requires instances_min <= instances_max, instances_max > 0 and slots > 0.
ScalingDecision decide_scaling(const ScalingTerms& terms, const EndpointLoad& load, Instant now,
                               ScalingMemory& memory);

// An instance did not come up: the next try waits, from a second up to five minutes.
void note_failed_start(ScalingMemory& memory, Instant now);
void note_start(ScalingMemory& memory);

// What an endpoint is, for people and for who asks it.
enum class EndpointState : std::uint8_t {
  cold,      // no instance; the first request starts one
  starting,  // none serves yet
  serving,
  failing,  // none serves, and the last start failed
};
EndpointState state_of(const EndpointLoad& load, const ScalingMemory& memory) noexcept;
const char* name_of(EndpointState state) noexcept;

// --- Room for fewer instances than are wanted ----------------------------------------------------

// Models that do not fit at once take turns: who waits longest is next, and who is served gives its
// room up when its turn is over. A turn begins when an instance serves, not when it is asked for:
// one that takes longer to start than a turn lasts would otherwise be displaced before it answered
// anybody, by a model that fares no better. So all are served, one after the other, within the time
// that the others need to start, to have their turn and to drain.
struct RoomAsk {
  std::uint64_t endpoint = 0;
  Mebibytes memory;                           // of one instance
  std::uint32_t serving = 0;                  // instances, those that start included
  std::uint32_t draining = 0;                 // their memory is not free yet
  std::uint32_t start = 0;                    // what decide_scaling wants
  std::uint32_t in_flight = 0;                // at instances
  std::optional<Instant> waiting_since = {};  // the oldest request that waits for an instance
  std::optional<Instant> turn_began = {};     // since when any of `serving` serves; none: all start
  Instant starts_since{};                     // where all start, when the first was given room
};

struct TurnTerms {
  // How long an endpoint that has requests keeps its last instance although others wait.
  Duration turn_min = Duration::seconds(10);
  // How long its last instance may take to start while others wait. Then it is taken for stuck.
  Duration start_max = Duration::minutes(5);
};

struct RoomDecision {
  std::vector<std::uint64_t> start;  // endpoints, one entry for each instance
  std::vector<std::uint64_t> drain;  // endpoints that give up one instance
  friend bool operator==(const RoomDecision&, const RoomDecision&) = default;
};

// An endpoint whose instance is larger than `total` starts none. Ties go to the lower id.
// O(endpoints^2).
RoomDecision decide_room(Mebibytes total, const TurnTerms& terms, std::vector<RoomAsk> asks,
                         Instant now);

// --- Hot models on big slices --------------------------------------------------------------------

struct ModelHeat {
  std::uint64_t endpoint = 0;
  std::uint64_t tokens_per_minute = 0;
  Mebibytes memory;  // that an instance needs
};
struct SliceRoom {
  std::uint64_t slice = 0;
  MilliCe compute;
  Mebibytes memory;
};
struct SlicePick {
  std::uint64_t endpoint = 0;
  std::uint64_t slice = 0;
  friend bool operator==(const SlicePick&, const SlicePick&) = default;
};

// One slice for each endpoint, the hottest first, each taking the one with the most compute among
// those left that hold it; an endpoint that fits none is left out. Ties go to the lower id.
// O(endpoints x slices).
std::vector<SlicePick> assign_slices(std::vector<ModelHeat> models, std::vector<SliceRoom> slices);

}  // namespace loam::infer

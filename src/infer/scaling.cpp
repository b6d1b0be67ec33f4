#include "infer/scaling.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::infer {

namespace {

// Instances that hold `requests_milli` thousandths of requests.
std::uint32_t instances_for(std::uint64_t requests_milli, const ScalingTerms& terms,
                            std::uint32_t slots) {
  const std::uint64_t each_milli =
      std::max<std::uint64_t>(std::uint64_t{slots} * std::min(terms.load_permille, 1000U), 1);
  const std::uint64_t needed = requests_milli / each_milli + (requests_milli % each_milli != 0);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, terms.instances_max));
}

std::uint32_t wanted_instances(const ScalingTerms& terms, const EndpointLoad& load, Instant now) {
  const std::uint64_t present_milli =
      (std::uint64_t{load.in_flight} + load.waiting) * std::uint64_t{1000};
  std::uint32_t wanted = std::max(instances_for(present_milli, terms, load.slots),
                                  instances_for(load.expected_milli, terms, load.slots));
  const bool recent = load.last_request && now - *load.last_request < terms.idle_after;
  if (recent) wanted = std::max(wanted, 1U);
  return std::clamp(wanted, terms.instances_min, terms.instances_max);
}

// Those with the least to do first: what starts before what serves, then fewer requests, then the
// youngest.
bool goes_before(const ScaledInstance& a, const ScaledInstance& b) {
  const bool a_starts = a.state == ScaledInstance::State::starting;
  const bool b_starts = b.state == ScaledInstance::State::starting;
  if (a_starts != b_starts) return a_starts;
  if (a.in_flight != b.in_flight) return a.in_flight < b.in_flight;
  return a.id > b.id;
}

}  // namespace

ScalingDecision decide_scaling(const ScalingTerms& terms, const EndpointLoad& load, Instant now,
                               ScalingMemory& memory) {
  LOAM_ASSERT(terms.instances_min <= terms.instances_max && terms.instances_max > 0);
  LOAM_ASSERT(load.slots > 0);
  std::vector<ScaledInstance> active;
  for (const ScaledInstance& instance : load.instances) {
    if (instance.state != ScaledInstance::State::draining) active.push_back(instance);
  }
  const auto have = static_cast<std::uint32_t>(active.size());
  const std::uint32_t wanted = wanted_instances(terms, load, now);
  ScalingDecision decision;
  if (wanted >= have) memory.less_since.reset();
  if (wanted > have && now >= memory.no_start_before) {
    // What drains still holds its slice: an instance more must not pass the maximum with it.
    const auto room =
        terms.instances_max -
        std::min(terms.instances_max, static_cast<std::uint32_t>(load.instances.size()));
    decision.start = std::min(wanted - have, room);
  }
  if (wanted >= have) return decision;
  if (!memory.less_since) memory.less_since = now;
  // More than the maximum is never kept, whatever was promised to a burst.
  const bool over = have > terms.instances_max;
  if (!over && now - *memory.less_since < terms.shrink_after) return decision;
  std::sort(active.begin(), active.end(), goes_before);
  for (std::uint32_t i = 0; i < have - wanted; ++i) decision.drain.push_back(active[i].id);
  memory.less_since.reset();
  return decision;
}

namespace {

std::int64_t used_mib(const RoomAsk& ask) {
  return ask.memory.value * (std::int64_t{ask.serving} + ask.draining);
}

bool starves(const RoomAsk& ask) {
  return ask.waiting_since && ask.serving == 0 && ask.start > 0;
}

bool is_idle(const RoomAsk& ask) {
  return ask.in_flight == 0 && !ask.waiting_since;
}

// Who gives up an instance first: one without requests, then more instances than one, then who has
// had its turn the longest, and what is still starting last.
bool gives_before(const RoomAsk& a, const RoomAsk& b) {
  if (is_idle(a) != is_idle(b)) return is_idle(a);
  if ((a.serving > 1) != (b.serving > 1)) return a.serving > 1;
  if (a.turn_began.has_value() != b.turn_began.has_value()) return a.turn_began.has_value();
  if (a.turn_began != b.turn_began) return a.turn_began < b.turn_began;
  return a.endpoint < b.endpoint;
}

bool may_give(const RoomAsk& ask, const TurnTerms& terms, Instant now) {
  if (ask.serving == 0) return false;
  if (ask.serving > 1) return true;
  // Also where who asked for it has gone: the start would be lost, and with short patience no model
  // that is slow to start would ever come up.
  if (!ask.turn_began) return now - ask.starts_since >= terms.start_max;
  // Even an idle one may have been started for a request that is just on its way to it.
  constexpr Duration idle_turn_min = Duration::seconds(1);
  const Duration turn = is_idle(ask) ? std::min(idle_turn_min, terms.turn_min) : terms.turn_min;
  return now - *ask.turn_began >= turn;
}

}  // namespace

RoomDecision decide_room(Mebibytes total, const TurnTerms& terms, std::vector<RoomAsk> asks,
                         Instant now) {
  RoomDecision decision;
  std::sort(asks.begin(), asks.end(), [](const RoomAsk& a, const RoomAsk& b) {
    if (starves(a) != starves(b)) return starves(a);
    if (starves(a) && a.waiting_since != b.waiting_since) return a.waiting_since < b.waiting_since;
    return a.endpoint < b.endpoint;
  });
  std::int64_t free_mib = total.value;
  std::int64_t coming_mib = 0;  // from instances that drain
  for (const RoomAsk& ask : asks) {
    free_mib -= used_mib(ask);
    coming_mib += ask.memory.value * ask.draining;
  }
  bool somebody_waits = false;
  for (RoomAsk& ask : asks) {
    if (!starves(ask) || ask.memory > total) continue;
    if (!somebody_waits && ask.memory.value <= free_mib) {
      decision.start.push_back(ask.endpoint);
      free_mib -= ask.memory.value;
      --ask.start;
      continue;
    }
    somebody_waits = true;  // and later ones must not take what is kept for this one
    std::vector<RoomAsk*> givers;
    for (RoomAsk& other : asks) {
      if (may_give(other, terms, now)) givers.push_back(&other);
    }
    std::sort(givers.begin(), givers.end(),
              [](const RoomAsk* a, const RoomAsk* b) { return gives_before(*a, *b); });
    for (RoomAsk* giver : givers) {
      if (free_mib + coming_mib >= ask.memory.value) break;
      decision.drain.push_back(giver->endpoint);
      coming_mib += giver->memory.value;
      --giver->serving;
    }
    const std::int64_t kept = std::min(free_mib, ask.memory.value);
    free_mib -= kept;
    coming_mib -= std::min(coming_mib, ask.memory.value - kept);
  }
  for (const RoomAsk& ask : asks) {
    for (std::uint32_t i = 0; i < ask.start && !somebody_waits; ++i) {
      if (ask.memory.value > free_mib) break;
      decision.start.push_back(ask.endpoint);
      free_mib -= ask.memory.value;
    }
  }
  return decision;
}

void note_failed_start(ScalingMemory& memory, Instant now) {
  constexpr std::uint32_t doublings_max = 9;
  constexpr Duration pause_max = Duration::minutes(5);
  const std::uint32_t doublings = std::min(memory.failed_starts, doublings_max);
  memory.no_start_before =
      now + std::min(Duration::seconds(1) * (std::int64_t{1} << doublings), pause_max);
  ++memory.failed_starts;
}

void note_start(ScalingMemory& memory) {
  memory.failed_starts = 0;
  memory.no_start_before = {};
}

EndpointState state_of(const EndpointLoad& load, const ScalingMemory& memory) noexcept {
  bool starting = false;
  for (const ScaledInstance& instance : load.instances) {
    if (instance.state == ScaledInstance::State::serving) return EndpointState::serving;
    starting |= instance.state == ScaledInstance::State::starting;
  }
  if (memory.failed_starts > 0) return EndpointState::failing;
  return starting ? EndpointState::starting : EndpointState::cold;
}

const char* name_of(EndpointState state) noexcept {
  switch (state) {
    case EndpointState::cold:
      return "cold";
    case EndpointState::starting:
      return "starting";
    case EndpointState::serving:
      return "serving";
    case EndpointState::failing:
      break;
  }
  return "failing";
}

std::vector<SlicePick> assign_slices(std::vector<ModelHeat> models, std::vector<SliceRoom> slices) {
  std::sort(models.begin(), models.end(), [](const ModelHeat& a, const ModelHeat& b) {
    return a.tokens_per_minute != b.tokens_per_minute ? a.tokens_per_minute > b.tokens_per_minute
                                                      : a.endpoint < b.endpoint;
  });
  std::sort(slices.begin(), slices.end(), [](const SliceRoom& a, const SliceRoom& b) {
    return a.compute != b.compute ? a.compute > b.compute : a.slice < b.slice;
  });
  std::vector<SlicePick> picks;
  for (const ModelHeat& model : models) {
    const auto slice = std::find_if(slices.begin(), slices.end(), [&](const SliceRoom& room) {
      return room.memory >= model.memory;
    });
    if (slice == slices.end()) continue;
    picks.push_back({model.endpoint, slice->slice});
    slices.erase(slice);
  }
  return picks;
}

}  // namespace loam::infer

// Availability of spot capacity over time, recorded or generated, and one task run on it under a
// deadline. Formats: docs/formats/spot.md. Pure but for the read_ functions, which read a file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/spot/deadline.hpp"

namespace loam::sim {

struct AvailabilityTrace {
  Duration gap;                         // between two samples
  std::vector<std::uint8_t> available;  // by sample: 1 where at least one instance was there
};

// {"metadata":{"gap_seconds":195},"data":[instances,...]}. `name` is the file's, for errors, which
// say where and why. invalid_argument; not_found where the file cannot be read.
Result<AvailabilityTrace> parse_availability(const std::string& name, std::string_view text);
Result<AvailabilityTrace> read_availability(const std::string& path);

// A hidden Markov model of availability: the first `with_spot` states have spot, the others not.
struct AvailabilityModel {
  std::size_t with_spot = 0;
  std::size_t without_spot = 0;
  std::vector<double> transitions;  // row by row, from-states; each row sums to 1

  std::size_t states() const { return with_spot + without_spot; }
  // The share of time in each state in the long run.
  std::vector<double> stationary() const;
};

// "W N", then W + N rows of W + N probabilities. Rows may be off 1 by their rounding (1e-3) and are
// normalised.
Result<AvailabilityModel> parse_availability_model(const std::string& name, std::string_view text);
Result<AvailabilityModel> read_availability_model(const std::string& path);

// `ticks` steps that begin in the long run's distribution; the same seed gives the same trace.
std::vector<std::uint8_t> generate_availability(const AvailabilityModel& model, std::size_t ticks,
                                                std::uint64_t seed);

struct SpotOutcome {
  std::int64_t cost = 0;  // in schedule::spot cost units
  std::int64_t starts = 0;
  schedule::spot::Ticks ended = 0;  // ticks from the start until the work was done
  bool missed = false;              // the deadline

  // Of what the work alone would cost on demand.
  double cost_fraction(const schedule::spot::Terms& terms) const {
    return static_cast<double>(cost) /
           (static_cast<double>(terms.work) * static_cast<double>(schedule::spot::cost_scale));
  }
};

// Runs the task from sample `start` on until it is done or its deadline has passed.
// invalid_argument where the samples end before that. `each` hears the state after each tick.
Result<SpotOutcome> run_spot(schedule::spot::Policy policy, const schedule::spot::Terms& terms,
                             std::span<const std::uint8_t> available, std::size_t start,
                             const std::function<void(const schedule::spot::State&)>& each = {});

// The same by the multi-zone rule of `reserve`; `zones[z]` are the samples of one zone.
struct ZonesOutcome {
  SpotOutcome task;
  std::int64_t moves = 0;
};
Result<ZonesOutcome> run_spot_zones(const schedule::spot::Terms& terms,
                                    const std::vector<std::vector<std::uint8_t>>& zones,
                                    std::size_t start);

}  // namespace loam::sim

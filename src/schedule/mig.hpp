// Hardware slices: which profiles a card can hold beside each other, where the next one goes so
// that most remain possible, and how an idle card is cut anew when the mix of requests changes.
//
// Source: NVIDIA Multi-Instance GPU user guide, "Supported MIG profiles" and the placements that
// `nvidia-smi mig -lgipp` lists for A100 and H100: 7 compute slices, 8 memory slots, and for each
// profile the slots it may begin at. Not verified against a card here; a node reports its driver's
// own list, and that one counts. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace loam::schedule {

struct MigProfile {
  std::string name;                 // "3g.40gb"
  std::int32_t compute_slices = 0;  // of the card's
  std::int32_t memory_slots = 0;    // that it covers from its start on
  std::vector<std::int32_t> starts;
  Mebibytes memory;  // usable
};

struct MigGeometry {
  std::int32_t compute_slices = 7;
  std::int32_t memory_slots = 8;  // at most 16
  std::vector<MigProfile> profiles;
};

// A100 and H100: profiles 1g, 1g with double memory, 2g, 3g, 4g and 7g of a card with so much
// memory, named by `card_gb` as the vendor names them.
MigGeometry seven_slice_geometry(Mebibytes card_memory, std::int32_t card_gb);

struct MigInstance {
  std::size_t profile = 0;  // in the geometry's
  std::int32_t start = 0;   // memory slot

  friend auto operator<=>(const MigInstance&, const MigInstance&) = default;
};
using MigLayout = std::vector<MigInstance>;

// Whether the card can hold these together: allowed starts, no slot twice, compute enough.
bool is_valid(const MigGeometry& geometry, const MigLayout& layout);

// Where an instance of the profile may begin now, ascending.
std::vector<std::int32_t> free_starts(const MigGeometry& geometry, const MigLayout& layout,
                                      std::size_t profile);

// The start that leaves the most: Σ over profiles of weight × how many of it would still fit, each
// by itself; then the most (profile, start) places still open; then the highest start, since the
// low ones take the large profiles. `weights` by profile, e.g. how often each is asked; empty: all
// alike. O(starts · profiles · slots²).
std::optional<std::int32_t> best_start(const MigGeometry& geometry, const MigLayout& layout,
                                       std::size_t profile,
                                       const std::vector<std::int64_t>& weights = {});

// How many of `profile` fit beside the layout at most.
std::int64_t most_of(const MigGeometry& geometry, const MigLayout& layout, std::size_t profile);

struct Repartition {
  MigLayout remove;                // idle instances of the present layout
  MigLayout create;                // in an order in which they can be made once those are gone
  std::int64_t served = 0;         // requests that the new layout serves
  std::int64_t served_slices = 0;  // compute slices they take
};

// The best layout of one card for the requests that wait, `wanted` by profile: most compute slices
// serving requests, then most requests, then fewest instances removed, then the most left possible
// as best_start() counts it. `busy` instances stay. Nothing where the idle instances that are there
// serve as much already, so that a card is not cut anew for no gain. Exact: all layouts are tried,
// a few hundred at most for the geometries above.
std::optional<Repartition> repartition(const MigGeometry& geometry, const MigLayout& busy,
                                       const MigLayout& idle,
                                       const std::vector<std::int64_t>& wanted);

}  // namespace loam::schedule

// Placement policies behind one seam: each says what taking a place costs, the pool takes the
// least. Scores are preferences and may be floating point; they become integers before they are
// compared, so that ties are ties everywhere. Pure.
//
// Sources: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
// Descent", USENIX ATC 2023 (fragmentation, and the formulas of best_fit and dot_prod compared
// with there); Gilmore & Gomory 1961 for the values that packing_value is built on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/placement/mix.hpp"
#include "schedule/placement/node_view.hpp"

namespace loam::schedule {

enum class PlacementPolicy {
  packing_value,  // least loss of what can still be packed into the node
  fragmentation,  // least rise of the idle share that typical requests cannot use (FGD)
  best_fit,       // least left over
  dot_prod,       // least product of what is free and what is asked
  packing,        // a used device, then a used node, then an empty one
  clustering,     // beside requests of the same size
  spread,         // most left over
  random,
};
const char* name_of(PlacementPolicy policy) noexcept;
Result<PlacementPolicy> parse_placement_policy(std::string_view text);

// How a score becomes an integer. `published` is each policy's own coarse form (0 to 100), which
// the published figures depend on; `fine` keeps differences down to a millionth.
enum class Quantisation { automatic, published, fine };

// Which of several equally good nodes: the fullest (½·cpu/128000 + ½·Σ free milli/8000, then the
// lowest id), the lowest id, or one drawn with the seed.
enum class TieBreak { least_remaining, by_id, random };

struct PolicyOptions {
  PlacementPolicy policy = PlacementPolicy::packing_value;
  Quantisation quantisation = Quantisation::automatic;  // fine for packing_value, else published
  TieBreak tie_break = TieBreak::least_remaining;
  std::uint64_t seed = 1;  // of random choices
};

// What a demand takes of one node, in figures.
struct NodeNeed {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t devices = 0;
  std::int64_t milli = 0;  // of each device
};

// How a policy wants the device chosen within the node.
enum class DeviceChoice { every_level, fullest, emptiest };

class Scorer {
 public:
  Scorer() = default;
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;
  virtual ~Scorer() = default;

  // A node's own figure, kept with each distinct state; cost() is given those of before and after.
  virtual double value(const NodeView&) const { return 0; }
  // Whether cost() reads `value_after`.
  virtual bool needs_value() const { return false; }
  virtual DeviceChoice choice() const { return DeviceChoice::fullest; }
  // The cost of going from `before` to `after`; lower is better, 1 means 1,000,000 steps of `fine`.
  virtual double cost(const NodeView& before, const NodeView& after, const NodeNeed& need,
                      double value_before, double value_after) const = 0;
  // `cost` as the published integer.
  virtual std::int64_t published(double cost) const = 0;
};

// What a scorer may know about the pool as a whole.
struct PoolTotals {
  std::int64_t cpu_milli = 0;
  std::int64_t devices = 0;
};

// The scorer of `policy` for pools of these kinds and this mix. `kinds` must outlive it.
std::unique_ptr<Scorer> make_scorer(PlacementPolicy policy, const Mix& mix,
                                    const std::vector<DeviceKind>& kinds, const PoolTotals& totals);

}  // namespace loam::schedule

// The cutting-stock problem's linear relaxation by column generation (P. C. Gilmore & R. E. Gomory,
// "A linear programming approach to the cutting-stock problem", Operations Research 9, 1961):
// what a piece of each size is worth when whole devices are cut in the best way. The duals are
// preferences, so they are floating point; sizes are integers. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace loam::schedule {

struct RollPiece {
  std::int64_t size = 0;  // above 0, at most the roll's
  double demand = 0;      // above 0
};

struct CuttingStock {
  std::vector<double> duals;  // one a piece: its value in rolls; never negative
  double rolls = 0;           // the least number that covers the demand
  // The cuts that do it: how many of each piece, and how many rolls are cut so.
  std::vector<std::vector<std::int64_t>> patterns;
  std::vector<double> uses;
};

// Requires sizes in (0, roll] and demands above 0. O(iterations · (pieces · roll + pieces²)).
CuttingStock solve_cutting_stock(const std::vector<RollPiece>& pieces, std::int64_t roll);

// best[f]: the most value of pieces that fit into f together, each used any number of times.
// Requires sizes above 0. O(pieces · capacity).
std::vector<double> knapsack_values(const std::vector<std::int64_t>& sizes,
                                    const std::vector<double>& values, std::int64_t capacity);

}  // namespace loam::schedule

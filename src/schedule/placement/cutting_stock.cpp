#include "schedule/placement/cutting_stock.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

constexpr double tolerance = 1e-9;
// A safety net against cycling; real mixes need a few hundred.
constexpr int iterations_max = 20'000;

// The revised simplex method on a dense inverse of the basis. Rows are pieces.
class Master {
 public:
  Master(const std::vector<RollPiece>& pieces, std::int64_t roll) : rows_(pieces.size()) {
    inverse_.assign(rows_, std::vector<double>(rows_, 0.0));
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::int64_t copies = roll / pieces[i].size;
      std::vector<std::int64_t> column(rows_, 0);
      column[i] = copies;
      columns_.push_back(std::move(column));
      costs_.push_back(1.0);
      inverse_[i][i] = 1.0 / static_cast<double>(copies);
      amounts_.push_back(pieces[i].demand / static_cast<double>(copies));
    }
  }

  std::vector<double> duals() const {
    std::vector<double> y(rows_, 0.0);
    for (std::size_t i = 0; i < rows_; ++i) {
      if (costs_[i] == 0) continue;
      for (std::size_t j = 0; j < rows_; ++j) y[j] += inverse_[i][j];
    }
    return y;
  }

  void enter(std::vector<std::int64_t> column, double cost) {
    std::vector<double> direction(rows_, 0.0);
    for (std::size_t j = 0; j < rows_; ++j) {
      if (column[j] == 0) continue;
      const auto amount = static_cast<double>(column[j]);
      for (std::size_t i = 0; i < rows_; ++i) direction[i] += inverse_[i][j] * amount;
    }
    std::size_t leaves = rows_;
    double step = 0;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (direction[i] <= tolerance) continue;
      const double ratio = amounts_[i] / direction[i];
      if (leaves == rows_ || ratio < step) {
        leaves = i;
        step = ratio;
      }
    }
    LOAM_ASSERT(leaves < rows_);  // covering is bounded: costs are not negative
    pivot(direction, leaves, step);
    columns_[leaves] = std::move(column);
    costs_[leaves] = cost;
  }

  CuttingStock result() const {
    CuttingStock found;
    found.duals = duals();
    for (double& y : found.duals) y = std::max(y, 0.0);
    for (std::size_t i = 0; i < rows_; ++i) {
      if (costs_[i] == 0) continue;
      found.rolls += amounts_[i];
      found.patterns.push_back(columns_[i]);
      found.uses.push_back(amounts_[i]);
    }
    return found;
  }

 private:
  void pivot(const std::vector<double>& direction, std::size_t leaves, double step) {
    std::vector<double>& row = inverse_[leaves];
    for (double& value : row) value /= direction[leaves];
    for (std::size_t i = 0; i < rows_; ++i) {
      if (i == leaves) continue;
      amounts_[i] = std::max(0.0, amounts_[i] - step * direction[i]);
      if (direction[i] == 0) continue;
      for (std::size_t j = 0; j < rows_; ++j) inverse_[i][j] -= direction[i] * row[j];
    }
    amounts_[leaves] = step;
  }

  std::size_t rows_;
  std::vector<std::vector<double>> inverse_;
  std::vector<std::vector<std::int64_t>> columns_;
  std::vector<double> costs_;
  std::vector<double> amounts_;
};

struct Cut {
  double value = 0;
  std::vector<std::int64_t> pattern;
};

// The most valuable cut of one roll.
Cut best_cut(const std::vector<std::int64_t>& sizes, const std::vector<double>& values,
             std::int64_t roll) {
  const std::vector<double> best = knapsack_values(sizes, values, roll);
  Cut cut;
  cut.value = best.back();
  cut.pattern.assign(sizes.size(), 0);
  auto left = static_cast<std::size_t>(roll);
  while (left > 0) {
    bool taken = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto size = static_cast<std::size_t>(sizes[i]);
      if (size > left || values[i] <= 0) continue;
      if (best[left - size] + values[i] < best[left] - tolerance) continue;
      ++cut.pattern[i];
      left -= size;
      taken = true;
      break;
    }
    if (!taken) --left;  // waste
  }
  return cut;
}

}  // namespace

std::vector<double> knapsack_values(const std::vector<std::int64_t>& sizes,
                                    const std::vector<double>& values, std::int64_t capacity) {
  LOAM_ASSERT(capacity >= 0 && sizes.size() == values.size());
  std::vector<double> best(static_cast<std::size_t>(capacity) + 1, 0.0);
  for (std::size_t f = 1; f < best.size(); ++f) {
    best[f] = best[f - 1];
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto size = static_cast<std::size_t>(sizes[i]);
      if (size <= f) best[f] = std::max(best[f], best[f - size] + values[i]);
    }
  }
  return best;
}

CuttingStock solve_cutting_stock(const std::vector<RollPiece>& pieces, std::int64_t roll) {
  std::vector<std::int64_t> sizes;
  for (const RollPiece& piece : pieces) {
    LOAM_ASSERT(piece.size > 0 && piece.size <= roll && piece.demand > 0);
    sizes.push_back(piece.size);
  }
  Master master(pieces, roll);
  for (int i = 0; i < iterations_max && !pieces.empty(); ++i) {
    const std::vector<double> duals = master.duals();
    // More of a piece than is asked for costs nothing: no dual may be negative.
    const auto least = std::min_element(duals.begin(), duals.end());
    if (*least < -tolerance) {
      std::vector<std::int64_t> surplus(sizes.size(), 0);
      surplus[static_cast<std::size_t>(least - duals.begin())] = -1;
      master.enter(std::move(surplus), 0.0);
      continue;
    }
    Cut cut = best_cut(sizes, duals, roll);
    if (cut.value <= 1.0 + tolerance) break;
    master.enter(std::move(cut.pattern), 1.0);
  }
  return master.result();
}

}  // namespace loam::schedule

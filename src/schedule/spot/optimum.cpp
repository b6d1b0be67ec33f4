#include "schedule/spot/optimum.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/assert.hpp"

namespace loam::schedule::spot {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 4;

// The cost to go from one tick by ticks not worked so far, in each mode past its changeover.
struct Row {
  std::vector<std::int64_t> idle;
  std::vector<std::int64_t> spot;
  std::vector<std::int64_t> on_demand;
};

}  // namespace

// A changeover that is not lived through is money lost, so an optimal plan starts spot only where
// it is there for the whole of it: a start is one jump of `changeover` ticks. Work done in tick t
// is t - x with x ticks not worked; x passes deadline - work on no plan that ends in time.
std::optional<std::int64_t> optimal_cost(const Terms& terms,
                                         std::span<const std::uint8_t> available) {
  LOAM_ASSERT(terms.work >= 1 && terms.changeover >= 1);
  if (!terms.feasible()) return std::nullopt;
  const auto d = static_cast<std::size_t>(terms.changeover);
  const auto wasted_max = static_cast<std::size_t>(terms.deadline - terms.work);
  const std::size_t width = wasted_max + d + 1;  // x beyond wasted_max stays `never`
  const std::size_t kept = d + 1;
  std::vector<Row> rows(kept);
  for (Row& row : rows)
    for (auto* values : {&row.idle, &row.spot, &row.on_demand}) values->assign(width, never);

  std::size_t spell_ahead = 0;  // ticks in a row from t on with spot
  for (Ticks t = terms.deadline; t >= 0; --t) {
    const auto at = static_cast<std::size_t>(t);
    const bool there = t < terms.deadline && at < available.size() && available[at] != 0;
    spell_ahead = there ? spell_ahead + 1 : 0;
    Row& row = rows[at % kept];
    const Row& next = rows[(at + 1) % kept];
    const Row& later = rows[(at + d) % kept];
    // later still holds tick t + d where there is one, else `never`.
    const bool fits = t + terms.changeover <= terms.deadline;
    for (std::size_t x = 0; x <= wasted_max; ++x) {
      if (t - static_cast<Ticks>(x) >= terms.work) {  // done
        row.idle[x] = row.spot[x] = row.on_demand[x] = 0;
        continue;
      }
      if (t == terms.deadline) {
        row.idle[x] = row.spot[x] = row.on_demand[x] = never;
        continue;
      }
      const std::int64_t wait = next.idle[x + 1];
      const std::int64_t start_on_demand =
          fits ? later.on_demand[x + d] + terms.changeover * cost_scale : never;
      const std::int64_t start_spot =
          fits && spell_ahead >= d ? later.spot[x + d] + terms.changeover * terms.spot_price_ppm
                                   : never;
      const std::int64_t idle = std::min({wait, start_on_demand, start_spot, never});
      row.idle[x] = idle;
      row.on_demand[x] = std::min(idle, next.on_demand[x] + cost_scale);
      row.spot[x] = there ? std::min(idle, next.spot[x] + terms.spot_price_ppm) : idle;
    }
  }
  const std::int64_t best = rows[0].idle[0];
  if (best >= never) return std::nullopt;
  return best;
}

}  // namespace loam::schedule::spot

#include "billing/purchase.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_bp = 10'000;

}  // namespace

Money prorated(Money fee, Date from, Date to, Date active_from, Date active_to) {
  const std::int64_t all = days_since_epoch(to) - days_since_epoch(from);
  LOAM_ASSERT(all > 0);
  const std::int64_t begin = std::max(days_since_epoch(from), days_since_epoch(active_from));
  const std::int64_t end = std::min(days_since_epoch(to), days_since_epoch(active_to));
  const std::int64_t active = std::max<std::int64_t>(0, end - begin);
  return fee.times_ratio(active, all, Rounding::half_even);
}

std::vector<FeeLine> fees(const CommitmentPlan& commitment) {
  std::vector<FeeLine> lines;
  for (int index = 0;; ++index) {
    FeeLine line;
    line.from = add_months(commitment.anchor, commitment.months * index);
    line.to = add_months(commitment.anchor, commitment.months * (index + 1));
    if (line.from >= commitment.ends) return lines;
    if (line.to <= commitment.starts) continue;
    line.days_of_period = days_since_epoch(line.to) - days_since_epoch(line.from);
    line.days = days_since_epoch(std::min(line.to, commitment.ends)) -
                days_since_epoch(std::max(line.from, commitment.starts));
    if (line.days <= 0) return lines;
    line.amount = prorated(commitment.fee, line.from, line.to, commitment.starts, commitment.ends);
    lines.push_back(line);
  }
}

// --- Covering
// -------------------------------------------------------------------------------------

namespace {

// The usages in force change at these instants.
std::vector<Instant> cuts_of(const std::vector<Usage>& usages, const Period& period) {
  std::vector<Instant> cuts{period.from, period.to};
  for (const Usage& usage : usages) {
    cuts.push_back(usage.from);
    cuts.push_back(usage.to);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

void add_piece(std::vector<CoveredPiece>& pieces, std::vector<std::size_t>& last,
               const CoveredPiece& piece) {
  std::size_t& at = last[piece.usage];
  if (at < pieces.size() && pieces[at].usage == piece.usage &&
      pieces[at].period.to == piece.period.from && pieces[at].covered == piece.covered) {
    pieces[at].period.to = piece.period.to;
    return;
  }
  at = pieces.size();
  pieces.push_back(piece);
}

void add_unused(std::vector<UnusedPiece>& unused, const Period& period, MilliCe ce) {
  if (ce.value == 0) return;
  if (!unused.empty() && unused.back().period.to == period.from && unused.back().ce == ce) {
    unused.back().period.to = period.to;
  } else {
    unused.push_back({period, ce});
  }
}

}  // namespace

Coverage cover(const std::vector<Usage>& usages, const CapacityRight& right) {
  Coverage coverage;
  std::vector<std::size_t> order(usages.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(usages[a].from, usages[a].id) < std::tie(usages[b].from, usages[b].id);
  });
  std::vector<std::size_t> last(usages.size(), static_cast<std::size_t>(-1));
  std::set<std::size_t> in_force;  // ranks in `order`
  std::multimap<Instant, std::size_t> ends;
  std::size_t next = 0;
  const std::vector<Instant> cuts = cuts_of(usages, right.period);
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    const Period period{cuts[c], cuts[c + 1]};
    while (!ends.empty() && ends.begin()->first <= period.from) {
      in_force.erase(ends.begin()->second);
      ends.erase(ends.begin());
    }
    for (; next < order.size() && usages[order[next]].from <= period.from; ++next) {
      in_force.insert(next);
      ends.emplace(usages[order[next]].to, next);
    }
    const bool valid = right.period.contains(period.from);
    MilliCe left = valid ? right.ce : MilliCe{0};
    for (const std::size_t rank : in_force) {
      const MilliCe wanted = usages[order[rank]].billable_ce;
      const MilliCe covered = std::min(wanted, left);
      left -= covered;
      add_piece(coverage.pieces, last, {order[rank], period, covered, wanted - covered});
    }
    if (valid) add_unused(coverage.unused, period, left);
  }
  return coverage;
}

PurchaseModel hybrid_model(GroupRole role, MilliCe needs, SpotMarket market, Money spot,
                           Money on_demand, BasisPoints tight) {
  if (role == GroupRole::critical) return PurchaseModel::on_demand;
  const bool no_room = market.supply - market.demand < needs;
  const bool dear = spot >= on_demand.times_ratio(tight.value, whole_bp, Rounding::half_even);
  return no_room || dear ? PurchaseModel::on_demand : PurchaseModel::spot;
}

}  // namespace loam::billing

#include "schedule/segments.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/money.hpp"

namespace loam::schedule {
namespace {

constexpr std::int64_t pieces_max = 1'000'000;

// The largest root with root^2 <= square, by bisection.
std::int64_t root_of(Int128 square, std::int64_t most) {
  std::int64_t low = 0;
  std::int64_t high = most;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (Int128{middle} * middle <= square) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

Duration best_segment(const SegmentTerms& terms, Duration save, Duration mean_between_losses) {
  LOAM_ASSERT(terms.shortest.ms > 0 && terms.shortest <= terms.longest && save.ms >= 0);
  if (mean_between_losses.ms <= 0) return terms.longest;
  const std::int64_t length =
      root_of(Int128{2} * save.ms * mean_between_losses.ms, terms.longest.ms);
  return std::max(Duration{length}, terms.shortest);
}

std::vector<Duration> cut(Duration run, Duration segment) {
  LOAM_ASSERT(run.ms > 0 && segment.ms > 0);
  const std::int64_t count = (run.ms - 1) / segment.ms + 1;
  LOAM_ASSERT(count <= pieces_max);
  std::vector<Duration> pieces;
  pieces.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    pieces.push_back(Duration{run.ms / count + (i < run.ms % count ? 1 : 0)});
  return pieces;
}

Piece piece_at(const std::vector<Duration>& pieces, Duration done) {
  LOAM_ASSERT(done.ms >= 0);
  Piece piece;
  for (const Duration length : pieces) {
    piece.end = piece.begin + length;
    if (done < piece.end) return piece;
    ++piece.index;
    piece.begin = piece.end;
  }
  LOAM_ASSERT(false && "done is beyond the last piece");
  return piece;
}

}  // namespace loam::schedule

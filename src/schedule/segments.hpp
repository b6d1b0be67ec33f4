// Segments: a long task as a chain of pieces that each end in a checkpoint, so that the loss of an
// instance costs at most one piece. Pure; integers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace loam::schedule {

struct SegmentTerms {
  Duration shortest = Duration::minutes(30);  // what spot's usual spells favour
  Duration longest = Duration::minutes(60);
};

// The length that loses least to saving and to losses together: sqrt(2 * save * mean time between
// losses) (Young, "A First Order Approximation to the Optimum Checkpoint Interval", CACM 17(9),
// 1974), kept within the terms. Requires positive terms with shortest <= longest, save >= 0; a mean
// of 0 or less means that losses are unknown, and gives `longest`.
Duration best_segment(const SegmentTerms& terms, Duration save, Duration mean_between_losses);

// The lengths of the pieces of `run`, in order: as few as `segment` allows, of equal length to the
// millisecond, longer ones first; they sum to `run`. Requires run > 0, segment > 0 and at most a
// million pieces.
std::vector<Duration> cut(Duration run, Duration segment);

// In which piece a task stands that has done `done` of its work, counted from 0, and where that
// piece ends: the work at which the next checkpoint is due. Requires 0 <= done < the sum of pieces.
struct Piece {
  std::size_t index = 0;
  Duration begin;
  Duration end;
};
Piece piece_at(const std::vector<Duration>& pieces, Duration done);

}  // namespace loam::schedule

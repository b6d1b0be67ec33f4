// Defrag: a few moves of running tasks that let a larger one start which waits. Which moves; who
// may ask for them and who may be moved is the walk's to say. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/decision.hpp"

namespace loam::schedule {

// A running task that may be moved.
struct Movable {
  const Standing* standing = nullptr;
  std::int64_t loss = 0;  // by the move, in milli-device × ms
};

// What the moves have to go by.
class MoveStage {
 public:
  virtual ~MoveStage() = default;
  // Where the task, by this request of its own, would go if `then` were free.
  virtual std::optional<Place> place_for(const Standing& task, const Ask& ask,
                                         const Room& then) const = 0;
  // Whether this keeps everything that was promised to others.
  virtual bool allows(const Defrag& defrag) const = 0;
};

struct MoveBounds {
  std::size_t moves_max = 2;    // for one start
  std::size_t tries_max = 100;  // sets of tasks that are looked at; counted down
};

// Of all sets of moves that make room for `asker`, the one that loses least; of those that lose the
// same, the one found first. Nothing: it has a place as it is, or no set within the bounds is
// enough. A new place is another than before, and on what is free beside the asker's.
//
// Where the asker takes one slice, a set is: those on its device who are in its way, and at most
// one more who makes room for one of them elsewhere. Else any set. With `moves_max` 1 or 2 and one
// slice each this leaves nothing out, as far as place_for() finds every place there is.
//
// `movable`: by loss, those with the least first; none that waits. O(tries_max) looks at the room.
std::optional<Defrag> find_moves(const Standing& asker, const std::vector<Movable>& movable,
                                 Instant now, const Room& room, const MoveStage& stage,
                                 MoveBounds& bounds);

}  // namespace loam::schedule

// What a scenario says of the pool's settings, as far as that is not with the other statements.
#include "sim/scenario_words.hpp"

namespace loam::sim {

Result<Step> read_oversubscribe(Words& words) {
  SetOversubscription step;
  LOAM_CHECK(words.take("ce", step.lent.ce_permille, parse_factor));
  LOAM_CHECK(words.take("memory", step.lent.memory_permille, parse_factor));
  return Step(step);
}

}  // namespace loam::sim

#include "engine/oversubscription.hpp"

namespace loam::engine {

std::optional<Reject> validate(const Oversubscription& lent) {
  const auto fault = [](const char* what, std::int64_t permille) -> std::optional<Reject> {
    if (permille >= 1000 && permille <= oversubscription_permille_max) return std::nullopt;
    return Reject{RejectCode::invalid_argument,
                  "an oversubscription of " + std::string(what) + " by " + factor_text(permille) +
                      " is out of range",
                  "use 1 (none) to " + factor_text(oversubscription_permille_max)};
  };
  if (auto reject = fault("ce", lent.ce_permille)) return reject;
  return fault("memory", lent.memory_permille);
}

std::string promise_words(const Slice& slice) {
  std::string words;
  if (slice.unpromised.value > 0)
    words = "at least " + to_text(slice.promised()) + " of the device when all are busy";
  // All of it counts as the lease's wherever it is, so there is no least of it to tell.
  if (slice.memory_unpromised.value > 0) {
    words += std::string(words.empty() ? "" : "; ") +
             "its memory may go to the host while others use theirs";
  }
  return words;
}

}  // namespace loam::engine

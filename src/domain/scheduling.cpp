#include "domain/scheduling.hpp"

#include <boost/describe/enum_to_string.hpp>

#include "domain/enumerators.hpp"

namespace loam {

Result<LateStep> parse_late_step(std::string_view text) {
  LateStep step;
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    LOAM_TRY(after, parse_duration(text.substr(colon + 1)));
    step.after = after;
    text = text.substr(0, colon);
  }
  const std::size_t slash = text.find('/');
  LOAM_TRY(kind, parse_enumerator<LateStepKind>(text.substr(0, slash)));
  step.kind = kind;
  if (slash != std::string_view::npos) step.queue = text.substr(slash + 1);
  if ((step.kind == LateStepKind::larger_queue) == step.queue.empty()) {
    return invalid(
        "'" + std::string(text) + "' names " + (step.queue.empty() ? "no" : "a") + " queue",
        "write larger_queue/NAME, and the other steps without a queue");
  }
  return step;
}

std::string to_text(const LateStep& step) {
  std::string text = boost::describe::enum_to_string(step.kind, "?");
  if (!step.queue.empty()) text += "/" + step.queue;
  if (step.after.ms > 0) text += ":" + to_text(step.after);
  return text;
}

Result<std::int64_t> parse_factor(std::string_view text) {
  // What is out of range is refused with the settings.
  return parse_decimal(text, 3, 1000 * oversubscription_permille_max, "factor");
}

std::string factor_text(std::int64_t permille) {
  return decimal_text(permille, 3);
}

}  // namespace loam

#include "domain/task.hpp"

namespace loam {

Result<AskedCe> parse_asked_ce(std::string_view text) {
  constexpr std::string_view automatic = "auto";
  if (!text.starts_with(automatic)) {
    LOAM_TRY(ce, parse_ce(text));
    return AskedCe{ce, std::nullopt};
  }
  const std::string_view rest = text.substr(automatic.size());
  if (rest.empty() || rest == ":")
    return invalid("'" + std::string(text) + "' says no most", "say how much it may be: auto:40");
  if (rest.front() != ':')
    return invalid("'" + std::string(text) + "' is not a number of CE", "write 40, or auto:40");
  LOAM_TRY(most, parse_ce(rest.substr(1)));
  return AskedCe{most, AutoCe{most, 0, {}}};
}

}  // namespace loam

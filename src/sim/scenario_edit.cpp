// A scenario's text with some of its lines replaced. Pure.
#include "sim/scenario_run.hpp"

namespace loam::sim {

std::string edited(std::string_view text, const Edits& edits) {
  std::string out;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto edit = edits.find(++number);
    if (edit == edits.end()) {
      out += std::string(line) + "\n";
      continue;
    }
    for (const std::string& fresh : edit->second) out += fresh + "\n";
  }
  return out;
}

}  // namespace loam::sim

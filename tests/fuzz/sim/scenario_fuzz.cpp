// Any bytes as a scenario: read, or refused with a place. Words that were read can be written and
// read again without a difference.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "sim/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loam::sim;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = read_lines("fuzz", text);
  if (lines) {
    for (const Line& line : *lines) {
      const auto again = read_line("fuzz", line.number, line.written());
      LOAM_ASSERT(again.ok() && again->words.size() == line.words.size());
      for (std::size_t i = 0; i < line.words.size(); ++i) {
        LOAM_ASSERT(again->words[i].key == line.words[i].key);
        LOAM_ASSERT(again->words[i].text == line.words[i].text);
      }
    }
  }
  const auto scenario = parse_scenario("fuzz", text);
  LOAM_ASSERT(scenario.ok() || scenario.error().message.starts_with("fuzz:"));
  return 0;
}

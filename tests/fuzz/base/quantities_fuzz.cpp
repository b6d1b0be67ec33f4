// Every parser of base: no input crashes it, and what it accepts comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"

namespace {

using namespace loam;

template <class Parse>
void check(std::string_view text, const Parse& parse) {
  const auto first = parse(text);
  if (!first.ok()) {
    LOAM_ASSERT(!first.error().message.empty());
    return;
  }
  const auto again = parse(to_text(*first));
  LOAM_ASSERT(again.ok());
  LOAM_ASSERT(*again == *first);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text, [](std::string_view t) { return parse_ce(t); });
  check(text, [](std::string_view t) { return parse_memory(t); });
  check(text, [](std::string_view t) { return parse_share(t); });
  check(text, [](std::string_view t) { return parse_cpu(t); });
  check(text, [](std::string_view t) { return parse_duration(t); });
  check(text, [](std::string_view t) { return parse_instant(t); });
  check(text, [](std::string_view t) { return Money::parse_text(t); });
  return 0;
}

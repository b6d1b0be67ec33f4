// A table made of the first line's patterns (between commas) answers any path on the second:
// captured parts put back into the pattern give the path.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "http/router.hpp"

namespace {

using namespace loam::http;

// The path that a match stands for.
std::string fill(std::string pattern, const RouteMatch& match) {
  for (const Parameter& parameter : match.parameters) {
    for (const std::string& hole : {"{" + parameter.name + "}", "{" + parameter.name + "...}"}) {
      if (const auto at = pattern.find(hole); at != std::string::npos) {
        pattern.replace(at, hole.size(), parameter.value);
        break;
      }
    }
  }
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line_end = std::min(input.find('\n'), input.size());
  const std::string_view path = input.substr(std::min(line_end + 1, input.size()));
  Router router;
  std::vector<std::string> patterns;
  for (std::size_t at = 0; at < line_end;) {
    const std::size_t comma = std::min(input.find(',', at), line_end);
    const std::string pattern(input.substr(at, comma - at));
    at = comma + 1;
    const bool added = router.add(Method::get, pattern, patterns.size()).ok();
    patterns.push_back(added ? pattern : "");
  }
  const RouteResult found = router.match(Method::head, path);
  const RouteResult wrong = router.match(Method::put, path);
  LOAM_ASSERT(!std::holds_alternative<RouteMatch>(wrong));
  if (const auto* match = std::get_if<RouteMatch>(&found)) {
    LOAM_ASSERT(match->index < patterns.size() && !patterns[match->index].empty());
    // Captures that hold braces could be taken for holes by fill().
    if (path.find_first_of("{}") == std::string_view::npos && !path.ends_with('/'))
      LOAM_ASSERT(fill(patterns[match->index], *match) == path);
    LOAM_ASSERT(std::get<WrongMethod>(wrong).allow == "GET, HEAD");
  } else {
    LOAM_ASSERT(std::holds_alternative<NoRoute>(found) && std::holds_alternative<NoRoute>(wrong));
  }
  return 0;
}

// What people write behind --tag: no text crashes it, a refusal has words, and what is accepted is
// tags that every door of loam takes, and comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/loam/request.hpp"
#include "base/assert.hpp"
#include "billing/attribution.hpp"

namespace {

using namespace loam;

cli::Arguments arguments_of(std::string_view text) {
  cli::Arguments arguments;
  std::vector<std::string>& given = arguments.options["tag"];
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    given.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return arguments;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const cli::Arguments arguments = arguments_of(text);
  billing::Tags tags;
  if (const auto taken = cli::take_tags(arguments, tags); !taken.ok()) {
    LOAM_ASSERT(taken.error().message.starts_with("--tag: "));
    return 0;
  }
  LOAM_ASSERT(billing::check(tags).ok());
  LOAM_ASSERT(tags.size() == arguments.list("tag").size());
  cli::Arguments again;
  for (const auto& [key, value] : tags) again.options["tag"].push_back(key + "=" + value);
  billing::Tags same;
  LOAM_ASSERT(cli::take_tags(again, same).ok() && same == tags);
  return 0;
}

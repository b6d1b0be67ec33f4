// loam-scenario: runs scenarios and fault simulations. The shell around loam_sim that tests use.
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario_run.hpp"
#include "sim/seeds.hpp"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int usage() {
  std::cerr << "loam-scenario [--update] FILE|FOLDER...   run scenarios\n"
               "loam-scenario --seeds 1..200 [SEED...]    run fault simulations\n";
  return exit_usage;
}

bool read_number(std::string_view text, std::uint64_t& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && end == text.data() + text.size();
}

int run_seeds(const std::vector<std::string>& words) {
  std::vector<std::uint64_t> seeds;
  constexpr std::uint64_t seeds_max = 10'000'000;
  for (const std::string& word : words) {
    const std::size_t dots = word.find("..");
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const bool good =
        dots == std::string::npos
            ? read_number(word, first) && read_number(word, last)
            : read_number(word.substr(0, dots), first) && read_number(word.substr(dots + 2), last);
    if (!good || last < first || last - first >= seeds_max) {
      std::cerr << "'" << word << "' is not a seed or a range of seeds; write 42 or 1..200\n";
      return exit_usage;
    }
    for (std::uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const loam::Result<loam::sim::SeedsSummary> result =
      loam::sim::run_seeds(seeds, [&](std::size_t done, std::size_t all) {
        if (terminal) std::cerr << "\r" << done << "/" << all << " seeds " << std::flush;
      });
  if (terminal) std::cerr << "\r\033[K";
  if (!result) {
    std::cerr << loam::to_text(result.error()) << "\n";
    return exit_failed;
  }
  std::cout << loam::sim::to_text(*result) << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() == "--help") return usage();
  if (words.front() == "--seeds") {
    words.erase(words.begin());
    return words.empty() ? usage() : run_seeds(words);
  }
  // ./dev test --update says it through the environment.
  const char* asked = std::getenv("LOAM_UPDATE_EXPECTED");
  const bool update = words.front() == "--update" || (asked != nullptr && *asked == '1');
  if (words.front() == "--update") words.erase(words.begin());
  if (words.empty() || words.front().starts_with("--")) return usage();
  const auto failed = loam::sim::run_scenario_files(
      words, update, [](const std::string& line) { std::cout << line << "\n"; });
  if (!failed) {
    std::cerr << loam::to_text(failed.error()) << "\n";
    return exit_failed;
  }
  if (*failed > 0) std::cerr << *failed << " scenarios failed\n";
  return *failed == 0 ? 0 : exit_failed;
}

// A main for fuzz targets where libFuzzer is not: runs every file of the corpus folders and then
// seeded mutations of them, the same ones each time.
//
//   fuzz_NAME RUNS FOLDER_OR_FILE...      mutate the corpus RUNS times; 0 replays it only
//
// When the target crashes, the input is printed as a C string on standard error.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// AddressSanitizer's, where it is linked in: it reports by itself and never raises SIGABRT.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

std::string current_input;

// Async-signal-safe.
void print_current_input() {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto print = [](std::string_view text) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  };
  print("\nthe input that failed: \"");
  for (char c : current_input) {
    const auto byte = static_cast<unsigned char>(c);
    const std::array<char, 4> escaped{'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    print({escaped.data(), escaped.size()});
  }
  print("\"\n");
}

void on_crash(int signal) {
  print_current_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const std::string& input) {
  current_input = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current_input.data()),
                         current_input.size());
}

// One small change: a byte replaced, removed or put in, a piece repeated or cut, or the tail of
// another seed.
std::string mutate(std::string input, const std::vector<std::string>& corpus,
                   loam::Random& random) {
  constexpr std::size_t input_bytes_max = 4096;
  constexpr std::string_view telling("\0\n\r%/+&=?.:{}\"\\-0 \x7f\x80\xff", 22);
  const auto at = [&] { return static_cast<std::size_t>(random.below(input.size() + 1)); };
  const auto byte = [&] {
    return random.chance(500) ? telling[random.below(telling.size())]
                              : static_cast<char>(random.below(256));
  };
  switch (random.below(6)) {
    case 0:
      if (!input.empty()) input[random.below(input.size())] = byte();
      break;
    case 1:
      if (!input.empty()) input.erase(random.below(input.size()), 1);
      break;
    case 2:
      input.insert(at(), 1, byte());
      break;
    case 3: {
      const std::size_t from = at();
      input.insert(at(), std::string(input.substr(from, random.below(32))));
      break;
    }
    case 4: {
      const std::size_t from = at();
      input.erase(from, random.below(16));
      break;
    }
    default: {
      const std::string& other = corpus[random.below(corpus.size())];
      input = input.substr(0, at()) + other.substr(random.below(other.size() + 1));
      break;
    }
  }
  if (input.size() > input_bytes_max) input.resize(input_bytes_max);
  return input;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 0;
  const std::string_view runs_text = argc > 1 ? argv[1] : "";
  const auto [end, fault] =
      std::from_chars(runs_text.data(), runs_text.data() + runs_text.size(), runs);
  if (argc < 3 || fault != std::errc{} || end != runs_text.data() + runs_text.size()) {
    std::fprintf(stderr, "usage: %s RUNS FOLDER_OR_FILE...\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      paths.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the folder's order is not the same everywhere
  std::vector<std::string> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path));
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: the corpus is empty\n", argv[0]);
    return 2;
  }

  std::signal(SIGABRT, on_crash);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(print_current_input);
  } else {
    std::signal(SIGSEGV, on_crash);
  }
  run("");
  for (const std::string& input : corpus) run(input);
  loam::Random random(1);
  for (std::uint64_t i = 0; i < runs; ++i) {
    std::string input = corpus[random.below(corpus.size())];
    for (std::uint64_t changes = random.below(8) + 1; changes > 0; --changes)
      input = mutate(std::move(input), corpus, random);
    run(input);
  }
  std::printf("%zu seeds and %llu mutations passed\n", corpus.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}

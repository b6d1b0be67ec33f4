// loam-bench: runs the registered benchmarks and gives their figures as a table, JSON or Markdown.
// Exit status: 0; 1 where a benchmark failed or, with --check, a figure is missing or misses its
// mark; 2 where the command line or a file is wrong.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "bench/bench.hpp"
#include "bench/results.hpp"

namespace {

using namespace loam;

struct Options {
  std::string prefix;
  std::string json_file;
  std::string markdown_of;
  std::string revision = "unknown";
  std::string data;
  bool check = false;
  bool list = false;
};

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int complain(const Error& error) {
  std::cerr << "loam-bench: " << to_text(error) << "\n";
  return exit_usage;
}

std::vector<bench::Benchmark> selected(const std::string& prefix) {
  std::vector<bench::Benchmark> chosen;
  for (bench::Benchmark& benchmark : bench::registered()) {
    if (benchmark.name.starts_with(prefix)) chosen.push_back(std::move(benchmark));
  }
  return chosen;
}

void print_list(const std::vector<bench::Benchmark>& benchmarks) {
  for (const bench::Benchmark& benchmark : benchmarks) {
    std::cout << benchmark.name << "\n";
    for (const bench::Promise& promise : benchmark.promises) {
      std::cout << "  " << promise.name << " (" << promise.unit << ") "
                << bench::mark_text(promise.mark) << "\n";
    }
  }
}

int print_markdown(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return complain(invalid("'" + file + "' cannot be read", "run loam-bench --json first"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Result<bench::Results> results = bench::parse_results(text);
  if (!results.ok()) return complain(results.error());
  std::cout << bench::to_markdown(*results);
  return 0;
}

bench::Results measure(const std::vector<bench::Benchmark>& benchmarks, const Options& options) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  bench::Results results{bench::machine_here(options.revision), {}};
  results.outcomes = bench::run(benchmarks, [&](std::size_t i) {
    std::cerr << (terminal ? "\r\033[K" : "") << "[" << i + 1 << "/" << benchmarks.size() << "] "
              << benchmarks[i].name << (terminal ? "" : "\n") << std::flush;
  });
  if (terminal) std::cerr << "\r\033[K" << std::flush;
  return results;
}

bool write_file(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.flush();
  return out.good();
}

// Takes out what replays traces that were not given, and says so; how many.
std::size_t leave_out_traces(std::vector<bench::Benchmark>& benchmarks) {
  return std::erase_if(benchmarks, [](const bench::Benchmark& benchmark) {
    if (benchmark.needs != bench::Needs::data) return false;
    std::cerr << "loam-bench: " << benchmark.name
              << " replays public traces: left out; give their folder with --data\n";
    return true;
  });
}

int run(const Options& options) {
  if (!options.markdown_of.empty()) return print_markdown(options.markdown_of);
  std::vector<bench::Benchmark> benchmarks = selected(options.prefix);
  if (benchmarks.empty())
    return complain(invalid("no benchmark's name starts with '" + options.prefix + "'",
                            "loam-bench --list names them"));
  if (options.list) {
    print_list(benchmarks);
    return 0;
  }
  std::size_t left_out = 0;
  if (options.data.empty()) {
    left_out = leave_out_traces(benchmarks);
  } else if (!std::filesystem::is_directory(options.data)) {
    return complain(invalid("--data: '" + options.data + "' is not a folder",
                            "docs/benchmarks.md says where the traces can be downloaded"));
  } else {
    bench::set_data_folder(options.data);
  }
  const bench::Results results = measure(benchmarks, options);
  std::cout << bench::to_table(results) << std::flush;
  if (!options.json_file.empty() && !write_file(options.json_file, bench::to_json(results)))
    return complain(
        invalid("'" + options.json_file + "' cannot be written", "choose another file"));
  bool failed = false;
  for (const bench::Outcome& outcome : results.outcomes) failed |= outcome.error.has_value();
  const std::vector<std::string> lines = bench::complaints(results);
  for (const std::string& line : lines) std::cerr << "loam-bench: " << line << "\n";
  if (options.check && left_out > 0) {
    std::cerr
        << "loam-bench: " << left_out
        << " benchmarks were left out, so their figures are missing; give --data, or name what "
           "to check\n";
    failed = true;
  }
  return failed || (options.check && !lines.empty()) ? exit_failed : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Runs loam's benchmarks; every figure is printed with its unit and mark."};
  app.add_option("name", options.prefix, "only benchmarks whose name starts with this");
  app.add_option("--json", options.json_file, "write every figure to this file too");
  app.add_option("--markdown", options.markdown_of,
                 "run nothing; print the table of this --json file as Markdown");
  app.add_option("--revision", options.revision, "the source revision to record");
  app.add_option("--data", options.data,
                 "folder of the public traces (openb/, shockwave/, azure-llm/, spot/); "
                 "docs/benchmarks.md says where they can be downloaded");
  app.add_flag("--check", options.check, "fail on a figure that is missing or misses its mark");
  app.add_flag("--list", options.list, "run nothing; list the benchmarks and their marks");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& fault) {
    return app.exit(fault) == 0 ? 0 : exit_usage;
  }
  return run(options);
}

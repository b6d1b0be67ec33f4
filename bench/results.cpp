#include "bench/results.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <fstream>

#include <fmt/format.h>

namespace loam::bench {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Outcome run_one(const Benchmark& benchmark) {
  Report report(benchmark.promises);
  Outcome outcome{benchmark.name, {}, std::nullopt};
  try {
    if (const Result<void> done = benchmark.body(report); !done.ok()) outcome.error = done.error();
  } catch (const std::exception& thrown) {
    outcome.error = Error{ErrorKind::internal, std::string("threw: ") + thrown.what(), {}};
  }
  outcome.figures = report.figures();
  return outcome;
}

std::string value_column(const Figure& figure) {
  if (!figure.value) return "-";
  std::string text = value_text(*figure.value);
  if (figure.interval) {
    text +=
        " [" + value_text(figure.interval->low) + ", " + value_text(figure.interval->high) + "]";
  }
  return text;
}

// The rows of both tables, the heading first.
std::vector<std::vector<std::string>> rows_of(const Results& results) {
  std::vector<std::vector<std::string>> rows{
      {"figure", "value", "unit", "mark", "verdict", "note"}};
  for (const Outcome& outcome : results.outcomes) {
    for (const Figure& figure : outcome.figures) {
      rows.push_back({figure.promise.name, value_column(figure), figure.promise.unit,
                      mark_text(figure.promise.mark), name_of(figure.verdict()), figure.note});
    }
  }
  return rows;
}

// Columns that the eye counts, which is not bytes: "≤" is three.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string escaped_for_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

Machine machine_here(std::string revision) {
  utsname kernel{};
  uname(&kernel);
  const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
  return {cpu_name(),
          static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          pages * page_bytes >> 20,
          std::string(kernel.sysname) + " " + kernel.release,
          date_now(),
          std::move(revision)};
}

std::vector<Outcome> run(const std::vector<Benchmark>& benchmarks,
                         const std::function<void(std::size_t index)>& before) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < benchmarks.size(); ++i) {
    if (before) before(i);
    outcomes.push_back(run_one(benchmarks[i]));
  }
  return outcomes;
}

std::vector<std::string> complaints(const Results& results) {
  std::vector<std::string> lines;
  if (results.outcomes.empty()) lines.emplace_back("no benchmark was run");
  for (const Outcome& outcome : results.outcomes) {
    if (outcome.error) lines.push_back(outcome.benchmark + " failed: " + to_text(*outcome.error));
    for (const Figure& figure : outcome.figures) {
      const std::string note = figure.note.empty() ? "" : " (" + figure.note + ")";
      if (figure.verdict() == Verdict::missing)
        lines.push_back(figure.promise.name + " is missing" + note);
      if (figure.verdict() == Verdict::missed)
        lines.push_back(figure.promise.name + " is " + value_text(*figure.value) + " " +
                        figure.promise.unit + ", its mark is " + mark_text(figure.promise.mark));
    }
  }
  return lines;
}

std::string value_text(double value) {
  constexpr double whole_from = 1000;
  if (std::abs(value) < whole_from) return fmt::format("{:.4g}", value);
  if (std::abs(value) >= 1e15) return fmt::format("{:.4g}", value);
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return value < 0 ? "-" + digits : digits;
}

std::string mark_text(const std::optional<Mark>& mark) {
  if (!mark) return "";
  return (mark->side == Mark::Side::at_most ? "≤ " : "≥ ") + value_text(mark->value);
}

std::string to_table(const Results& results) {
  const auto rows = rows_of(results);
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - width_of(row[i]), ' ');
      line += i == 1 ? gap + row[i] : row[i] + gap;  // values to the right
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string to_markdown(const Results& results) {
  const Machine& machine = results.machine;
  std::string out =
      fmt::format("Measured {} at revision {} on {} ({} cores, {} MiB), {}.\n\n", machine.date,
                  machine.revision, machine.cpu, machine.cores, machine.memory_mib, machine.kernel);
  const auto rows = rows_of(results);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& cell : rows[i]) out += "| " + escaped_for_markdown(cell) + " ";
    out += "|\n";
    if (i == 0) out += "| --- | ---: | --- | --- | --- | --- |\n";
  }
  return out;
}

}  // namespace loam::bench

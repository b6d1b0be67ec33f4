#include "sim/trace/jobs.hpp"

#include <fstream>
#include <limits>
#include <sstream>

#include "base/quantity.hpp"

namespace loam::sim {
namespace {

constexpr std::size_t jobs_max = 10'000'000;
constexpr std::int64_t seconds_max = 100LL * 366 * 86'400;  // a century, as for any duration
constexpr std::int64_t devices_max = 1'000'000;

// Where each figure stands, counted from 0.
struct Columns {
  char separator = '\t';
  std::size_t count_min = 12;
  std::size_t devices = 6;
  std::size_t length = 10;
  std::size_t arrival = 11;
  std::optional<std::size_t> limit;
};

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t at = line.find(separator);
    cells.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return cells;
    line.remove_prefix(at + 1);
  }
}

Error at_line(const std::string& name, std::size_t line, const std::string& what,
              std::string next_step = {}) {
  return invalid(name + ":" + std::to_string(line) + ": " + what, std::move(next_step));
}

Result<Columns> columns_of(std::string_view header, const std::string& name) {
  if (header.find('\t') != std::string_view::npos) return Columns{};
  Columns columns;
  columns.separator = ',';
  columns.count_min = 0;
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  columns.devices = columns.length = columns.arrival = none;
  const std::vector<std::string_view> titles = split(header, ',');
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (titles[i] == "devices") columns.devices = i;
    if (titles[i] == "duration_s") columns.length = i;
    if (titles[i] == "arrival_s") columns.arrival = i;
    if (titles[i] == "limit_s") columns.limit = i;
  }
  for (const auto& [column, title] :
       {std::pair(columns.devices, "devices"), std::pair(columns.length, "duration_s"),
        std::pair(columns.arrival, "arrival_s")}) {
    if (column == none) {
      return at_line(name, 1,
                     "neither tab-separated nor a header with the column " + std::string(title),
                     "see docs/formats/job-trace.md for the two forms");
    }
    columns.count_min = std::max(columns.count_min, column + 1);
  }
  if (columns.limit) columns.count_min = std::max(columns.count_min, *columns.limit + 1);
  return columns;
}

// Seconds with up to three decimals.
Result<Duration> seconds_in(std::string_view cell, std::string_view what) {
  LOAM_TRY(ms, parse_decimal(cell, 3, seconds_max * 1000, what));
  return Duration{ms};
}

Result<TraceJob> job_of(std::string_view line, const Columns& columns) {
  const std::vector<std::string_view> cells = split(line, columns.separator);
  if (cells.size() < columns.count_min) {
    return invalid(std::to_string(cells.size()) + " columns; at least " +
                   std::to_string(columns.count_min) + " are needed");
  }
  TraceJob job;
  LOAM_TRY(arrival, seconds_in(cells[columns.arrival], "time of arrival in seconds"));
  LOAM_TRY(length, seconds_in(cells[columns.length], "length in seconds"));
  LOAM_TRY(devices, parse_decimal(cells[columns.devices], 0, devices_max, "number of devices"));
  if (length.ms == 0) return invalid("the length is 0", "leave out what does not run");
  if (devices == 0) return invalid("the number of devices is 0");
  job.arrival = Instant{arrival.ms};
  job.length = length;
  job.devices = devices;
  if (columns.limit && !cells[*columns.limit].empty()) {
    LOAM_TRY(limit, seconds_in(cells[*columns.limit], "limit in seconds"));
    if (limit < length)
      return invalid("the limit of " + to_text(limit) + " is below the length of " +
                     to_text(length));
    job.limit = limit;
  }
  return job;
}

}  // namespace

Result<std::vector<TraceJob>> parse_jobs(std::string_view text, const std::string& name) {
  std::vector<TraceJob> jobs;
  std::optional<Columns> columns;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!columns) {
      LOAM_TRY(known, columns_of(line, name));
      columns = known;
      if (columns->separator == ',') continue;
    }
    if (line.empty()) return at_line(name, number, "an empty line", "remove it");
    Result<TraceJob> job = job_of(line, *columns);
    if (!job) return at_line(name, number, job.error().message, job.error().next_step);
    if (jobs.size() == jobs_max)
      return at_line(name, number, "more than " + std::to_string(jobs_max) + " tasks");
    job->line = number;
    jobs.push_back(*job);
  }
  if (jobs.empty()) return invalid(name + ": no tasks", "see docs/formats/job-trace.md");
  return jobs;
}

Result<std::vector<TraceJob>> read_jobs(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || !text) {
    return Error{ErrorKind::not_found, "'" + file + "' cannot be read",
                 "name a file with tasks, tab-separated or CSV"};
  }
  return parse_jobs(std::move(text).str(), file);
}

}  // namespace loam::sim

// Job traces: tasks with an arrival, a length and a number of devices, in two forms. Reading does
// I/O; parsing is pure.
//
//   tab-separated  column 7 devices, 11 length in seconds, 12 arrival in seconds, counted from 1;
//                  at least 12 columns, no header (the form of the Shockwave artifact, NSDI 2023)
//   CSV            a header with arrival_s, duration_s and devices, and optionally limit_s, in any
//                  order and among others; no quotes (docs/formats/job-trace.md)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::sim {

struct TraceJob {
  Instant arrival;  // from the trace's own beginning
  Duration length;
  std::int64_t devices = 1;
  std::optional<Duration> limit;  // as its owner stated it
  std::size_t line = 0;           // of the file, from 1
};

// In the order of the file. Error: `name`, the line and what is wrong with it. An empty file, and a
// trace of more than 10 million tasks, are errors too. O(bytes).
Result<std::vector<TraceJob>> parse_jobs(std::string_view text, const std::string& name);
Result<std::vector<TraceJob>> read_jobs(const std::string& file);

}  // namespace loam::sim

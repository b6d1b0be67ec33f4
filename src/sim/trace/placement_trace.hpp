// Traces of a cluster and what was asked of it: the openb format (Alibaba GPU cluster 2023: "node"
// and "pod" lists, as published with hkust-adsl/kubernetes-scheduler-simulator) and loam's plain
// CSV (docs/formats/traces.md). Shell (reads files).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/pool.hpp"

namespace loam::sim {

struct TraceNode {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t devices = 0;
  std::string device_type;
  std::string region;  // empty where the trace has none
  // Of each device, where the list says so: its worth, and its memory. Placement traces go without.
  std::optional<MilliCe> ce{};
  std::optional<Mebibytes> device_memory{};
  std::int64_t line = 0;  // of the file, from 1
};

struct TraceTask {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t devices = 0;
  std::int64_t milli = 0;  // of each device
  std::vector<std::string> device_types;
  std::int64_t created_s = 0;
  std::int64_t deleted_s = 0;  // 0: never; only where the trace has times
  std::string tenant{};        // empty where the trace names none

  schedule::Demand demand() const;
};

struct PlacementTrace {
  std::vector<TraceNode> nodes;
  std::vector<TraceTask> tasks;
  bool has_times = false;

  std::int64_t device_milli() const;  // of all nodes
};

// Either format is known by its header. An error names file, line and reason: a missing column, a
// negative or absurd number, a device type that no node has, a task without a place to be.
Result<std::vector<TraceNode>> parse_trace_nodes(const std::string& file, std::string_view text);
Result<std::vector<TraceNode>> read_trace_nodes(const std::string& path);
Result<PlacementTrace> parse_placement_trace(const std::string& nodes_file,
                                             std::string_view nodes_text,
                                             const std::string& tasks_file,
                                             std::string_view tasks_text);
Result<PlacementTrace> read_placement_trace(const std::string& nodes_path,
                                            const std::string& tasks_path);

}  // namespace loam::sim

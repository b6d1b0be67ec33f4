#include "sim/trace/placement_trace.hpp"

#include <algorithm>
#include <set>

#include "base/quantity.hpp"
#include "sim/trace/csv.hpp"

namespace loam::sim {
namespace {

// Far above any machine, far below overflow.
constexpr std::int64_t cpu_milli_max = 10'000'000;
constexpr std::int64_t memory_mib_max = 1'000'000'000;
constexpr std::int64_t devices_max = 1024;
constexpr std::int64_t seconds_max = 100LL * 366 * 86'400;

// The same column under its two names.
Result<std::size_t> either(const CsvRows& rows, std::string_view openb, std::string_view plain) {
  return rows.has(plain) ? rows.column(plain) : rows.column(openb);
}

struct TaskColumns {
  std::size_t name = 0;
  std::size_t cpu = 0;
  std::size_t memory = 0;
  std::size_t devices = 0;
  std::size_t milli = 0;
  std::size_t types = 0;
  std::size_t created = 0;
  std::size_t deleted = 0;
  std::optional<std::size_t> tenant{};
  bool has_types = false;
  bool has_times = false;
  bool has_duration = false;  // `deleted` holds a length, not an instant
};

Result<TaskColumns> task_columns(const CsvRows& rows) {
  TaskColumns at;
  LOAM_TRY(name, either(rows, "name", "task"));
  LOAM_TRY(cpu, rows.column("cpu_milli"));
  LOAM_TRY(memory, rows.column("memory_mib"));
  LOAM_TRY(devices, either(rows, "num_gpu", "devices"));
  LOAM_TRY(milli, either(rows, "gpu_milli", "share_milli"));
  at = {name, cpu, memory, devices, milli};
  if (rows.has("user") || rows.has("tenant")) {
    LOAM_TRY(tenant, either(rows, "user", "tenant"));
    at.tenant = tenant;
  }
  at.has_types = rows.has("gpu_spec") || rows.has("device_types");
  if (at.has_types) {
    LOAM_TRY(types, either(rows, "gpu_spec", "device_types"));
    at.types = types;
  }
  at.has_duration = rows.has("duration_s");
  at.has_times = rows.has("arrival_s") ? at.has_duration
                                       : rows.has("creation_time") && rows.has("deletion_time");
  if (at.has_times) {
    LOAM_TRY(created, either(rows, "creation_time", "arrival_s"));
    LOAM_TRY(deleted, either(rows, "deletion_time", "duration_s"));
    at.created = created;
    at.deleted = deleted;
  }
  return at;
}

std::vector<std::string> alternatives(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto bar = text.find('|');
    const std::string_view one = text.substr(0, bar);
    if (!one.empty()) out.emplace_back(one);
    if (bar == std::string_view::npos) break;
    text.remove_prefix(bar + 1);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<void> read_times(const CsvRows& rows, const TaskColumns& at, TraceTask& task) {
  LOAM_TRY(created, rows.count(at.created, seconds_max));
  LOAM_TRY(deleted, rows.count(at.deleted, seconds_max));
  task.created_s = created;
  task.deleted_s = at.has_duration ? created + deleted : deleted;
  if (task.deleted_s < created)
    return rows.fault("the task ends at " + std::to_string(deleted) + " s, before it begins at " +
                      std::to_string(created) + " s");
  return {};
}

Result<TraceTask> read_task(const CsvRows& rows, const TaskColumns& at,
                            const std::set<std::string, std::less<>>& types) {
  TraceTask task;
  task.name = std::string(rows.text(at.name));
  LOAM_TRY(cpu, rows.count(at.cpu, cpu_milli_max));
  LOAM_TRY(memory, rows.count(at.memory, memory_mib_max));
  LOAM_TRY(devices, rows.count(at.devices, devices_max));
  LOAM_TRY(milli, rows.count(at.milli, 1000));
  task.cpu_milli = cpu;
  task.memory_mib = memory;
  task.devices = devices;
  task.milli = milli;
  if (devices > 0 && milli == 0)
    return rows.fault("the task asks for " + std::to_string(devices) + " devices and none of each");
  if (devices == 0) task.milli = 0;
  if (at.has_types) task.device_types = alternatives(rows.text(at.types));
  for (const std::string& type : task.device_types) {
    if (!types.contains(type))
      return rows.fault("no node has a device of the type '" + type + "'",
                        "check the column of device types against the list of nodes");
  }
  if (at.has_times) LOAM_CHECK(read_times(rows, at, task));
  if (at.tenant) task.tenant = std::string(rows.text(*at.tenant));
  return task;
}

struct NodeColumns {
  std::size_t name = 0;
  std::size_t cpu = 0;
  std::size_t memory = 0;
  std::size_t devices = 0;
  std::size_t type = 0;
  std::optional<std::size_t> region{};
  std::optional<std::size_t> ce{};
  std::optional<std::size_t> device_memory{};
};

Result<NodeColumns> node_columns(const CsvRows& rows) {
  LOAM_TRY(name, either(rows, "sn", "node"));
  LOAM_TRY(cpu, rows.column("cpu_milli"));
  LOAM_TRY(memory, rows.column("memory_mib"));
  LOAM_TRY(devices, either(rows, "gpu", "devices"));
  LOAM_TRY(type, either(rows, "model", "device_type"));
  NodeColumns at{name, cpu, memory, devices, type};
  for (const auto& [title, column] : {std::pair("region", &at.region), std::pair("ce", &at.ce),
                                      std::pair("device_memory_mib", &at.device_memory)}) {
    if (!rows.has(title)) continue;
    LOAM_TRY(found, rows.column(title));
    *column = found;
  }
  return at;
}

// Of its devices, where the list says so.
Result<void> read_worth(const CsvRows& rows, const NodeColumns& at, TraceNode& node) {
  if (at.ce && !rows.text(*at.ce).empty()) {
    const auto ce = parse_ce(rows.text(*at.ce));
    if (!ce) return rows.fault(ce.error().message, ce.error().next_step);
    node.ce = *ce;
  }
  if (at.device_memory && !rows.text(*at.device_memory).empty()) {
    LOAM_TRY(memory, rows.count(*at.device_memory, memory_mib_max));
    if (memory == 0) return rows.fault("the devices have no memory");
    node.device_memory = Mebibytes{memory};
  }
  return {};
}

Result<TraceNode> read_node(const CsvRows& rows, const NodeColumns& at) {
  TraceNode node;
  node.name = std::string(rows.text(at.name));
  if (node.name.empty()) return rows.fault("the node has no name");
  LOAM_TRY(cpu_milli, rows.count(at.cpu, cpu_milli_max));
  LOAM_TRY(memory_mib, rows.count(at.memory, memory_mib_max));
  LOAM_TRY(count, rows.count(at.devices, devices_max));
  node.cpu_milli = cpu_milli;
  node.memory_mib = memory_mib;
  node.devices = count;
  node.device_type = std::string(rows.text(at.type));
  if (count > 0 && node.device_type.empty())
    return rows.fault("the node has devices, but their type is not named");
  if (at.region) node.region = std::string(rows.text(*at.region));
  LOAM_CHECK(read_worth(rows, at, node));
  node.line = rows.line();
  return node;
}

}  // namespace

schedule::Demand TraceTask::demand() const {
  schedule::Demand demand;
  demand.devices = devices;
  if (devices > 0) {
    demand.share = MilliDevice{milli};
    demand.memory = Mebibytes{0};  // the trace says nothing of device memory
  }
  demand.cpu = MilliCpu{cpu_milli};
  demand.host_memory = Mebibytes{memory_mib};
  demand.device_types = device_types;
  return demand;
}

std::int64_t PlacementTrace::device_milli() const {
  std::int64_t sum = 0;
  for (const TraceNode& node : nodes) sum += node.devices * whole_device.value;
  return sum;
}

Result<std::vector<TraceNode>> parse_trace_nodes(const std::string& file, std::string_view text) {
  LOAM_TRY(rows, CsvRows::open(file, text));
  LOAM_TRY(at, node_columns(rows));
  std::vector<TraceNode> nodes;
  std::set<std::string> names;
  for (;;) {
    LOAM_TRY(more, rows.next());
    if (!more) break;
    LOAM_TRY(node, read_node(rows, at));
    if (!names.insert(node.name).second)
      return rows.fault("the node '" + node.name + "' is there twice");
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) return rows.fault("the list has no nodes");
  return nodes;
}

Result<PlacementTrace> parse_placement_trace(const std::string& nodes_file,
                                             std::string_view nodes_text,
                                             const std::string& tasks_file,
                                             std::string_view tasks_text) {
  PlacementTrace trace;
  LOAM_TRY(nodes, parse_trace_nodes(nodes_file, nodes_text));
  trace.nodes = std::move(nodes);
  std::set<std::string, std::less<>> types;
  for (const TraceNode& node : trace.nodes) {
    if (node.devices > 0) types.insert(node.device_type);
  }
  LOAM_TRY(rows, CsvRows::open(tasks_file, tasks_text));
  LOAM_TRY(at, task_columns(rows));
  trace.has_times = at.has_times;
  for (;;) {
    LOAM_TRY(more, rows.next());
    if (!more) break;
    LOAM_TRY(task, read_task(rows, at, types));
    trace.tasks.push_back(std::move(task));
  }
  if (trace.tasks.empty()) return rows.fault("the list has no tasks");
  return trace;
}

Result<std::vector<TraceNode>> read_trace_nodes(const std::string& path) {
  LOAM_TRY(text, read_trace_file(path));
  return parse_trace_nodes(path, text);
}

Result<PlacementTrace> read_placement_trace(const std::string& nodes_path,
                                            const std::string& tasks_path) {
  LOAM_TRY(nodes_text, read_trace_file(nodes_path));
  LOAM_TRY(tasks_text, read_trace_file(tasks_path));
  return parse_placement_trace(nodes_path, nodes_text, tasks_path, tasks_text);
}

}  // namespace loam::sim

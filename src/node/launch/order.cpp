#include "node/launch/order.hpp"

#include <algorithm>

#include "domain/path.hpp"
#include "node/launch/json_fields.hpp"

namespace loam::node {

namespace json = boost::json;

namespace {

constexpr SandboxMode sandbox_modes[] = {SandboxMode::automatic, SandboxMode::bubblewrap,
                                         SandboxMode::none};
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Error bad(const char* field, std::string_view trouble, std::string_view value) {
  return invalid(std::string("order: `") + field + "` " + std::string(trouble) + ": \"" +
                 std::string(value.substr(0, 200)) + "\"");
}

Result<void> check_path(const char* field, const std::string& path) {
  if (const char* fault = path_fault(path)) return bad(field, fault, path);
  return {};
}

Result<void> check_range(const char* field, std::int64_t value, std::int64_t min,
                         std::int64_t max) {
  if (value < min || value > max) {
    return bad(field, "is not from " + std::to_string(min) + " to " + std::to_string(max),
               std::to_string(value));
  }
  return {};
}

Result<void> check_paths(const LaunchOrder& order) {
  for (const auto* path :
       {&order.working_directory, &order.checkpoint_directory, &order.cache_directory,
        &order.backup_directory, &order.guard_library, &order.slice_page}) {
    const char* field = path == &order.working_directory      ? "working_directory"
                        : path == &order.checkpoint_directory ? "checkpoint_directory"
                        : path == &order.cache_directory      ? "cache_directory"
                        : path == &order.backup_directory     ? "backup_directory"
                        : path == &order.guard_library        ? "guard_library"
                                                              : "slice_page";
    if (!path->empty()) LOAM_CHECK(check_path(field, *path));
    if (*path == "/") return bad(field, "is the root", *path);
  }
  for (const auto& path : order.read_only) LOAM_CHECK(check_path("read_only", path));
  for (const auto& path : order.visible) LOAM_CHECK(check_path("visible", path));
  for (const auto& mount : order.mounts) {
    LOAM_CHECK(check_path("mounts.source", mount.source));
    LOAM_CHECK(check_path("mounts.target", mount.target));
    if (is_reserved_target(mount.target)) {
      return bad("mounts.target", "is a directory of the sandbox's own", mount.target);
    }
  }
  return {};
}

std::map<std::string, std::string> texts_of(JsonFields& fields, const char* name) {
  std::map<std::string, std::string> all;
  if (auto object = fields.object(name)) {
    for (auto& [key, value] : object->texts()) all.emplace(std::move(key), std::move(value));
    fields.adopt(object->finish());
  }
  return all;
}

std::vector<LaunchMount> mounts_of(JsonFields& fields) {
  std::vector<LaunchMount> mounts;
  for (JsonFields& object : fields.objects("mounts")) {
    LaunchMount mount;
    object.require("source");
    object.require("target");
    object.read("source", mount.source);
    object.read("target", mount.target);
    object.read("read_only", mount.read_only);
    fields.adopt(object.finish());
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace

const char* name_of(SandboxMode mode) noexcept {
  switch (mode) {
    case SandboxMode::automatic:
      return "auto";
    case SandboxMode::bubblewrap:
      return "bubblewrap";
    case SandboxMode::none:
      return "none";
  }
  return "none";
}

bool is_attempt_name(std::string_view text) {
  constexpr std::size_t longest = 100;  // fits a host name's and a cgroup's limits with room
  return !text.empty() && text.size() <= longest && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

Result<void> check(const LaunchOrder& order) {
  if (!is_attempt_name(order.attempt)) {
    return bad("attempt", "may hold letters, digits, '.', '_' and '-' only, 1 to 100",
               order.attempt);
  }
  if (order.argv.empty() || order.argv.front().empty()) {
    return invalid("order: `argv` names no program");
  }
  for (const auto& word : order.argv) {
    if (has_nul(word)) return bad("argv", "holds a NUL byte", word);
  }
  for (const auto& [name, value] : order.environment) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value)) {
      return bad("environment", "has a name that is empty or holds '=' or NUL", name);
    }
  }
  for (const std::string* text : {&order.task, &order.lease, &order.rendezvous}) {
    if (has_nul(*text)) return bad("task/lease/rendezvous", "holds a NUL byte", *text);
  }
  if (order.size == 0 || order.rank >= order.size) {
    return bad("rank", "is not below `size`", std::to_string(order.rank));
  }
  LOAM_CHECK(check_range("cpu_milli", order.cpu_milli, 0, 1'000'000'000));
  LOAM_CHECK(check_range("cpu_turns_milli", order.cpu_turns_milli, 0, 1'000'000'000));
  LOAM_CHECK(check_range("cpu_weight_milli", order.cpu_weight_milli, 0, 1'000'000'000));
  LOAM_CHECK(check_range("host_memory_mib", order.host_memory_mib, 0, std::int64_t{1} << 40));
  LOAM_CHECK(check_range("pids_max", order.pids_max, 0, 1 << 22));  // the kernel's own ceiling
  LOAM_CHECK(
      check_range("log_segment_bytes", order.log_segment_bytes, 4096, std::int64_t{1} << 40));
  LOAM_CHECK(check_range("log_segments", order.log_segments, 2, 10'000));
  LOAM_CHECK(check_range("backups", order.backups, 0, 10'000));
  if (order.backup_directory.empty() != (order.backups == 0)) {
    return bad("backups", "needs a `backup_directory`, and that needs it",
               std::to_string(order.backups));
  }
  constexpr std::int64_t year_ms = std::int64_t{86'400'000} * 365;
  LOAM_CHECK(check_range("grace_ms", order.grace_ms, 0, year_ms));
  LOAM_CHECK(check_range("run_limit_ms", order.run_limit_ms, 0, 100 * year_ms));
  return check_paths(order);
}

std::string to_json(const LaunchOrder& order) {
  json::object root;
  root["version"] = LaunchOrder::version;
  root["attempt"] = order.attempt;
  root["task"] = order.task;
  root["lease"] = order.lease;
  root["epoch"] = order.epoch;
  root["restart"] = order.restart;
  root["rank"] = order.rank;
  root["size"] = order.size;
  root["rendezvous"] = order.rendezvous;
  root["argv"] = json::value_from(order.argv);
  json::object environment;
  for (const auto& [name, value] : order.environment) environment[name] = value;
  root["environment"] = std::move(environment);
  root["working_directory"] = order.working_directory;
  root["checkpoint_directory"] = order.checkpoint_directory;
  root["cache_directory"] = order.cache_directory;
  root["backup_directory"] = order.backup_directory;
  root["backups"] = order.backups;
  json::array mounts;
  for (const auto& mount : order.mounts) {
    mounts.push_back(json::object{
        {"source", mount.source}, {"target", mount.target}, {"read_only", mount.read_only}});
  }
  root["mounts"] = std::move(mounts);
  root["read_only"] = json::value_from(order.read_only);
  root["visible"] = json::value_from(order.visible);
  root["cpu_milli"] = order.cpu_milli;
  root["cpu_turns_milli"] = order.cpu_turns_milli;
  root["cpu_weight_milli"] = order.cpu_weight_milli;
  root["host_memory_mib"] = order.host_memory_mib;
  root["pids_max"] = order.pids_max;
  root["log_segment_bytes"] = order.log_segment_bytes;
  root["log_segments"] = order.log_segments;
  root["grace_ms"] = order.grace_ms;
  root["run_limit_ms"] = order.run_limit_ms;
  root["sandbox"] = name_of(order.sandbox);
  root["network"] = order.network;
  root["guard_library"] = order.guard_library;
  root["slice_page"] = order.slice_page;
  return json::serialize(root) + "\n";
}

Result<LaunchOrder> parse_launch_order(std::string_view text) {
  LOAM_TRY(fields, JsonFields::parse(text, "order.json"));
  // Version 1 is the first; a later reader lifts older files here, field by field.
  LOAM_CHECK(read_version(fields, "order.json", LaunchOrder::version));
  LaunchOrder order;
  fields.require("attempt");
  fields.require("argv");
  fields.read("attempt", order.attempt);
  fields.read("task", order.task);
  fields.read("lease", order.lease);
  fields.read("epoch", order.epoch);
  fields.read("restart", order.restart);
  fields.read("rank", order.rank);
  fields.read("size", order.size);
  fields.read("rendezvous", order.rendezvous);
  fields.read("argv", order.argv);
  order.environment = texts_of(fields, "environment");
  fields.read("working_directory", order.working_directory);
  fields.read("checkpoint_directory", order.checkpoint_directory);
  fields.read("cache_directory", order.cache_directory);
  fields.read("backup_directory", order.backup_directory);
  fields.read("backups", order.backups, 0, int64_max);
  order.mounts = mounts_of(fields);
  fields.read("read_only", order.read_only);
  fields.read("visible", order.visible);
  fields.read("cpu_milli", order.cpu_milli, 0, int64_max);
  fields.read("cpu_turns_milli", order.cpu_turns_milli, 0, int64_max);
  fields.read("cpu_weight_milli", order.cpu_weight_milli, 0, int64_max);
  fields.read("host_memory_mib", order.host_memory_mib, 0, int64_max);
  fields.read("pids_max", order.pids_max, 0, int64_max);
  fields.read("log_segment_bytes", order.log_segment_bytes, 0, int64_max);
  fields.read("log_segments", order.log_segments, 0, int64_max);
  fields.read("grace_ms", order.grace_ms, 0, int64_max);
  fields.read("run_limit_ms", order.run_limit_ms, 0, int64_max);
  fields.read_enum("sandbox", order.sandbox, sandbox_modes, &name_of);
  fields.read("network", order.network);
  fields.read("guard_library", order.guard_library);
  fields.read("slice_page", order.slice_page);
  LOAM_CHECK(fields.finish());
  LOAM_CHECK(check(order));
  return order;
}

}  // namespace loam::node

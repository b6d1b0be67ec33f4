#include "node/launch/status.hpp"

#include "base/time.hpp"
#include "node/launch/json_fields.hpp"

namespace loam::node {

namespace json = boost::json;

namespace {

constexpr Phase phases[] = {Phase::ordered, Phase::starting, Phase::running, Phase::stopping,
                            Phase::exited,  Phase::refused,  Phase::lost};
constexpr Outcome outcomes[] = {Outcome::none,
                                Outcome::exited,
                                Outcome::signalled,
                                Outcome::stopped,
                                Outcome::killed_after_grace,
                                Outcome::killed,
                                Outcome::out_of_memory,
                                Outcome::refused,
                                Outcome::unable,
                                Outcome::launcher_lost};
constexpr LimitBy limit_kinds[] = {LimitBy::not_asked, LimitBy::cgroup_v2, LimitBy::cgroup_v1,
                                   LimitBy::rlimit, LimitBy::nothing};
constexpr Isolation isolations[] = {Isolation::none, Isolation::advisory, Isolation::sandboxed};
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

json::value or_null(const std::optional<std::int64_t>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::value or_null(const std::optional<int>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

void read(JsonFields& fields, const char* name, std::int64_t& out) {
  fields.read(name, out, int64_min, int64_max);
}

void read(JsonFields& fields, const char* name, std::optional<int>& out) {
  std::optional<std::int64_t> wide;
  fields.read(name, wide);
  if (wide) out = static_cast<int>(*wide);
}

json::object usage_object(const Usage& usage) {
  return {{"user_cpu_ms", usage.user_cpu_ms},
          {"system_cpu_ms", usage.system_cpu_ms},
          {"max_rss_bytes", usage.max_rss_bytes},
          {"memory_peak_bytes", or_null(usage.memory_peak_bytes)},
          {"io_read_bytes", or_null(usage.io_read_bytes)},
          {"io_write_bytes", or_null(usage.io_write_bytes)},
          {"work_bytes", or_null(usage.work_bytes)},
          {"checkpoint_bytes", or_null(usage.checkpoint_bytes)},
          {"log_bytes", or_null(usage.log_bytes)},
          {"backup_bytes", or_null(usage.backup_bytes)},
          {"storage_mib_ms", or_null(usage.storage_mib_ms)},
          {"checkpoint_mib_ms", or_null(usage.checkpoint_mib_ms)},
          {"network_rx_bytes", or_null(usage.network_rx_bytes)},
          {"network_tx_bytes", or_null(usage.network_tx_bytes)}};
}

Usage usage_of(JsonFields& parent) {
  Usage usage;
  auto fields = parent.object("usage");
  if (!fields) return usage;
  read(*fields, "user_cpu_ms", usage.user_cpu_ms);
  read(*fields, "system_cpu_ms", usage.system_cpu_ms);
  read(*fields, "max_rss_bytes", usage.max_rss_bytes);
  fields->read("memory_peak_bytes", usage.memory_peak_bytes);
  fields->read("io_read_bytes", usage.io_read_bytes);
  fields->read("io_write_bytes", usage.io_write_bytes);
  fields->read("work_bytes", usage.work_bytes);
  fields->read("checkpoint_bytes", usage.checkpoint_bytes);
  fields->read("log_bytes", usage.log_bytes);
  fields->read("backup_bytes", usage.backup_bytes);
  fields->read("storage_mib_ms", usage.storage_mib_ms);
  fields->read("checkpoint_mib_ms", usage.checkpoint_mib_ms);
  fields->read("network_rx_bytes", usage.network_rx_bytes);
  fields->read("network_tx_bytes", usage.network_tx_bytes);
  parent.adopt(fields->finish());
  return usage;
}

json::array notices_array(const std::vector<StopNotice>& notices) {
  json::array all;
  for (const auto& notice : notices) {
    all.push_back(json::object{{"action", notice.action},
                               {"reason", notice.reason},
                               {"given_boottime_ns", notice.given_boottime_ns},
                               {"deadline_boottime_ns", notice.deadline_boottime_ns}});
  }
  return all;
}

std::vector<StopNotice> notices_of(JsonFields& parent) {
  std::vector<StopNotice> notices;
  for (JsonFields& fields : parent.objects("notices")) {
    StopNotice notice;
    fields.read("action", notice.action);
    fields.read("reason", notice.reason);
    read(fields, "given_boottime_ns", notice.given_boottime_ns);
    read(fields, "deadline_boottime_ns", notice.deadline_boottime_ns);
    parent.adopt(fields.finish());
    notices.push_back(std::move(notice));
  }
  return notices;
}

// Instants for people; empty for "not yet".
std::string wall_text(std::int64_t ms) {
  return ms == 0 ? "" : to_text(Instant{ms});
}

void read_wall(JsonFields& fields, const char* name, std::int64_t& out) {
  std::string text;
  fields.read(name, text);
  if (text.empty()) return;
  const auto instant = parse_instant(text);
  if (!instant) return fields.fault(name, "is not an instant", json::value(text));
  out = instant->ms;
}

}  // namespace

const char* name_of(Phase phase) noexcept {
  switch (phase) {
    case Phase::ordered:
      return "ordered";
    case Phase::starting:
      return "starting";
    case Phase::running:
      return "running";
    case Phase::stopping:
      return "stopping";
    case Phase::exited:
      return "exited";
    case Phase::refused:
      return "refused";
    case Phase::lost:
      return "lost";
  }
  return "lost";
}

const char* name_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::none:
      return "none";
    case Outcome::exited:
      return "exited";
    case Outcome::signalled:
      return "signalled";
    case Outcome::stopped:
      return "stopped";
    case Outcome::killed_after_grace:
      return "killed_after_grace";
    case Outcome::killed:
      return "killed";
    case Outcome::out_of_memory:
      return "out_of_memory";
    case Outcome::refused:
      return "refused";
    case Outcome::unable:
      return "unable";
    case Outcome::launcher_lost:
      return "launcher_lost";
  }
  return "none";
}

const char* name_of(LimitBy limit) noexcept {
  switch (limit) {
    case LimitBy::not_asked:
      return "not_asked";
    case LimitBy::cgroup_v2:
      return "cgroup_v2";
    case LimitBy::cgroup_v1:
      return "cgroup_v1";
    case LimitBy::rlimit:
      return "rlimit";
    case LimitBy::nothing:
      return "nothing";
  }
  return "nothing";
}

const char* name_of(Isolation isolation) noexcept {
  switch (isolation) {
    case Isolation::none:
      return "none";
    case Isolation::advisory:
      return "advisory";
    case Isolation::sandboxed:
      return "sandboxed";
  }
  return "none";
}

std::string to_json(const AttemptStatus& status) {
  json::object root;
  root["version"] = AttemptStatus::version;
  root["attempt"] = status.attempt;
  root["task"] = status.task;
  root["lease"] = status.lease;
  root["epoch"] = status.epoch;
  root["phase"] = name_of(status.phase);
  root["outcome"] = name_of(status.outcome);
  root["detail"] = status.detail;
  root["boot_id"] = status.boot_id;
  root["start_boottime_ns"] = status.start_boottime_ns;
  root["end_boottime_ns"] = status.end_boottime_ns;
  root["start_wall"] = wall_text(status.start_wall_ms);
  root["end_wall"] = wall_text(status.end_wall_ms);
  root["paused_ns"] = status.paused_ns;
  root["paused_since_boottime_ns"] = status.paused_since_boottime_ns;
  root["launcher_pid"] = status.launcher_pid;
  root["launcher_start_ticks"] = status.launcher_start_ticks;
  root["program_pid"] = status.program_pid;
  root["exit_code"] = or_null(status.exit_code);
  root["signal"] = or_null(status.signal);
  root["isolation"] = name_of(status.isolation);
  root["isolation_detail"] = status.isolation_detail;
  root["cpu_limit"] = name_of(status.cpu_limit);
  root["memory_limit"] = name_of(status.memory_limit);
  root["pids_limit"] = name_of(status.pids_limit);
  root["cgroups"] = json::value_from(status.cgroups);
  root["notices"] = notices_array(status.notices);
  root["usage"] = usage_object(status.usage);
  root["log_segment_bytes"] = status.log_segment_bytes;
  root["stdout_bytes"] = status.stdout_bytes;
  root["stderr_bytes"] = status.stderr_bytes;
  root["log_dropped_bytes"] = status.log_dropped_bytes;
  return json::serialize(root) + "\n";
}

Result<AttemptStatus> parse_attempt_status(std::string_view text) {
  LOAM_TRY(fields, JsonFields::parse(text, "status.json"));
  // Version 1 is the first; a later reader lifts older files here, field by field.
  LOAM_CHECK(read_version(fields, "status.json", AttemptStatus::version));
  AttemptStatus status;
  fields.require("attempt");
  fields.require("phase");
  fields.read("attempt", status.attempt);
  fields.read("task", status.task);
  fields.read("lease", status.lease);
  fields.read("epoch", status.epoch);
  fields.read_enum("phase", status.phase, phases, &name_of);
  fields.read_enum("outcome", status.outcome, outcomes, &name_of);
  fields.read("detail", status.detail);
  fields.read("boot_id", status.boot_id);
  read(fields, "start_boottime_ns", status.start_boottime_ns);
  read(fields, "end_boottime_ns", status.end_boottime_ns);
  read_wall(fields, "start_wall", status.start_wall_ms);
  read_wall(fields, "end_wall", status.end_wall_ms);
  read(fields, "paused_ns", status.paused_ns);
  read(fields, "paused_since_boottime_ns", status.paused_since_boottime_ns);
  read(fields, "launcher_pid", status.launcher_pid);
  fields.read("launcher_start_ticks", status.launcher_start_ticks);
  read(fields, "program_pid", status.program_pid);
  read(fields, "exit_code", status.exit_code);
  read(fields, "signal", status.signal);
  fields.read_enum("isolation", status.isolation, isolations, &name_of);
  fields.read("isolation_detail", status.isolation_detail);
  fields.read_enum("cpu_limit", status.cpu_limit, limit_kinds, &name_of);
  fields.read_enum("memory_limit", status.memory_limit, limit_kinds, &name_of);
  fields.read_enum("pids_limit", status.pids_limit, limit_kinds, &name_of);
  fields.read("cgroups", status.cgroups);
  status.notices = notices_of(fields);
  status.usage = usage_of(fields);
  read(fields, "log_segment_bytes", status.log_segment_bytes);
  read(fields, "stdout_bytes", status.stdout_bytes);
  read(fields, "stderr_bytes", status.stderr_bytes);
  read(fields, "log_dropped_bytes", status.log_dropped_bytes);
  LOAM_CHECK(fields.finish());
  return status;
}

std::string to_json(const Heartbeat& heartbeat) {
  json::object root;
  root["version"] = AttemptStatus::version;
  root["boot_id"] = heartbeat.boot_id;
  root["boottime_ns"] = heartbeat.boottime_ns;
  root["usage"] = usage_object(heartbeat.usage);
  return json::serialize(root) + "\n";
}

Result<Heartbeat> parse_heartbeat(std::string_view text) {
  LOAM_TRY(fields, JsonFields::parse(text, "heartbeat.json"));
  LOAM_CHECK(read_version(fields, "heartbeat.json", AttemptStatus::version));
  Heartbeat heartbeat;
  fields.require("boottime_ns");
  fields.read("boot_id", heartbeat.boot_id);
  read(fields, "boottime_ns", heartbeat.boottime_ns);
  heartbeat.usage = usage_of(fields);
  LOAM_CHECK(fields.finish());
  return heartbeat;
}

}  // namespace loam::node

#include "node/launch/attempt_dir.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "node/launch/attempt_files.hpp"
#include "node/launch/cgroup.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/leftovers.hpp"

namespace loam::node {

Result<AttemptStatus> read_status(const std::string& attempt_path) {
  LOAM_TRY(text, read_file(attempt_path + "/" + attempt_files::status));
  return parse_attempt_status(text);
}

std::optional<Heartbeat> read_heartbeat(const std::string& attempt_path,
                                        const AttemptStatus& status) {
  const auto text =
      read_file(attempt_path + "/" + attempt_files::pulse + "/" + attempt_files::heartbeat);
  if (!text) return std::nullopt;
  auto heartbeat = parse_heartbeat(*text);
  if (!heartbeat || heartbeat->boot_id != status.boot_id) return std::nullopt;
  return std::move(*heartbeat);
}

bool is_locked(const std::string& attempt_path) {
  const Fd file(::open((attempt_path + "/" + attempt_files::lock).c_str(), O_RDWR | O_CLOEXEC));
  return file.valid() && is_file_locked(file);
}

std::optional<Fd> try_lock(const std::string& attempt_path) {
  Fd file(::open((attempt_path + "/" + attempt_files::lock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC,
                 0644));
  if (!file.valid() || !try_lock_file(file)) return std::nullopt;
  return file;
}

Result<AttemptStatus> settle_lost(const std::string& attempt_path, AttemptStatus status) {
  const bool same_boot = status.boot_id == boot_id();
  if (same_boot) {
    // A launcher that died before it noted its groups has made them under the name it would have.
    std::vector<std::string> groups = status.cgroups;
    const CgroupMounts mounts = read_cgroup_mounts();
    const std::string name = cgroup_name(attempt_path);
    for (const auto& [mount, own] : {std::pair{mounts.v2, mounts.v2_own},
                                     {mounts.cpu_v1, mounts.cpu_own},
                                     {mounts.memory_v1, mounts.memory_own},
                                     {mounts.pids_v1, mounts.pids_own},
                                     {mounts.freezer_v1, mounts.freezer_own}}) {
      if (mount.empty()) continue;
      groups.push_back(mount + "/loam/" + name);
      if (own != "/") groups.push_back(mount + own + "/loam/" + name);
    }
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    AttemptCgroup leftovers = AttemptCgroup::adopt(groups);
    constexpr int wait_ms = 5000;
    if (leftovers.can_kill()) leftovers.kill_all(wait_ms);
    kill_by_environment(attempt_path);
    leftovers.remove();
  }
  (void)remove_tree(attempt_path + "/" + attempt_files::temporary);
  ::unlink((attempt_path + "/" + attempt_files::control).c_str());

  const auto heartbeat = read_heartbeat(attempt_path, status);
  status.phase = Phase::lost;
  status.outcome = Outcome::launcher_lost;
  status.detail = same_boot ? "loam-launch died; its leftovers were ended"
                            : "the node went down while the attempt ran";
  if (status.start_boottime_ns != 0) {
    status.end_boottime_ns = status.start_boottime_ns;
    if (heartbeat) {
      status.end_boottime_ns = std::max(status.end_boottime_ns, heartbeat->boottime_ns);
      status.usage = heartbeat->usage;
    }
    status.end_wall_ms =
        status.start_wall_ms + (status.end_boottime_ns - status.start_boottime_ns) / 1'000'000;
    if (status.paused_since_boottime_ns != 0) {
      status.paused_ns +=
          std::max<std::int64_t>(0, status.end_boottime_ns - status.paused_since_boottime_ns);
      status.paused_since_boottime_ns = 0;
    }
  }
  LOAM_TRY(directory, open_directory(attempt_path));
  LOAM_CHECK(
      write_atomically_at(directory.get(), attempt_files::status, to_json(status), Durable::yes));
  return status;
}

}  // namespace loam::node

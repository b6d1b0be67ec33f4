#include "node/launch/attempt_dir.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/quantity.hpp"
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

Result<std::optional<std::int64_t>> read_output(const std::string& attempt_path) {
  constexpr std::size_t text_max = 64;
  constexpr std::int64_t output_max = 1'000'000'000'000'000;  // thousandths
  const std::optional<std::int64_t> nothing;
  const std::string folder = attempt_path + "/" + attempt_files::output_directory;
  const Fd directory(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!directory.valid()) return nothing;  // of a launcher that did not make one yet
  // The program made the file: it may be a link to what it cannot read, or a pipe.
  const Fd file(::openat(directory.get(), attempt_files::output,
                         O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() && errno == ENOENT) return nothing;
  struct stat facts {};
  const Error fault = invalid("what it wrote to LOAM_OUTPUT_FILE is not a number",
                              "write one of at most three decimals, such as 1250.5");
  if (!file.valid() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return fault;
  std::array<char, text_max + 1> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0 || static_cast<std::size_t>(size) > text_max) return fault;
  std::string_view number(text.data(), static_cast<std::size_t>(size));
  constexpr std::string_view blanks = " \t\r\n";
  if (number.find_first_not_of(blanks) == std::string_view::npos) return nothing;
  number.remove_prefix(number.find_first_not_of(blanks));
  number = number.substr(0, number.find_last_not_of(blanks) + 1);
  const auto value = parse_decimal(number, 3, output_max, "output");
  if (!value.ok() || *value < 0) return fault;
  return std::optional(*value);
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

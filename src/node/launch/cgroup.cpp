#include "node/launch/cgroup.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "node/launch/clock.hpp"

namespace loam::node {

namespace {

constexpr std::int64_t cpu_period_us = 100'000;  // the kernel's default scheduling period
constexpr std::int64_t cpu_turns_period_us =
    250'000;  // several turns, and no long wait where it is used up
constexpr std::int64_t cpu_quota_us_min = 1'000;  // the kernel refuses less

int write_value(const std::string& path, std::string_view value) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return errno;
  return write_all(file.get(), value) ? 0 : errno;
}

std::int64_t period_us(const CgroupLimits& limits) {
  return limits.cpu_in_turns ? cpu_turns_period_us : cpu_period_us;
}

std::int64_t quota_us(const CgroupLimits& limits) {
  return std::max(cpu_quota_us_min, limits.cpu_milli * period_us(limits) / 1000);
}

// A CPU's worth of weight: 1024 in v1, 100 in v2, as any other group has.
std::string weight_v1(std::int64_t milli) {
  return std::to_string(std::clamp<std::int64_t>(milli * 1024 / 1000, 2, 262'144));
}

std::string weight_v2(std::int64_t milli) {
  return std::to_string(std::clamp<std::int64_t>(milli / 10, 1, 10'000));
}

// The value of "name number" in a file of such lines.
std::optional<std::int64_t> find_value(const std::string& path, std::string_view name) {
  const auto text = read_file(path, 1 << 16);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  std::string word;
  std::int64_t value = 0;
  while (lines >> word >> value) {
    if (word == name) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto text = read_file(path, 256);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  std::istringstream in(*text);
  if (!(in >> value)) return std::nullopt;
  return value;
}

bool has_word(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    const auto end = list.find(separator);
    if (list.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
  return false;
}

// /proc/self/mounts writes blanks and backslashes as octal escapes.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

CgroupMounts parse_cgroup_mounts(std::string_view mounts, std::string_view own_groups) {
  CgroupMounts found;
  std::istringstream mount_lines{std::string(mounts)};
  std::string line;
  while (std::getline(mount_lines, line)) {
    std::istringstream fields(line);
    std::string device, point, type, options;
    if (!(fields >> device >> point >> type >> options)) continue;
    point = unescape_octal(point);
    if (type == "cgroup2") found.v2 = point;
    if (type != "cgroup") continue;
    if (has_word(options, "cpu", ',')) found.cpu_v1 = point;
    if (has_word(options, "memory", ',')) found.memory_v1 = point;
    if (has_word(options, "pids", ',')) found.pids_v1 = point;
    if (has_word(options, "freezer", ',')) found.freezer_v1 = point;
  }
  std::istringstream group_lines{std::string(own_groups)};
  while (std::getline(group_lines, line)) {
    // number:controllers:path; v2 is "0::path".
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty() && line.starts_with("0:")) found.v2_own = path;
    if (has_word(controllers, "cpu", ',')) found.cpu_own = path;
    if (has_word(controllers, "memory", ',')) found.memory_own = path;
    if (has_word(controllers, "pids", ',')) found.pids_own = path;
    if (has_word(controllers, "freezer", ',')) found.freezer_own = path;
  }
  return found;
}

CgroupMounts read_cgroup_mounts() {
  const auto mounts = read_file("/proc/self/mounts");
  const auto groups = read_file("/proc/self/cgroup");
  if (!mounts || !groups) return {};
  return parse_cgroup_mounts(*mounts, *groups);
}

std::string AttemptCgroup::make_group(const std::string& mount, const std::string& own,
                                      const std::string& name) {
  if (mount.empty()) return {};
  std::vector<std::string> bases = {mount};
  if (own != "/") bases.push_back(mount + own);
  for (const std::string& base : bases) {
    const std::string parent = base + "/loam";
    const std::string directory = parent + "/" + name;
    ::mkdir(parent.c_str(), 0755);
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) continue;
    // v1 has `tasks`: a thread that moves itself there takes no lock of the whole machine.
    Fd entrance(::open((directory + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
    if (!entrance.valid() && ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0) {
      entrance = Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    if (!entrance.valid()) {
      ::rmdir(directory.c_str());
      continue;
    }
    groups_.push_back({directory, std::move(entrance)});
    return directory;
  }
  return {};
}

// As make_group, with as many controllers handed down to it as the groups above allow.
std::string AttemptCgroup::make_v2_group(const std::string& mount, const std::string& own,
                                         const std::string& name) {
  if (mount.empty()) return {};
  for (const std::string& base : {mount, own == "/" ? mount : mount + own}) {
    const std::string parent = base + "/loam";
    ::mkdir(parent.c_str(), 0755);
    for (const char* controller : {"+cpu", "+memory", "+pids"}) {
      write_value(base + "/cgroup.subtree_control", controller);
      write_value(parent + "/cgroup.subtree_control", controller);
    }
  }
  return make_group(mount, own, name);
}

void AttemptCgroup::try_cpu(const std::string& file, std::string limited, std::string free,
                            LimitBy kept_by) {
  if (write_value(file, limited) != 0) return;
  cpu_ = kept_by;
  cpu_file_ = file;
  cpu_limited_ = std::move(limited);
  cpu_free_ = std::move(free);
}

void AttemptCgroup::limit_cpu(bool limited) const {
  if (!cpu_file_.empty()) write_value(cpu_file_, limited ? cpu_limited_ : cpu_free_);
}

void AttemptCgroup::limit_v2(const CgroupLimits& limits) {
  if (v2_.empty()) return;
  if (limits.cpu_milli > 0) {
    const std::string period = " " + std::to_string(period_us(limits));
    try_cpu(v2_ + "/cpu.max", std::to_string(quota_us(limits)) + period, "max" + period,
            LimitBy::cgroup_v2);
    if (limits.cpu_weight_milli > 0)
      write_value(v2_ + "/cpu.weight", weight_v2(limits.cpu_weight_milli));
  }
  if (limits.memory_bytes > 0 &&
      write_value(v2_ + "/memory.max", std::to_string(limits.memory_bytes)) == 0) {
    write_value(v2_ + "/memory.swap.max", "0");  // absent where the kernel counts no swap
    write_value(v2_ + "/memory.oom.group", "1");
    memory_ = LimitBy::cgroup_v2;
  }
  if (limits.pids_max > 0 && write_value(v2_ + "/pids.max", std::to_string(limits.pids_max)) == 0) {
    pids_ = LimitBy::cgroup_v2;
  }
}

void AttemptCgroup::limit_v1(const CgroupMounts& mounts, const std::string& name,
                             const CgroupLimits& limits) {
  if (cpu_ == LimitBy::nothing) {
    const std::string group = make_group(mounts.cpu_v1, mounts.cpu_own, name);
    if (!group.empty() &&
        write_value(group + "/cpu.cfs_period_us", std::to_string(period_us(limits))) == 0) {
      try_cpu(group + "/cpu.cfs_quota_us", std::to_string(quota_us(limits)), "-1",
              LimitBy::cgroup_v1);
      if (limits.cpu_weight_milli > 0)
        write_value(group + "/cpu.shares", weight_v1(limits.cpu_weight_milli));
    }
  }
  // Also without a limit: it tells the peak.
  if (memory_ != LimitBy::cgroup_v2) {
    memory_v1_ = make_group(mounts.memory_v1, mounts.memory_own, name);
    const std::string bytes = std::to_string(limits.memory_bytes);
    if (limits.memory_bytes > 0 && !memory_v1_.empty() &&
        write_value(memory_v1_ + "/memory.limit_in_bytes", bytes) == 0) {
      // Absent where the kernel counts no swap.
      write_value(memory_v1_ + "/memory.memsw.limit_in_bytes", bytes);
      memory_ = LimitBy::cgroup_v1;
    }
  }
  if (pids_ == LimitBy::nothing) {
    const std::string group = make_group(mounts.pids_v1, mounts.pids_own, name);
    if (!group.empty() && write_value(group + "/pids.max", std::to_string(limits.pids_max)) == 0) {
      pids_ = LimitBy::cgroup_v1;
    }
  }
}

AttemptCgroup AttemptCgroup::make(const CgroupMounts& mounts, const std::string& name,
                                  const CgroupLimits& limits) {
  AttemptCgroup made;
  // Until something keeps it, a limit that was asked for is kept by nothing.
  made.cpu_ = limits.cpu_milli > 0 ? LimitBy::nothing : LimitBy::not_asked;
  made.memory_ = limits.memory_bytes > 0 ? LimitBy::nothing : LimitBy::not_asked;
  made.pids_ = limits.pids_max > 0 ? LimitBy::nothing : LimitBy::not_asked;
  made.v2_ = made.make_v2_group(mounts.v2, mounts.v2_own, name);
  made.limit_v2(limits);
  made.limit_v1(mounts, name, limits);
  if (made.v2_.empty()) {
    made.freezer_ = made.make_group(mounts.freezer_v1, mounts.freezer_own, name);
  }
  for (const auto& [limit, what] :
       {std::pair{made.cpu_, "CPU"}, {made.memory_, "host memory"}, {made.pids_, "processes"}}) {
    if (limit != LimitBy::nothing) continue;
    if (!made.trouble_.empty()) made.trouble_ += ", ";
    made.trouble_ += std::string("no control group limits ") + what;
  }
  return made;
}

AttemptCgroup AttemptCgroup::adopt(const std::vector<std::string>& directories) {
  AttemptCgroup adopted;
  for (const std::string& directory : directories) {
    if (::access((directory + "/cgroup.procs").c_str(), F_OK) != 0) continue;
    if (::access((directory + "/cgroup.freeze").c_str(), F_OK) == 0) adopted.v2_ = directory;
    if (::access((directory + "/freezer.state").c_str(), F_OK) == 0) adopted.freezer_ = directory;
    adopted.groups_.push_back({directory, Fd()});
  }
  return adopted;
}

std::vector<std::string> AttemptCgroup::directories() const {
  std::vector<std::string> all;
  for (const Group& group : groups_) all.push_back(group.directory);
  return all;
}

pid_t AttemptCgroup::fork_inside() const {
  pid_t child = -1;
  bool in_v2 = false;
  for (const Group& group : groups_) {
    if (group.directory != v2_) continue;
    clone_args request{};
    request.flags = CLONE_INTO_CGROUP;
    request.exit_signal = SIGCHLD;
    request.cgroup = static_cast<std::uint64_t>(group.entrance.get());
    child = static_cast<pid_t>(::syscall(SYS_clone3, &request, sizeof request));
    in_v2 = child >= 0;  // else an old kernel, or a filter that hides clone3
  }
  if (child < 0) child = ::fork();
  if (child != 0) return child;
  for (const Group& group : groups_) {
    const bool is_v2 = group.directory == v2_;
    if (is_v2 && in_v2) continue;
    Fd procs;
    if (is_v2) procs = Fd(::openat(group.entrance.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
    const int entrance = is_v2 ? procs.get() : group.entrance.get();
    if (::write(entrance, "0", 1) != 1 && join_fault_ == 0) join_fault_ = errno;
  }
  return 0;
}

Result<void> AttemptCgroup::freeze(bool frozen) const {
  int fault = ENOTSUP;
  if (!v2_.empty()) {
    fault = write_value(v2_ + "/cgroup.freeze", frozen ? "1" : "0");
  } else if (!freezer_.empty()) {
    fault = write_value(freezer_ + "/freezer.state", frozen ? "FROZEN" : "THAWED");
  }
  if (fault == 0) return {};
  return Error{ErrorKind::unsupported,
               std::string("this node cannot freeze processes: ") + std::strerror(fault),
               "stop the task instead"};
}

std::vector<pid_t> AttemptCgroup::members() const {
  std::vector<pid_t> all;
  for (const Group& group : groups_) {
    const auto text = read_file(group.directory + "/cgroup.procs");
    if (!text) continue;
    std::istringstream in(*text);
    pid_t pid = 0;
    while (in >> pid) {
      if (pid > 0) all.push_back(pid);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool AttemptCgroup::kill_all(int wait_ms, void (*reap)(void*), void* context) const {
  const std::int64_t deadline_ns = boottime_ns() + std::int64_t{wait_ms} * 1'000'000;
  int pause_ms = 1;
  while (true) {
    // cgroup.kill (Linux 5.14) also catches what forks meanwhile; before it, freezing does.
    bool killed = !v2_.empty() && write_value(v2_ + "/cgroup.kill", "1") == 0;
    const bool frozen = !killed && can_freeze() && freeze(true).ok();
    if (!killed || groups_.size() > 1) {
      for (const pid_t pid : members()) ::kill(pid, SIGKILL);
    }
    if (frozen) (void)freeze(false);
    if (reap != nullptr) reap(context);
    if (members().empty()) return true;
    if (boottime_ns() >= deadline_ns) return false;
    ::poll(nullptr, 0, pause_ms);
    pause_ms = std::min(pause_ms * 2, 100);
  }
}

CgroupUsage AttemptCgroup::usage() const {
  CgroupUsage usage;
  if (!v2_.empty()) {
    if (const auto us = find_value(v2_ + "/cpu.stat", "user_usec")) usage.user_cpu_ms = *us / 1000;
    if (const auto us = find_value(v2_ + "/cpu.stat", "system_usec")) {
      usage.system_cpu_ms = *us / 1000;
    }
    usage.memory_peak_bytes = read_number(v2_ + "/memory.peak");
    usage.oom_killed = find_value(v2_ + "/memory.events", "oom_kill").value_or(0) > 0;
  }
  if (!memory_v1_.empty()) {
    usage.memory_peak_bytes = read_number(memory_v1_ + "/memory.max_usage_in_bytes");
    usage.oom_killed = find_value(memory_v1_ + "/memory.oom_control", "oom_kill").value_or(0) > 0;
  }
  return usage;
}

bool AttemptCgroup::remove() {
  bool all_gone = true;
  for (Group& group : groups_) {
    group.entrance.close();
    bool gone = false;
    // A group may be busy for a moment after its last process was reaped.
    for (int tries = 0; tries < 50 && !gone; ++tries) {
      if (tries > 0) ::poll(nullptr, 0, 10);
      gone = ::rmdir(group.directory.c_str()) == 0 || errno == ENOENT;
    }
    all_gone = all_gone && gone;
  }
  return all_gone;
}

}  // namespace loam::node

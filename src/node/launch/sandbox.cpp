#include "node/launch/sandbox.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include "guard/slice_page.h"
#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::node {

namespace {

// What programs commonly need of /etc: names, libraries, certificates, drivers, languages. Nothing
// that holds a secret.
constexpr const char* etc_entries[] = {
    "OpenCL",
    "alternatives",
    "debian_version",
    "fonts",
    "gai.conf",
    "glvnd",
    "group",
    "host.conf",
    "hosts",
    "inputrc",
    "java-17-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libibverbs.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "mime.types",
    "mtab",
    "nsswitch.conf",
    "nvidia",
    "openmpi",
    "os-release",
    "passwd",
    "perl",
    "pki",
    "profile",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "resolv.conf",
    "services",
    "shells",
    "ssl/certs",
    "timezone",
    "ssl/openssl.cnf",
    "vulkan",
};
constexpr off_t copied_bytes_max = 1 << 20;  // a file up to this size is copied, not mounted
constexpr int copied_files_max = 32;         // and a directory of at most so many of them

// Top directories that hold programs and libraries; links into /usr on merged systems.
constexpr const char* program_directories[] = {"/usr",   "/bin",   "/sbin",   "/lib",
                                               "/lib32", "/lib64", "/libx32", "/opt"};

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

class Arguments {
 public:
  Arguments& add(std::initializer_list<std::string> words) {
    command_.arguments.insert(command_.arguments.end(), words);
    return *this;
  }
  // A copy of the open file, read-only where its file system is.
  void add_copy(Fd file, const std::string& target) {
    add({"--perms", "0644", "--file", std::to_string(file.get()), target});
    command_.files.push_back(std::move(file));
  }
  SandboxCommand take() { return std::move(command_); }

 private:
  SandboxCommand command_;
};

std::string link_target(const std::string& path) {
  char target[4096];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

void add_programs(Arguments& arguments) {
  for (const std::string directory : program_directories) {
    const std::string target = link_target(directory);
    if (!target.empty()) {
      arguments.add({"--symlink", target, directory});
    } else if (exists(directory)) {
      arguments.add({"--ro-bind", directory, directory});
    }
  }
}

// Copies the file, or the link that leads to what the sandbox has too; false if it is neither.
bool add_etc_file(Arguments& arguments, const std::string& path) {
  const std::string target = link_target(path);
  for (const char* prefix : {"/usr/", "../usr/", "/proc/", "../proc/", "/etc/alternatives/"}) {
    if (!target.starts_with(prefix)) continue;
    arguments.add({"--symlink", target, path});
    return true;
  }
  Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK));  // kept across exec
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_size > copied_bytes_max) {
    return false;
  }
  arguments.add_copy(std::move(file), path);
  return true;
}

// Copies a directory of a few small files, one level; false, with nothing added, if it is more.
bool add_etc_directory(Arguments& arguments, const std::string& path) {
  DIR* listing = ::opendir(path.c_str());
  if (listing == nullptr) return false;
  std::vector<std::string> names;
  bool is_small = true;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    is_small = is_small && (entry->d_type == DT_REG || entry->d_type == DT_LNK);
    names.push_back(name);
  }
  ::closedir(listing);
  if (!is_small || names.size() > copied_files_max) return false;
  std::sort(names.begin(), names.end());
  arguments.add({"--dir", path});
  for (const auto& name : names) (void)add_etc_file(arguments, path + "/" + name);
  return true;
}

void add_etc(Arguments& arguments, const std::string& preload_list) {
  arguments.add({"--tmpfs", "/etc"});
  for (const char* entry : etc_entries) {
    const std::string path = std::string("/etc/") + entry;
    if (!exists(path) || add_etc_file(arguments, path) || add_etc_directory(arguments, path)) {
      continue;
    }
    arguments.add({"--ro-bind", path, path});
  }
  if (!preload_list.empty()) {
    arguments.add_copy(Fd(::open(preload_list.c_str(), O_RDONLY)), "/etc/ld.so.preload");
  }
  arguments.add({"--remount-ro", "/etc"});
}

// What libraries read of /sys to know the machine; not the control groups, which also are many
// mounts.
void add_sys(Arguments& arguments) {
  for (const char* path : {"/sys/devices", "/sys/class", "/sys/bus", "/sys/dev", "/sys/module"}) {
    if (exists(path)) arguments.add({"--ro-bind", path, path});
  }
}

// The nodes of accelerators that exist, next to bwrap's own minimal /dev.
void add_devices(Arguments& arguments) {
  arguments.add({"--dev", "/dev"});
  for (const char* path : {"/dev/kfd", "/dev/dri", "/dev/infiniband", "/dev/mali0"}) {
    if (exists(path)) arguments.add({"--dev-bind", path, path});
  }
  DIR* directory = ::opendir("/dev");
  if (directory == nullptr) return;
  std::vector<std::string> nvidia;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.starts_with("nvidia")) nvidia.push_back("/dev/" + name);
  }
  ::closedir(directory);
  std::sort(nvidia.begin(), nvidia.end());
  for (const auto& path : nvidia) arguments.add({"--dev-bind", path, path});
}

// Runs bwrap with /usr and `extra`, and tells whether `true` ran well inside.
bool bwrap_runs(const std::string& program, std::initializer_list<const char*> extra) {
  Arguments arguments;
  arguments.add({program, "--unshare-pid", "--unshare-uts", "--unshare-ipc"});
  for (const char* word : extra) arguments.add({word});
  add_programs(arguments);
  arguments.add({"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/etc", "--", "true"});
  std::vector<std::string> words = arguments.take().arguments;
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2}) {
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t child = 0;
  char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  const int fault =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The bwrap of the system; PATH is not asked, for loam may run it as root.
std::string find_bwrap() {
  for (const char* path : {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

// Names the very bwrap that was tried, by whom and in which boot.
std::string probe_key(const std::string& program) {
  struct stat facts {};
  (void)::stat(program.c_str(), &facts);
  return boot_id() + " " + program + " " + std::to_string(facts.st_ino) + " " +
         std::to_string(facts.st_mtim.tv_sec) + " " + std::to_string(::geteuid());
}

}  // namespace

SandboxProbe probe_sandbox(const std::string& cache_file) {
  SandboxProbe probe;
  probe.program = find_bwrap();
  if (probe.program.empty()) {
    probe.trouble = "bubblewrap (bwrap) is not installed";
    return probe;
  }
  const std::string key = probe_key(probe.program);
  constexpr std::size_t cache_bytes_max = 4096;
  const auto cached = read_file(cache_file, cache_bytes_max);
  if (cached && (*cached == key + " yes yes\n" || *cached == key + " yes no\n")) {
    probe.works = true;
    probe.network_works = cached->ends_with(" yes\n");
  } else if (!cached || *cached != key + " no no\n") {
    probe.works = bwrap_runs(probe.program, {});
    probe.network_works = probe.works && bwrap_runs(probe.program, {"--unshare-net"});
    const auto slash = cache_file.rfind('/') + 1;  // 0 where there is none
    if (const auto directory = open_directory(slash == 0 ? "." : cache_file.substr(0, slash))) {
      (void)write_atomically_at(
          directory->get(), cache_file.substr(slash).c_str(),
          key + (probe.works ? " yes" : " no") + (probe.network_works ? " yes\n" : " no\n"),
          Durable::no);
    }
  }
  if (!probe.works) {
    probe.trouble = "bubblewrap is installed but makes no sandbox here (user namespaces barred?)";
  }
  return probe;
}

SandboxCommand sandbox_command(const LaunchOrder& order, const SandboxPaths& paths) {
  Arguments arguments;
  arguments.add({"--unshare-pid", "--unshare-uts", "--unshare-ipc", "--unshare-cgroup-try",
                 "--die-with-parent", "--as-pid-1", "--hostname", order.attempt.substr(0, 63)});
  if (!order.network) arguments.add({"--unshare-net"});
  add_programs(arguments);
  add_etc(arguments, paths.preload_list);
  add_sys(arguments);
  arguments.add({"--proc", "/proc"});
  add_devices(arguments);
  arguments.add({"--bind", paths.temporary, "/tmp", "--symlink", "/tmp", "/var/tmp"});
  arguments.add({"--tmpfs", "/run", "--ro-bind", paths.launcher, sandbox_launcher});
  if (!paths.preload_list.empty()) {
    arguments.add({"--ro-bind", order.guard_library, sandbox_guard});
  }
  // From the general to the particular: a later one may lie inside an earlier one.
  for (const auto& path : order.read_only) arguments.add({"--ro-bind", path, path});
  arguments.add({"--bind", paths.working_directory, paths.working_directory});
  arguments.add({"--bind", paths.checkpoint_directory, paths.checkpoint_directory});
  if (order.backups > 0)
    arguments.add({"--ro-bind", order.backup_directory, order.backup_directory});
  arguments.add({"--bind", paths.cache_directory, paths.cache_directory});
  arguments.add({"--bind", paths.output_directory, paths.output_directory});
  auto mounts = order.mounts;
  std::stable_sort(mounts.begin(), mounts.end(), [](const auto& a, const auto& b) {
    return a.target.size() < b.target.size();  // what lies in another is longer
  });
  for (const auto& mount : mounts) {
    arguments.add({mount.read_only ? "--ro-bind" : "--bind", mount.source, mount.target});
  }
  if (!order.slice_page.empty()) {
    // At the well-known path, so that a child with an empty environment is bound too.
    const std::string seen = LOAM_SLICE_PATH;
    arguments.add({"--ro-bind", order.slice_page + LOAM_SLICE_LIMITS_SUFFIX,
                   seen + LOAM_SLICE_LIMITS_SUFFIX});
    arguments.add({"--bind", order.slice_page + LOAM_SLICE_COUNTERS_SUFFIX,
                   seen + LOAM_SLICE_COUNTERS_SUFFIX});
  }
  for (const auto& path : order.visible) arguments.add({"--bind", path, path});
  arguments.add({"--ro-bind", paths.notice_directory, paths.notice_directory});
  arguments.add({"--remount-ro", "/run", "--remount-ro", "/", "--"});
  return arguments.take();
}

}  // namespace loam::node

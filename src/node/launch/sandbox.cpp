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

#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::node {

namespace {

// What programs commonly need of /etc: names, libraries, certificates, drivers, languages. Nothing
// that holds a secret.
constexpr const char* etc_entries[] = {
    "ImageMagick-6",   "OpenCL",          "R",               "alternatives",   "amd",
    "bash.bashrc",     "bindresvport.blacklist", "ca-certificates", "ca-certificates.conf",
    "clinfo",          "crypto-policies", "debian_version",  "default/locale", "ethertypes",
    "fonts",           "gai.conf",        "glvnd",           "group",          "host.conf",
    "hosts",           "inputrc",         "java-17-openjdk", "ld.so.cache",    "ld.so.conf",
    "ld.so.conf.d",    "libibverbs.d",    "libnl-3",         "locale.alias",   "locale.conf",
    "localtime",       "magic",           "mime.types",      "mtab",           "networks",
    "nsswitch.conf",   "nvidia",          "openmpi",         "os-release",     "passwd",
    "perl",            "pki",             "profile",         "profile.d",      "protocols",
    "python3",         "python3.11",      "python3.12",      "python3.13",     "rdma",
    "redhat-release",  "resolv.conf",     "rpc",             "services",       "shells",
    "ssl/certs",       "ssl/openssl.cnf", "system-release",  "terminfo",       "timezone",
    "vulkan",          "xattr.conf",
};

// Top directories that hold programs and libraries; links into /usr on merged systems.
constexpr const char* program_directories[] = {"/usr",   "/bin",    "/sbin", "/lib",
                                               "/lib32", "/lib64", "/libx32", "/opt"};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

class Arguments {
 public:
  Arguments& add(std::initializer_list<std::string> words) {
    words_.insert(words_.end(), words);
    return *this;
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

void add_programs(Arguments& arguments) {
  for (const std::string directory : program_directories) {
    char target[4096];
    const ssize_t length = ::readlink(directory.c_str(), target, sizeof target);
    if (length > 0) {
      arguments.add({"--symlink", std::string(target, static_cast<std::size_t>(length)), directory});
    } else if (exists(directory)) {
      arguments.add({"--ro-bind", directory, directory});
    }
  }
}

void add_etc(Arguments& arguments, const std::string& preload_list) {
  arguments.add({"--tmpfs", "/etc"});
  for (const char* entry : etc_entries) {
    const std::string path = std::string("/etc/") + entry;
    if (exists(path)) arguments.add({"--ro-bind", path, path});
  }
  if (!preload_list.empty()) arguments.add({"--ro-bind", preload_list, "/etc/ld.so.preload"});
  arguments.add({"--remount-ro", "/etc"});
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
bool bwrap_runs(std::initializer_list<const char*> extra) {
  Arguments arguments;
  arguments.add({"bwrap", "--unshare-pid", "--unshare-uts", "--unshare-ipc"});
  for (const char* word : extra) arguments.add({word});
  add_programs(arguments);
  arguments.add({"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/etc", "--", "true"});
  std::vector<std::string> words = arguments.take();
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
  const int fault = ::posix_spawnp(&child, "bwrap", &actions, nullptr, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Names the very bwrap that was tried, by whom and in which boot.
std::string probe_key() {
  struct stat facts {};
  std::string program;
  for (const char* path : {"/usr/local/bin/bwrap", "/usr/bin/bwrap", "/bin/bwrap"}) {
    if (::stat(path, &facts) == 0) {
      program = path;
      break;
    }
  }
  if (program.empty()) return {};
  return boot_id() + " " + program + " " + std::to_string(facts.st_ino) + " " +
         std::to_string(facts.st_mtim.tv_sec) + " " + std::to_string(::geteuid());
}

SandboxProbe probe_of(bool works, bool network_works) {
  SandboxProbe probe{works, works && network_works, ""};
  if (!works) {
    probe.trouble = "bubblewrap is installed but makes no sandbox here (user namespaces barred?)";
  }
  return probe;
}

}  // namespace

SandboxProbe probe_sandbox(const std::string& cache_file) {
  const std::string key = probe_key();
  if (key.empty()) return {false, false, "bubblewrap (bwrap) is not installed"};
  constexpr std::size_t cache_bytes_max = 4096;
  if (const auto cached = read_file(cache_file, cache_bytes_max)) {
    if (*cached == key + " yes yes\n") return probe_of(true, true);
    if (*cached == key + " yes no\n") return probe_of(true, false);
    if (*cached == key + " no no\n") return probe_of(false, false);
  }
  const bool works = bwrap_runs({});
  const bool network_works = works && bwrap_runs({"--unshare-net"});
  const auto slash = cache_file.rfind('/');
  if (slash != std::string::npos) {
    if (const auto directory = open_directory(cache_file.substr(0, slash + 1))) {
      (void)write_atomically_at(
          directory->get(), cache_file.substr(slash + 1).c_str(),
          key + (works ? " yes" : " no") + (network_works ? " yes\n" : " no\n"), Durable::no);
    }
  }
  return probe_of(works, network_works);
}

std::vector<std::string> sandbox_arguments(const LaunchOrder& order, const SandboxPaths& paths) {
  Arguments arguments;
  arguments.add({"--unshare-pid", "--unshare-uts", "--unshare-ipc", "--unshare-cgroup-try",
                 "--die-with-parent", "--as-pid-1", "--hostname", order.attempt.substr(0, 63)});
  if (!order.network) arguments.add({"--unshare-net"});
  add_programs(arguments);
  add_etc(arguments, paths.preload_list);
  arguments.add({"--proc", "/proc", "--ro-bind", "/sys", "/sys"});
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
  arguments.add({"--bind", paths.cache_directory, paths.cache_directory});
  for (const auto& mount : order.mounts) {
    arguments.add({mount.read_only ? "--ro-bind" : "--bind", mount.source, mount.target});
  }
  if (!order.slice_page.empty()) {
    arguments.add({"--bind", order.slice_page, order.slice_page});
  }
  for (const auto& path : order.visible) arguments.add({"--bind", path, path});
  arguments.add({"--ro-bind", paths.notice_directory, paths.notice_directory});
  arguments.add({"--remount-ro", "/run", "--remount-ro", "/", "--"});
  return arguments.take();
}

}  // namespace loam::node

#include "node/launch/leftovers.hpp"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "node/launch/attempt_files.hpp"
#include "node/launch/file.hpp"

namespace loam::node {

namespace {

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  DIR* listing = ::opendir("/proc");
  if (listing == nullptr) return all;
  while (const dirent* entry = ::readdir(listing)) {
    const long number = std::strtol(entry->d_name, nullptr, 10);
    if (number > 0) all.push_back(static_cast<pid_t>(number));
  }
  ::closedir(listing);
  return all;
}

// 0 for a zombie, which nothing can kill, and for a process that is gone.
pid_t parent_of(pid_t process) {
  const auto text = read_file("/proc/" + std::to_string(process) + "/stat", 4096);
  if (!text) return 0;
  const auto end_of_command = text->rfind(')');
  if (end_of_command == std::string::npos) return 0;
  std::istringstream rest(text->substr(end_of_command + 1));
  std::string state;
  pid_t parent = 0;
  if (!(rest >> state >> parent) || state == "Z") return 0;
  return parent;
}

std::set<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t process : all_processes()) {
    if (const pid_t parent = parent_of(process)) children.emplace(parent, process);
  }
  std::set<pid_t> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      if (found.insert(child->second).second) open.push_back(child->second);
    }
  }
  return found;
}

}  // namespace

std::string cgroup_name(const std::string& attempt_path) {
  // FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : attempt_path) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return attempt_path.substr(attempt_path.rfind('/') + 1) + "." + text;
}

void kill_descendants(pid_t ancestor) {
  constexpr int rounds_max = 100;
  for (int round = 0; round < rounds_max; ++round) {
    const auto found = descendants_of(ancestor);
    if (found.empty()) return;
    for (const pid_t process : found) ::kill(process, SIGKILL);
    ::poll(nullptr, 0, 10);
  }
}

int kill_by_environment(const std::string& attempt_path) {
  const std::string mark = "LOAM_NOTICE=" + attempt_path + "/";
  constexpr std::size_t environment_bytes_max = 4 << 20;
  int killed = 0;
  for (const pid_t process : all_processes()) {
    const auto text =
        read_file("/proc/" + std::to_string(process) + "/environ", environment_bytes_max);
    if (!text) continue;
    const bool is_ours =
        text->starts_with(mark) || text->find(std::string(1, '\0') + mark) != std::string::npos;
    if (is_ours && process != ::getpid() && ::kill(process, SIGKILL) == 0) ++killed;
  }
  return killed;
}

std::int64_t count_threads_of_user() {
  std::int64_t threads = 0;
  for (const pid_t process : all_processes()) {
    struct stat facts {};
    const std::string path = "/proc/" + std::to_string(process) + "/task";
    if (::stat(path.c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) continue;
    threads += static_cast<std::int64_t>(facts.st_nlink) - 2;  // "." and ".."
  }
  return threads;
}

}  // namespace loam::node

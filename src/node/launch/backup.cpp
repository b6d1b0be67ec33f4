#include "node/launch/backup.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "node/launch/file.hpp"

namespace loam::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* unfinished = ".copying";
constexpr std::size_t digits = 10;  // so that names are in order

std::string name_of(std::uint64_t epoch) {
  const std::string number = std::to_string(epoch);
  return std::string(digits - std::min(digits, number.size()), '0') + number;
}

Result<void> copy_whole(const std::string& from, const std::string& to) {
  std::error_code fault;
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, fault);
  if (fault) {
    return os_error("copying the checkpoint " + from, fault.value(),
                    "make room on the node's disk, or ask for no backups");
  }
  LOAM_TRY(copied, open_directory(to));
  if (::syncfs(copied.get()) != 0) return os_error("writing " + to, errno);
  return {};
}

// Oldest first.
std::vector<std::string> copies_in(const std::string& backups, std::error_code& fault) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(backups, fault))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> delete_oldest(const std::string& backups, std::int64_t most) {
  std::error_code fault;
  const std::vector<std::string> names = copies_in(backups, fault);
  if (fault) return os_error("reading " + backups, fault.value());
  const auto surplus = static_cast<std::int64_t>(names.size()) - most;
  for (std::int64_t i = 0; i < surplus; ++i)
    LOAM_CHECK(remove_tree(backups + "/" + names[static_cast<std::size_t>(i)]));
  return {};
}

}  // namespace

Result<void> keep_backup(const std::string& checkpoint, const std::string& backups,
                         std::uint64_t epoch, std::int64_t most) {
  LOAM_CHECK(make_directories(backups));
  const std::string copying = backups + "/" + unfinished;
  LOAM_CHECK(remove_tree(copying));
  std::error_code fault;
  const std::string copy = backups + "/" + name_of(epoch);
  if (!fs::exists(copy, fault) && !fs::is_empty(checkpoint, fault)) {
    if (auto copied = copy_whole(checkpoint, copying); !copied) {
      static_cast<void>(remove_tree(copying));
      return copied;
    }
    fs::rename(copying, copy, fault);
  }
  if (fault) return os_error("keeping the backup " + copy, fault.value());
  return delete_oldest(backups, most);
}

std::optional<std::int64_t> backup_bytes(const std::string& backups, int limit_ms) {
  static const std::atomic<bool> never = false;
  std::int64_t bytes = 0;
  std::error_code fault;
  for (const std::string& name : copies_in(backups, fault)) {
    const auto held = bytes_held(backups + "/" + name, limit_ms, never);
    if (!held) return std::nullopt;
    bytes += *held;
  }
  return bytes;
}

}  // namespace loam::node

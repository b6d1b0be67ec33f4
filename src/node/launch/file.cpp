#include "node/launch/file.hpp"

#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "node/launch/clock.hpp"

namespace loam::node {

void Fd::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Error os_error(std::string_view doing, int error_number, std::string next_step) {
  ErrorKind kind = ErrorKind::unavailable;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      kind = ErrorKind::not_found;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      kind = ErrorKind::permission_denied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      kind = ErrorKind::exhausted;
      break;
    default:
      break;
  }
  return Error{kind, std::string(doing) + ": " + std::strerror(error_number), std::move(next_step)};
}

namespace {

Result<std::string> read_open_file(int fd, const std::string& name, std::size_t max_bytes) {
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("reading " + name, errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > max_bytes) {
      return Error{ErrorKind::corrupt,
                   name + " is longer than " + std::to_string(max_bytes) + " bytes",
                   "see whether the file is loam's"};
    }
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return os_error("opening " + path, errno);
  return read_open_file(file.get(), path, max_bytes);
}

Result<std::string> read_file_at(int directory, const char* name, std::size_t max_bytes) {
  Fd file(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return os_error(std::string("opening ") + name, errno);
  return read_open_file(file.get(), name, max_bytes);
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<void> write_atomically_at(int directory, const char* name, std::string_view content,
                                 Durable durable, unsigned mode) {
  const std::string temporary = std::string(".") + name + ".new";
  {
    Fd file(::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (!file.valid()) return os_error("creating " + temporary, errno);
    if (!write_all(file.get(), content)) return os_error("writing " + temporary, errno);
    if (durable == Durable::yes && ::fsync(file.get()) != 0) {
      return os_error("syncing " + temporary, errno);
    }
  }
  if (::renameat(directory, temporary.c_str(), directory, name) != 0) {
    return os_error(std::string("renaming to ") + name, errno);
  }
  if (durable == Durable::yes && ::fsync(directory) != 0) {
    return os_error(std::string("syncing the directory of ") + name, errno);
  }
  return {};
}

Result<Fd> open_directory(const std::string& path) {
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return os_error("opening the directory " + path, errno);
  return directory;
}

Result<void> make_directories(const std::string& path) {
  std::error_code fault;
  std::filesystem::create_directories(path, fault);
  if (fault) return os_error("making the directory " + path, fault.value());
  return {};
}

Result<void> remove_tree(const std::string& path) {
  std::error_code fault;
  std::filesystem::remove_all(path, fault);
  if (fault) return os_error("removing " + path, fault.value());
  return {};
}

bool try_lock_file(const Fd& file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_OFD_SETLK, &whole) == 0;
}

bool is_file_locked(const Fd& file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

std::optional<std::int64_t> bytes_held(const std::string& path, int limit_ms,
                                       const std::atomic<bool>& cancel) {
  const std::int64_t deadline_ns = boottime_ns() + std::int64_t{limit_ms} * 1'000'000;
  std::string root = path;
  char* roots[] = {root.data(), nullptr};
  FTS* walk = ::fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr);
  if (walk == nullptr) return std::nullopt;
  std::int64_t bytes = 0;
  std::int64_t entries = 0;
  std::set<std::pair<dev_t, ino_t>> linked;
  while (const FTSENT* entry = ::fts_read(walk)) {
    constexpr std::int64_t entries_between_looks = 256;
    if (++entries % entries_between_looks == 0 && (cancel || boottime_ns() > deadline_ns)) {
      ::fts_close(walk);
      return std::nullopt;
    }
    if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR) {
      continue;
    }
    const struct stat& facts = *entry->fts_statp;
    if (facts.st_nlink > 1 && !S_ISDIR(facts.st_mode) &&
        !linked.insert({facts.st_dev, facts.st_ino}).second) {
      continue;
    }
    bytes += static_cast<std::int64_t>(facts.st_blocks) * 512;  // st_blocks is in 512-byte units
  }
  ::fts_close(walk);
  return bytes;
}

}  // namespace loam::node

// Files and descriptors as the launcher and the supervisor use them: an owning descriptor, whole
// reads, and writes that a reader sees entirely or not at all. Shell: talks to the kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace loam::node {

// Owns a file descriptor; closes it when it goes.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void close();

 private:
  int fd_ = -1;
};

// "opening /x: No such file or directory", kind not_found, permission_denied, exhausted (no room)
// or unavailable after the error number. The next step may be empty.
Error os_error(std::string_view doing, int error_number, std::string next_step = {});

// The whole file; at most `max_bytes`, more is an error (a runaway or foreign file).
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 4 << 20);
// The same below an open directory.
Result<std::string> read_file_at(int directory, const char* name, std::size_t max_bytes = 4 << 20);

enum class Durable { no, yes };

// Writes `name` below `directory` through a temporary file and a rename: a reader sees the old
// content or the new one. With Durable::yes the content and the name are on the disk on return.
Result<void> write_atomically_at(int directory, const char* name, std::string_view content,
                                 Durable durable, unsigned mode = 0644);

Result<Fd> open_directory(const std::string& path);
// Makes the directory and its parents (mode 0755 less umask); no error where it exists.
Result<void> make_directories(const std::string& path);
// The directory and all below; links are removed, not followed. No error where it is missing.
Result<void> remove_tree(const std::string& path);

// Writes all of it, retrying on interruption. False on an error, with errno set.
bool write_all(int fd, std::string_view content);

// An exclusive lock on a whole open file (open for writing). It belongs to the open file: children
// that inherit the descriptor share it, and it ends when the last of them closes it.
bool try_lock_file(const Fd& file);
// Whether another open file holds it; takes nothing.
bool is_file_locked(const Fd& file);

// Bytes on disk (blocks held, as du counts) of everything below `path`, hard links once; stays on
// one file system and follows no links; 0 where it is missing. Nothing where the walk took longer
// than `limit_ms` or `cancel` became true. Cost: one stat an entry.
std::optional<std::int64_t> bytes_held(const std::string& path, int limit_ms,
                                       const std::atomic<bool>& cancel);

}  // namespace loam::node

#include "store/data_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace loam::store {

namespace {

Error system_failure(const std::string& doing, int code) {
  const ErrorKind kind =
      code == EACCES || code == EPERM ? ErrorKind::permission_denied : ErrorKind::unavailable;
  return Error{kind, "cannot " + doing + ": " + std::strerror(code),
               "check the folder's owner, permissions and free space"};
}

std::string holder_of(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  std::string holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return holder.empty() ? "unknown" : holder;
}

}  // namespace

Result<DataLock> DataLock::acquire(const std::string& folder) {
  std::error_code fault;
  const bool made = std::filesystem::create_directories(folder, fault);
  if (fault) return system_failure("make the data folder '" + folder + "'", fault.value());
  if (made) chmod(folder.c_str(), 0700);

  const std::string path = folder + "/lock";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return system_failure("open '" + path + "'", errno);
  DataLock lock(descriptor);

  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_OFD_SETLK, &range) != 0) {
    if (errno != EAGAIN && errno != EACCES) return system_failure("lock '" + path + "'", errno);
    return Error{ErrorKind::conflict,
                 "the data folder '" + folder + "' is in use by process " + holder_of(descriptor),
                 "stop that process, or give this one another data folder"};
  }
  // The number is for people; the lock is what counts, so a full disk does not stop us here.
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(descriptor, 0) == 0) {
    [[maybe_unused]] const ssize_t written = pwrite(descriptor, pid.data(), pid.size(), 0);
  }
  return lock;
}

DataLock::~DataLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace loam::store

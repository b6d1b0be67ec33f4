// The lock of a data folder: one loamd at a time. An open-file-description lock (fcntl(2)) on
// `<folder>/lock`, which the kernel drops when its holder dies however it dies. Not pure: files.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace loam::store {

class DataLock {
 public:
  // Makes the folder (mode 0700) where it is missing. ErrorKind::conflict, naming the holder's
  // process id, when another process has it.
  static Result<DataLock> acquire(const std::string& folder);

  DataLock(DataLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  DataLock& operator=(DataLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~DataLock();

 private:
  explicit DataLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace loam::store

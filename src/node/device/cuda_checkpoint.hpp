// Saving and restoring what a process has on CUDA devices, by the driver's checkpoint entries
// (CUDA 12.8 and later): the process's device memory goes to the host and its devices are freed,
// and back. Source: NVIDIA's CUDA Driver API, "CUDA Checkpointing". Not pure: the driver.
// Tested against a fake driver; no card was at hand.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "base/result.hpp"
#include "base/time.hpp"
#include "node/device/discovery.hpp"

namespace loam::node {

enum class CudaProcessState { running, locked, checkpointed, failed };
const char* name_of(CudaProcessState state) noexcept;

class CudaCheckpoint {
 public:
  // Fails with not_found where there is no driver, with unsupported where it has not these entries.
  static Result<CudaCheckpoint> open(const DiscoveryPaths& paths = {});

  Result<CudaProcessState> state(pid_t pid) const;
  // Locks the process (its calls of the driver wait) and saves its device memory in the host's: it
  // holds no device afterwards. On failure the process runs on as before, or the error says in
  // which state it is left. `patience` bounds the wait for its calls to end.
  Result<void> save(pid_t pid, Duration patience) const;
  // Calls `reserve` first, which takes the memory for it in the books (or refuses), then restores
  // and lets the process go on. On failure the saved state is as it was and `release` is called.
  Result<void> restore(pid_t pid, const std::function<Result<void>()>& reserve,
                       const std::function<void()>& release) const;

 private:
  struct Entries;
  explicit CudaCheckpoint(std::shared_ptr<const Entries> entries) : entries_(std::move(entries)) {}
  Error failure(const char* what, pid_t pid, int code) const;

  std::shared_ptr<const Entries> entries_;
};

}  // namespace loam::node

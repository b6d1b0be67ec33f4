#include "node/device/cuda_checkpoint.hpp"

#include <algorithm>
#include <cstdint>

#include "node/device/library.hpp"

namespace loam::node {

namespace {

constexpr int cuda_success = 0;

struct LockArguments {
  unsigned timeout_ms = 0;
  unsigned reserved0 = 0;
  std::uint64_t reserved1[7] = {};
};
static_assert(sizeof(LockArguments) == 64);
// The others' are 64 reserved bytes, or null.

}  // namespace

struct CudaCheckpoint::Entries {
  int (*state)(int, int*) = nullptr;
  int (*lock)(int, LockArguments*) = nullptr;
  int (*checkpoint)(int, void*) = nullptr;
  int (*restore)(int, void*) = nullptr;
  int (*unlock)(int, void*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;  // may be missing
};

const char* name_of(CudaProcessState state) noexcept {
  switch (state) {
    case CudaProcessState::running:
      return "running";
    case CudaProcessState::locked:
      return "locked";
    case CudaProcessState::checkpointed:
      return "checkpointed";
    case CudaProcessState::failed:
      return "failed";
  }
  return "failed";
}

Result<CudaCheckpoint> CudaCheckpoint::open(const DiscoveryPaths& paths) {
  LOAM_TRY(library, Library::open(paths.cuda));
  auto entries = std::make_shared<Entries>();
  std::vector<std::string> missing;
  int (*init)(unsigned) = nullptr;
  library.require("cuInit", init, missing);
  library.require("cuCheckpointProcessGetState", entries->state, missing);
  library.require("cuCheckpointProcessLock", entries->lock, missing);
  library.require("cuCheckpointProcessCheckpoint", entries->checkpoint, missing);
  library.require("cuCheckpointProcessRestore", entries->restore, missing);
  library.require("cuCheckpointProcessUnlock", entries->unlock, missing);
  library.find("cuGetErrorName", entries->error_name);
  if (!missing.empty())
    return Error{ErrorKind::unsupported, lacks_text(library, missing),
                 "checkpoints are then the task's own: it saves under LOAM_CHECKPOINT_DIR"};
  if (const int code = init(0); code != cuda_success)
    return Error{ErrorKind::unavailable, "cuInit failed with code " + std::to_string(code), ""};
  return CudaCheckpoint(std::move(entries));
}

Error CudaCheckpoint::failure(const char* what, pid_t pid, int code) const {
  const char* name = nullptr;
  if (entries_->error_name) entries_->error_name(code, &name);
  return Error{ErrorKind::unavailable,
               std::string(what) + " process " + std::to_string(pid) + " failed with code " +
                   std::to_string(code) + (name ? std::string(": ") + name : ""),
               ""};
}

Result<CudaProcessState> CudaCheckpoint::state(pid_t pid) const {
  int value = 0;
  if (const int code = entries_->state(pid, &value); code != cuda_success)
    return failure("asking for the state of", pid, code);
  if (value < 0 || value > 3)
    return Error{ErrorKind::unsupported,
                 "process " + std::to_string(pid) +
                     " is in a state that is unknown here: " + std::to_string(value),
                 ""};
  return static_cast<CudaProcessState>(value);
}

Result<void> CudaCheckpoint::save(pid_t pid, Duration patience) const {
  LOAM_TRY(before, state(pid));
  if (before == CudaProcessState::checkpointed) return {};
  if (before == CudaProcessState::failed)
    return Error{ErrorKind::conflict,
                 "process " + std::to_string(pid) + " failed in an earlier checkpoint", "end it"};
  if (before == CudaProcessState::running) {
    LockArguments arguments;
    arguments.timeout_ms =
        static_cast<unsigned>(std::clamp<std::int64_t>(patience.ms, 1, 3'600'000));
    if (const int code = entries_->lock(pid, &arguments); code != cuda_success)
      return failure("locking", pid, code);
  }
  const int code = entries_->checkpoint(pid, nullptr);
  if (code == cuda_success) return {};
  // Nothing was saved: the process goes on.
  Error error = failure("saving", pid, code);
  if (const int unlocked = entries_->unlock(pid, nullptr); unlocked != cuda_success) {
    const auto left = state(pid);
    error.message += "; and it is left " + std::string(left ? name_of(*left) : "in no known state");
  }
  return error;
}

Result<void> CudaCheckpoint::restore(pid_t pid, const std::function<Result<void>()>& reserve,
                                     const std::function<void()>& release) const {
  LOAM_TRY(before, state(pid));
  if (before == CudaProcessState::running) return {};
  if (before == CudaProcessState::failed)
    return Error{ErrorKind::conflict, "process " + std::to_string(pid) + " has no saved state",
                 "end it"};
  if (before == CudaProcessState::checkpointed) {
    LOAM_CHECK(reserve());
    if (const int code = entries_->restore(pid, nullptr); code != cuda_success) {
      release();
      return failure("restoring", pid, code);
    }
  }
  if (const int code = entries_->unlock(pid, nullptr); code != cuda_success)
    return failure("unlocking", pid, code);
  return {};
}

}  // namespace loam::node

// Checkpoints by the CUDA driver: saved or running, never in between; memory before a restore.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "node/device/cuda_checkpoint.hpp"

namespace loam::node {
namespace {

using ::testing::HasSubstr;

class CudaCheckpoints : public ::testing::Test {
 protected:
  enum Entry { lock, checkpoint, restore, unlock };
  void SetUp() override {
    const std::string library = std::string(LOAM_BUILD_DIR) + "/fakes/fake_checkpoint.so";
    DiscoveryPaths paths;
    paths.cuda = {library};
    auto opened = CudaCheckpoint::open(paths);
    ASSERT_TRUE(opened.ok()) << to_text(opened.error());
    driver_.emplace(std::move(opened).value());
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW);
    set_code = reinterpret_cast<void (*)(int, int)>(::dlsym(handle, "fake_checkpoint_code"));
    set_state = reinterpret_cast<void (*)(int, int)>(::dlsym(handle, "fake_checkpoint_state"));
    for (int entry = 0; entry < 4; ++entry) set_code(entry, 0);
    set_state(7, 0);
  }
  CudaProcessState state() { return driver_->state(7).value(); }
  Result<void> restore_it() {
    return driver_->restore(
        7,
        [&]() -> Result<void> {
          if (no_room) return Error{ErrorKind::conflict, "no memory is free", ""};
          ++reserved;
          return {};
        },
        [&] { ++released; });
  }

  std::optional<CudaCheckpoint> driver_;
  void (*set_code)(int, int) = nullptr;
  void (*set_state)(int, int) = nullptr;
  bool no_room = false;
  int reserved = 0, released = 0;
};

TEST_F(CudaCheckpoints, AProcessIsSavedAndGoesOn) {
  ASSERT_TRUE(driver_->save(7, Duration::seconds(1)).ok());
  EXPECT_EQ(state(), CudaProcessState::checkpointed);
  EXPECT_TRUE(driver_->save(7, Duration::seconds(1)).ok()) << "saved already";
  ASSERT_TRUE(restore_it().ok());
  EXPECT_EQ(state(), CudaProcessState::running);
  EXPECT_EQ(reserved, 1);
  EXPECT_EQ(released, 0);
}

TEST_F(CudaCheckpoints, AFailedSaveLetsTheProcessRunOn) {
  set_code(lock, 600);
  EXPECT_FALSE(driver_->save(7, Duration::seconds(1)).ok());
  EXPECT_EQ(state(), CudaProcessState::running);
  set_code(lock, 0);
  set_code(checkpoint, 2);
  const auto failed = driver_->save(7, Duration::seconds(1));
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(state(), CudaProcessState::running);
  set_code(unlock, 999);
  EXPECT_THAT(driver_->save(7, Duration::seconds(1)).error().message, HasSubstr("left locked"));
}

TEST_F(CudaCheckpoints, WithoutMemoryNothingIsRestored) {
  ASSERT_TRUE(driver_->save(7, Duration::seconds(1)).ok());
  no_room = true;
  EXPECT_EQ(restore_it().error().kind, ErrorKind::conflict);
  EXPECT_EQ(state(), CudaProcessState::checkpointed);
  no_room = false;
  EXPECT_TRUE(restore_it().ok());
}

TEST_F(CudaCheckpoints, AFailedRestoreLeavesTheSavedStateAndGivesTheMemoryBack) {
  ASSERT_TRUE(driver_->save(7, Duration::seconds(1)).ok());
  set_code(restore, 2);
  EXPECT_FALSE(restore_it().ok());
  EXPECT_EQ(reserved, 1);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(state(), CudaProcessState::checkpointed);
  set_code(restore, 0);
  EXPECT_TRUE(restore_it().ok());
  EXPECT_EQ(state(), CudaProcessState::running);
}

TEST_F(CudaCheckpoints, StrangersAndFailedProcessesAreErrors) {
  EXPECT_FALSE(driver_->save(8, Duration::seconds(1)).ok());
  set_state(7, 3);
  EXPECT_EQ(driver_->save(7, Duration::seconds(1)).error().kind, ErrorKind::conflict);
  EXPECT_EQ(restore_it().error().kind, ErrorKind::conflict);
  set_state(7, 9);
  EXPECT_EQ(driver_->state(7).error().kind, ErrorKind::unsupported);
}

TEST(CudaCheckpointProbe, ADriverWithoutTheEntriesIsUnsupported) {
  DiscoveryPaths paths;
  paths.cuda = {std::string(LOAM_BUILD_DIR) + "/fakes/fake_mig.so"};
  EXPECT_EQ(CudaCheckpoint::open(paths).error().kind, ErrorKind::unsupported);
  paths.cuda = {"libno_such_driver.so.1"};
  EXPECT_EQ(CudaCheckpoint::open(paths).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace loam::node

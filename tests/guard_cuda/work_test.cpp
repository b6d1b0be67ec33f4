// CUDA work goes to the device in the lease's turns: launched in any form, copied, captured, and
// replayed. Bounds on time are generous; the exact figures are the benchmark's.
#include <algorithm>

#include "guard_cuda/cuda_house.hpp"

namespace loam::node {
namespace {

class GuardCudaWork : public CudaHouse {
 protected:
  static SliceLimits sharing(SliceLimits slice, SliceMode mode = SliceMode::strict) {
    slice.quantum_ns = 4'000'000;
    slice.mode = mode;
    return slice;
  }
  // What ran on the engine so far, in order of beginning.
  std::vector<fakes::FakeCudaRun> runs(int engine = 0) {
    std::vector<fakes::FakeCudaRun> all;
    for (std::uint32_t i = 0; i < card().runs.load(); ++i)
      if (card().log[i].engine == engine) all.push_back(card().log[i]);
    return all;
  }
  double busy_ms(int engine = 0) {
    return static_cast<double>(card().busy_ns[static_cast<std::size_t>(engine)].load()) / 1e6;
  }
};

TEST_F(GuardCudaWork, EveryFormOfLaunchIsCountedAndCharged) {
  make_page("a", {sharing(cuda_slice(no_memory_limit))});
  start_keeper();
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("stream"), "ok 1");
  EXPECT_EQ(guest->ask("launch 2000000 1 3"), "ok");
  EXPECT_EQ(guest->ask("launch_ex 2000000 1"), "ok");
  EXPECT_EQ(guest->ask("launch_cooperative 2000000 1"), "ok");
  EXPECT_EQ(guest->ask("launch 2000000 0 2"), "ok");
  EXPECT_EQ(guest->ask("sync_all"), "ok");
  EXPECT_EQ(usage("a").launches, 7u);
  EXPECT_EQ(card().launches.load(), 7u);
  const double busy = static_cast<double>(usage("a").busy_ns) / 1e6;
  EXPECT_GE(busy, 13.9);
  EXPECT_LE(busy, 14.0 * 5) << "and not more than the clock allows";
}

TEST_F(GuardCudaWork, NothingRunsOutsideTheTurn) {
  make_page("a", {sharing(cuda_slice(no_memory_limit))});
  auto guest = open_guest("a");
  guest->tell("launch 1000000 0 1");
  EXPECT_FALSE(guest->hears_within(100)) << "nobody grants turns";
  EXPECT_EQ(card().launches.load(), 0u);
  start_keeper();
  EXPECT_EQ(guest->hear(), "ok");
  EXPECT_EQ(guest->ask("sync 0"), "ok");
  EXPECT_EQ(card().launches.load(), 1u);
}

TEST_F(GuardCudaWork, ACapIsHeldWhateverTheBlocks) {
  make_page("a", {sharing(cuda_slice(no_memory_limit, 0, 300))});
  start_keeper();
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("stream"), "ok 1");
  guest->ask("launch 1000000 1 1");
  guest->ask("sync 1");
  const double before = busy_ms();
  const auto began = std::chrono::steady_clock::now();
  guest->ask("saturate 1000000 1500");
  const double wall =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  const double share = (busy_ms() - before) / wall;
  EXPECT_GT(share, 0.15);
  EXPECT_LT(share, 0.36) << "30 % and no more";
}

TEST_F(GuardCudaWork, TwoTenantsTakeTurnsAndNeverOverlap) {
  make_page("a", {sharing(cuda_slice(no_memory_limit, 0, 700))});
  make_page("b", {sharing(cuda_slice(no_memory_limit, 0, 300))});
  start_keeper();
  auto a = open_guest("a"), b = open_guest("b");
  for (Guest* guest : {a.get(), b.get()}) {
    EXPECT_EQ(guest->ask("stream"), "ok 1");
    guest->ask("launch 500000 1 1");
    guest->ask("sync 1");
  }
  const std::size_t warm = runs().size();
  a->tell("saturate 500000 1500");
  b->tell("saturate 500000 1500");
  a->hear();
  b->hear();
  double time_a = 0, time_b = 0;
  auto all = runs();
  for (std::size_t i = warm; i < all.size(); ++i)
    (all[i].pid == a->pid() ? time_a : time_b) +=
        static_cast<double>(all[i].end_ns - all[i].begin_ns);
  EXPECT_GT(time_a / (time_a + time_b), 0.55);
  EXPECT_LT(time_a / (time_a + time_b), 0.85);
  // A change of tenant finds the device drained: what it was given it ran alone.
  const double busy = static_cast<double>(usage("a").busy_ns + usage("b").busy_ns);
  EXPECT_GE(busy, 0.9 * (time_a + time_b));
}

TEST_F(GuardCudaWork, CapturedWorkIsNotHeldBackAndReplaysAreChargedByTheirCost) {
  make_page("a", {sharing(cuda_slice(no_memory_limit))});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("stream"), "ok 1");
  // No keeper: had capturing waited for a turn it would wait for ever.
  EXPECT_EQ(guest->ask("capture 1000000 1 10"), "ok 10") << "and only the launches were caught";
  EXPECT_EQ(card().launches.load(), 0u);
  guest->tell("graph 1");
  EXPECT_FALSE(guest->hears_within(100)) << "a replay takes a turn";
  start_keeper();
  EXPECT_EQ(guest->hear(), "ok");
  EXPECT_EQ(guest->ask("sync 1"), "ok");
  EXPECT_EQ(guest->ask("graph 1"), "ok");
  EXPECT_EQ(guest->ask("sync 1"), "ok");
  EXPECT_EQ(usage("a").launches, 2u);
  EXPECT_GE(static_cast<double>(usage("a").busy_ns) / 1e6, 19.9);
}

TEST_F(GuardCudaWork, CapturingWhileWorkIsInFlightIsNotDisturbed) {
  make_page("a", {sharing(cuda_slice(no_memory_limit))});
  start_keeper();
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("stream"), "ok 1");
  EXPECT_EQ(guest->ask("stream"), "ok 2");
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(guest->ask("launch 300000 1 5"), "ok");
    EXPECT_EQ(guest->ask("capture 1000 2 5"), "ok 5") << round;
  }
}

TEST_F(GuardCudaWork, CopiesAreCountedAndTakeTheLanesOfTheirDirection) {
  SliceLimits slice = sharing(cuda_slice(no_memory_limit));
  slice.copy_lanes = true;
  make_page("a", {slice});
  start_keeper();
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("stream"), "ok 1");
  EXPECT_EQ(guest->ask("upload 1048576 1 20"), "ok");
  EXPECT_EQ(usage("a").bytes_copied, 20 * mib);
  EXPECT_GT(busy_ms(1), 0.8);
  EXPECT_EQ(busy_ms(0), 0);
}

TEST_F(GuardCudaWork, ShortKernelsCostFewDriverCalls) {
  make_page("a", {sharing(cuda_slice(no_memory_limit))});
  start_keeper();
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("stream"), "ok 1");
  guest->ask("launch 10000 1 100");
  guest->ask("sync 1");
  const auto calls = [&] { return std::stoull(guest->ask("calls").substr(3)); };
  const std::uint64_t before = calls();
  EXPECT_EQ(guest->ask("launch 10000 1 20000"), "ok");
  EXPECT_EQ(guest->ask("sync 1"), "ok");
  const double extra = static_cast<double>(calls() - before - 20001) / 20000;
  EXPECT_LT(extra, 0.25);
}

TEST_F(GuardCudaWork, AKilledHolderDoesNotKeepTheTurn) {
  make_page("a", {sharing(cuda_slice(no_memory_limit, 0, 500))});
  make_page("b", {sharing(cuda_slice(no_memory_limit, 0, 500))});
  start_keeper();
  auto b = open_guest("b");
  for (int round = 0; round < 10; ++round) {
    auto a = open_guest("a");
    a->tell("saturate 500000 60000");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    a->kill();
    b->tell("launch 500000 0 1");
    ASSERT_TRUE(b->hears_within(5000)) << round;
    EXPECT_EQ(b->hear(), "ok");
  }
}

}  // namespace
}  // namespace loam::node

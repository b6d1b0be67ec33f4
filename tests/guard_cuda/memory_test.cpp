// CUDA memory of every kind is reserved, counted and given back; what a driver takes for itself is
// counted too.
#include <barrier>
#include <chrono>
#include <cstdlib>

#include "guard_cuda/cuda_house.hpp"

namespace loam::node {
namespace {

using GuardCudaMemory = CudaHouse;

// The guard's books and the fake driver's agree, to the byte, on what is charged exactly.
TEST_F(GuardCudaMemory, EveryKindIsChargedAndGivenBack) {
  make_page("a", {cuda_slice(1000 * mib)});
  auto guest = open_guest("a");
  struct Case {
    const char* what;
    std::uint64_t bytes;
  };
  for (const Case& one : {Case{"alloc 1048576", mib}, Case{"alloc 1", 512},
                          Case{"managed 2097152", 2 * mib}, Case{"pitch 1000 1024", mib},
                          Case{"create 4194304 0", 4 * mib}, Case{"external 3145728", 3 * mib},
                          Case{"array 1024 1024", 4 * mib}, Case{"async 4194304", 4 * mib}}) {
    const std::string said = guest->ask(one.what);
    ASSERT_EQ(said.substr(0, 3), "ok ") << one.what << ": " << said;
    EXPECT_EQ(used("a"), one.bytes) << one.what;
    EXPECT_EQ(guest->ask("free " + said.substr(3)), "ok") << one.what;
    guest->ask("trim 0");
    EXPECT_EQ(used("a"), 0u) << one.what;
    EXPECT_EQ(card().used_bytes.load(), 0u) << one.what;
  }
}

TEST_F(GuardCudaMemory, EveryKindIsRefusedOverTheQuotaWithTheDriversOwnError) {
  make_page("a", {cuda_slice(10 * mib)});
  auto guest = open_guest("a");
  for (const char* what :
       {"alloc 11534336", "managed 11534336", "pitch 4096 4096", "create 12582912 0",
        "external 11534336", "array 2048 2048", "mipmap 1024 1024 11", "async 11534336"}) {
    EXPECT_EQ(guest->ask(what), "error 2") << what;
    EXPECT_EQ(used("a"), 0u) << what;
    EXPECT_EQ(card().used_bytes.load(), 0u) << what;
  }
  EXPECT_EQ(usage("a").refusals, 8u);
}

TEST_F(GuardCudaMemory, ADriversOwnRefusalGivesTheReservationBack) {
  make_page("a", {cuda_slice(no_memory_limit)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("alloc " + mebibytes(90'000)), "error 2");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(usage("a").refusals, 0u);
}

TEST_F(GuardCudaMemory, PaddingOfArraysIsFoundAndCharged) {
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = open_guest("a");
  // Rows of 400 bytes; the fake driver makes 512 of them and rounds the whole to 64 KiB.
  EXPECT_EQ(guest->ask("array 100 1024"), "ok 1");
  EXPECT_EQ(used("a"), card().used_bytes.load());
  EXPECT_EQ(guest->ask("mipmap 1000 1000 10"), "ok 2");
  EXPECT_EQ(used("a"), card().used_bytes.load());
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(guest->ask("free 2"), "ok");
  EXPECT_EQ(used("a"), 0u);
}

TEST_F(GuardCudaMemory, PoolsCountWhatTheyHold) {
  make_page("a", {cuda_slice(10 * mib)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("async 1048576"), "ok 1");
  EXPECT_EQ(used("a"), 2 * mib);  // the pool took two
  EXPECT_EQ(guest->ask("async 1048576"), "ok 2");
  EXPECT_EQ(used("a"), 2 * mib);
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(used("a"), 2 * mib);
  EXPECT_EQ(guest->ask("free 2"), "ok");
  EXPECT_EQ(used("a"), 2 * mib) << "freed, but the pool keeps it until the device is waited for";
  EXPECT_EQ(guest->ask("sync 0"), "ok");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(card().used_bytes.load(), 0u);
}

TEST_F(GuardCudaMemory, IdlePoolsGiveWayToAllocations) {
  make_page("a", {cuda_slice(10 * mib)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("async " + mebibytes(8)), "ok 1");
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(used("a"), 8 * mib);
  EXPECT_EQ(guest->ask("alloc " + mebibytes(9)), "ok 2");
  EXPECT_EQ(used("a"), 9 * mib);
}

TEST_F(GuardCudaMemory, PlainAllocationsMayBeFreedAsynchronouslyAndTheOtherWayRound) {
  make_page("a", {cuda_slice(10 * mib)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("alloc " + mebibytes(4)), "ok 1");
  EXPECT_EQ(guest->ask("free_async 1"), "ok");
  EXPECT_EQ(used("a"), 0u);
}

TEST_F(GuardCudaMemory, PhysicalMemoryLivesUntilItsLastMappingIsGone) {
  make_page("a", {cuda_slice(10 * mib)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("create 4194304 0"), "ok 1");
  EXPECT_EQ(guest->ask("map 1"), "ok 2");
  EXPECT_EQ(guest->ask("retain 2"), "ok 3");
  EXPECT_EQ(guest->ask("free 1"), "ok");  // the handle
  EXPECT_EQ(used("a"), 4 * mib);
  EXPECT_EQ(guest->ask("free 2"), "ok");  // the mapping
  EXPECT_EQ(used("a"), 4 * mib) << "the retained handle holds it";
  EXPECT_EQ(guest->ask("free 3"), "ok");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(card().used_bytes.load(), 0u);
}

TEST_F(GuardCudaMemory, HostMemoryIsNotTheDevices) {
  make_page("a", {cuda_slice(10 * mib)});
  auto guest = start_cuda_guest("a");
  EXPECT_EQ(guest->ask("init"), "ok");
  EXPECT_EQ(guest->ask("create_host 20971520 0"), "ok 1");  // also without a context
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(guest->ask("free 1"), "ok");
}

TEST_F(GuardCudaMemory, FreesFindTheirDevice) {
  make_page("a", {cuda_slice(100 * mib), cuda_slice(100 * mib, 1)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("alloc " + mebibytes(30)), "ok 1");
  EXPECT_EQ(guest->ask("alloc " + mebibytes(20)), "ok 2");
  EXPECT_EQ(guest->ask("open 1"), "ok");
  EXPECT_EQ(guest->ask("alloc " + mebibytes(10)), "ok 3");
  EXPECT_EQ(used("a", 0), 50 * mib);
  EXPECT_EQ(used("a", 1), 10 * mib);
  EXPECT_EQ(guest->ask("free 1"), "ok");  // device 1 is current
  EXPECT_EQ(used("a", 0), 20 * mib);
  EXPECT_EQ(guest->ask("free_async 2"), "ok");
  EXPECT_EQ(used("a", 0), 0u);
  EXPECT_EQ(used("a", 1), 10 * mib);
}

TEST_F(GuardCudaMemory, WithoutAContextTheDriversErrorIsGiven) {
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = start_cuda_guest("a");
  EXPECT_EQ(guest->ask("init"), "ok");
  EXPECT_EQ(guest->ask("alloc 1048576"), "error 201");
  EXPECT_EQ(guest->ask("async 1048576"), "error 201");
  EXPECT_EQ(guest->ask("array 100 100"), "error 201");
  EXPECT_EQ(guest->ask("info"), "error 201");
  EXPECT_EQ(guest->ask("launch_ex 1000 0"), "error 201");
  EXPECT_EQ(guest->ask("open 0"), "ok");
  EXPECT_EQ(guest->ask("use_none"), "ok");
  EXPECT_EQ(guest->ask("alloc 1048576"), "error 201");
  EXPECT_EQ(used("a"), 0u);
}

TEST_F(GuardCudaMemory, QueriesShowTheSlice) {
  make_page("a", {cuda_slice(1000 * mib)});
  make_page("whole", {cuda_slice(no_memory_limit)});
  auto guest = open_guest("a");
  auto other = open_guest("whole");
  EXPECT_EQ(guest->ask("total 0"), "ok " + mebibytes(1000));
  EXPECT_EQ(other->ask("total 0"), "ok " + mebibytes(80 * 1024));
  EXPECT_EQ(other->ask("alloc " + mebibytes(400)), "ok 1");
  EXPECT_EQ(guest->ask("info"), "ok " + mebibytes(1000) + " " + mebibytes(1000));
  EXPECT_EQ(guest->ask("alloc " + mebibytes(600)), "ok 1");
  EXPECT_EQ(guest->ask("info"), "ok " + mebibytes(400) + " " + mebibytes(1000));
  EXPECT_EQ(other->ask("info"), "ok " + mebibytes(80 * 1024 - 1000) + " " + mebibytes(80 * 1024));
  // The card may have less left than the slice.
  EXPECT_EQ(other->ask("alloc " + mebibytes(80 * 1024 - 1100)), "ok 2");
  EXPECT_EQ(guest->ask("info"), "ok " + mebibytes(100) + " " + mebibytes(1000));
}

TEST_F(GuardCudaMemory, NullsAreAnsweredAsTheDriverDoes) {
  make_page("a", {cuda_slice(1000 * mib)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("info_null"), "error 1");
  EXPECT_EQ(guest->ask("total_null 0"), "error 1");
  EXPECT_EQ(guest->ask("total 7"), "error 101");
}

TEST_F(GuardCudaMemory, WhatADriverTakesForItselfIsCharged) {
  card().context_bytes = 300 * mib;
  card().module_bytes = 20 * mib;
  make_page("a", {cuda_slice(1000 * mib)});
  auto guest = open_guest("a", "dlsym");
  EXPECT_EQ(used("a"), 300 * mib);
  EXPECT_EQ(guest->ask("module"), "ok 1");
  EXPECT_EQ(used("a"), 320 * mib);
  EXPECT_EQ(guest->ask("heap " + mebibytes(50)), "ok");
  EXPECT_EQ(used("a"), 370 * mib);
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(used("a"), 350 * mib);
  EXPECT_EQ(guest->ask("open 0"), "ok");  // the same context once more
  EXPECT_EQ(used("a"), 350 * mib);
  EXPECT_EQ(guest->ask("close 0"), "ok");
  EXPECT_EQ(used("a"), 350 * mib);
  EXPECT_EQ(guest->ask("alloc " + mebibytes(100)), "ok 2");
  EXPECT_EQ(guest->ask("close 0"), "ok");  // the last reference: all of it ends
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(card().used_bytes.load(), 0u);
}

TEST_F(GuardCudaMemory, AContextBeyondTheQuotaIsNotGiven) {
  card().context_bytes = 300 * mib;
  make_page("a", {cuda_slice(200 * mib)});
  auto guest = start_cuda_guest("a", "dlsym");
  EXPECT_EQ(guest->ask("open 0"), "error 2");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(card().used_bytes.load(), 0u);
}

TEST_F(GuardCudaMemory, GraphsThatAllocateMustFit) {
  make_page("a", {cuda_slice(100 * mib)});
  start_keeper();
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("graph_alloc " + mebibytes(200) + " 0"), "error 2");
  EXPECT_EQ(guest->ask("graph_alloc " + mebibytes(60) + " 0"), "ok");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(guest->ask("graph 0"), "ok");
  EXPECT_EQ(used("a"), 60 * mib) << "the driver keeps it from the first launch on";
  EXPECT_EQ(guest->ask("alloc " + mebibytes(50)), "error 2");
}

TEST_F(GuardCudaMemory, BooksSurviveAnExit) {
  make_page("a", {cuda_slice(1000 * mib)});
  auto a = open_guest("a"), b = open_guest("a"), c = open_guest("a");
  EXPECT_EQ(a->ask("alloc " + mebibytes(100)), "ok 1");
  a->kill();
  EXPECT_EQ(b->ask("alloc " + mebibytes(2000)), "error 2");
  EXPECT_EQ(c->ask("alloc " + mebibytes(600)), "ok 1");
  EXPECT_EQ(b->ask("info"), "ok " + mebibytes(400) + " " + mebibytes(1000));
  EXPECT_EQ(b->ask("alloc " + mebibytes(600)), "error 2");
  b->kill();
  c->kill();
  EXPECT_EQ(used("a"), 0u);
}

TEST_F(GuardCudaMemory, KillsInMidAllocationLeakNothing) {
  make_page("a", {cuda_slice(1000 * mib)});
  auto survivor = open_guest("a");
  ASSERT_EQ(survivor->ask("alloc " + mebibytes(10)), "ok 1");
  unsigned seed = 1;
  const bool is_long = std::getenv("LOAM_LONG_TESTS") != nullptr;
  for (int round = 0; round < (is_long ? 1000 : 60); ++round) {
    auto victim = open_guest("a");
    ASSERT_EQ(victim->ask("churn 1048576"), "ok");
    seed = seed * 1103515245u + 12345u;
    std::this_thread::sleep_for(std::chrono::microseconds(seed / 65536u % 2000u));
    victim->kill();
    // The survivor is served at once and all of the dead one's memory is back.
    const auto asked = std::chrono::steady_clock::now();
    ASSERT_EQ(survivor->ask("alloc " + mebibytes(985)), "ok " + std::to_string(round + 2));
    // The long run is for a machine that does nothing else.
    const std::chrono::milliseconds bound(is_long ? 100 : 10'000);
    EXPECT_LT(std::chrono::steady_clock::now() - asked, bound) << "round " << round;
    ASSERT_EQ(survivor->ask("free " + std::to_string(round + 2)), "ok");
  }
  EXPECT_EQ(used("a"), 10 * mib);
}

TEST_F(GuardCudaMemory, TenThousandLiveAllocationsAreKept) {
  make_page("a", {cuda_slice(1000 * mib)});
  auto guest = open_guest("a");
  EXPECT_EQ(guest->ask("many 10000 4096"), "ok 10000");
  EXPECT_EQ(used("a"), 10000u * 4096u);
  for (int id = 1; id <= 10000; ++id) guest->tell("free " + std::to_string(id));
  for (int id = 1; id <= 10000; ++id) ASSERT_EQ(guest->hear(), "ok") << id;
  EXPECT_EQ(used("a"), 0u);
}

TEST_F(GuardCudaMemory, MemoryIsClearedWhereThePageSaysSo) {
  SliceLimits dirty = cuda_slice(100 * mib);
  SliceLimits clean = dirty;
  clean.clear_memory = true;
  make_page("dirty", {dirty});
  make_page("clean", {clean});
  start_keeper();
  auto first = open_guest("dirty");
  EXPECT_EQ(first->ask("read 65536"), "ok 0");
  EXPECT_EQ(first->ask("read 65536"), "ok 171") << "the fake driver clears nothing";
  auto second = open_guest("clean");
  EXPECT_EQ(second->ask("read 65536"), "ok 0");
  EXPECT_EQ(second->ask("read 65536"), "ok 0");
}

}  // namespace
}  // namespace loam::node

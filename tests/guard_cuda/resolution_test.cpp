// However a program finds the driver's functions, it gets the guard's.
#include <gmock/gmock.h>

#include "guard_cuda/cuda_house.hpp"

namespace loam::node {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class GuardCudaResolution : public CudaHouse, public ::testing::WithParamInterface<const char*> {};

TEST_P(GuardCudaResolution, EveryWayIsBoundByTheQuota) {
  // Only names that have a version can be found by it.
  if (std::string(GetParam()) == "dlvsym") cuda_folder_ = LOAM_FAKE_CUDA_NEWER_FOLDER;
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = open_guest("a", GetParam());
  const std::string first = guest->ask("alloc " + mebibytes(60));
  EXPECT_EQ(first, "ok 1");
  EXPECT_EQ(used("a"), 60 * mib);
  EXPECT_EQ(guest->ask("alloc " + mebibytes(60)), "error 2");
  EXPECT_EQ(guest->ask("async " + mebibytes(60)), "error 2");
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(guest->ask("alloc " + mebibytes(60)), "ok 2");
}

INSTANTIATE_TEST_SUITE_P(Ways, GuardCudaResolution,
                         ::testing::Values("linked", "dlsym", "dlvsym", "behind", "proc",
                                           "proc_ptsz"));

using GuardCudaLookup = CudaHouse;

TEST_F(GuardCudaLookup, ProcAddressGivesTheHookOfTheVersionAndFlavourAsked) {
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = open_guest("a");
  const std::string guard = "libloam-guard.so ";
  EXPECT_EQ(guest->ask("proc cuMemAlloc 12000 0"), guard + "cuMemAlloc_v2");
  EXPECT_EQ(guest->ask("proc cuMemAlloc 3020 0"), guard + "cuMemAlloc_v2");
  EXPECT_EQ(guest->ask("proc cuGetProcAddress 12000 0"), guard + "cuGetProcAddress_v2");
  EXPECT_EQ(guest->ask("proc cuGetProcAddress 11030 0"), guard + "cuGetProcAddress");
  EXPECT_EQ(guest->ask("proc cuLaunchKernel 12000 2"), guard + "cuLaunchKernel_ptsz");
  EXPECT_EQ(guest->ask("proc cuLaunchKernel 12000 1"), guard + "cuLaunchKernel");
  EXPECT_EQ(guest->ask("proc cuMemcpyHtoD 12000 2"), guard + "cuMemcpyHtoD_v2_ptds");
  EXPECT_EQ(guest->ask("proc cuMemcpyBatchAsync 12080 0"), guard + "cuMemcpyBatchAsync");
  EXPECT_EQ(guest->ask("proc cuMemcpyBatchAsync 13000 0"), guard + "cuMemcpyBatchAsync_v2");
  // The driver's own answer stands where the version is older than the entry, or there is none.
  EXPECT_EQ(guest->ask("proc cuMemAllocAsync 11000 0"), "none 2");
  EXPECT_EQ(guest->ask("proc cuNoSuchThing 12000 0"), "none 1");
  // What the guard does not stand in front of is the driver's.
  EXPECT_THAT(guest->ask("proc cuEventQuery 12000 0"), StartsWith("libcuda.so.1"));
}

TEST_F(GuardCudaLookup, NamesThatAreNotTheGuardsReachTheirTarget) {
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = start_cuda_guest("a", "dlsym");
  EXPECT_EQ(guest->ask("where cuEventQuery"), "libcuda.so.1");
  EXPECT_EQ(guest->ask("where cuMemAlloc_v2"), "libloam-guard.so");
  EXPECT_EQ(guest->ask("where cuNoSuchThing"), "none");
}

TEST_F(GuardCudaLookup, ALookupByVersionIsBoundLikeOneWithout) {
  cuda_folder_ = LOAM_FAKE_CUDA_NEWER_FOLDER;
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = start_cuda_guest("a", "dlvsym");
  EXPECT_EQ(guest->ask("where_version cuEventQuery CUDA_1"), "libcuda.so.1");
  EXPECT_EQ(guest->ask("where_version cuMemAlloc_v2 CUDA_1"), "libloam-guard.so");
  EXPECT_EQ(guest->ask("where_version cuNoSuchThing CUDA_1"), "none, said");
  // Of a version that the driver has not: nothing, as without the guard.
  EXPECT_EQ(guest->ask("where_version cuMemAlloc_v2 CUDA_9"), "none, said");
}

TEST_F(GuardCudaLookup, AnUnknownEntryThatMayAllocateIsRefusedByVersionToo) {
  cuda_folder_ = LOAM_FAKE_CUDA_NEWER_FOLDER;
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = start_cuda_guest("a", "dlvsym");
  EXPECT_EQ(guest->ask("where_version cuMemAllocFancy CUDA_1"), "libloam-guard.so");
  EXPECT_EQ(guest->ask("where_version cuShinyQuery CUDA_1"), "libcuda.so.1");
}

TEST_F(GuardCudaLookup, ADriverAtAnUnusualPathIsBoundToo) {
  make_page("a", {cuda_slice(100 * mib)});
  auto environment = cuda_environment("a");
  const std::string elsewhere = root_ + "/driver/of_its_own.so";
  std::filesystem::create_directory(root_ + "/driver");
  std::filesystem::copy_file(std::string(LOAM_FAKE_CUDA_FOLDER) + "/libcuda.so.1", elsewhere);
  Guest guest({LOAM_CUDA_GUEST_PROGRAM, "dlsym", elsewhere}, environment);
  EXPECT_EQ(guest.ask("open 0"), "ok") << guest.errors();
  EXPECT_EQ(guest.ask("alloc " + mebibytes(101)), "error 2");
  EXPECT_EQ(guest.ask("alloc " + mebibytes(99)), "ok 1");
  EXPECT_EQ(used("a"), 99 * mib);
}

TEST_F(GuardCudaLookup, AnUnknownEntryThatMayAllocateIsRefusedAndOthersAreNot) {
  cuda_folder_ = LOAM_FAKE_CUDA_NEWER_FOLDER;
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = start_cuda_guest("a", "dlsym");
  EXPECT_EQ(guest->ask("unknown cuMemAllocFancy"), "error 801");
  EXPECT_THAT(guest->errors(), HasSubstr("cuMemAllocFancy"));
  EXPECT_EQ(guest->ask("unknown cuShinyQuery"), "ok");
}

TEST_F(GuardCudaLookup, WithoutAPageThereIsNoDevice) {
  auto environment = cuda_environment("nobody");
  Guest guest({LOAM_CUDA_GUEST_PROGRAM, "linked"}, environment);
  EXPECT_EQ(guest.ask("open 0"), "error 100");
  EXPECT_THAT(guest.errors(), HasSubstr("loam-guard:"));
}

TEST_F(GuardCudaLookup, ADeviceThatIsNotOnThePageHasNoContexts) {
  make_page("a", {cuda_slice(100 * mib)});
  auto guest = start_cuda_guest("a");
  EXPECT_EQ(guest->ask("open 2"), "error 101");
  EXPECT_EQ(guest->ask("open 0"), "ok");
  EXPECT_EQ(guest->ask("create " + mebibytes(2) + " 2"), "error 101");
  EXPECT_EQ(card(2).used_bytes.load(), 0u);
}

}  // namespace
}  // namespace loam::node

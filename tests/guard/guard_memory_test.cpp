// Device memory under the guard, on the fake device: the quota, the books, death at any moment.
#include "guard/house.hpp"

namespace loam::node {
namespace {

class GuardMemory : public House {};

const std::string refused = "error -4";  // CL_MEM_OBJECT_ALLOCATION_FAILURE

bool is_ok(const std::string& answer) {
  return answer.starts_with("ok");
}

TEST_F(GuardMemory, OverTheQuotaTheDriversOwnErrorIsGivenAndCounted) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_TRUE(is_ok(guest->ask(alloc(60))));
  EXPECT_EQ(guest->ask(alloc(60)), refused);
  EXPECT_EQ(guest->ask("alloc_null " + std::to_string(60 * mib)), "error -6");
  EXPECT_TRUE(is_ok(guest->ask(alloc(40))));
  EXPECT_EQ(guest->ask("alloc 1"), refused);
  const SliceUsage now = usage("l1");
  EXPECT_EQ(now.memory_used_bytes, 100 * mib);
  EXPECT_EQ(now.memory_peak_bytes, 100 * mib);
  EXPECT_EQ(now.refusals, 3u);
  EXPECT_EQ(books().allocated_bytes, 100 * mib);
}

TEST_F(GuardMemory, WhatTheDriverRefusesIsNotCharged) {
  make_page("l1", {fake_slice(no_memory_limit)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_EQ(guest->ask("alloc 0"), "error -61");  // CL_INVALID_BUFFER_SIZE, the driver's
  EXPECT_TRUE(is_ok(guest->ask(alloc(1000))));
  EXPECT_EQ(guest->ask(alloc(1000)), "error -5");                // the fake's own exhaustion
  EXPECT_EQ(guest->ask("alloc 18446744073709551615"), refused);  // no sum overflows
  EXPECT_EQ(usage("l1").memory_used_bytes, 1000 * mib);
}

TEST_F(GuardMemory, TheLastReferenceGivesTheMemoryBack) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_EQ(guest->ask(alloc(80)), "ok 1");
  EXPECT_EQ(guest->ask("retain 1"), "ok");
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(usage("l1").memory_used_bytes, 80 * mib);
  ASSERT_EQ(guest->ask("sub 1 4096"), "ok 2");  // lies in the parent, and keeps it
  EXPECT_EQ(usage("l1").memory_used_bytes, 80 * mib);
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(usage("l1").memory_used_bytes, 80 * mib);
  EXPECT_EQ(guest->ask("free 2"), "ok");
  EXPECT_EQ(usage("l1").memory_used_bytes, 0u);
  EXPECT_TRUE(is_ok(guest->ask(alloc(100))));
}

TEST_F(GuardMemory, EveryKindOfMemoryCounts) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_EQ(guest->ask("image 100 1000"), "ok 1");  // 400 bytes a row; the driver pads to 512
  EXPECT_EQ(usage("l1").memory_used_bytes, 512'000u);
  ASSERT_EQ(guest->ask("svm 1000"), "ok 2");
  ASSERT_EQ(guest->ask("host 5000"), "ok 3");
  EXPECT_EQ(usage("l1").memory_used_bytes, 518'000u);
  EXPECT_EQ(guest->ask("svm " + std::to_string(100 * mib)), "error");
  EXPECT_EQ(guest->ask("image 10000 10000"), refused);
  EXPECT_EQ(guest->ask("svm_free 2"), "ok");
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(guest->ask("free 3"), "ok");
  EXPECT_EQ(usage("l1").memory_used_bytes, 0u);
}

TEST_F(GuardMemory, MemoryIsCountedByItsKind) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_EQ(guest->ask("alloc 7000"), "ok 1");
  ASSERT_EQ(guest->ask("image 100 1000"), "ok 2");
  ASSERT_EQ(guest->ask("svm 1000"), "ok 3");
  ASSERT_EQ(guest->ask("host 5000"), "ok 4");
  const auto kinds = usage("l1").memory_by_kind;
  EXPECT_EQ(kinds[LOAM_MEMORY_BUFFER], 7000u);
  EXPECT_EQ(kinds[LOAM_MEMORY_IMAGE], 512'000u);
  EXPECT_EQ(kinds[LOAM_MEMORY_SHARED], 1000u);
  EXPECT_EQ(kinds[LOAM_MEMORY_HOST], 5000u);
  EXPECT_EQ(guest->ask("free 1"), "ok");
  EXPECT_EQ(usage("l1").memory_by_kind[LOAM_MEMORY_BUFFER], 0u);
  guest->kill();
  for (const std::uint64_t bytes : usage("l1").memory_by_kind) EXPECT_EQ(bytes, 0u);
}

TEST_F(GuardMemory, MemoryThatChangesItsTenantIsCleared) {
  SliceLimits dirty = fake_slice(100 * mib, 500, SliceMode::burstable), clean = dirty;
  clean.clear_memory = true;
  make_page("first", {dirty});
  make_page("second", {clean});
  make_page("third", {dirty});
  start_keeper();
  auto first = start_guest("first"), second = start_guest("second"), third = start_guest("third");
  for (Guest* guest : {first.get(), second.get(), third.get()}) ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_EQ(first->ask("alloc 4096"), "ok 1");
  ASSERT_EQ(first->ask("poke 1 4711"), "ok");
  ASSERT_EQ(first->ask("free 1"), "ok");
  // The fake device hands the secret on, as real ones do.
  ASSERT_EQ(third->ask("alloc 4096"), "ok 1");
  ASSERT_EQ(third->ask("peek 1"), "ok 4711");
  ASSERT_EQ(third->ask("free 1"), "ok");
  ASSERT_EQ(second->ask("alloc 4096"), "ok 1");
  EXPECT_EQ(second->ask("peek 1"), "ok 0");
  ASSERT_EQ(second->ask("poke 1 4712"), "ok");
  ASSERT_EQ(second->ask("free 1"), "ok");
  ASSERT_EQ(second->ask("alloc 5001"), "ok 2");  // a size that no wide pattern divides
  EXPECT_EQ(second->ask("peek 2"), "ok 0");
  ASSERT_EQ(second->ask("image 100 100"), "ok 3");
  EXPECT_EQ(second->ask("peek 3"), "ok 0");
  EXPECT_EQ(usage("second").launches, 0u);
  EXPECT_GT(usage("second").busy_ns, 0) << "clearing takes a turn like any work";
}

TEST_F(GuardMemory, BooksSurviveAnExit) {
  make_page("l1", {fake_slice(1000 * mib)});
  auto a = start_guest("l1"), b = start_guest("l1"), c = start_guest("l1");
  for (Guest* guest : {a.get(), b.get(), c.get()}) ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_TRUE(is_ok(a->ask(alloc(300))));
  EXPECT_EQ(a->finish(), 0);
  books().allocated_bytes = 0;  // the fake device's memory of the dead is free, too
  EXPECT_EQ(b->ask(alloc(2000)), refused);
  EXPECT_TRUE(is_ok(c->ask(alloc(600))));
  EXPECT_EQ(usage("l1").memory_used_bytes, 600 * mib);
  EXPECT_EQ(b->ask(alloc(600)), refused);
  EXPECT_TRUE(is_ok(b->ask(alloc(400))));
  EXPECT_EQ(b->finish(), 0);
  EXPECT_EQ(c->finish(), 0);
  EXPECT_EQ(usage("l1").memory_used_bytes, 0u);
}

TEST_F(GuardMemory, TheDeadAreFoundByWhoeverComesNext) {
  make_page("l1", {fake_slice(1000 * mib)});
  auto survivor = start_guest("l1");
  ASSERT_EQ(survivor->ask("open"), "ok");
  for (int round = 0; round < 10; ++round) {
    auto guest = start_guest("l1");
    ASSERT_EQ(guest->ask("open"), "ok");
    ASSERT_TRUE(is_ok(guest->ask(alloc(700))));
    EXPECT_EQ(survivor->ask(alloc(700)), refused);
    guest->kill();
    books().allocated_bytes = 0;
    // No daemon and no keeper looks: the survivor's own allocation finds the dead one.
    const std::string got = survivor->ask(alloc(700));
    ASSERT_TRUE(is_ok(got)) << got;
    ASSERT_EQ(survivor->ask("free" + got.substr(2)), "ok");
  }
}

TEST_F(GuardMemory, KilledInMidAllocationTheBooksStayTrue) {
  make_page("l1", {fake_slice(1000 * mib)});
  auto survivor = start_guest("l1");
  ASSERT_EQ(survivor->ask("open"), "ok");
  const int rounds = std::getenv("LOAM_LONG_TESTS") ? 1000 : 60;
  for (int round = 0; round < rounds; ++round) {
    auto guest = start_guest("l1");
    ASSERT_EQ(guest->ask("open"), "ok");
    ASSERT_EQ(guest->ask("churn " + std::to_string(10 * mib)), "ok");
    std::this_thread::sleep_for(std::chrono::microseconds(round % 100 * 13));
    guest->kill();
    books().allocated_bytes = 0;
    const std::string got = survivor->ask(alloc(1000));
    ASSERT_TRUE(is_ok(got)) << "round " << round << ": " << got;
    ASSERT_EQ(survivor->ask("free" + got.substr(2)), "ok");
    ASSERT_EQ(usage("l1").memory_used_bytes, 0u);
  }
}

TEST_F(GuardMemory, AForkedChildHasBooksOfItsOwn) {
  make_page("l1", {fake_slice(1000 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_TRUE(is_ok(guest->ask(alloc(500))));
  EXPECT_EQ(guest->ask("fork " + std::to_string(600 * mib)), refused);
  EXPECT_TRUE(is_ok(guest->ask("fork " + std::to_string(500 * mib))));
  EXPECT_EQ(usage("l1").memory_used_bytes, 1000 * mib);
}

TEST_F(GuardMemory, AProgramThatClosesItsDescriptorsStaysInTheBooks) {
  make_page("l1", {fake_slice(1000 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_TRUE(is_ok(guest->ask(alloc(900))));
  ASSERT_EQ(guest->ask("close_descriptors"), "ok");
  EXPECT_EQ(usage("l1").memory_used_bytes, 900 * mib);  // reading reclaims the dead: it is alive
  EXPECT_EQ(guest->ask(alloc(200)), refused);
  EXPECT_EQ(usage("l1").memory_used_bytes, 900 * mib);
}

TEST_F(GuardMemory, ALoweredQuotaTakesNothingAwayAndAllowsNothingMore) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_TRUE(is_ok(guest->ask(alloc(80))));
  ASSERT_TRUE(update_limits(root_, "l1", {fake_slice(50 * mib)}).ok());
  EXPECT_EQ(guest->ask(alloc(1)), refused);
  EXPECT_EQ(usage("l1").memory_used_bytes, 80 * mib);
  ASSERT_TRUE(update_limits(root_, "l1", {fake_slice(200 * mib)}).ok());
  EXPECT_TRUE(is_ok(guest->ask(alloc(120))));
}

TEST_F(GuardMemory, TheDeviceShowsTheSlice) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_EQ(guest->ask("devices"), "ok 1");  // the second fake device is not on the page
  EXPECT_EQ(guest->ask("info"), "ok 104857600 104857600");
  // Null and short outputs are the driver's business.
  EXPECT_EQ(guest->ask("info_null"), "ok 0 0 8 -30");
}

TEST_F(GuardMemory, ASliceWithoutALimitShowsTheTrueSize) {
  make_page("l1", {fake_slice(no_memory_limit)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_EQ(guest->ask("info"), "ok 1073741824 1073741824");
}

TEST_F(GuardMemory, AContextOfTwoDevicesIsChargedOnBothOrNeither) {
  make_page("l1", {fake_slice(100 * mib), fake_slice(50 * mib, 1000, SliceMode::strict, 1)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_EQ(guest->ask("devices"), "ok 2");
  EXPECT_EQ(guest->ask(alloc(60)), refused);
  EXPECT_EQ(usage("l1", 0).memory_used_bytes, 0u);
  EXPECT_EQ(usage("l1", 1).memory_used_bytes, 0u);
  EXPECT_EQ(guest->ask(alloc(40)), "ok 1");
  EXPECT_EQ(usage("l1", 0).memory_used_bytes, 40 * mib);
  EXPECT_EQ(usage("l1", 1).memory_used_bytes, 40 * mib);
  EXPECT_EQ(guest->ask("free 1"), "ok");  // wherever it lay
  EXPECT_EQ(usage("l1", 0).memory_used_bytes, 0u);
  EXPECT_EQ(usage("l1", 1).memory_used_bytes, 0u);
}

TEST_F(GuardMemory, WithoutAContextTheDriverAnswers) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_EQ(guest->ask("alloc_nowhere 4096"), "error -34");  // CL_INVALID_CONTEXT
  EXPECT_EQ(usage("l1").memory_used_bytes, 0u);
  EXPECT_EQ(usage("l1").refusals, 0u);
}

TEST_F(GuardMemory, OfTwoThatAskAtOnceOneGetsIt) {
  make_page("l1", {fake_slice(1000 * mib)});
  auto a = start_guest("l1"), b = start_guest("l1");
  ASSERT_EQ(a->ask("open"), "ok");
  ASSERT_EQ(b->ask("open"), "ok");
  for (int round = 0; round < 300; ++round) {
    a->tell(alloc(600));
    b->tell(alloc(600));
    const std::string from_a = a->hear(), from_b = b->hear();
    ASSERT_NE(is_ok(from_a), is_ok(from_b)) << from_a << ", " << from_b;
    ASSERT_TRUE(from_a == refused || from_b == refused);
    const std::string done =
        is_ok(from_a) ? a->ask("free" + from_a.substr(2)) : b->ask("free" + from_b.substr(2));
    ASSERT_EQ(done, "ok");
  }
}

}  // namespace
}  // namespace loam::node

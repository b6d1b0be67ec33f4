// Cards cut at run time: whole slices or none, each counted once, unknown ones named.
#include "node/device/hardware_slices.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "fakes/fake_mig.hpp"

namespace loam::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string card_name = "GPU-card";

class HardwareSlices : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string library = std::string(LOAM_BUILD_DIR) + "/fakes/fake_mig.so";
    DiscoveryPaths paths;
    paths.nvml = {library};
    auto made = make_mig_slicer(paths);
    ASSERT_TRUE(made.ok()) << to_text(made.error());
    slicer_ = std::move(made).value();
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW);
    panel_ = reinterpret_cast<fakes::FakeMig* (*)()>(::dlsym(handle, "fake_mig"))();
    *panel_ = fakes::FakeMig{};
    char name[] = "/tmp/loam_slices_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    journal_ = std::make_unique<SliceJournal>(folder_ + "/journal");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  SlicedCard read() {
    auto card = slicer_->read(card_name);
    EXPECT_TRUE(card.ok()) << to_text(card.error());
    return card.ok() ? std::move(card).value() : SlicedCard{};
  }
  std::size_t taken() const {
    std::size_t count = 0;
    for (const auto& instance : panel_->instances) count += instance.taken;
    return count;
  }
  // An instance that somebody else made.
  void foreign(unsigned id, unsigned profile, unsigned start, unsigned size, bool computes) {
    panel_->instances[7] = {true, id, profile, start, size, computes, false};
  }

  std::unique_ptr<HardwareSlicer> slicer_;
  std::unique_ptr<SliceJournal> journal_;
  fakes::FakeMig* panel_ = nullptr;
  std::string folder_;
};

TEST_F(HardwareSlices, TheDriversOwnListOfProfilesCounts) {
  const SlicedCard card = read();
  EXPECT_TRUE(card.enabled);
  EXPECT_FALSE(card.pending);
  ASSERT_THAT(card.geometry.profiles, SizeIs(5));
  EXPECT_EQ(card.geometry.profiles[0].name, "1g.10gb");
  EXPECT_EQ(card.geometry.profiles[2].name, "3g.40gb");
  EXPECT_THAT(card.geometry.profiles[2].starts, ElementsAre(0, 4));
  EXPECT_EQ(card.geometry.profiles[2].memory.value, 40448);
  EXPECT_EQ(card.geometry.compute_slices, 7);
  EXPECT_FALSE(slicer_->verified()) << "no card was at hand";
}

TEST_F(HardwareSlices, ASliceIsMadeFoundOnceAndEnded) {
  auto slice = slicer_->create(card_name, "3g.40gb", 4);
  ASSERT_TRUE(slice.ok()) << to_text(slice.error());
  EXPECT_EQ(slice->uuid, "MIG-slice-1");
  EXPECT_EQ(slice->start, 4);
  EXPECT_THAT(read().slices, ElementsAre(*slice));
  EXPECT_THAT(read().half_made, IsEmpty());
  EXPECT_TRUE(slicer_->destroy(card_name, *slice).ok());
  EXPECT_EQ(taken(), 0u);
  EXPECT_EQ(slicer_->destroy(card_name, *slice).error().kind, ErrorKind::not_found);
}

TEST_F(HardwareSlices, WhatDoesNotFitIsRefused) {
  ASSERT_TRUE(slicer_->create(card_name, "4g.40gb", 0).ok());
  EXPECT_EQ(slicer_->create(card_name, "3g.40gb", 0).error().kind, ErrorKind::conflict);
  EXPECT_EQ(slicer_->create(card_name, "3g.40gb", 2).error().kind, ErrorKind::conflict);
  EXPECT_EQ(slicer_->create(card_name, "9g.90gb", 0).error().kind, ErrorKind::not_found);
  EXPECT_EQ(slicer_->create("GPU-other", "1g.10gb", 0).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(slicer_->create(card_name, "3g.40gb", 4).ok());
}

TEST_F(HardwareSlices, AHalfMadeSliceIsTakenBack) {
  panel_->create_compute_code = 999;
  const auto refused = slicer_->create(card_name, "2g.20gb", 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("999"));
  EXPECT_EQ(panel_->creations, 1);
  EXPECT_EQ(taken(), 0u);
  panel_->create_compute_code = 0;
  panel_->nameless = true;
  ASSERT_FALSE(slicer_->create(card_name, "2g.20gb", 0).ok());
  EXPECT_EQ(taken(), 0u);
}

TEST_F(HardwareSlices, WhatCannotBeTakenBackIsRemovedByTheNextReview) {
  panel_->create_compute_code = 999;
  panel_->destroy_code = 999;
  ASSERT_FALSE(create_recorded(*slicer_, *journal_, card_name, "2g.20gb", 2).ok());
  EXPECT_EQ(taken(), 1u);
  EXPECT_THAT(read().half_made, SizeIs(1));
  panel_->destroy_code = 0;
  const auto review = review_slices(*slicer_, *journal_, card_name, false);
  ASSERT_TRUE(review.ok()) << to_text(review.error());
  EXPECT_THAT(review->messages, IsEmpty());
  EXPECT_EQ(taken(), 0u);
  EXPECT_THAT(journal_->lines(card_name).value(), IsEmpty());
}

TEST_F(HardwareSlices, OwnSlicesAreAdoptedAndUnknownOnesNamed) {
  const auto own = create_recorded(*slicer_, *journal_, card_name, "1g.10gb", 6);
  ASSERT_TRUE(own.ok());
  foreign(41, 14, 0, 2, true);
  auto review = review_slices(*slicer_, *journal_, card_name, false);
  ASSERT_TRUE(review.ok());
  EXPECT_THAT(review->adopted, ElementsAre(*own));
  ASSERT_THAT(review->messages, SizeIs(1));
  EXPECT_THAT(review->messages[0], HasSubstr("MIG-slice-41"));
  review = review_slices(*slicer_, *journal_, card_name, true);
  EXPECT_THAT(review->adopted, SizeIs(2));
  review = review_slices(*slicer_, *journal_, card_name, false);
  EXPECT_THAT(review->adopted, SizeIs(2)) << "adopted once, known from then on";
}

TEST_F(HardwareSlices, SomebodyElsesHalfMadeSliceIsLeftAlone) {
  foreign(41, 14, 0, 2, false);
  const auto review = review_slices(*slicer_, *journal_, card_name, true);
  ASSERT_TRUE(review.ok());
  EXPECT_THAT(review->adopted, IsEmpty());
  ASSERT_THAT(review->messages, SizeIs(1));
  EXPECT_THAT(review->messages[0], HasSubstr("number 41"));
  EXPECT_EQ(taken(), 1u);
  // Its slots are not offered.
  for (int i = 0; i < 5; ++i) {
    const auto choice = choose_slice(read(), Mebibytes{1000}, 0);
    ASSERT_TRUE(choice.has_value()) << i;
    EXPECT_GE(choice->start, 2);
    ASSERT_TRUE(slicer_->create(card_name, choice->profile, choice->start).ok()) << i;
  }
  EXPECT_FALSE(choose_slice(read(), Mebibytes{1000}, 0).has_value());
}

TEST_F(HardwareSlices, ASliceInUseIsNotEnded) {
  const auto slice = slicer_->create(card_name, "1g.10gb", 0);
  ASSERT_TRUE(slice.ok());
  panel_->instances[0].busy = true;
  EXPECT_EQ(slicer_->destroy(card_name, *slice).error().kind, ErrorKind::conflict);
  EXPECT_THAT(read().slices, SizeIs(1));
}

TEST_F(HardwareSlices, TheSmallestThatIsLargeEnoughIsChosen) {
  EXPECT_EQ(choose_slice(read(), Mebibytes{9000}, 100)->profile, "1g.10gb");
  EXPECT_EQ(choose_slice(read(), Mebibytes{9000}, 200)->profile, "2g.20gb");
  EXPECT_EQ(choose_slice(read(), Mebibytes{30000}, 0)->profile, "3g.40gb");
  EXPECT_EQ(choose_slice(read(), Mebibytes{30000}, 500)->profile, "4g.40gb");
  EXPECT_EQ(choose_slice(read(), Mebibytes{80000}, 1000)->profile, "7g.80gb");
  EXPECT_FALSE(choose_slice(read(), Mebibytes{90000}, 0).has_value());
  panel_->mode = 0;
  EXPECT_FALSE(choose_slice(read(), Mebibytes{1000}, 0).has_value()) << "not in the mode";
}

TEST(HardwarePartitions, AnAmdCardIsCutAsAWhole) {
  DiscoveryPaths paths;
  paths.rocm_smi = {std::string(LOAM_BUILD_DIR) + "/fakes/fake_partition.so"};
  auto made = make_amd_slicer(paths);
  ASSERT_TRUE(made.ok()) << to_text(made.error());
  HardwareSlicer& slicer = **made;
  EXPECT_FALSE(slicer.verified());
  const std::string card = "GPU-0000000000001234";
  EXPECT_THAT(slicer.read(card)->slices, IsEmpty());
  const auto slice = slicer.create(card, "QPX", 2);
  ASSERT_TRUE(slice.ok()) << to_text(slice.error());
  EXPECT_EQ(slice->memory.value, 48 << 10);
  EXPECT_THAT(slicer.read(card)->slices, SizeIs(4));
  EXPECT_EQ(slicer.create(card, "CPX", 0).error().kind, ErrorKind::conflict);
  EXPECT_TRUE(slicer.destroy(card, *slice).ok());
  EXPECT_THAT(slicer.read(card)->slices, IsEmpty());
}

TEST(HardwarePartitions, AnAscendCardIsCutByTemplate) {
  std::vector<std::string> asked;
  std::string listing = "Total number of vnpu : 0\n";
  auto slicer = make_ascend_slicer([&](const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    asked.push_back(line);
    if (words[1] == "set") listing += "100  7  vir02  active\n";
    return Result<std::string>(listing);
  });
  EXPECT_FALSE(slicer->verified());
  const auto slice = slicer->create("3", "vir02", 0);
  ASSERT_TRUE(slice.ok()) << to_text(slice.error());
  EXPECT_EQ(slice->instance, 100u);
  EXPECT_EQ(slice->memory.value, 8 << 10);
  EXPECT_EQ(asked[1], "npu-smi set -t create-vnpu -i 3 -c 0 -f vir02");
  EXPECT_TRUE(slicer->destroy("3", *slice).ok());
  EXPECT_EQ(asked.back(), "npu-smi set -t destroy-vnpu -i 3 -c 0 -v 100");
}

}  // namespace
}  // namespace loam::node

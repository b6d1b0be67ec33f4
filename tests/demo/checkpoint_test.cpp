// The training program's checkpoint file: whole, or refused with the reason.
#include "demo/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace demo {
namespace {

using testing::HasSubstr;

Checkpoint some_checkpoint(std::uint64_t step) {
  Checkpoint checkpoint{4, step, 1234, std::vector<float>(16, 0.5F), std::vector<float>(16, -2.0F)};
  checkpoint.weights_in[3] = static_cast<float>(step);
  return checkpoint;
}

class CheckpointFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/loam_checkpoint_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void damage(const std::string& name) const {
    std::ofstream(folder_ + "/" + name, std::ios::trunc) << "damaged";
  }
  std::string folder_;
};

TEST(CheckpointBytes, AreReadBackExactly) {
  const Checkpoint checkpoint = some_checkpoint(7);
  std::string why;
  EXPECT_EQ(decode(encode(checkpoint), why), checkpoint);
  EXPECT_EQ(why, "");
}

TEST(CheckpointBytes, EveryTruncationAndEveryFlippedBitIsRefused) {
  const std::string good = encode(some_checkpoint(7));
  std::string why;
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode(good.substr(0, length), why)) << length;
  }
  EXPECT_FALSE(decode(good + "x", why));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode(bad, why)) << bit;
    EXPECT_NE(why, "");
  }
}

TEST_F(CheckpointFile, AnEmptyFolderHoldsNone) {
  const CheckpointRead read = load_checkpoint(folder_);
  EXPECT_FALSE(read.checkpoint);
  EXPECT_FALSE(read.found_any);
  EXPECT_EQ(read.message, "");
}

TEST_F(CheckpointFile, TheLastSaveIsWhatIsLoaded) {
  for (const std::uint64_t step : {1U, 2U, 3U}) {
    EXPECT_EQ(save_checkpoint(folder_, some_checkpoint(step)), std::nullopt);
    EXPECT_EQ(load_checkpoint(folder_).checkpoint, some_checkpoint(step));
  }
}

TEST_F(CheckpointFile, ADamagedOneFallsBackToTheOneBeforeAndSaysSo) {
  ASSERT_EQ(save_checkpoint(folder_, some_checkpoint(1)), std::nullopt);
  ASSERT_EQ(save_checkpoint(folder_, some_checkpoint(2)), std::nullopt);
  damage("train.ckpt");
  const CheckpointRead read = load_checkpoint(folder_);
  EXPECT_EQ(read.checkpoint, some_checkpoint(1));
  EXPECT_THAT(read.message, HasSubstr("train.ckpt cannot be used"));
  EXPECT_THAT(read.message, HasSubstr("train.ckpt.previous instead"));
}

TEST_F(CheckpointFile, TwoDamagedOnesAreAFaultAndNotAFreshStart) {
  ASSERT_EQ(save_checkpoint(folder_, some_checkpoint(1)), std::nullopt);
  ASSERT_EQ(save_checkpoint(folder_, some_checkpoint(2)), std::nullopt);
  damage("train.ckpt");
  damage("train.ckpt.previous");
  const CheckpointRead read = load_checkpoint(folder_);
  EXPECT_FALSE(read.checkpoint);
  EXPECT_TRUE(read.found_any);
}

TEST_F(CheckpointFile, AFolderThatIsNotThereIsToldByItsPath) {
  const auto error = save_checkpoint(folder_ + "/missing", some_checkpoint(1));
  ASSERT_TRUE(error);
  EXPECT_THAT(*error, HasSubstr(folder_ + "/missing"));
}

}  // namespace
}  // namespace demo

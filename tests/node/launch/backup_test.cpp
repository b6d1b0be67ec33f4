// Copies of checkpoints: whole or not at all, as many as asked for, and links not followed.
#include "node/launch/backup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "node/launch/file.hpp"

namespace loam::node {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Backup : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/loam-backup-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(checkpoint());
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string checkpoint() const { return root_ + "/checkpoint"; }
  std::string backups() const { return root_ + "/backups"; }
  void save(const std::string& name, const std::string& text) const {
    std::ofstream(checkpoint() + "/" + name) << text;
  }
  void keep(std::uint64_t epoch, std::int64_t most) const {
    const auto kept = keep_backup(checkpoint(), backups(), epoch, most);
    ASSERT_TRUE(kept.ok()) << to_text(kept.error());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(backups()))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string text(const std::string& copy) const { return *read_file(backups() + "/" + copy); }

  std::string root_;
};

TEST_F(Backup, NothingIsCopiedOfATaskThatHasSavedNothing) {
  keep(1, 3);
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(backup_bytes(backups(), 1000), 0);
}

TEST_F(Backup, ACopyStaysAsItWasWhateverIsSavedLater) {
  save("state", "one");
  fs::create_directories(checkpoint() + "/deep/er");
  save("deep/er/part", "two");
  keep(2, 3);
  save("state", "spoilt");
  fs::remove_all(checkpoint() + "/deep");
  EXPECT_EQ(text("0000000002/state"), "one");
  EXPECT_EQ(text("0000000002/deep/er/part"), "two");
}

TEST_F(Backup, TheOldestGoInOrderOfTheirEpochs) {
  for (const std::uint64_t epoch : {8, 9, 10, 11}) {
    save("state", std::to_string(epoch));
    keep(epoch, 2);
  }
  EXPECT_THAT(names(), ElementsAre("0000000010", "0000000011"));
  EXPECT_EQ(text("0000000010/state"), "10");
  EXPECT_GT(backup_bytes(backups(), 1000), 0);
}

// A launcher that died and begins again with what its program has written since.
TEST_F(Backup, AnEpochThatHasACopyKeepsIt) {
  save("state", "before");
  keep(2, 3);
  save("state", "after");
  keep(2, 3);
  EXPECT_EQ(text("0000000002/state"), "before");
}

TEST_F(Backup, WhatACrashLeftHalfCopiedIsNoCopy) {
  fs::create_directories(backups() + "/.copying");
  std::ofstream(backups() + "/.copying/state") << "half";
  save("state", "whole");
  keep(2, 1);
  EXPECT_THAT(names(), ElementsAre("0000000002"));
  EXPECT_EQ(text("0000000002/state"), "whole");
}

TEST_F(Backup, LinksAreCopiedAndNotFollowed) {
  std::ofstream(root_ + "/secret") << "not the task's";
  fs::create_symlink(root_ + "/secret", checkpoint() + "/link");
  fs::create_symlink("..", checkpoint() + "/up");
  keep(2, 1);
  EXPECT_TRUE(fs::is_symlink(backups() + "/0000000002/link"));
  EXPECT_TRUE(fs::is_symlink(backups() + "/0000000002/up"));
}

TEST_F(Backup, WhatCannotBeCopiedIsNamedAndLeavesNothing) {
  save("state", "one");
  ASSERT_EQ(::mkfifo((checkpoint() + "/pipe").c_str(), 0600), 0);
  const auto kept = keep_backup(checkpoint(), backups(), 2, 1);
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(to_text(kept.error()), HasSubstr(checkpoint()));
  EXPECT_THAT(names(), IsEmpty());
}

}  // namespace
}  // namespace loam::node

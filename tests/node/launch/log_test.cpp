#include "node/launch/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace loam::node {
namespace {

class Log : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/loam-log-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  LogWriter writer(std::int64_t segment_bytes, std::int64_t segments) {
    auto opened = open_directory(directory_);
    auto made = LogWriter::open(std::move(*opened), "stdout", segment_bytes, segments);
    return std::move(*made);
  }
  LogChunk read(std::int64_t segment_bytes, std::int64_t offset, std::int64_t max = 1 << 20) {
    auto chunk = read_log(directory_, "stdout", segment_bytes, offset, max);
    EXPECT_TRUE(chunk.ok());
    return *chunk;
  }

  std::string directory_;
};

TEST_F(Log, bytes_come_back_as_they_were_written) {
  auto log = writer(16, 100);
  std::string all;
  for (int i = 0; i < 256; ++i) {
    const std::string piece(1, static_cast<char>(i));
    log.write(piece);
    all += piece;
  }
  EXPECT_EQ(log.size(), 256);
  EXPECT_EQ(read(16, 0).bytes, all);
  EXPECT_EQ(read(16, 100, 10).bytes, all.substr(100, 10));
  EXPECT_EQ(read(16, 100, 10).next_offset, 110);
}

TEST_F(Log, keeps_the_newest_and_says_what_is_lost) {
  auto log = writer(10, 3);
  std::string all;
  for (int i = 0; i < 100; ++i) all += static_cast<char>('a' + i % 26);
  log.write(all);
  const auto chunk = read(10, 0);
  EXPECT_EQ(chunk.end_offset, 100);
  EXPECT_EQ(chunk.offset, 70);
  EXPECT_EQ(chunk.lost_bytes, 70);
  EXPECT_EQ(chunk.bytes, all.substr(70));
  int segments = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (!entry.is_symlink()) ++segments;
  }
  EXPECT_EQ(segments, 3);
}

TEST_F(Log, an_offset_names_the_same_byte_across_rotation) {
  auto log = writer(8, 4);
  std::string all;
  std::int64_t offset = 0;
  std::string seen;
  for (int i = 0; i < 50; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    log.write(line);
    all += line;
    const auto chunk = read(8, offset);
    EXPECT_EQ(chunk.lost_bytes, 0);
    seen += chunk.bytes;
    offset = chunk.next_offset;
  }
  EXPECT_EQ(seen, all);
}

TEST_F(Log, negative_offsets_count_from_the_end_and_later_ones_give_nothing) {
  auto log = writer(8, 4);
  log.write("0123456789");
  EXPECT_EQ(read(8, -3).bytes, "789");
  EXPECT_EQ(read(8, -100).bytes, "0123456789");
  EXPECT_EQ(read(8, -100).lost_bytes, 0);
  EXPECT_EQ(read(8, 10).bytes, "");
  EXPECT_EQ(read(8, 1000).next_offset, 10);
}

TEST_F(Log, a_segment_removed_by_hand_is_skipped_as_lost) {
  auto log = writer(4, 10);
  log.write("aaaabbbbccccdd");
  std::filesystem::remove(directory_ + "/" + log_segment_name("stdout", 1));
  const auto first = read(4, 0);
  EXPECT_EQ(first.bytes, "aaaa");
  const auto second = read(4, first.next_offset);
  EXPECT_EQ(second.bytes, "ccccdd");
  EXPECT_EQ(second.lost_bytes, 4);
}

TEST_F(Log, a_new_writer_goes_on_where_the_last_one_stopped) {
  for (const char* part : {"abc", "defgh", "ijkl", "mnop", "q"}) writer(4, 10).write(part);
  EXPECT_EQ(read(4, 0).bytes, "abcdefghijklmnopq");
}

TEST_F(Log, the_link_leads_to_the_newest_segment) {
  auto log = writer(4, 10);
  log.write("aaaabb");
  std::ifstream newest(directory_ + "/stdout.log");
  std::string text;
  newest >> text;
  EXPECT_EQ(text, "bb");
}

TEST_F(Log, files_of_other_names_are_left_alone) {
  std::ofstream(directory_ + "/stdout.log.x") << "x";
  std::ofstream(directory_ + "/stdout.log.-1") << "x";
  std::ofstream(directory_ + "/stderr.log.000000") << "x";
  writer(4, 10).write("ab");
  EXPECT_EQ(read(4, 0).bytes, "ab");
}

TEST_F(Log, an_empty_directory_reads_as_an_empty_stream) {
  EXPECT_EQ(read(4, 0).end_offset, 0);
  EXPECT_EQ(read(4, 7).bytes, "");
  EXPECT_FALSE(read_log(directory_ + "/missing", "stdout", 4, 0, 10).ok());
  EXPECT_FALSE(read_log(directory_, "stdout", 0, 0, 10).ok());
}

TEST_F(Log, a_watch_tells_of_growth) {
  auto log = writer(4, 10);
  auto watch = LogWatch::open(directory_);
  ASSERT_TRUE(watch.ok());
  EXPECT_FALSE(watch->wait(0));
  log.write("x");
  EXPECT_TRUE(watch->wait(5000));
  EXPECT_FALSE(watch->wait(0));
  log.write("yyyyyyyy");
  EXPECT_TRUE(watch->wait(5000));
  EXPECT_FALSE(LogWatch::open(directory_ + "/missing").ok());
}

}  // namespace
}  // namespace loam::node

#include "api/log_piece.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace loam::api {
namespace {

LogPiece piece(std::string bytes, std::int64_t offset = 0, bool ended = false) {
  LogPiece made;
  made.offset = offset;
  made.next_offset = offset + static_cast<std::int64_t>(bytes.size());
  made.bytes = std::move(bytes);
  made.ended = ended;
  return made;
}

TEST(LogPieceTest, text_stays_text_and_leaves_a_cut_character_for_later) {
  const LogView view = view_of(LogStream::out, 0, piece("a\xe2\x82"), false);
  EXPECT_EQ(view.encoding, "utf8");
  EXPECT_EQ(view.data, "a");
  EXPECT_EQ(view.next_offset, 1);
}

TEST(LogPieceTest, a_lone_beginning_waits_unless_it_is_the_last) {
  EXPECT_EQ(view_of(LogStream::out, 5, piece("\xf0\x9f", 5), false).next_offset, 5);
  const LogView last = view_of(LogStream::out, 5, piece("\xf0\x9f", 5), true);
  EXPECT_EQ(last.next_offset, 7);
  EXPECT_EQ(last.encoding, "base64");
}

TEST(LogPieceTest, any_bytes_come_back_from_any_cutting) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::string all;
    for (int i = 0; i < 40; ++i) {
      constexpr std::string_view parts[] = {"a", "\n", "é", "€", "😀", "\xff", "\xe2", "\x80", "\0"};
      all += parts[random.below(std::size(parts))];
    }
    std::string got;
    std::int64_t offset = 0;
    std::int64_t available = 0;
    const auto size = static_cast<std::int64_t>(all.size());
    while (offset < size) {
      available = std::min<std::int64_t>(size, available + random.between(1, 5));
      const bool last = available == size;
      const LogView view = view_of(LogStream::out, offset,
                                   piece(all.substr(static_cast<std::size_t>(offset),
                                                    static_cast<std::size_t>(available - offset)),
                                         offset, last),
                                   last);
      const auto bytes = bytes_of(view);
      ASSERT_TRUE(bytes.ok());
      ASSERT_EQ(view.next_offset, offset + static_cast<std::int64_t>(bytes->size()));
      if (last) {
        ASSERT_GT(view.next_offset, offset);
      }
      got += *bytes;
      offset = view.next_offset;
    }
    EXPECT_EQ(got, all);
  }
}

TEST(LogPieceTest, a_foreign_encoding_is_refused) {
  LogView view;
  view.encoding = "rot13";
  EXPECT_FALSE(bytes_of(view).ok());
  view.encoding = "base64";
  view.data = "a*b";
  EXPECT_FALSE(bytes_of(view).ok());
}

}  // namespace
}  // namespace loam::api

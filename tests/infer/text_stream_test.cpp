// Text that leaves is whole characters and never part of a stop string, however tokens cut it.
#include "infer/text_stream.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace loam::infer {
namespace {

TEST(TextStream, ACharacterCutByTokensLeavesWhole) {
  TextStream stream({});
  EXPECT_EQ(stream.push("Gr\xC3").text, "Gr");
  EXPECT_EQ(stream.push("\xBC\xE2\x82").text, "\xC3\xBC");
  EXPECT_EQ(stream.push("\xAC!").text, "\xE2\x82\xAC!");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, BytesThatAreNoCharacterAreReplaced) {
  TextStream stream({});
  EXPECT_EQ(stream
                .push("a\xFF"
                      "b")
                .text,
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(stream.push("\xC3").text, "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(valid_utf8("\xC0\x80\xED\xA0\x80"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TextStream, AStopStringIsNeverSentInPart) {
  TextStream stream({"\n\nUser:", "END"});
  EXPECT_EQ(stream.push("yes\n").text, "yes");
  EXPECT_EQ(stream.push("\nUs").text, "");
  const auto piece = stream.push("er: more");
  EXPECT_TRUE(piece.stopped);
  EXPECT_EQ(piece.text, "");
}

TEST(TextStream, WhatOnlyLookedLikeAStopStringIsSent) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.push("THE EN").text, "THE ");
  EXPECT_EQ(stream.push("EMY").text, "ENEMY");
  EXPECT_EQ(stream.push("EN").text, "");
  EXPECT_EQ(stream.finish(), "EN");
}

TEST(TextStream, TheEarliestStopStringEndsTheText) {
  TextStream stream({"bb", "ab"});
  const auto piece = stream.push("xabb");
  EXPECT_TRUE(piece.stopped);
  EXPECT_EQ(piece.text, "x");
}

TEST(TextStream, AnyCutGivesTheSameText) {
  const std::string text =
      "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80 stop sto st \xE2\x82\xAC s STOP tail";
  Random random(3);
  for (int run = 0; run < 500; ++run) {
    TextStream stream({"STOP", "stop!"});
    std::string out;
    bool stopped = false;
    for (std::size_t at = 0; at < text.size() && !stopped;) {
      const std::size_t size = 1 + random.below(5);
      const auto piece = stream.push(std::string_view(text).substr(at, size));
      EXPECT_EQ(valid_utf8(piece.text), piece.text);
      EXPECT_EQ(piece.text.find("\xEF\xBF\xBD"), std::string::npos);
      out += piece.text;
      stopped = piece.stopped;
      at += size;
    }
    EXPECT_TRUE(stopped);
    EXPECT_EQ(out, text.substr(0, text.find("STOP")));
  }
}

}  // namespace
}  // namespace loam::infer

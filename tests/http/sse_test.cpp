#include "http/sse.hpp"

#include <gtest/gtest.h>

namespace loam::http {
namespace {

using namespace std::string_view_literals;
using Events = std::vector<SseEvent>;

Events parse(std::string_view bytes) {
  SseParser parser;
  return parser.feed(bytes).value();
}

TEST(Sse, WritesEvents) {
  EXPECT_EQ(encode_event({"log", "one\ntwo", "7"}), "event: log\nid: 7\ndata: one\ndata: two\n\n");
  EXPECT_EQ(encode_event({"", "", ""}), "data: \n\n");
  EXPECT_EQ(encode_comment("still here"), ": still here\n\n");
  EXPECT_EQ(encode_retry(250), "retry: 250\n\n");
}

TEST(Sse, ReadsBackWhatItWrote) {
  for (const char* data : {"", "x", " leading", "a\n\nb", "\n", "data: x", ":", "\xc3\xa4"}) {
    const SseEvent event{"t", data, "i"};
    EXPECT_EQ(parse(encode_event(event)), Events{event}) << data;
  }
  // Other line ends arrive as '\n'.
  EXPECT_EQ(parse(encode_event({"t", "a\r\nb\rc\r", "i"})), (Events{{"t", "a\nb\nc\n", "i"}}));
}

// The examples of the specification's section 9.2.6.
TEST(Sse, ReadsTheSpecificationsExamples) {
  EXPECT_EQ(parse("data: YHOO\ndata: +2\ndata: 10\n\n"), (Events{{"message", "YHOO\n+2\n10", ""}}));
  EXPECT_EQ(
      parse(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
            "event\n\n"),
      (Events{{"message", "first event", "1"},
              {"message", "second event", ""},
              {"message", " third event", ""}}));
  EXPECT_EQ(parse("data\n\ndata\ndata\n\ndata:"),
            (Events{{"message", "", ""}, {"message", "\n", ""}}));
  EXPECT_EQ(parse("data:test\n\ndata: test\n\n"),
            (Events{{"message", "test", ""}, {"message", "test", ""}}));
}

TEST(Sse, TakesAnyLineEndAndAnyCut) {
  const std::string text =
      "\xef\xbb\xbf"
      "event: a\r\ndata: 1\r\rid: 2\ndata: 2\r\n\r\ndata: 3\n\n";
  const Events expected{{"a", "1", ""}, {"message", "2", "2"}, {"message", "3", "2"}};
  EXPECT_EQ(parse(text), expected);
  SseParser parser;
  Events events;
  for (char c : text) {
    const auto some = parser.feed({&c, 1}).value();
    events.insert(events.end(), some.begin(), some.end());
  }
  EXPECT_EQ(events, expected);
}

TEST(Sse, IgnoresWhatIsNoField) {
  EXPECT_EQ(parse("foo: bar\ndatax: 1\n data: 2\nevent: only\n\n"), Events{});
  // The type of an event without data is forgotten.
  EXPECT_EQ(parse("event: lost\n\ndata: x\n\n"), (Events{{"message", "x", ""}}));
  SseParser parser;
  ASSERT_TRUE(parser.feed("id: a\0b\nretry: 1x\nretry: -5\nretry:\n\n"sv).ok());
  EXPECT_EQ(parser.last_event_id(), "");
  EXPECT_EQ(parser.retry_ms(), std::nullopt);
  ASSERT_TRUE(parser.feed("retry: 1500\n").ok());
  EXPECT_EQ(parser.retry_ms(), 1500);
}

TEST(Sse, BoundsOneEvent) {
  SseParser lines(64);
  EXPECT_FALSE(lines.feed("data: " + std::string(100, 'x')).ok());
  SseParser data(64);
  Result<std::vector<SseEvent>> result = Events{};
  for (int i = 0; i < 100 && result.ok(); ++i) result = data.feed("data: 12345\n");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::corrupt);
}

TEST(SseDeathTest, ForgedLinesAreAProgrammersError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(encode_event({"a\ndata: forged", "x", ""}), "fits_one_line");
  EXPECT_DEATH(encode_event({"a", "x", "1\r"}), "fits_one_line");
}

}  // namespace
}  // namespace loam::http

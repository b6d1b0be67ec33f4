#include "http/target.hpp"

#include <gtest/gtest.h>

namespace loam::http {
namespace {

Target good(std::string_view raw) {
  auto target = parse_target(raw);
  EXPECT_TRUE(target.ok()) << raw << ": " << (target.ok() ? "" : target.error().message);
  return target.ok() ? *target : Target{};
}

TEST(Target, IsDecodedOnceAndNormalised) {
  EXPECT_EQ(good("/").path, "/");
  EXPECT_EQ(good("/v1/tasks").path, "/v1/tasks");
  EXPECT_EQ(good("/v1//tasks/").path, "/v1/tasks");
  EXPECT_EQ(good("/v1/./a/../tasks/.").path, "/v1/tasks");
  EXPECT_EQ(good("/a/%2e%2e/b").path, "/b");
  EXPECT_EQ(good("/a%20b/%C3%A4").path, "/a b/\xc3\xa4");
  EXPECT_EQ(good("/a+b").path, "/a+b");    // a plus is a blank in parameters only
  EXPECT_EQ(good("/%252F").path, "/%2F");  // not decoded twice
  EXPECT_EQ(good("/...").path, "/...");
}

TEST(Target, TakesTheAbsoluteForm) {
  EXPECT_EQ(good("http://host:7100/v1?a=b").path, "/v1");
  EXPECT_EQ(good("HTTP://host").path, "/");
  EXPECT_EQ(good("http://host?a=b").query.front().name, "a");
}

TEST(Target, ParametersAreFormDecoded) {
  const auto query = good("/?a=1&b=x+y%26z&empty&=none&a=2&&c==").query;
  const std::vector<Parameter> expected{{"a", "1"},   {"b", "x y&z"}, {"empty", ""},
                                        {"", "none"}, {"a", "2"},     {"c", "="}};
  EXPECT_EQ(query, expected);
  Request request;
  request.query = query;
  ASSERT_NE(request.find_query("a"), nullptr);
  EXPECT_EQ(*request.find_query("a"), "1");
  EXPECT_EQ(request.find_query("z"), nullptr);
}

TEST(Target, RefusesWhatCouldBeReadTwoWays) {
  for (const char* raw : {"",         "v1",         "*",
                          "host:80",  "?a=b",       "/..",
                          "/a/../..", "/%2e%2e",    "/..%2f",
                          "/a%2Fb",   "/a%2fb",     "/%00",
                          "/a?b=%00", "/%",         "/%4",
                          "/%zz",     "/%4g",       "/a?b=%",
                          "/a?%f=1",  "/a b",       "/a\tb",
                          "/a\x7f",   "/%0d%0a",    "/%1f",
                          "/%7f",     "/\xc3\xa4",  "/%c3",
                          "/%c0%af",  "/%ed%a0%80", "/%f4%90%80%80",
                          "/?a=%ff",  "/a#b",       "ftp://host/a",
                          "//../..",  "http:///.."}) {
    const auto target = parse_target(raw);
    EXPECT_FALSE(target.ok()) << raw;
    if (!target.ok()) {
      EXPECT_EQ(target.error().kind, ErrorKind::invalid_argument) << raw;
    }
  }
}

TEST(Target, ErrorsShowTheTargetWithoutHarm) {
  const auto target = parse_target(std::string("/\x1b[31m") + std::string(1000, 'a') + "%");
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().message.find('\x1b'), std::string::npos);
  EXPECT_LT(target.error().message.size(), 300u);
}

TEST(Target, EncodingIsTheInverse) {
  const Target target{"/v1/a b/\xc3\xa4%+&?#", {{"q=&", "x y+\xc3\xa4\n"}, {"", ""}, {"n", ""}}};
  EXPECT_EQ(good(encode_target(target.path, target.query)), target);
  EXPECT_EQ(percent_encode("a/b c~"), "a%2Fb%20c~");
}

TEST(Utf8, KnowsTheWellFormed) {
  for (const char* text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_FALSE(is_utf8(text));
}

}  // namespace
}  // namespace loam::http

// The SVG writer: well-formed text, every value drawn, odd values survived.
#include "sim/plot.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace loam::sim {
namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Every opened element is closed, and nothing but ASCII numbers stands where a number belongs.
void expect_whole(const std::string& svg) {
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count_of(svg, "<text"), count_of(svg, "</text>"));
  EXPECT_EQ(svg.find("\"nan\""), std::string::npos);
  EXPECT_EQ(svg.find("\"inf\""), std::string::npos);
  EXPECT_EQ(svg.find("-nan"), std::string::npos);
}

TEST(Plot, LineChartDrawsOneCurveASeries) {
  const std::string svg =
      line_chart({"a < b & \"c\"", "x", "y"}, {{"one", {{0, 0}, {10, 5}}}, {"two", {{0, 1}}}});
  expect_whole(svg);
  EXPECT_EQ(count_of(svg, "<path"), 2u);
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
}

TEST(Plot, NothingToDrawIsStillAPicture) {
  expect_whole(line_chart({}, {}));
  expect_whole(line_chart({}, {{"empty", {}}}));
  expect_whole(histogram({}, {"", {}}, 10));
  expect_whole(cumulative_chart({}, {{"none", {}}}));
  expect_whole(heat_map({}, 4, {}));
}

TEST(Plot, ValuesThatAreNotFiniteBreakTheLine) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const std::string svg = line_chart({}, {{"", {{0, 1}, {1, nan}, {2, 3}, {inf, 4}, {4, 5}}}});
  expect_whole(svg);
  const auto path = svg.substr(svg.find("<path"));
  EXPECT_EQ(count_of(path.substr(0, path.find("/>")), "M"), 3u);
  expect_whole(histogram({}, {"", {1, nan, inf, 2}}, 3));
}

TEST(Plot, OnePointAndEqualValuesHaveAnAxis) {
  expect_whole(line_chart({}, {{"", {{5, 5}}}}));
  expect_whole(histogram({}, {"", {0, 0, 0}}, 5));
  expect_whole(cumulative_chart({}, {{"", {7, 7, 7}}}));
  expect_whole(line_chart({}, {{"", {{-5, -1}, {-3, -9}}}}));
}

TEST(Plot, HistogramHasABarForEachBinThatHoldsSomething) {
  const std::string svg = histogram({}, {"", {0, 1, 2, 3, 4, 4, 4}}, 4);
  expect_whole(svg);
  EXPECT_EQ(count_of(svg, "fill=\"#0072b2\""), 4u);
}

TEST(Plot, CumulativeChartOfManyValuesStaysSmall) {
  std::vector<double> values;
  for (int i = 0; i < 200'000; ++i) values.push_back(i % 977);
  const std::string svg = cumulative_chart({}, {{"w", values}});
  expect_whole(svg);
  EXPECT_LT(svg.size(), 60'000u);
}

TEST(Plot, HeatMapHasACellForEachValueAndMarksAbsentOnes) {
  const std::string svg = heat_map({"devices", "device", "node"}, 3, {0, 0.5, 1, -1, 2});
  expect_whole(svg);
  EXPECT_EQ(count_of(svg, "fill=\"#bbbbbb\""), 2u);
  EXPECT_NE(svg.find("#084594"), std::string::npos);
}

}  // namespace
}  // namespace loam::sim

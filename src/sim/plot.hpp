// Plots as self-contained SVG text: line chart, histogram, cumulative share, heat map. No fonts,
// scripts or styles from outside; readable on light and dark paper. Same input, same bytes. Pure.
//
//   const std::string svg = line_chart({"Allocation", "arrived, %", "allocated, %"},
//                                      {{"fgd", {{0, 0}, {130, 95.4}}}});
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace loam::sim {

struct Axes {
  std::string title;
  std::string x;  // what runs to the right, with its unit
  std::string y;  // what runs upwards, with its unit
};

struct Series {
  std::string name;  // in the legend; may be empty
  std::vector<std::pair<double, double>>
      points;  // by x; a point that is not finite breaks the line
};

// Values of one kind, in any order (waiting times, lengths); those that are not finite are left
// out.
struct Sample {
  std::string name;
  std::vector<double> values;
};

// Both axes begin at the least value or at 0, whichever is lower. O(points).
std::string line_chart(const Axes& axes, const std::vector<Series>& series);

// How many values fall into each of `bins` equal ranges. Requires bins > 0. O(values).
std::string histogram(const Axes& axes, const Sample& sample, int bins);

// The share of values at or below x, 0 to 100 %; at most 1,000 points are drawn a sample.
// O(values log values).
std::string cumulative_chart(const Axes& axes, const std::vector<Sample>& samples);

// `values` row by row, each from 0 (empty) to 1 (full); anything outside is drawn grey, as absent.
// Requires columns > 0. The last row may be short. O(values).
std::string heat_map(const Axes& axes, int columns, const std::vector<double>& values);

}  // namespace loam::sim

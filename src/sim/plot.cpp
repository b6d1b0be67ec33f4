#include "sim/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/assert.hpp"

namespace loam::sim {
namespace {

// Pixels.
constexpr double width = 760;
constexpr double height = 420;
constexpr double left = 70;
constexpr double right = 20;
constexpr double top = 44;
constexpr double bottom = 56;
constexpr double row_height = 16;  // of the legend

// Distinguishable without colour vision (Okabe & Ito's palette, without its yellow).
constexpr std::array<const char*, 7> colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#666666"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value == 0 ? 0.0 : value);
  return text;
}

std::string pixel(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const char* anchor, const std::string& words,
                    const char* more = "") {
  return "<text x=\"" + pixel(x) + "\" y=\"" + pixel(y) + "\" text-anchor=\"" + anchor + "\"" +
         more + ">" + escaped(words) + "</text>\n";
}

// 1, 2 or 5 times a power of ten, so that an axis has 4 to 10 marks.
double step_of(double span) {
  const double rough = span / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Range {
  double low = 0;
  double high = 0;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Without a span nothing can be drawn: an axis of one unit.
  void widen() {
    if (!(high > low)) high = low + 1;
  }
};

// The frame of a chart: where data values lie on the paper.
struct Frame {
  Range x;
  Range y;

  double x_at(double value) const {
    return left + (value - x.low) / (x.high - x.low) * (width - left - right);
  }
  double y_at(double value) const {
    return height - bottom - (value - y.low) / (y.high - y.low) * (height - top - bottom);
  }
};

std::string opening(const Axes& axes, double paper_height) {
  const std::string size =
      "width=\"" + number(width) + "\" height=\"" + number(paper_height) + "\"";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " + number(width) +
         " " + number(paper_height) + "\" font-family=\"sans-serif\" font-size=\"12\">\n<title>" +
         escaped(axes.title) + "</title>\n<rect " + size + " fill=\"#ffffff\"/>\n" +
         text_at(width / 2, 20, "middle", axes.title, " font-size=\"15\"");
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + pixel(x1) + "\" y1=\"" + pixel(y1) + "\" x2=\"" + pixel(x2) + "\" y2=\"" +
         pixel(y2) + "\" stroke=\"" + colour + "\"/>\n";
}

std::string grid(const Axes& axes, const Frame& frame) {
  std::string out;
  const double x_step = step_of(frame.x.high - frame.x.low);
  for (double x = std::ceil(frame.x.low / x_step) * x_step; x <= frame.x.high + x_step * 1e-9;
       x += x_step) {
    const double at = frame.x_at(x);
    out += line(at, top, at, height - bottom, "#e4e4e4");
    out += text_at(at, height - bottom + 16, "middle", number(x));
  }
  const double y_step = step_of(frame.y.high - frame.y.low);
  for (double y = std::ceil(frame.y.low / y_step) * y_step; y <= frame.y.high + y_step * 1e-9;
       y += y_step) {
    const double at = frame.y_at(y);
    out += line(left, at, width - right, at, "#e4e4e4");
    out += text_at(left - 6, at + 4, "end", number(y));
  }
  out += line(left, height - bottom, width - right, height - bottom, "#444444");
  out += line(left, top, left, height - bottom, "#444444");
  out += text_at((left + width - right) / 2, height - 16, "middle", axes.x);
  const std::string turned = " transform=\"rotate(-90 16 " + pixel(height / 2) + ")\"";
  return out + text_at(16, height / 2, "middle", axes.y, turned.c_str());
}

bool finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string curve(const Frame& frame, const Series& series, const char* colour) {
  std::string path;
  bool drawing = false;
  for (const auto& point : series.points) {
    if (!finite(point)) {
      drawing = false;
      continue;
    }
    path += drawing ? " L" : (path.empty() ? "M" : " M");
    path += pixel(frame.x_at(point.first)) + " " + pixel(frame.y_at(point.second));
    drawing = true;
  }
  return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour +
         "\" stroke-width=\"1.8\"/>\n";
}

std::string legend(const std::vector<Series>& series) {
  std::string out;
  double y = top + row_height;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].name.empty()) continue;
    const char* colour = colours[i % colours.size()];
    out += "<rect x=\"" + pixel(left + 10) + "\" y=\"" + pixel(y - 9) +
           "\" width=\"10\" height=\"10\" fill=\"" + colour + "\"/>\n";
    out += text_at(left + 26, y, "start", series[i].name);
    y += row_height;
  }
  return out;
}

std::vector<double> sorted_finite(const std::vector<double>& values) {
  std::vector<double> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept),
               [](double value) { return std::isfinite(value); });
  std::sort(kept.begin(), kept.end());
  return kept;
}

// White to deep blue.
std::string shade(double value) {
  const auto mix = [&](int from, int to) {
    return static_cast<int>(std::lround(from + (to - from) * value));
  };
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(mix(0xf2, 0x08)),
                static_cast<unsigned>(mix(0xf6, 0x45)), static_cast<unsigned>(mix(0xfa, 0x94)));
  return text;
}

}  // namespace

std::string line_chart(const Axes& axes, const std::vector<Series>& series) {
  Frame frame;
  for (const Series& one : series) {
    for (const auto& point : one.points) {
      if (!finite(point)) continue;
      frame.x.include(point.first);
      frame.y.include(point.second);
    }
  }
  frame.x.widen();
  frame.y.widen();
  std::string out = opening(axes, height) + grid(axes, frame);
  for (std::size_t i = 0; i < series.size(); ++i) {
    out += curve(frame, series[i], colours[i % colours.size()]);
  }
  return out + legend(series) + "</svg>\n";
}

std::string histogram(const Axes& axes, const Sample& sample, int bins) {
  LOAM_ASSERT(bins > 0);
  const std::vector<double> values = sorted_finite(sample.values);
  Frame frame;
  if (!values.empty()) {
    frame.x = {std::min(0.0, values.front()), values.back()};
  }
  frame.x.widen();
  std::vector<double> counts(static_cast<std::size_t>(bins), 0.0);
  const double bin_width = (frame.x.high - frame.x.low) / bins;
  for (const double value : values) {
    const auto bin = static_cast<std::size_t>((value - frame.x.low) / bin_width);
    counts[std::min(bin, counts.size() - 1)] += 1;
  }
  frame.y.high = *std::max_element(counts.begin(), counts.end());
  frame.y.widen();
  std::string out = opening(axes, height) + grid(axes, frame);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double from = frame.x_at(frame.x.low + bin_width * static_cast<double>(i));
    const double to = frame.x_at(frame.x.low + bin_width * static_cast<double>(i + 1));
    const double y = frame.y_at(counts[i]);
    out += "<rect x=\"" + pixel(from) + "\" y=\"" + pixel(y) + "\" width=\"" +
           pixel(std::max(to - from - 0.5, 0.5)) + "\" height=\"" + pixel(height - bottom - y) +
           "\" fill=\"" + colours[0] + "\"/>\n";
  }
  return out + legend({{sample.name, {}}}) + "</svg>\n";
}

std::string cumulative_chart(const Axes& axes, const std::vector<Sample>& samples) {
  constexpr std::size_t points_max = 1000;
  std::vector<Series> series;
  for (const Sample& sample : samples) {
    const std::vector<double> values = sorted_finite(sample.values);
    Series curve{sample.name, {}};
    const std::size_t count = values.size();
    const std::size_t stride = std::max<std::size_t>(1, count / points_max);
    for (std::size_t i = 0; i < count; i += stride) {
      curve.points.emplace_back(values[i],
                                100.0 * static_cast<double>(i + 1) / static_cast<double>(count));
    }
    if (count > 0) curve.points.emplace_back(values.back(), 100.0);
    series.push_back(std::move(curve));
  }
  return line_chart(axes, series);
}

std::string heat_map(const Axes& axes, int columns, const std::vector<double>& values) {
  LOAM_ASSERT(columns > 0);
  const double room = width - left - right;
  const double cell = std::min(room / columns, 18.0);
  const auto across = static_cast<std::size_t>(columns);
  const double rows = static_cast<double>((values.size() + across - 1) / across);
  const double paper = top + rows * cell + bottom;
  std::string out = opening(axes, paper);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = left + static_cast<double>(i % across) * cell;
    const double y = top + static_cast<double>(i / across) * cell;
    const bool known = values[i] >= 0 && values[i] <= 1;
    out += "<rect x=\"" + pixel(x) + "\" y=\"" + pixel(y) + "\" width=\"" + pixel(cell * 0.94) +
           "\" height=\"" + pixel(cell * 0.94) + "\" fill=\"" +
           (known ? shade(values[i]) : "#bbbbbb") + "\"/>\n";
  }
  out += text_at(left + cell * columns / 2, paper - 16, "middle", axes.x);
  const std::string turned = " transform=\"rotate(-90 16 " + pixel(paper / 2) + ")\"";
  return out + text_at(16, paper / 2, "middle", axes.y, turned.c_str()) + "</svg>\n";
}

}  // namespace loam::sim

// The arithmetic of repeats, and calibrations as JSON. Pure.
#include "node/device/calibration.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "base/assert.hpp"

namespace loam::node {
namespace {

namespace json = boost::json;

// A figure's unit is stored in millionths: TFLOPS as 10^6 operations, GB/s as 10^3 bytes a second.
constexpr double millionths = 1e6;

std::int64_t stored(double value) {
  return std::llround(value * millionths);
}

double restored(std::int64_t value) {
  return static_cast<double>(value) / millionths;
}

json::object object_of(const Figure& figure) {
  return {{"median", stored(figure.median)},
          {"lowest", stored(figure.lowest)},
          {"highest", stored(figure.highest)},
          {"repeats", figure.repeats}};
}

json::object object_of(const MeasuredFactors& factors) {
  return {{"general", factors.general.value},
          {"train", factors.train.value},
          {"prefill", factors.prefill.value},
          {"decode", factors.decode.value}};
}

std::string text_at(const json::object& in, const char* key) {
  return std::string(std::string_view(in.at(key).as_string()));
}

// Beyond any device by orders of magnitude.
constexpr double figure_max = 1e6;

Figure figure_from(const json::object& in) {
  Figure figure{restored(in.at("median").as_int64()), restored(in.at("lowest").as_int64()),
                restored(in.at("highest").as_int64()), in.at("repeats").to_number<std::int32_t>()};
  const bool sound = figure.lowest > 0 && figure.lowest <= figure.median &&
                     figure.median <= figure.highest && figure.highest <= figure_max &&
                     figure.repeats >= 1;
  if (!sound) throw std::invalid_argument("a figure is out of range");
  return figure;
}

MilliCe milli_ce_from(const json::value& in) {
  const std::int64_t value = in.as_int64();
  if (value < 1 || value > milli_ce_max.value) {
    throw std::invalid_argument(std::to_string(value) + " milli-CE is out of range");
  }
  return MilliCe{value};
}

MeasuredFactors factors_of(const json::object& in) {
  return {milli_ce_from(in.at("general")), milli_ce_from(in.at("train")),
          milli_ce_from(in.at("prefill")), milli_ce_from(in.at("decode"))};
}

}  // namespace

Figure figure_of(std::vector<double> values) {
  LOAM_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  const auto rounded = [](double value) { return restored(stored(value)); };
  return Figure{rounded(median), rounded(values.front()), rounded(values.back()),
                static_cast<std::int32_t>(values.size())};
}

std::string to_json(const Calibration& c) {
  json::array warnings;
  for (const std::string& warning : c.warnings) warnings.emplace_back(warning);
  return json::serialize(json::object{
      {"format", 1},
      {"uuid", c.uuid},
      {"device_name", c.device_name},
      {"driver_version", c.driver_version},
      {"method", c.method},
      {"precision", c.precision},
      {"matrix_units", c.matrix_units},
      {"is_cpu", c.is_cpu},
      {"brief", c.brief},
      {"matrix_size", c.matrix_size},
      {"gemm_mflop_s", object_of(c.gemm_tflops)},
      {"bandwidth_kb_s", object_of(c.bandwidth_gb_s)},
      {"to_device_kb_s", object_of(c.to_device_gb_s)},
      {"from_device_kb_s", object_of(c.from_device_gb_s)},
      {"milli_ce", object_of(c.factors)},
      {"elapsed_ms", std::llround(c.elapsed_s * 1000)},
      {"warnings", warnings},
  });
}

Result<Calibration> parse_calibration(std::string_view text) {
  // Boost.JSON speaks in exceptions; they end here.
  try {
    const json::value document = json::parse(json::string_view(text.data(), text.size()));
    const json::object& in = document.as_object();
    if (in.at("format").as_int64() != 1) throw std::invalid_argument("its format is not 1");
    Calibration c;
    c.uuid = text_at(in, "uuid");
    c.device_name = text_at(in, "device_name");
    c.driver_version = text_at(in, "driver_version");
    c.method = text_at(in, "method");
    c.precision = text_at(in, "precision");
    c.matrix_units = in.at("matrix_units").as_bool();
    c.is_cpu = in.at("is_cpu").as_bool();
    c.brief = in.at("brief").as_bool();
    c.matrix_size = in.at("matrix_size").as_int64();
    c.gemm_tflops = figure_from(in.at("gemm_mflop_s").as_object());
    c.bandwidth_gb_s = figure_from(in.at("bandwidth_kb_s").as_object());
    c.to_device_gb_s = figure_from(in.at("to_device_kb_s").as_object());
    c.from_device_gb_s = figure_from(in.at("from_device_kb_s").as_object());
    c.factors = factors_of(in.at("milli_ce").as_object());
    c.elapsed_s = static_cast<double>(in.at("elapsed_ms").as_int64()) / 1000;
    for (const json::value& warning : in.at("warnings").as_array()) {
      c.warnings.emplace_back(std::string_view(warning.as_string()));
    }
    return c;
  } catch (const std::exception& fault) {
    return Error{ErrorKind::corrupt, std::string("not a calibration: ") + fault.what(),
                 "calibrate the device again"};
  }
}

}  // namespace loam::node

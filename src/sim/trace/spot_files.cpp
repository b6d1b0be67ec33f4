// Reads availability of spot and its model from files. Sources: docs/formats/spot.md.
#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "sim/trace/spot.hpp"

namespace loam::sim {
namespace {

namespace bj = boost::json;

constexpr std::size_t samples_max = 10'000'000;
constexpr double gap_seconds_max = 86'400;
constexpr std::size_t states_max = 64;
constexpr double row_error_max = 1e-3;  // what rounding to six decimals may leave, and more

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text)
    return Error{ErrorKind::not_found, path + " cannot be read", "give the path of a file"};
  return text.str();
}

// "FILE:LINE:COLUMN" of a byte.
std::string place_of(const std::string& name, std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t begin = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  return name + ":" + std::to_string(line) + ":" + std::to_string(before.size() - begin + 1);
}

Error bad(const std::string& name, const std::string& where, const std::string& why) {
  return invalid(name + ": " + where + " " + why,
                 R"(write {"metadata":{"gap_seconds":195},"data":[1,0,...]})");
}

Result<bj::value> parse_json(const std::string& name, std::string_view text) {
  bj::stream_parser parser;
  bj::error_code fault;
  const std::size_t read = parser.write_some(text.data(), text.size(), fault);
  std::size_t at = read;
  if (!fault && read < text.size()) {
    const std::size_t rest = text.find_first_not_of(" \t\r\n", read);
    if (rest != text.npos) {
      at = rest;
      fault = bj::error::extra_data;
    }
  }
  if (!fault) parser.finish(fault);
  if (fault)
    return invalid(
        place_of(name, text, std::min(at, text.size())) + ": no JSON: " + fault.message(),
        "check the file's end and its commas");
  return parser.release();
}

Result<Duration> gap_of(const std::string& name, const bj::object& document) {
  const bj::value* metadata = document.if_contains("metadata");
  if (!metadata || !metadata->is_object()) return bad(name, "'metadata'", "is no object");
  const bj::value* gap = metadata->get_object().if_contains("gap_seconds");
  if (!gap || !gap->is_number()) return bad(name, "'metadata.gap_seconds'", "is no number");
  const double seconds = gap->to_number<double>();
  const double ms = std::round(seconds * 1000);
  if (!(seconds > 0) || seconds > gap_seconds_max || ms < 1)
    return bad(name, "'metadata.gap_seconds'", "is not above 0 and at most a day");
  return Duration{static_cast<std::int64_t>(ms)};
}

// The whole number that a sample is; -1 where it is none.
std::int64_t instances_of(const bj::value& sample) {
  if (sample.is_int64()) return sample.get_int64() < 0 ? -1 : sample.get_int64();
  if (sample.is_uint64()) return INT64_MAX;
  if (!sample.is_double()) return -1;
  const double number = sample.get_double();
  return number >= 0 && number < 1e15 && number == std::floor(number)
             ? static_cast<std::int64_t>(number)
             : -1;
}

Result<double> probability_of(const std::string& place, std::string_view word) {
  double value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (fault != std::errc{} || end != word.data() + word.size() || !(value >= 0 && value <= 1))
    return invalid(place + ": '" + std::string(word) + "' is no probability",
                   "write a number from 0 to 1");
  return value;
}

struct Line {
  std::string place;
  std::vector<std::string_view> words;
};

// Lines that hold words, with their place.
std::vector<Line> lines_of(const std::string& name, std::string_view text) {
  std::vector<Line> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Line line{name + ":" + std::to_string(++number), {}};
    while (true) {
      const std::size_t begin = rest.find_first_not_of(" \t\r");
      if (begin == rest.npos) break;
      const std::size_t stop = std::min(rest.find_first_of(" \t\r", begin), rest.size());
      line.words.push_back(rest.substr(begin, stop - begin));
      rest.remove_prefix(stop);
    }
    if (!line.words.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

Result<std::size_t> count_of(const std::string& place, std::string_view word) {
  std::size_t value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (fault != std::errc{} || end != word.data() + word.size() || value < 1 || value > states_max)
    return invalid(place + ": '" + std::string(word) + "' is no number of states",
                   "write 1 to " + std::to_string(states_max));
  return value;
}

Result<void> add_row(AvailabilityModel& model, const Line& line) {
  double sum = 0;
  const std::size_t begin = model.transitions.size();
  if (line.words.size() != model.states())
    return invalid(line.place + ": " + std::to_string(line.words.size()) + " probabilities for " +
                       std::to_string(model.states()) + " states",
                   "write one for each state to go to");
  for (const std::string_view word : line.words) {
    LOAM_TRY(value, probability_of(line.place, word));
    model.transitions.push_back(value);
    sum += value;
  }
  if (std::abs(sum - 1) > row_error_max)
    return invalid(line.place + ": the row sums to " + std::to_string(sum) + ", not 1",
                   "a row holds where one state goes");
  for (std::size_t i = begin; i < model.transitions.size(); ++i) model.transitions[i] /= sum;
  return {};
}

}  // namespace

Result<AvailabilityTrace> parse_availability(const std::string& name, std::string_view text) {
  LOAM_TRY(document, parse_json(name, text));
  if (!document.is_object()) return bad(name, "the document", "is no object");
  AvailabilityTrace trace;
  LOAM_TRY(gap, gap_of(name, document.get_object()));
  trace.gap = gap;
  const bj::value* data = document.get_object().if_contains("data");
  if (!data || !data->is_array()) return bad(name, "'data'", "is no array");
  const bj::array& samples = data->get_array();
  if (samples.empty()) return bad(name, "'data'", "holds no sample");
  if (samples.size() > samples_max)
    return bad(name, "'data'", "holds more than " + std::to_string(samples_max) + " samples");
  trace.available.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int64_t instances = instances_of(samples[i]);
    if (instances < 0)
      return bad(name, "'data[" + std::to_string(i) + "]'",
                 "is no number of instances: " + bj::serialize(samples[i]).substr(0, 40));
    trace.available.push_back(instances > 0 ? 1 : 0);
  }
  return trace;
}

Result<AvailabilityTrace> read_availability(const std::string& path) {
  LOAM_TRY(text, read_text(path));
  return parse_availability(path, text);
}

Result<AvailabilityModel> parse_availability_model(const std::string& name, std::string_view text) {
  const std::vector<Line> lines = lines_of(name, text);
  if (lines.empty() || lines[0].words.size() != 2)
    return invalid((lines.empty() ? name + ":1" : lines[0].place) +
                       ": a model begins with two numbers of states",
                   "write how many have spot and how many have none, such as '4 4'");
  AvailabilityModel model;
  LOAM_TRY(with_spot, count_of(lines[0].place, lines[0].words[0]));
  LOAM_TRY(without_spot, count_of(lines[0].place, lines[0].words[1]));
  model.with_spot = with_spot;
  model.without_spot = without_spot;
  if (lines.size() - 1 != model.states())
    return invalid(lines.back().place + ": the model has " + std::to_string(lines.size() - 1) +
                       " rows for " + std::to_string(model.states()) + " states",
                   "write one row for each state to come from");
  for (std::size_t i = 1; i < lines.size(); ++i) LOAM_CHECK(add_row(model, lines[i]));
  return model;
}

Result<AvailabilityModel> read_availability_model(const std::string& path) {
  LOAM_TRY(text, read_text(path));
  return parse_availability_model(path, text);
}

}  // namespace loam::sim

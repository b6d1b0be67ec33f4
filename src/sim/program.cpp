#include "sim/program.hpp"

#include <charconv>
#include <string_view>

namespace loam::sim {
namespace {

std::int64_t number_in(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void put(std::vector<std::string>& words, const char* name, std::int64_t value) {
  if (value != 0) words.push_back(std::string(name) + "=" + std::to_string(value));
}

}  // namespace

std::vector<std::string> command_of(const Program& program) {
  std::vector<std::string> words{"simulated", "run_ms=" + std::to_string(program.run.ms)};
  put(words, "exit", program.exit_code);
  put(words, "launch_ms", program.launch.ms);
  put(words, "stop_ms", program.stop.ms);
  put(words, "deaf", program.deaf ? 1 : 0);
  put(words, "start_delay_ms", program.start_delay.ms);
  put(words, "report_delay_ms", program.report_delay.ms);
  put(words, "reports_twice", program.reports_twice ? 1 : 0);
  put(words, "unable", program.unable);
  put(words, "storage_mib", program.storage.value);
  put(words, "network_bytes", program.network_bytes);
  if (program.busy) words.push_back("busy_bp=" + std::to_string(program.busy->value));
  if (!program.refused.empty()) words.push_back("refused=" + program.refused);
  return words;
}

Program program_of(const std::vector<std::string>& command) {
  Program program;
  for (const std::string& word : command) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view name = std::string_view(word).substr(0, equals);
    const std::string_view value = std::string_view(word).substr(equals + 1);
    if (name == "run_ms") program.run = Duration{number_in(value)};
    if (name == "exit") program.exit_code = number_in(value);
    if (name == "launch_ms") program.launch = Duration{number_in(value)};
    if (name == "stop_ms") program.stop = Duration{number_in(value)};
    if (name == "deaf") program.deaf = value == "1";
    if (name == "start_delay_ms") program.start_delay = Duration{number_in(value)};
    if (name == "report_delay_ms") program.report_delay = Duration{number_in(value)};
    if (name == "reports_twice") program.reports_twice = value == "1";
    if (name == "unable") program.unable = number_in(value);
    if (name == "storage_mib") program.storage = Mebibytes{number_in(value)};
    if (name == "network_bytes") program.network_bytes = number_in(value);
    if (name == "busy_bp") program.busy = BasisPoints{number_in(value)};
    if (name == "refused") program.refused = std::string(value);
  }
  return program;
}

}  // namespace loam::sim

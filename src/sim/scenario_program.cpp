// Reads what a statement says of a task's virtual program.
#include "sim/program.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {
namespace {

// Bytes, written as a size: "5GiB".
Result<std::int64_t> parse_moved(std::string_view text) {
  LOAM_TRY(size, parse_memory(text));
  return size.value << 20;
}

}  // namespace

Result<void> read_program(Words& words, TaskSpec& spec) {
  Program program;
  LOAM_CHECK(words.take("run", program.run, parse_duration));
  LOAM_CHECK(words.take("exit", program.exit_code, parse_count));
  LOAM_CHECK(words.take("launch", program.launch, parse_duration));
  LOAM_CHECK(words.take("stop", program.stop, parse_duration));
  LOAM_CHECK(words.take("deaf", program.deaf, parse_yes));
  LOAM_CHECK(words.take("refused", program.refused, parse_text));
  LOAM_CHECK(words.take("unable", program.unable, parse_count));
  LOAM_CHECK(words.take("storage", program.storage, parse_memory));
  LOAM_CHECK(words.take("network", program.network_bytes, parse_moved));
  LOAM_CHECK(words.take("busy", program.busy, parse_percent));
  LOAM_CHECK(words.take("start_report", program.start_delay, parse_duration));
  LOAM_CHECK(words.take("end_report", program.report_delay, parse_duration));
  LOAM_CHECK(words.take("reports_twice", program.reports_twice, parse_yes));
  spec.command = command_of(program);
  return {};
}

}  // namespace loam::sim

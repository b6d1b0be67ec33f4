// Runs of `loam sim` on a trace: each kind has its file, its options and its function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/loam/command.hpp"
#include "schedule/pool.hpp"

namespace loam::cli {

// Results of two runs or more, side by side; the operands are their files.
Result<int> sim_compare(Session& session, const Arguments& arguments);

Result<int> sim_journal(Session& session, const Arguments& arguments);
OptionGroup sim_journal_options();

Result<int> sim_openb(Session& session, const Arguments& arguments);
OptionGroup sim_openb_options();

Result<int> sim_synthetic(Session& session, const Arguments& arguments);
OptionGroup sim_synthetic_options();

Result<int> sim_jobs(Session& session, const Arguments& arguments);
OptionGroup sim_jobs_options();

Result<int> sim_spot(Session& session, const Arguments& arguments);
OptionGroup sim_spot_options();

// Adds the seeds that `text` names: "7", or "1..200" with both ends taken.
Result<void> add_seeds(const std::string& text, std::vector<std::uint64_t>& seeds);

// --mix: how the pool knows what is asked for; learnt online where nobody says.
schedule::MixSource mix_of(const Arguments& arguments);

// Option `key`, a factor such as 1.3, in percent, rounded down.
Result<std::int64_t> percent_of(const Arguments& arguments, std::string_view key,
                                std::string_view otherwise);

// "12.50": with so many decimals.
std::string fixed(double value, int decimals);

// How much faster than they did tasks come: --arrivals, at least 1 %.
Result<std::int64_t> pace_percent(const Arguments& arguments);

// To standard output with --json, and into the file of --out.
Result<void> write_json(const Arguments& arguments, Session& session, const std::string& text);
// Writes `text` to the file named by option `key` ("out", "csv"); nothing where it is not given.
Result<void> write_result(const Arguments& arguments, std::string_view key, Session& session,
                          const std::string& text);
// Into the folder of --plot, which is made where it is missing.
Result<void> write_plot(const Arguments& arguments, const char* name, const std::string& svg);
// Whether the table for people is printed: nothing else has standard output.
bool shows_table(const Arguments& arguments, Session& session);

}  // namespace loam::cli

#include "app/loam/program.hpp"

#include "app/loam/arguments.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/help.hpp"

namespace loam::cli {
namespace {

int fail(Console& console, const Error& error) {
  console.err << styled("error:", Style::bad, console.err_colour) << " "
              << printable_lines(error.message) << "\n";
  if (!error.next_step.empty()) console.err << "next: " << printable_lines(error.next_step) << "\n";
  console.err << std::flush;
  return exit_code_of(error.kind);
}

}  // namespace

int run_program(const std::vector<std::string>& words, Console& console,
                const Environment& environment) {
  const auto parsed = parse_words(words);
  if (!parsed) return fail(console, parsed.error());
  if (parsed->help) {
    const auto text = topic_text(parsed->topic, console.colour);
    if (!text) return fail(console, text.error());
    console.out << *text << std::flush;
    return exit_ok;
  }
  Session session(console, environment, parsed->arguments);
  const auto status = parsed->command->run(session, parsed->arguments);
  console.out << std::flush;
  if (!status) return fail(console, status.error());
  if (!console.out)
    return fail(console, {ErrorKind::unavailable, "the answer could not be written out",
                          "check the disk or the pipe that standard output goes to"});
  return *status;
}

}  // namespace loam::cli

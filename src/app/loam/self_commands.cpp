// version, completion, help.
#include "app/loam/commands.hpp"
#include "app/loam/completion.hpp"
#include "app/loam/help.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {
namespace {

Result<int> run_version(Session& session, const Arguments&) {
  if (session.json()) {
    session.out() << "{\"version\":\"" LOAM_VERSION "\"}\n";
  } else {
    session.out() << "loam " LOAM_VERSION "\n";
  }
  return 0;
}

Result<int> run_completion(Session& session, const Arguments& arguments) {
  const std::string shell = arguments.operand(0);
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    return invalid("there is no completion for '" + shell + "'", "use one of: bash, zsh, fish");
  session.out() << completion_text(shell);
  return 0;
}

Result<int> run_help(Session& session, const Arguments& arguments) {
  std::string topic = arguments.operand(0);
  if (!arguments.operand(1).empty()) topic += " " + arguments.operand(1);
  LOAM_TRY(text, topic_text(topic, session.console().colour));
  session.out() << text;
  return 0;
}

}  // namespace

std::vector<Command> self_commands() {
  return {
      {"version", "The version of this program", "", "loam version", {}, {}, run_version},
      {"completion",
       "A script that completes commands and options in a shell",
       "",
       "source <(loam completion bash)\nloam completion fish | source",
       {{"SHELL", "bash, zsh or fish", Operand::Kind::one, "bash zsh fish"}},
       {},
       run_completion},
      {"help",
       "Help on a command, or on exit-codes",
       "",
       "loam help run\nloam help device calibrate\nloam help exit-codes",
       {{"TOPIC", "a command or exit-codes", Operand::Kind::any}},
       {},
       run_help},
  };
}

}  // namespace loam::cli

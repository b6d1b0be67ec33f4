#include "app/loam/completion.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "app/loam/command.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

std::string written(const std::string& text) {
  std::string path = (std::filesystem::temp_directory_path() / "loam-completion-XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  EXPECT_GE(descriptor, 0);
  ::close(descriptor);
  std::ofstream(path) << text;
  return path;
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char bytes[4096];
  while (const std::size_t got = std::fread(bytes, 1, sizeof bytes, pipe)) out.append(bytes, got);
  EXPECT_EQ(::pclose(pipe), 0) << out;
  return out;
}

// What bash offers for the words, of which the last is being typed.
std::string offered(const std::string& script, const std::string& words) {
  return output_of("bash -c 'source " + script + "; COMP_WORDS=(" + words +
                   "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _loam; echo \"${COMPREPLY[*]}\"' 2>&1");
}

// What is named by an operand is offered from the list that shows it.
TEST(Completion, names_come_from_their_lists) {
  const std::string text = completion_text("bash");
  for (const char* list : {"ps", "ps --all", "device list", "tenant list", "budget list",
                           "invoice list", "commit list", "reservation list", "endpoint list"}) {
    EXPECT_NE(text.find("loam " + std::string(list) + " --quiet"), std::string::npos) << list;
  }
}

TEST(Completion, bash_offers_commands_verbs_options_and_choices) {
  const std::string script = written(completion_text("bash"));
  EXPECT_EQ(offered(script, "loam quo"), "quote\n");
  EXPECT_EQ(offered(script, "loam device dr"), "drain\n");
  EXPECT_EQ(offered(script, "loam run --iso"), "--isolation\n");
  EXPECT_EQ(offered(script, "loam run --isolation so"), "software\n");
  EXPECT_EQ(offered(script, "loam device calibrate --al"), "--all\n");
  EXPECT_EQ(offered(script, "loam completion z"), "zsh\n");
  std::filesystem::remove(script);
}

TEST(Completion, every_shell_knows_every_command_and_option) {
  const std::string bash = completion_text("bash");
  const std::string fish = completion_text("fish");
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      EXPECT_NE(bash.find("'" + std::string(command.name) + "')"), std::string::npos);
      for (const OptionGroup& group : command.groups) {
        for (const Option& option : group.options)
          EXPECT_NE(fish.find(" -l " + std::string(option.key())), std::string::npos);
      }
    }
  }
  EXPECT_NE(completion_text("zsh").find("bashcompinit"), std::string::npos);
}

}  // namespace
}  // namespace loam::cli

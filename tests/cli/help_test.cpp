#include "app/loam/help.hpp"

#include <gtest/gtest.h>

#include "app/loam/exit_code.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

TEST(Help, the_overview_names_every_command) {
  const Ran help = run({"help"});
  EXPECT_EQ(help.status, 0);
  for (const Section& section : sections()) {
    for (const Command& command : section.commands)
      EXPECT_NE(help.out.find(std::string("  ") + command.name + " "), std::string::npos)
          << command.name;
  }
}

TEST(Help, a_command_shows_its_example_and_every_option) {
  const Ran help = run({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* words :
       {"Usage", "loam run [options] -- CMD…", "loam run --share 0.3 --time 10m -- ./train",
        "--ce CE", "How much", "Who pays", "--env NAME=VALUE", "-h, --help"})
    EXPECT_NE(help.out.find(words), std::string::npos) << words;
  EXPECT_EQ(help.out, run({"help", "run"}).out);
}

TEST(Help, no_line_is_wider_than_a_page) {
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      std::istringstream lines(help_text(command, false));
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(display_width(line), 120U) << command.name << ": " << line;
    }
  }
}

TEST(Help, exit_codes_and_nouns_are_topics_and_others_are_not) {
  const std::string codes = run({"help", "exit-codes"}).out;
  for (const auto& [outcome, words] :
       {std::pair("expired", "121  the task expired"), std::pair("limit_reached", "124  the task"),
        std::pair("device_lost", "122  the device"), std::pair("refused", "125  the task")}) {
    EXPECT_NE(codes.find(words), std::string::npos) << words;
    EXPECT_EQ(std::to_string(exit_code_of(outcome, 0)), std::string(words).substr(0, 3));
  }
  EXPECT_NE(run({"help", "device"}).out.find("device calibrate"), std::string::npos);
  const Ran unknown = run({"help", "devcie"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("error: there is no"), std::string::npos);
}

}  // namespace
}  // namespace loam::cli

#include "app/loam/arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace loam::cli {
namespace {

using Words = std::vector<std::string>;

Parsed parsed(const Words& words) {
  const auto result = parse_words(words);
  EXPECT_TRUE(result.ok()) << to_text(result.error());
  return result ? *result : Parsed{};
}

Error fault(const Words& words) {
  const auto result = parse_words(words);
  EXPECT_FALSE(result.ok());
  return result ? Error{} : result.error();
}

TEST(Arguments, everything_after_the_dashes_belongs_to_the_program) {
  const auto run = parsed({"run", "--share", "0.3", "--", "./train", "--json", "--", "-h"});
  EXPECT_STREQ(run.command->name, "run");
  EXPECT_EQ(run.arguments.text("share"), "0.3");
  EXPECT_FALSE(run.arguments.has("json"));
  EXPECT_EQ(run.arguments.operands, (Words{"./train", "--json", "--", "-h"}));
}

TEST(Arguments, json_may_stand_before_the_command) {
  const auto sim = parsed({"--json", "sim", "1", "2"});
  EXPECT_TRUE(sim.arguments.has("json"));
  EXPECT_EQ(sim.arguments.operands, (Words{"1", "2"}));
}

TEST(Arguments, a_forgotten_pair_of_dashes_is_no_program) {
  EXPECT_NE(fault({"quote", "share", "1"}).next_step.find("did you mean --share 1"),
            std::string::npos);
  EXPECT_EQ(parsed({"run", "--", "share", "1"}).arguments.operands, (Words{"share", "1"}));
  EXPECT_EQ(parsed({"run", "./share", "1"}).arguments.operands, (Words{"./share", "1"}));
}

TEST(Arguments, nouns_and_verbs_that_are_not_there_lead_to_those_that_are) {
  EXPECT_NE(fault({"quota"}).next_step.find("tenant set"), std::string::npos);
  EXPECT_NE(fault({"pool", "list"}).next_step.find("device list"), std::string::npos);
  EXPECT_NE(fault({"device", "rm", "d1"}).next_step.find("drain"), std::string::npos);
}

TEST(Arguments, every_write_takes_an_idempotency_key) {
  for (const char* name :
       {"run", "submit", "stop", "tenant create", "tenant topup", "tenant refund", "ledger reverse",
        "commit buy", "commit cancel", "reservation make", "reservation cancel", "invoice issue",
        "rate set", "budget set", "device drain"}) {
    const Command* command = find_command(name);
    ASSERT_NE(command, nullptr) << name;
    const auto options = options_of(*command);
    EXPECT_TRUE(std::any_of(options.begin(), options.end(), [](const Option& option) {
      return option.key() == "key";
    })) << name;
  }
}

TEST(Arguments, the_program_may_stand_without_dashes) {
  const auto run = parsed({"run", "--share=0.3", "train", "--epochs", "3", "--help"});
  EXPECT_EQ(run.arguments.operands, (Words{"train", "--epochs", "3", "--help"}));
  EXPECT_FALSE(run.help);
}

TEST(Arguments, global_options_may_stand_before_the_command) {
  const auto ps = parsed({"--host", "/s", "--json", "ps", "--all"});
  EXPECT_STREQ(ps.command->name, "ps");
  EXPECT_EQ(ps.arguments.text("host"), "/s");
  EXPECT_TRUE(ps.arguments.has("json"));
  EXPECT_TRUE(ps.arguments.has("all"));
}

TEST(Arguments, values_are_taken_as_they_are_typed) {
  const auto run = parsed({"run", "--env", "A=", "--env", "B=[x,y]", "--env=C=--d", "--name", "{}",
                           "--ce", "-5", "--", "x"});
  EXPECT_EQ(run.arguments.list("env"), (Words{"A=", "B=[x,y]", "C=--d"}));
  EXPECT_EQ(run.arguments.text("name"), "{}");
  EXPECT_EQ(run.arguments.text("ce"), "-5");
}

TEST(Arguments, a_noun_takes_a_verb) {
  EXPECT_STREQ(parsed({"device", "list"}).command->name, "device list");
  EXPECT_EQ(fault({"device"}).message, "'device' needs a verb");
  EXPECT_NE(fault({"device"}).next_step.find("list, discover, calibrate"), std::string::npos);
}

TEST(Arguments, an_unknown_command_suggests_the_nearest) {
  EXPECT_EQ(fault({"sumbit"}).message, "there is no command 'sumbit'");
  EXPECT_NE(fault({"sumbit"}).next_step.find("'submit'"), std::string::npos);
  EXPECT_NE(fault({"device", "lsit"}).next_step.find("'device list'"), std::string::npos);
  EXPECT_EQ(fault({"xyzzy"}).next_step, "see them all with: loam help");
}

TEST(Arguments, an_unknown_option_suggests_the_nearest) {
  EXPECT_NE(fault({"ps", "--alll"}).next_step.find("'--all'"), std::string::npos);
  EXPECT_EQ(fault({"ps", "--alll"}).message, "'loam ps' has no option '--alll'");
  EXPECT_EQ(fault({"run", "--shar=1", "--", "x"}).message, "'loam run' has no option '--shar=1'");
}

TEST(Arguments, too_few_and_too_many_are_told) {
  EXPECT_EQ(fault({"show"}).message, "'loam show' needs ID");
  EXPECT_EQ(fault({"show"}).next_step, "type: loam show ID");
  EXPECT_EQ(fault({"show", "t1", "t2"}).message, "'t2' is more than 'loam show' takes");
  EXPECT_EQ(fault({"stop"}).message, "'loam stop' needs ID");
  EXPECT_EQ(fault({"tenant", "topup", "acme"}).message, "'loam tenant topup' needs AMOUNT");
  EXPECT_EQ(parsed({"stop", "t1", "t2", "t3"}).arguments.operands.size(), 3U);
}

TEST(Arguments, a_value_that_is_missing_empty_or_given_twice_is_told) {
  EXPECT_NE(fault({"ps", "--limit"}).message.find("--limit"), std::string::npos);
  EXPECT_EQ(fault({"ps", "--limit="}).message, "'--limit=' has no value");
  EXPECT_EQ(fault({"ps", "--limit", "1", "--limit", "2"}).message, "--limit is given 2 times");
}

TEST(Arguments, a_choice_that_is_none_lists_them) {
  const Error error = fault({"run", "--isolation", "total", "--", "x"});
  EXPECT_EQ(error.message, "--isolation: 'total' is not known");
  EXPECT_EQ(error.next_step, "use one of: any software hardware");
  EXPECT_EQ(fault({"run", "--isolation", "", "--", "x"}).message, "--isolation: '' is not known");
}

TEST(Arguments, help_is_asked_for_anywhere) {
  EXPECT_TRUE(parsed({}).help);
  EXPECT_TRUE(parsed({"--help"}).help);
  EXPECT_EQ(parsed({"run", "-h"}).topic, "run");
  EXPECT_EQ(parsed({"device", "--help"}).topic, "device");
  EXPECT_STREQ(parsed({"--version"}).command->name, "version");
}

TEST(Arguments, no_command_has_two_options_of_one_name) {
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      std::istringstream name(command.name);
      Words words{std::istream_iterator<std::string>(name), {}};
      words.insert(words.end(), {"--quiet", "--json"});
      EXPECT_NO_THROW(static_cast<void>(parse_words(words))) << command.name;
    }
  }
}

TEST(Arguments, the_table_names_every_command_once_and_each_has_an_example) {
  std::vector<std::string> names;
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      EXPECT_EQ(std::count(names.begin(), names.end(), command.name), 0) << command.name;
      names.emplace_back(command.name);
      EXPECT_TRUE(std::string(command.example).find("loam") != std::string::npos) << command.name;
      EXPECT_STRNE(command.summary, "") << command.name;
    }
  }
}

}  // namespace
}  // namespace loam::cli

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/results.hpp"

namespace loam::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> complaints_of(std::vector<std::string> argv) {
  const Benchmark benchmark{
      "shares", {{"shares.error", "points", at_most(3)}}, command(std::move(argv))};
  return complaints({machine_here("test"), run({benchmark})});
}

std::vector<std::string> complaints_of_script(const std::string& script) {
  return complaints_of({"/bin/sh", "-c", script});
}

TEST(Command, figures_come_from_the_programs_output) {
  EXPECT_THAT(complaints_of_script(R"(echo '{"figures":[{"name":"shares.error","value":1.5}]}')"),
              ElementsAre());
  EXPECT_THAT(complaints_of_script(R"(echo '{"figures":[{"name":"shares.error","value":3.5}]}')"),
              ElementsAre("shares.error is 3.5 points, its mark is ≤ 3"));
}

TEST(Command, a_program_that_reports_nothing_leaves_its_figures_missing) {
  EXPECT_THAT(complaints_of_script(R"(echo '{"figures":[]}')"),
              ElementsAre("shares.error is missing"));
}

TEST(Command, failures_of_the_program_are_told) {
  EXPECT_THAT(complaints_of_script("exit 7")[0], HasSubstr("ended with exit status 7"));
  EXPECT_THAT(complaints_of_script("kill -9 $$")[0], HasSubstr("ended with signal 9"));
  EXPECT_THAT(complaints_of_script("echo hello")[0], HasSubstr("not JSON"));
  EXPECT_THAT(complaints_of_script("head -c 5000000 /dev/zero")[0], HasSubstr("more than 4 MiB"));
  EXPECT_THAT(complaints_of({"/no/such/program"})[0], HasSubstr("'/no/such/program'"));
}

TEST(Command, folders_are_filled_in_and_no_shell_reads_the_words) {
  EXPECT_THAT(complaints_of({"{source}/tests/bench/echo_figures.sh", "two words; exit 3"}),
              ElementsAre());
  EXPECT_THAT(complaints_of({"{bin}/no_such_program"})[0], HasSubstr("/no_such_program"));
}

}  // namespace
}  // namespace loam::bench

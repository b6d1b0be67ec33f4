// What people mistype: told at once, with the value and what to do, before any daemon is asked.
#include <fstream>

#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

using Words = std::vector<std::string>;

// No daemon listens here: what fails with exit code 2 was told without one.
Ran alone(Words words) {
  words.insert(words.begin(), {"--host", "/nonexistent/loamd.sock"});
  return run(words);
}

struct Slip {
  Words words;
  const char* says;  // in the error
};

class Absurd : public ::testing::TestWithParam<Slip> {};

TEST_P(Absurd, is_told_with_its_value_and_a_next_step) {
  const Ran ran = alone(GetParam().words);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find("error: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(GetParam().says), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("\nnext: "), std::string::npos) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(
    Requests, Absurd,
    ::testing::Values(
        Slip{{"quote", "--ce", "1", "--share", "0.5"}, "both --ce 1 and --share 0.5"},
        Slip{{"quote", "--ce", "0"}, "--ce: "}, Slip{{"quote", "--ce", "-5"}, "-5"},
        Slip{{"quote", "--ce", "1000000000000000000000000000000"}, "--ce: "},
        Slip{{"quote", "--ce", "NaN"}, "NaN"}, Slip{{"quote", "--ce", "0.0001"}, "0.0001"},
        Slip{{"quote", "--share", "0"}, "--share: "}, Slip{{"quote", "--share", "1.5"}, "1.5"},
        Slip{{"quote", "--share", "60%"}, "60%"},
        Slip{{"quote", "--share", "1", "--memory", "1e3GiB"}, "1e3GiB"},
        Slip{{"quote", "--share", "1", "--memory", "10"}, "10"},
        Slip{{"quote", "--share", "1", "--memory", "-1GiB"}, "-1GiB"},
        Slip{{"quote", "--share", "1", "--time", "2"}, "--time: "},
        Slip{{"quote", "--share", "1", "--time", "0s"}, "0s"},
        Slip{{"quote", "--share", "1", "--time", "-2h"}, "-2h"},
        Slip{{"quote", "--share", "1", "--cpu", "inf"}, "inf"},
        Slip{{"quote", "--share", "1", "--restarts", "many"}, "many"},
        Slip{{"quote", "--share", "1", "--restarts", "-1"}, "-1"},
        Slip{{"quote", "--share", "1", "--port", "65536"}, "65536"},
        Slip{{"quote", "--share", "1", "--mount", "/a:b"}, "'b' is not an absolute path"},
        Slip{{"quote", "--share", "1", "--mount", "/a:/b:/c"}, "/a:/b:/c"},
        Slip{{"quote", "--share", "1", "--mount", ""}, "''"},
        Slip{{"quote", "--share", "1", "--env", "=x"}, "=x"},
        Slip{{"quote", "--share", "1", "--env", "NOT_SET_HERE"}, "NOT_SET_HERE"},
        Slip{{"quote", "--share", "1", "--tag", "alone"}, "alone"},
        Slip{{"quote", "--share", "1", "--deadline", "tomorrow"}, "tomorrow"},
        Slip{{"run", "--share", "1"}, "no program"},
        Slip{{"submit", "--share", "1", "--"}, "no program"}));

INSTANTIATE_TEST_SUITE_P(
    Others, Absurd,
    ::testing::Values(
        Slip{{"ps", "--limit", "0"}, "'0'"}, Slip{{"ps", "--limit", "501"}, "'501'"},
        Slip{{"ps", "--limit", "x"}, "'x'"}, Slip{{"logs", "t1", "--offset", "5"}, "--offset"},
        Slip{{"logs", "t1", "--stream", "stdin"}, "stdin"},
        Slip{{"tenant", "topup", "acme", "ten"}, "ten"},
        Slip{{"tenant", "topup", "acme", "-5"}, "-5 is below zero"},
        Slip{{"rate", "set", "-1"}, "-1 is below zero"},
        Slip{{"topup", "acme", "5"}, "tenant topup"}, Slip{{"wallet"}, "tenant show"},
        Slip{{"submit", "--ce", "1", "--tag", "a=1", "--tag", "a=2", "--", "x"},
             "'a' is given twice"},
        Slip{{"submit", "--ce", "1", "--tag", "a b=1", "--", "x"},
             "'a b' is not the name of a tag"},
        Slip{{"tenant", "create", "x", "--currency", "EUT"}, "EUT"},
        Slip{{"tenant", "create", "x", "--currency", "JPY", "--topup", "10.5"}, "10.5 JPY"},
        Slip{{"tenant", "topup", "acme", "1e3"}, "1e3"},
        Slip{{"tenant", "create", "acme", "--currency", "dollars"}, "dollars"},
        Slip{{"tenant", "create", "acme", "--discount", "101"}, "101"},
        Slip{{"tenant", "create", "acme", "--quota-ce", "-1"}, "-1"},
        Slip{{"tenant", "create", "acme", "--quota-memory", "5"}, "5"},
        Slip{{"tenant", "create", "acme", "--quota-tasks", "1.5"}, "1.5"},
        Slip{{"tenant", "set", "acme"}, "nothing to change"}, Slip{{"rate", "set", "free"}, "free"},
        Slip{{"rate", "set", "--", "-1"}, "-1"},
        Slip{{"rate", "set", "1", "--from", "noon"}, "noon"},
        Slip{{"rate", "set", "1", "--ce-per-gib", "x"}, "x"},
        Slip{{"bill", "acme", "--from", "2026-13-01"}, "2026-13-01"},
        Slip{{"token", "create", "ci"}, "tenant"}, Slip{{"device", "calibrate"}, "DEVICE"},
        Slip{{"sim", "9..1"}, "9..1"}, Slip{{"sim", "1..99999999"}, "1..99999999"},
        Slip{{"sim", "x"}, "x"}, Slip{{"completion", "tcsh"}, "tcsh"}));

TEST(BadInput, no_daemon_names_the_address_and_how_to_start_it) {
  const Ran ran = alone({"ps"});
  EXPECT_EQ(ran.status, 5);
  EXPECT_NE(ran.err.find("/nonexistent/loamd.sock"), std::string::npos);
  EXPECT_NE(ran.err.find("next: start it with: loamd"), std::string::npos);
  EXPECT_EQ(run({"ps", "--host", "nowhere"}).status, 2);
}

TEST(BadInput, the_default_address_is_that_of_loamd) {
  const auto of = [](const Variables& variables) {
    return [variables](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::string() : found->second;
    };
  };
  EXPECT_EQ(default_address(of({}), true), "/run/loam/loamd.sock");
  EXPECT_EQ(default_address(of({{"XDG_RUNTIME_DIR", "/run/user/7"}}), false),
            "/run/user/7/loam/loamd.sock");
  EXPECT_EQ(default_address(of({{"HOME", "/home/a"}}), false),
            "/home/a/.local/state/loam/loamd.sock");
  EXPECT_EQ(default_data_folder(of({{"XDG_STATE_HOME", "/s"}}), false), "/s/loam");
}

TEST_F(DaemonTest, a_task_file_is_read_strictly) {
  const auto with = [&](const std::string& text) {
    std::ofstream(folder + "/task.json") << text;
    return loam({"quote", "--file", folder + "/task.json"});
  };
  EXPECT_EQ(with(R"({"tenant":"acme","share":"0.5","command":["x"]})").status, 0);
  EXPECT_EQ(with("{").status, 2);
  const Ran unknown = with(R"({"shares":"0.5"})");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("shares"), std::string::npos) << unknown.err;
  EXPECT_EQ(loam({"quote", "--file", folder + "/gone.json"}).status, 3);
}

TEST_F(DaemonTest, what_the_daemon_refuses_has_its_exit_code) {
  EXPECT_EQ(loam({"show", "t99"}).status, 3);
  EXPECT_EQ(loam({"show", "../x"}).status, 2);
  EXPECT_EQ(loam({"quote", "--tenant", "nobody", "--share", "1"}).status, 3);
  EXPECT_EQ(loam({"quote", "--tenant", "acme", "--ce", "5000"}).status, 4);
  EXPECT_EQ(loam({"tenant", "create", "acme"}).status, 4);
  const Ran field = loam({"quote", "--tenant", "acme", "--share", "1", "--image", "sha256:0"});
  EXPECT_EQ(field.status, 4);
  EXPECT_NE(field.err.find("'image' cannot be honoured yet"), std::string::npos) << field.err;
  const std::string tcp = "127.0.0.1:" + std::to_string(server->tcp_port());
  EXPECT_EQ(run({"ps", "--host", tcp}).status, 6);
  EXPECT_EQ(run({"ps", "--host", tcp, "--token", "wrong"}).status, 6);
}

TEST_F(DaemonTest, of_several_ids_the_good_ones_are_done) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.5", "--", "x"}).status, 0);
  const Ran ran = loam({"stop", "t99", "t1"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("t1 asked to stop"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("t99"), std::string::npos);
}

}  // namespace
}  // namespace loam::cli

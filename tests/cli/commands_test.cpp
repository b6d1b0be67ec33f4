// Every command against a daemon: golden text for people, JSON for programs.
#include <filesystem>
#include <fstream>

#include "api/json.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

using Words = std::vector<std::string>;

TEST_F(DaemonTest, quote_tells_three_numbers_and_the_defaults) {
  const Ran quote =
      loam({"quote", "--tenant", "acme", "--ce", "25", "--memory", "10GiB", "--time", "2h"});
  EXPECT_EQ(quote.status, 0) << quote.err;
  EXPECT_EQ(quote.out,
            "per hour  0.50 USD     25 CE × 0.02 USD a CE-hour\n"
            "expected  1.00 USD     for 2h 00m 00s; best 1.00 USD, worst 1.0056 USD\n"
            "at most   1.0056 USD   for 2h 00m 00s; set aside first, what is left comes back\n"
            "starts    now          on n1/0 (A100-SXM-80GB)\n"
            "\n"
            "gets       25 % of n1/0 (A100-SXM-80GB), 10GiB of device memory = 25 CE\n"
            "billed     25 CE: the greater of the CE and 1.25 CE for each GiB\n"
            "rule       billed by the time it runs, to the millisecond at one price\n"
            "filled in  cpu 1, host-memory 2GiB, isolation any, strict, purchase on_demand, "
            "tariff flat, project default, environment default\n");
}

// What is left out is shown: how much, and the folder of a program that is in the one the caller is
// in.
TEST_F(DaemonTest, what_is_left_out_is_filled_in_and_said) {
  const Ran plain = loam({"quote", "--tenant", "acme"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_NE(plain.out.find("share 1: a whole device"), std::string::npos) << plain.out;
  EXPECT_EQ(plain.out.find("the folder you are in"), std::string::npos) << plain.out;

  const auto before = std::filesystem::current_path();
  const auto folder =
      std::filesystem::temp_directory_path() / ("loam-own-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "sub");
  std::ofstream(folder / "sub/train.py") << "print(1)\n";
  std::filesystem::current_path(folder);
  for (const Words& command :
       {Words{"./sub/train.py"}, Words{"python3", "sub/train.py", "--fast"}}) {
    Words words{"quote", "--tenant", "acme", "--share", "0.5", "--"};
    words.insert(words.end(), command.begin(), command.end());
    const Ran own = loam(words);
    EXPECT_NE(own.out.find("the folder you are in, writable"), std::string::npos) << own.out;
  }
  for (const Words& command :
       {Words{"/bin/true"}, Words{"./not-there"}, Words{"python3", "-c", "1"}}) {
    Words words{"quote", "--tenant", "acme", "--share", "0.5", "--"};
    words.insert(words.end(), command.begin(), command.end());
    const Ran other = loam(words);
    EXPECT_EQ(other.out.find("the folder you are in"), std::string::npos) << other.out;
  }
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST_F(DaemonTest, submit_prints_the_id_alone) {
  const Ran submit = loam({"submit", "--share", "0.5", "--name", "nightly", "--", "./train", "a b"},
                          {{"LOAM_TENANT", "acme"}});
  EXPECT_EQ(submit.status, 0) << submit.err;
  EXPECT_EQ(submit.out, "t1\n");
  EXPECT_EQ(submit.err, "");
}

TEST_F(DaemonTest, ps_aligns_and_leaves_finished_tasks_out) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--", "./train", "a\nb"}).status,
            0);
  ASSERT_EQ(loam({"submit", "--tenant", "beta", "--share", "0.6", "--", "x"}).status, 0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::minutes(61));
  const Ran ps = loam({"ps"});
  EXPECT_EQ(ps.out,
            "ID  NAME  TENANT  STATE    DEVICE  SHARE  MEMORY        TIME  COST       COMMAND\n"
            "t2        beta    waiting                                 0s  0.00  USD  x\n"
            "t1        acme    running  n1/0     60 %   48GiB  1h 01m 00s  1.22  USD  ./train "
            "'a\\nb'\n");
  daemon.end(TaskId{1});
  EXPECT_EQ(loam({"ps"}).out.find("acme"), std::string::npos);
  EXPECT_NE(loam({"ps", "--all"}).out.find("succeeded"), std::string::npos);
  EXPECT_NE(loam({"ps", "--all", "--limit", "1"}).err.find("more: loam ps --after "),
            std::string::npos);
  EXPECT_EQ(loam({"ps", "--tenant", "acme"}).err,
            "no live tasks; those that have finished: loam ps --all\n");
}

TEST_F(DaemonTest, show_says_why_a_task_waits) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--", "x"}).status, 0);
  ASSERT_EQ(loam({"submit", "--tenant", "beta", "--share", "0.6", "--", "x"}).status, 0);
  const Ran show = loam({"show", "t2"});
  EXPECT_NE(show.out.find("waits      no device has enough free share"), std::string::npos)
      << show.out;
}

TEST_F(DaemonTest, a_bill_proves_that_billed_seconds_are_run_seconds) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--name", "a", "--", "x"}).status,
            0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration{90'250});
  daemon.end(TaskId{1});
  const Ran bill = loam({"bill", "acme"});
  EXPECT_EQ(bill.status, 0) << bill.err;
  EXPECT_NE(bill.out.find("Bill of acme"), std::string::npos);
  EXPECT_NE(bill.out.find("t1     a     succeeded  software   60  90.250 s       0.02"),
            std::string::npos)
      << bill.out;
  EXPECT_NE(bill.out.find("billed 90.250 s = run 90.250 s: every finished task is billed what it "
                          "ran"),
            std::string::npos)
      << bill.out;
}

TEST_F(DaemonTest, logs_go_to_their_own_streams) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--", "x"}).status, 0);
  daemon.logs[{TaskId{1}, api::LogStream::out}] = "out\xff\n";
  daemon.logs[{TaskId{1}, api::LogStream::err}] = "err\n";
  const Ran logs = loam({"logs", "t1"});
  EXPECT_EQ(logs.out, "out\xff\n");
  EXPECT_EQ(logs.err, "err\n");
  EXPECT_EQ(loam({"logs", "t1", "--stream", "stderr", "--offset", "2"}).err, "r\n");
}

TEST_F(DaemonTest, devices_are_listed_drained_and_measured) {
  const Ran list = loam({"device", "list"});
  EXPECT_NE(list.out.find("d1  n1/0    A100-SXM-80GB  ready  100       0 %   80GiB  80GiB"),
            std::string::npos)
      << list.out;
  EXPECT_EQ(loam({"device", "drain", "n1/0"}).err,
            "n1/0: draining, nothing new is placed on it, 0 tasks on it still\n");
  EXPECT_EQ(loam({"device", "undrain", "gpu-1"}).err, "n1/0: ready\n");
  EXPECT_EQ(loam({"device", "calibrate", "n1/0"}).status, 0);
  EXPECT_EQ(loam({"device", "calibrate", "--all"}).status, 0);
  EXPECT_EQ(loam({"device", "calibrate", "n7/0"}).status, 3);
}

TEST_F(DaemonTest, devices_that_a_fast_link_joins_are_listed_with_their_group) {
  EXPECT_EQ(loam({"device", "list"}).out.find("LINK GROUP"), std::string::npos) << "none is known";
  DeviceFacts facts;
  daemon.read([&](const engine::State& state, Instant) { facts = *state.devices.front().facts; });
  facts.uuid = "gpu-2";
  facts.link_group = "0000:10:00.0";
  facts.numa_node = 1;
  daemon.run(AttachDevice{"n1", facts});
  const Ran list = loam({"device", "list"});
  EXPECT_NE(list.out.find("LINK GROUP    UUID\n"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("0000:10:00.0  gpu-2\n"), std::string::npos) << list.out;
  const Ran json = loam({"device", "list", "--json"});
  EXPECT_NE(json.out.find("\"link_group\":\"0000:10:00.0\",\"numa_node\":1"), std::string::npos)
      << json.out;
}

TEST_F(DaemonTest, tenants_are_made_topped_up_and_changed) {
  const Ran made = loam({"tenant", "create", "gamma", "--topup", "12.5", "--quota-tasks", "2"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.out.find("wallet     12.50 USD"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("quota      2 tasks at once"), std::string::npos) << made.out;
  EXPECT_NE(loam({"tenant", "topup", "gamma", "7.5"}).out.find("wallet     20.00 USD"),
            std::string::npos);
  EXPECT_NE(loam({"tenant", "set", "gamma", "--quota-tasks", "none"}).out.find("no limit"),
            std::string::npos);
  EXPECT_NE(loam({"tenant", "list"}).out.find("gamma"), std::string::npos);
  EXPECT_NE(loam({"ledger", "gamma"}).out.find("wallet 20.00"), std::string::npos);
}

TEST_F(DaemonTest, job_variables_become_tags_where_none_is_given) {
  const Variables job{{"GITHUB_ACTIONS", "true"}, {"GITHUB_REPOSITORY", "a/b"}};
  const auto submit = [&](Words words) {
    words.insert(words.begin(), {"submit", "--tenant", "acme", "--share", "0.1"});
    words.insert(words.end(), {"--", "x"});
    EXPECT_EQ(loam(words, job).status, 0);
    std::map<std::string, std::string> tags;
    daemon.read([&](const engine::State& state, Instant) {
      tags = state.tasks.rbegin()->second.spec->attribution.tags;
    });
    return tags;
  };
  EXPECT_EQ(submit({}), (Variables{{"ci", "github"}, {"repository", "a/b"}}));
  EXPECT_EQ(submit({"--tag", "repository=mine"})["repository"], "mine");
}

TEST_F(DaemonTest, json_is_one_document_of_the_api_for_every_reading_command) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--", "x"}).status, 0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::minutes(1));
  daemon.end(TaskId{1});
  ASSERT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
  const auto check = [&](const Words& words, auto parsed) {
    Words all = words;
    all.insert(all.begin(), "--json");
    const Ran ran = loam(all);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
    EXPECT_TRUE(parsed(ran.out)) << words.front() << ": " << ran.out;
  };
#define IS(Type) [](const std::string& text) { return api::from_json<api::Type>(text).ok(); }
  check({"quote", "--tenant", "acme", "--share", "0.1"}, IS(QuoteView));
  check({"submit", "--tenant", "acme", "--share", "0.1", "--", "x"}, IS(TaskView));
  check({"ps", "--all"}, IS(TaskPage));
  check({"show", "t1"}, IS(TaskView));
  check({"top"}, IS(TopView));
  check({"device", "list"}, IS(DeviceList));
  check({"device", "discover"}, IS(DeviceList));
  check({"device", "calibrate", "d1"}, IS(DeviceView));
  check({"device", "drain", "d1"}, IS(DeviceView));
  check({"tenant", "list"}, IS(TenantList));
  check({"tenant", "show", "acme"}, IS(TenantView));
  check({"rate", "list"}, IS(RateList));
  check({"bill", "acme"}, IS(BillView));
  check({"invoice", "list"}, IS(InvoiceList));
  check({"invoice", "show", "inv-1"}, IS(InvoiceView));
  check({"ledger", "acme"}, IS(LedgerView));
  check({"token", "create", "ci", "--tenant", "acme"}, IS(TokenView));
  check({"token", "list"}, IS(TokenList));
  check({"token", "revoke", "ci"}, IS(TokenView));
  check({"whoami"}, IS(WhoAmIView));
  check({"health"}, IS(HealthView));
  check({"reload"}, IS(ReloadView));
  check({"backup", folder + "/b.db"}, IS(BackupView));
  check({"stop", "t2"}, IS(TaskPage));
#undef IS
}

TEST_F(DaemonTest, colour_only_where_it_is_wanted) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--", "x"}).status, 0);
  EXPECT_EQ(loam({"ps"}).out.find('\x1b'), std::string::npos);
  EXPECT_EQ(loam({"ps"}, {}, {true, false, 80}).out.find('\x1b'), std::string::npos);
  EXPECT_NE(loam({"ps"}, {}, {true, true, 80}).out.find("\x1b["), std::string::npos);
}

TEST_F(DaemonTest, top_prints_once_where_there_is_no_terminal) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--share", "0.6", "--", "x"}).status, 0);
  const Ran top = loam({"top"});
  EXPECT_EQ(top.status, 0);
  EXPECT_NE(top.out.find("n1/0"), std::string::npos);
  EXPECT_NE(top.out.find("60 %"), std::string::npos) << top.out;
}

TEST_F(DaemonTest, a_backup_path_is_made_absolute) {
  const Ran backup = loam({"backup", "here.db", "--json"});
  const std::string path = (std::filesystem::current_path() / "here.db").string();
  EXPECT_NE(backup.out.find("\"" + path + "\""), std::string::npos) << backup.out << backup.err;
}

TEST(Verify, a_file_that_is_no_journal_is_told) {
  const Ran gone = run({"verify", "/nonexistent/journal.db"});
  EXPECT_NE(gone.status, 0);
  EXPECT_NE(gone.err.find("/nonexistent/journal.db"), std::string::npos);
}

TEST(Sim, seeds_are_run_and_summed_up) {
  const Ran sim = run({"sim", "1..2", "--json"});
  EXPECT_EQ(sim.status, 0) << sim.err;
  EXPECT_EQ(sim.out.substr(0, 10), "{\"seeds\":2");
}

}  // namespace
}  // namespace loam::cli

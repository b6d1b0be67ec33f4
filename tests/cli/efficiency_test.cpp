// What was used of what was held, lease by lease and week by week; the cost of a unit of business;
// what the pool could give while devices come and go; advice on what is to come.
#include <fstream>

#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

class EfficiencyTest : public DaemonTest {
 protected:
  EfficiencyTest() : start(daemon.clock.now()) {}

  TaskId submit(const std::vector<std::string>& more) {
    std::vector<std::string> words{"submit", "--tenant", "acme"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "x"});
    const Ran ran = loam(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return TaskId::parse(ran.out.substr(0, ran.out.find('\n'))).value_or(TaskId{});
  }
  void tell(TaskId task, Duration device_time) {
    ReportServices report;
    daemon.read([&](const engine::State& state, Instant) {
      report.lease = state.tasks.at(task).leases.front();
      report.epoch = state.tasks.at(task).epoch;
    });
    report.at = daemon.clock.now();
    report.device_time = device_time;
    EXPECT_FALSE(daemon.run(report).reject);
  }
  std::string at(Duration after) const { return to_text(start + after); }
  std::string report(Duration from, Duration to) {
    return loam({"cost", "efficiency", "--from", at(from), "--to", at(to), "--json"}).out;
  }
  std::string file(const char* name, const std::string& text) const {
    const std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  const Instant start;
};

constexpr Duration hour = Duration::hours(1);

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(EfficiencyTest, each_lease_counts_when_and_where_it_was) {
  const TaskId task = submit({"--ce", "25", "--time", "5h", "--name", "train"});
  daemon.start(task);
  daemon.clock.advance(hour);
  ASSERT_EQ(loam({"pause", task.text()}).status, 0);
  daemon.end(task, Duration::minutes(15), std::nullopt);  // all of its quarter
  daemon.clock.advance(hour * 2);
  ASSERT_EQ(loam({"resume", task.text()}).status, 0);
  daemon.start(task);
  daemon.clock.advance(hour);
  daemon.end(task, Duration{}, std::nullopt);
  const std::string whole = report({}, hour * 4);
  EXPECT_HAS(whole,
             "\"devices\":[{\"device\":\"n1/0\",\"held\":0.125,\"used\":0.0625,"
             "\"idle\":0.875}]");
  EXPECT_HAS(whole,
             "\"slices\":[{\"device\":\"n1/0\",\"share\":0.25,\"runs\":2,"
             "\"held_ms\":7200000,\"used\":0.5}]");
  EXPECT_HAS(whole,
             "\"name\":\"train\",\"runs\":2,\"asked\":\"25\",\"used\":\"12.5\",\"wait_ms\":0");
  EXPECT_HAS(report(hour, hour * 3),
             "\"held\":0,\"used\":0,\"idle\":1}],\"slices\":[],\"works\":[]");
  EXPECT_HAS(report(hour * 3, hour * 4), "\"runs\":1,\"held_ms\":3600000,\"used\":0}");
  const Ran show = loam({"show", task.text()});
  EXPECT_HAS(show.out, "l1     n1/0");
  EXPECT_HAS(show.out, "l2     n1/0");
  EXPECT_HAS(show.out, "25 %      25 %");
}

TEST_F(EfficiencyTest, a_long_lease_has_a_share_for_each_week_and_month) {
  const TaskId task = submit({"--ce", "25", "--time", "40d", "--name", "long"});
  daemon.start(task);
  // All of its quarter in the first week, nothing after it.
  daemon.clock.advance(hour * 24 * 7);
  tell(task, hour * 42);
  daemon.clock.advance(hour * 24 * 28);
  tell(task, hour * 42);
  const auto reports = [&](const char* bucket, const char* from, const char* to) {
    return loam({"cost", "efficiency", "acme", "--bucket", bucket, "--from", from, "--to", to,
                 "--json"})
        .out;
  };
  const std::string weeks = reports("week", "2026-03-02", "2026-03-16");
  EXPECT_TRUE(
      weeks.starts_with("{\"reports\":[{\"from\":\"2026-03-02T00:00:00Z\","
                        "\"to\":\"2026-03-09T00:00:00Z\""))
      << weeks;
  EXPECT_HAS(weeks, "\"runs\":1,\"held_ms\":604800000,\"used\":1}");
  EXPECT_HAS(weeks, "\"runs\":1,\"held_ms\":604800000,\"used\":0}");
  EXPECT_HAS(weeks, "long asked for 25 CE and used 0");
  const std::string months = reports("month", "2026-03-01", "2026-05-01");
  EXPECT_HAS(months, "{\"from\":\"2026-03-01T00:00:00Z\",\"to\":\"2026-04-01T00:00:00Z\"");
  EXPECT_HAS(months, "{\"from\":\"2026-04-01T00:00:00Z\",\"to\":\"2026-05-01T00:00:00Z\"");
  EXPECT_HAS(months, "\"used\":0.2332}") << "7 of 30 days, of shares of four decimals";
  // While it runs, `show` has its share from its beginning on, and the bill that of its hours.
  EXPECT_HAS(loam({"show", task.text()}).out, "25 %       5 %");
  const Ran first = loam({"bill", "acme", "--to", "2026-03-09", "--json"});
  EXPECT_HAS(first.out, "\"share_measured\":0.25");
  EXPECT_NE(loam({"cost", "efficiency", "--bucket", "year"}).status, 0);
}

TEST_F(EfficiencyTest, business_figures_give_the_cost_of_a_unit) {
  const TaskId task = submit({"--ce", "25", "--time", "2h", "--project", "vision"});
  daemon.start(task);
  daemon.clock.advance(hour);
  daemon.end(task);
  const std::string figures =
      file("figures.csv",
           "time,group,name,value\n2026-03-02T00:10:00Z,vision,requests,1500\n"
           "2026-03-02T00:20:00Z,vision,requests,500\n2025-01-01T00:00:00Z,vision,requests,9\n"
           "2026-03-02T00:20:00Z,speech,users,3\n");
  const Ran ran = loam({"cost", "efficiency", "acme", "--figures", figures, "--json"});
  EXPECT_EQ(ran.out,
            "[{\"group\":\"speech\",\"name\":\"users\",\"value\":3,\"currency\":\"USD\","
            "\"cost\":\"0\",\"per_unit\":\"0\"},{\"group\":\"vision\",\"name\":\"requests\","
            "\"value\":2000,\"currency\":\"USD\",\"cost\":\"0.5\",\"per_unit\":\"0.00025\"}]\n")
      << ran.err;
  const Ran text =
      loam({"cost", "efficiency", "acme", "--figures", figures, "--by", "environment"});
  EXPECT_HAS(text.out, "no figure") << "the environment cost and has none";
  const Ran bad = loam({"cost", "efficiency", "acme", "--figures",
                        file("bad.csv", "time,group,name,value\nsoon,a,b,1\n")});
  EXPECT_NE(bad.status, 0);
  EXPECT_HAS(bad.err, "bad.csv:2: ");
  EXPECT_HAS(loam({"cost", "efficiency", "acme", "--figures", folder + "/none"}).err,
             "cannot be read");
}

TEST_F(EfficiencyTest, the_pool_is_split_by_what_was_in_service_while_it_was) {
  const TaskId task = submit({"--ce", "50", "--time", "2h", "--project", "vision"});
  daemon.start(task);
  daemon.clock.advance(hour);
  daemon.end(task);
  const auto split = [&](Duration from, Duration to, const char* cost) {
    return loam({"cost", "split", "--cost", cost, "--by", "project", "--from", at(from), "--to",
                 at(to), "--json"})
        .out;
  };
  const std::string before = split({}, hour, "10");
  EXPECT_HAS(before, "\"ce_hours\":\"50\",\"cost\":\"5\"}],\"idle\":{\"ce_hours\":\"50\"");
  // A second device comes after an hour; the first is lost after three, and was last seen after
  // two.
  DeviceFacts facts;
  daemon.read([&](const engine::State& state, Instant) { facts = *state.devices.front().facts; });
  facts.uuid = "gpu-2";
  daemon.run(AttachDevice{"n1", facts});
  daemon.clock.advance(hour * 2);
  daemon.run(ReportDeviceHealth{DeviceId{1}, DeviceHealth::lost, "gone", start + hour * 2});
  daemon.clock.advance(hour);
  EXPECT_EQ(split({}, hour, "10"), before) << "the past stays as it was";
  EXPECT_HAS(split({}, hour * 4, "10"),
             "{\"project\":\"vision\",\"ce_hours\":\"50\",\"cost\":\"1\"}],"
             "\"idle\":{\"ce_hours\":\"450\",\"cost\":\"9\"},\"total\":\"10\"}");
  EXPECT_HAS(split({}, hour * 4, "0.000000000001"), "\"total\":\"0.000000000001\"}");
  const std::string devices = report({}, hour * 4);
  EXPECT_HAS(devices, "{\"device\":\"n1/0\",\"held\":0.25,");
  EXPECT_HAS(devices, "{\"device\":\"n1/1\",\"held\":0,\"used\":0,\"idle\":1}");
  // What is to come is nobody's yet, and nothing was there before the first device.
  EXPECT_HAS(split({}, hour * 400, "10"), "\"cost\":\"1\"}],\"idle\":{\"ce_hours\":\"450\"");
  EXPECT_HAS(loam({"cost", "split", "--cost", "10", "--month", "2025-01"}).err, "was in service");
}

TEST_F(EfficiencyTest, the_last_runs_say_what_the_next_one_needs) {
  const std::vector<std::string> next{"--ce", "25", "--time", "1h", "--name", "train"};
  const TaskId task = submit(next);
  daemon.start(task);
  daemon.clock.advance(Duration::minutes(10));
  daemon.end(task, Duration::minutes(1), std::nullopt);
  std::vector<std::string> words{"quote", "--tenant", "acme"};
  words.insert(words.end(), next.begin(), next.end());
  EXPECT_HAS(loam(words).err, "note: its last run used at most 10 of 25 CE: 12 CE would do");
  words.push_back("--json");
  EXPECT_EQ(loam(words).err, "");
}

TEST(Forecast, is_what_the_hours_of_the_week_let_expect) {
  std::string folder = (std::filesystem::temp_directory_path() / "loam-forecast-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string usage = folder + "/use.csv";
  {
    // Two weeks of days with 2, 6, 8 and 10.
    std::ofstream out(usage);
    out << "time,amount\n";
    for (int i = 0; i < 14 * 24; ++i) {
      const int of_day = i % 24;
      out << i << "," << (of_day < 8 ? 2 : of_day < 16 ? 6 : of_day < 20 ? 8 : 10) << "\n";
    }
  }
  const auto advise = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"advise", "--usage",     usage,  "--on-demand",
                                   "2.00",   "--committed", "1.30", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const Ran week = advise({"--forecast", "7d"});
  EXPECT_TRUE(
      week.out.starts_with("{\"commitment\":6,\"cost_mixed\":1646.40,"
                           "\"cost_on_demand\":1904.00,\"cost_committed\":2184.00,"))
      << week.out << week.err;
  EXPECT_EQ(week.err.find("a guess"), std::string::npos) << week.err;
  EXPECT_NE(advise({"--forecast", "soon"}).status, 0);
  EXPECT_HAS(advise({"--forecast", "0s"}).err, "--forecast");
  std::ofstream(usage) << "time,amount\n0,2\n1,4\n";
  EXPECT_HAS(advise({"--forecast", "1d"}).err, "less than two weeks");
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

#undef EXPECT_HAS

}  // namespace
}  // namespace loam::cli

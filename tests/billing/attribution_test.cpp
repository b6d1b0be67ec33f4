// Tags, pipelines, idle and shared cost, costs by group and time, efficiency and business figures.
#include "billing/attribution.hpp"

#include "billing/csv.hpp"
#include "billing/efficiency.hpp"
#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

TEST(Tags, are_checked_and_written_by_key) {
  EXPECT_TRUE(check(Tags{}).ok());
  const Tags good{{"b", "2"}, {"a/b.c-d_9", "4=2"}, {std::string(63, 'k'), std::string(256, 'v')}};
  EXPECT_TRUE(check(good).ok());
  EXPECT_EQ(to_text(Tags{{"b", "2"}, {"a", "1"}}), "a=1,b=2");
  for (const Tags& tags : {Tags{{"", "x"}}, Tags{{"a b", "1"}}, Tags{{"a=", "1"}},
                           Tags{{"a", "\x01"}}, Tags{{"a", "\x7f"}}, Tags{{"a", "b,c"}},
                           Tags{{std::string(64, 'k'), "v"}}, Tags{{"k", std::string(257, 'v')}}})
    EXPECT_FALSE(check(tags).ok()) << to_text(tags);
  Tags many;
  for (int i = 0; i < 101; ++i) many.emplace("k" + std::to_string(i), "");
  EXPECT_NE(refusal(check(many)).find("101 tags"), std::string::npos);
}

TEST(CiTags, are_filled_in_and_never_replace_what_the_task_says) {
  using Variables = std::map<std::string, std::string>;
  const auto filled = [](const Variables& variables, Tags tags = {}) {
    const auto look_up = [&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::string() : found->second;
    };
    add_ci_tags(look_up, tags);
    return tags;
  };
  EXPECT_EQ(filled({{"GITHUB_ACTIONS", "true"},
                    {"GITHUB_REPOSITORY", "acme/train"},
                    {"GITHUB_REF_NAME", "main"},
                    {"GITHUB_RUN_ID", "42"},
                    {"GITHUB_ACTOR", "bad\nname"}},
                   {{"ref", "mine"}}),
            (Tags{{"ci", "github"}, {"ref", "mine"}, {"repository", "acme/train"}, {"run", "42"}}));
  EXPECT_EQ(filled({{"GITLAB_CI", "true"}, {"CI_PROJECT_PATH", "a/b"}, {"CI_JOB_NAME", "fit"}}),
            (Tags{{"ci", "gitlab"}, {"repository", "a/b"}, {"workflow", "fit"}}));
  EXPECT_TRUE(filled({{"CI_PROJECT_PATH", "a/b"}, {"GITHUB_ACTIONS", "false"}}).empty());
}

TEST(SplitCost, idle_conserved_whether_it_is_kept_or_shared) {
  const std::vector<Share> held{{"A", 3}, {"B", 2}};
  const SplitCost kept = split_cost(money("10.00"), 8, held, IdleMethod::kept);
  EXPECT_EQ(kept.of.at("A"), money("3.75"));
  EXPECT_EQ(kept.of.at("B"), money("2.50"));
  EXPECT_EQ(kept.idle, money("3.75"));
  const SplitCost weighted = split_cost(money("10.00"), 8, held, IdleMethod::weighted);
  EXPECT_EQ(weighted.of.at("A"), money("6.00"));
  EXPECT_EQ(weighted.of.at("B"), money("4.00"));
  EXPECT_EQ(weighted.idle, money("0.00"));
  const SplitCost even = split_cost(money("10.00"), 8, held, IdleMethod::even);
  EXPECT_EQ(even.of.at("A"), money("5.625"));
  EXPECT_EQ(even.of.at("B"), money("4.375"));
  for (const IdleMethod method : {IdleMethod::kept, IdleMethod::weighted, IdleMethod::even}) {
    EXPECT_EQ(split_cost(money("10.00"), 8, {}, method).idle, money("10.00"));
    EXPECT_EQ(split_cost(money("10.00"), 8, {{"A", 0}}, method).idle, money("10.00"));
  }
}

TEST(SplitCost, conserves_every_unit_and_idle_is_never_negative) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const Money cost(random.between(0, 9'000'000'000'000), usd);
    std::vector<Share> shares;
    for (std::uint64_t i = 0; i < random.below(9); ++i)
      shares.push_back({"t" + std::to_string(random.below(5)), random.between(0, 300)});
    for (const IdleMethod method : {IdleMethod::kept, IdleMethod::weighted, IdleMethod::even}) {
      const SplitCost result = split_cost(cost, 1000, shares, method);
      Money sum = result.idle;
      for (const auto& [who, amount] : result.of) {
        EXPECT_FALSE(amount.is_negative()) << "seed " << seed;
        sum += amount;
      }
      EXPECT_EQ(sum, cost) << "seed " << seed;
      EXPECT_FALSE(result.idle.is_negative()) << "seed " << seed;
    }
  }
}

CostRow row(const char* from, const char* to, const char* project, const char* team,
            const char* net) {
  CostRow made;
  made.from = at(from);
  made.to = at(to);
  made.tenant = "acme";
  made.who.project = project;
  if (*team != '\0') made.who.tags["team"] = team;
  made.net = money(net);
  return made;
}

TEST(Costs, are_grouped_filtered_and_cut_into_local_days) {
  const std::vector<CostRow> rows{
      row("2025-03-08T23:00:00Z", "2025-03-09T07:00:00Z", "a", "x", "8"),
      row("2025-03-09T05:00:00Z", "2025-03-09T06:00:00Z", "b", "", "1")};
  CostQuery query;
  query.group_by = {"project", "tag:team"};
  query.bucket = Bucket::day;
  query.zone = *Zone::open("America/New_York");
  const auto lines = *group_costs(rows, query);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].bucket, "2025-03-08");
  EXPECT_EQ(lines[0].net, money("6"));  // 18:00 to midnight
  EXPECT_EQ(lines[1].groups, (std::vector<std::string>{"a", "x"}));
  EXPECT_EQ(lines[1].net, money("2"));
  EXPECT_EQ(lines[2].groups, (std::vector<std::string>{"b", "(none)"}));
  query.where = {{"project", "b"}};
  EXPECT_EQ(group_costs(rows, query)->size(), 1u);
  query.where.clear();
  query.bucket = Bucket::month;
  query.group_by.clear();
  EXPECT_EQ(group_costs(rows, query)->front().net, money("9"));
  query.period = Period{at("2025-03-09T03:00:00Z"), at("2025-03-09T05:00:00Z")};
  EXPECT_EQ(group_costs(rows, query)->front().net, money("2"));
  query.group_by = {"colour"};
  EXPECT_NE(refusal(group_costs(rows, query)).find("'colour'"), std::string::npos);
  EXPECT_FALSE(parse_bucket("year").ok());
}

TEST(Costs, buckets_conserve_every_unit) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    std::vector<CostRow> rows;
    Money sum = Money::zero(usd);
    for (int i = 0; i < 20; ++i) {
      CostRow made = row("2025-03-01T00:00:00Z", "2025-03-01T00:00:00Z", "a", "", "0");
      made.from = made.from + Duration{random.between(0, 4'000'000'000)};
      made.to = made.from + Duration{random.between(0, 400'000'000)};
      made.net = Money(random.between(-5, 1'000'000'000'007), usd);
      sum += made.net;
      rows.push_back(made);
    }
    for (const Bucket bucket :
         {Bucket::none, Bucket::hour, Bucket::day, Bucket::week, Bucket::month}) {
      CostQuery query;
      query.bucket = bucket;
      query.zone = *Zone::open("Europe/Berlin");
      Money total = Money::zero(usd);
      const auto lines = *group_costs(rows, query);
      for (const CostLine& line : lines) total += line.net;
      EXPECT_EQ(total, sum) << "seed " << seed;
    }
  }
}

RunMeasure measured(const char* name, std::int64_t asked, std::int64_t used, const char* cost) {
  RunMeasure run;
  run.name = name;
  run.slices = {{"n1/0", MilliDevice{400}}};
  run.submitted = at("2025-03-01T00:00:00Z");
  run.from = at("2025-03-01T00:10:00Z");
  run.to = at("2025-03-01T10:10:00Z");
  run.asked = MilliCe{asked};
  run.used = MilliCe{used};
  run.cost = money(cost);
  return run;
}

TEST(Efficiency, names_who_asked_for_forty_and_used_nine) {
  RunMeasure served = measured("serve", 50'000, 45'000, "10");
  served.output = 4'000'000;
  const EfficiencyReport report =
      efficiency({measured("train", 40'000, 9'000, "8"), served},
                 {{"n1/0", MilliCe{100'000}, served.from, served.to}}, {served.from, served.to});
  ASSERT_EQ(report.proposals.size(), 1u);
  EXPECT_EQ(report.proposals[0].words, "train asked for 40 CE and used 9: ask for 10.8");
  EXPECT_EQ(report.proposals[0].saving, money("5.84"));
  EXPECT_EQ(hints(report).at("train"), MilliCe{10'800});
  EXPECT_EQ(report.works[0].name, "train");
  EXPECT_EQ(report.works[0].wasted, money("6.2"));
  EXPECT_EQ(report.works[1].per_output, money("0.0025"));
  EXPECT_EQ(report.queue_mean, Duration::minutes(10));
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].asked, BasisPoints{9000});
  EXPECT_EQ(report.devices[0].used, BasisPoints{5400});
  EXPECT_EQ(report.devices[0].idle, BasisPoints{1000});
}

TEST(Efficiency, slices_are_told_by_device_and_share) {
  RunMeasure small = measured("a", 40'000, 9'000, "8"), again = measured("b", 40'000, 31'000, "8"),
             large = measured("c", 90'000, 90'000, "8"), unknown = measured("d", 10, 0, "8");
  large.slices = {{"n1/0", MilliDevice{900}}};
  unknown.measured = false;
  const EfficiencyReport report = efficiency(
      {large, small, again, unknown}, {}, {at("2025-03-01T00:10:00Z"), at("2025-03-01T10:10:00Z")});
  ASSERT_EQ(report.slices.size(), 2u);
  EXPECT_EQ(report.slices[0].share, MilliDevice{400});
  EXPECT_EQ(report.slices[0].runs, 2);
  EXPECT_EQ(report.slices[0].time, Duration::hours(20));
  EXPECT_EQ(report.slices[0].used, BasisPoints{5000});
  EXPECT_EQ(report.slices[1].share, MilliDevice{900});
  EXPECT_EQ(report.slices[1].used, BasisPoints{10'000});
}

TEST(Efficiency, a_device_counts_while_it_was_in_service) {
  // Of ten hours the first device was there for four, and the second for the last two.
  RunMeasure run = measured("train", 50'000, 20'000, "8");
  run.to = run.from + Duration::hours(4);
  const Period whole{run.from, run.from + Duration::hours(10)};
  const std::vector<DeviceCapacity> devices{
      {"n1/0", MilliCe{100'000}, run.from - Duration::hours(1), run.to},
      {"n1/1", MilliCe{50'000}, whole.to - Duration::hours(2), whole.to + Duration::hours(9)},
      {"n1/2", MilliCe{50'000}, whole.to, whole.to + Duration::hours(9)}};
  EXPECT_EQ(capacity_in(devices, whole), Int128{500'000} * Duration::hours(1).ms);
  const EfficiencyReport report = efficiency({run}, devices, whole);
  ASSERT_EQ(report.devices.size(), 2u) << "the third was not there yet";
  EXPECT_EQ(report.devices[0].asked, BasisPoints{5000});
  EXPECT_EQ(report.devices[0].used, BasisPoints{2000});
  EXPECT_EQ(report.devices[0].idle, BasisPoints{5000});
  EXPECT_EQ(report.devices[1].device, "n1/1");
  EXPECT_EQ(report.devices[1].idle, BasisPoints{10'000});
  EXPECT_EQ(report.used, BasisPoints{1600}) << "80 of 500 CE-hours";
}

TEST(Efficiency, what_lies_on_several_devices_is_spread_over_them) {
  RunMeasure pair = measured("train", 90'000, 30'000, "8");
  pair.slices = {{"n1/0", MilliDevice{1000}}, {"n1/1", MilliDevice{500}}};
  const Period whole{pair.from, pair.to};
  const EfficiencyReport report = efficiency({pair},
                                             {{"n1/0", MilliCe{60'000}, pair.from, pair.to},
                                              {"n1/1", MilliCe{60'000}, pair.from, pair.to}},
                                             whole);
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[0].asked, BasisPoints{10'000});
  EXPECT_EQ(report.devices[1].asked, BasisPoints{5000});
  EXPECT_EQ(report.devices[1].used, BasisPoints{1666});
  ASSERT_EQ(report.slices.size(), 2u);
  EXPECT_EQ(report.slices[0].device, "n1/0");
  EXPECT_EQ(report.slices[1].share, MilliDevice{500});
  EXPECT_EQ(report.slices[1].used, BasisPoints{3333});
  EXPECT_EQ(report.works[0].runs, 1) << "one lease is one run";
}

TEST(Efficiency, a_unit_costs_what_the_runs_that_made_it_cost) {
  RunMeasure told = measured("serve", 50'000, 45'000, "10");
  told.output = 2'500;  // 2.5 units
  RunMeasure silent = measured("serve", 50'000, 45'000, "90");
  RunMeasure unmeasured = measured("pack", 20'000, 0, "3");
  unmeasured.measured = false;
  unmeasured.output = 600'000;
  const Period whole{at("2025-03-01T00:10:00Z"), at("2025-03-01T10:10:00Z")};
  const EfficiencyReport report = efficiency({told, silent, unmeasured}, {}, whole);
  ASSERT_EQ(report.works.size(), 2u);
  EXPECT_EQ(report.works[0].name, "serve");
  EXPECT_EQ(report.works[0].output, 2'500);
  EXPECT_EQ(report.works[0].per_output, money("4"));
  EXPECT_EQ(report.works[1].name, "pack");
  EXPECT_FALSE(report.works[1].measured);
  EXPECT_EQ(report.works[1].per_output, money("0.005"));
  EXPECT_EQ(report.works[1].wasted, money("0"));
  EXPECT_TRUE(report.proposals.empty()) << "nobody knows what pack used";
  // Half of the time has half of the cost and half of the output.
  const EfficiencyReport half =
      efficiency({told}, {}, {at("2025-03-01T00:10:00Z"), at("2025-03-01T05:10:00Z")});
  EXPECT_EQ(half.works[0].output, 1'250);
  EXPECT_EQ(half.works[0].per_output, money("4"));
}

TEST(Efficiency, counts_what_lies_in_the_period) {
  const EfficiencyReport report =
      efficiency({measured("train", 40'000, 9'000, "8")}, {},
                 {at("2025-03-01T05:10:00Z"), at("2025-03-02T00:00:00Z")});
  EXPECT_EQ(report.works[0].cost, money("4"));
  EXPECT_TRUE(efficiency({measured("train", 40'000, 9'000, "8")}, {},
                         {at("2025-04-01T00:00:00Z"), at("2025-04-02T00:00:00Z")})
                  .works.empty());
}

TEST(Costs, hours_are_told_as_the_zones_clock_shows_them) {
  CostQuery query;
  query.bucket = Bucket::hour;
  query.zone = *Zone::open("Asia/Kolkata");
  CostRow row;
  row.from = at("2026-11-30T09:30:00Z");
  row.to = at("2026-11-30T10:30:00Z");
  row.net = money("2");
  const auto lines = *group_costs({row}, query);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].bucket, "2026-11-30T15:00+05:30");
  query.zone = Zone();
  EXPECT_EQ(group_costs({row}, query)->at(0).bucket, "2026-11-30T09:00:00Z");
}

TEST(Efficiency, a_run_that_nobody_measured_holds_its_device_and_says_nothing_of_its_use) {
  RunMeasure unknown = measured("train", 50'000, 0, "8");
  unknown.measured = false;
  const auto report = efficiency({unknown}, {{"n1/0", MilliCe{100'000}, unknown.from, unknown.to}},
                                 {unknown.from, unknown.to});
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].asked, BasisPoints{5000});
  EXPECT_TRUE(report.works.empty() && report.proposals.empty());
}

TEST(BusinessFigures, give_the_cost_per_unit_and_group) {
  const auto figures = *read_business_csv(
      "time,group,name,value\n2025-03-01T00:00:00Z,a,requests,1500\n"
      "2025-03-02T00:00:00Z,a,requests,500\n2025-03-02T00:00:00Z,b,users,0\n"
      "2025-03-02T00:00:00Z,nowhere,users,3\n");
  const auto costs =
      unit_costs(figures, {{"a", money("10")}, {"b", money("1")}, {"silent", money("2")}},
                 {at("2025-03-01T00:00:00Z"), at("2025-04-01T00:00:00Z")}, Currency("USD"));
  ASSERT_EQ(costs.size(), 4u);
  EXPECT_EQ(costs[2].group, "nowhere");
  EXPECT_EQ(costs[2].cost, money("0"));
  EXPECT_EQ(costs[3].group, "silent");
  EXPECT_EQ(costs[3].cost, money("2"));
  EXPECT_EQ(costs[0].per_unit, money("0.005"));
  EXPECT_FALSE(costs[1].per_unit);
  for (const char* text : {"", "time,value\n", "time,group,name,value\nx,a,b,1\n",
                           "time,group,name,value\n2025-03-01T00:00:00Z,a,b\n",
                           "time,group,name,value\n2025-03-01T00:00:00Z,a,b,-1\n"})
    EXPECT_FALSE(read_business_csv(text).ok()) << text;
  EXPECT_NE(refusal(read_business_csv("time,group,value\n", "use.csv"))
                .find("use.csv:1: the column 'name' is missing"),
            std::string::npos);
  EXPECT_EQ(
      read_business_csv("value,name,group,time\n2,users,a,2025-03-01T00:00:00Z\n")->front().value,
      2000);
}

TEST(Models, have_a_name_and_may_have_a_version) {
  Attribution who;
  ASSERT_TRUE(take_model("llama@3.1", who).ok());
  EXPECT_EQ(who.model + " " + who.model_version, "llama 3.1");
  EXPECT_EQ(model_name(who.model, who.model_version), "llama@3.1");
  ASSERT_TRUE(take_model("org@team/llama@2", who).ok());
  EXPECT_EQ(who.model + " " + who.model_version, "org@team/llama 2");
  ASSERT_TRUE(take_model("llama", who).ok());
  EXPECT_EQ(who.model + who.model_version, "llama");
  ASSERT_TRUE(take_model("", who).ok());
  for (const char* text : {"@", "@3", "llama@"}) EXPECT_FALSE(take_model(text, who).ok()) << text;
}

TEST(Costs, are_grouped_by_group_and_by_version_of_a_model) {
  CostRow one;
  one.from = at("2025-03-01T00:00:00Z");
  one.to = at("2025-03-02T00:00:00Z");
  one.who.model = "llama";
  one.who.model_version = "1";
  one.group = "nightly";
  one.net = money("3");
  CostRow two = one;
  two.who.model_version = "2";
  CostRow none = one;
  none.group = none.who.model = none.who.model_version = "";
  CostQuery query;
  query.group_by = {"group", "model_version"};
  const auto lines = *group_costs({one, two, none, two}, query);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].groups, (std::vector<std::string>{"(none)", "(none)"}));
  EXPECT_EQ(lines[1].groups, (std::vector<std::string>{"nightly", "llama@1"}));
  EXPECT_EQ(lines[2].groups, (std::vector<std::string>{"nightly", "llama@2"}));
  EXPECT_EQ(lines[2].net, money("6"));
  query.group_by = {"model"};
  EXPECT_EQ(group_costs({one, two, none}, query)->size(), 2u);
}

TEST(Csv, quoted_fields_come_back_as_they_were) {
  const std::vector<std::string> fields{"", "a,b", "say \"x\"", "two\nlines", "plain"};
  EXPECT_EQ(read_csv(csv_row(fields))->front(), fields);
  EXPECT_EQ(read_csv("\xEF\xBB\xBF"
                     "a,b\r\nc,d")
                ->size(),
            2u);
  for (const char* text : {"\"a", "a\"b", "\"a\"b,c"}) EXPECT_FALSE(read_csv(text).ok()) << text;
  EXPECT_NE(refusal(read_csv("a\nb\n\"c")).find("line 3"), std::string::npos);
}

}  // namespace
}  // namespace loam::billing

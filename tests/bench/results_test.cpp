#include "bench/results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace loam::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const Machine machine{"Some CPU", 2, 4096, "Linux 6.1", "2026-03-02T00:00:00Z", "abc"};

Results sample() {
  Benchmark good{"good",
                 {{"good.fast", "1/s", at_least(50'000)},
                  {"good.small", "MiB", at_most(60)},
                  {"good.other", "ns"}},
                 [](Report& report) -> Result<void> {
                   report.set("good.fast", 61'234.5, {60'000, 62'000}, "64 clients");
                   report.set("good.small", 12.5);
                   report.set("good.other", 0.0345);
                   return {};
                 }};
  return {machine, run({good})};
}

TEST(Verdict, marks_hold_at_their_own_value) {
  EXPECT_TRUE(at_least(5).met_by(5));
  EXPECT_FALSE(at_least(5).met_by(4.99));
  EXPECT_TRUE(at_most(5).met_by(5));
  EXPECT_FALSE(at_most(5).met_by(5.01));
}

TEST(Run, reported_figures_pass) {
  EXPECT_THAT(complaints(sample()), SizeIs(0));
}

TEST(Run, a_promised_figure_that_is_not_reported_is_missing) {
  const Benchmark forgetful{
      "b", {{"b.a", "ms"}, {"b.c", "ms"}}, [](Report& report) -> Result<void> {
        report.explain("b.c", "no device");
        report.set("b.a", 1);
        return {};
      }};
  const Results results{machine, run({forgetful})};
  EXPECT_THAT(complaints(results), ElementsAre("b.c is missing (no device)"));
}

TEST(Run, a_missed_mark_is_named_with_its_value) {
  const Benchmark slow{"b", {{"b.p99", "ms", at_most(10)}}, [](Report& report) -> Result<void> {
                         report.set("b.p99", 10.5);
                         return {};
                       }};
  EXPECT_THAT(complaints({machine, run({slow})}),
              ElementsAre("b.p99 is 10.5 ms, its mark is ≤ 10"));
}

TEST(Run, a_failure_or_a_throw_is_the_benchmarks_own) {
  const Benchmark failing{"f", {}, [](Report&) -> Result<void> { return invalid("no port"); }};
  const Benchmark throwing{
      "t", {}, [](Report&) -> Result<void> { throw std::runtime_error("bad luck"); }};
  EXPECT_THAT(complaints({machine, run({failing, throwing})}),
              ElementsAre("f failed: no port", "t failed: threw: bad luck"));
}

TEST(Run, nothing_run_is_no_success) {
  EXPECT_THAT(complaints({machine, {}}), SizeIs(1));
}

TEST(ReportDeathTest, takes_only_promised_figures_once) {
  Report report(std::vector<Promise>{{"a.b", "ms"}});
  report.set("a.b", 1);
  EXPECT_DEATH(report.set("a.b", 2), "has_value");
  EXPECT_DEATH(report.set("a.c", 2), "found");
}

TEST(ValueText, about_four_digits) {
  EXPECT_EQ(value_text(0), "0");
  EXPECT_EQ(value_text(0.0345), "0.0345");
  EXPECT_EQ(value_text(12.3456), "12.35");
  EXPECT_EQ(value_text(1234.5), "1,234");
  EXPECT_EQ(value_text(-61'234'567), "-61,234,567");
  EXPECT_EQ(value_text(1e18), "1e+18");
}

TEST(Table, columns_are_aligned_where_signs_have_many_bytes) {
  EXPECT_EQ(to_table(sample()),
            "figure                        value  unit  mark      verdict  note\n"
            "good.fast   61,234 [60,000, 62,000]  1/s   ≥ 50,000  met      64 clients\n"
            "good.small                     12.5  MiB   ≤ 60      met\n"
            "good.other                   0.0345  ns              no mark\n");
}

TEST(Markdown, names_the_machine_and_escapes_bars) {
  Results results = sample();
  results.outcomes[0].figures[0].note = "a|b";
  const std::string text = to_markdown(results);
  EXPECT_THAT(text, HasSubstr("revision abc on Some CPU (2 cores, 4096 MiB), Linux 6.1."));
  EXPECT_THAT(text, HasSubstr("| good.small | 12.5 | MiB | ≤ 60 | met |  |\n"));
  EXPECT_THAT(text, HasSubstr("a\\|b"));
}

TEST(Json, comes_back_as_it_was) {
  Results results = sample();
  results.outcomes.push_back(
      {"bad", {{{"bad.x", "ms", std::nullopt}, {}, {}, "why"}}, invalid("no")});
  const Result<Results> back = parse_results(to_json(results));
  ASSERT_TRUE(back.ok()) << to_text(back.error());
  EXPECT_EQ(to_json(*back), to_json(results));
  EXPECT_EQ(to_table(*back), to_table(results));
  EXPECT_THAT(to_json(results), HasSubstr(R"("passed":false)"));
}

TEST(Json, a_figure_is_also_there_by_its_short_name_and_a_cap_as_an_object) {
  Results results = sample();
  results.outcomes.push_back(
      {"guard_cuda",
       {{{"guard_cuda.alloc_free_ns_0", "ns", at_most(120)}, 108.5, {}, ""},
        {{"guard_cuda.missing", "ns", std::nullopt}, {}, {}, "why"},
        {{"guard_cuda.caps.132x2048.1ms_20000", "points", at_most(1)},
         0.1,
         {},
         "cap 10: mean 9.98, worst window 8.1; cap 30: mean 30.10, worst window 33.0"}},
       {}});
  const std::string text = to_json(results);
  EXPECT_THAT(text, HasSubstr(R"(,"alloc_free_ns_0":1.085E2)"));
  EXPECT_THAT(text, HasSubstr(R"(,"small":1.25E1)"));
  EXPECT_THAT(text, Not(HasSubstr(R"("missing":)")));
  EXPECT_THAT(text, HasSubstr(R"("caps":[{"device":"132x2048","kernel":"1ms_20000","cap":10,)"
                              R"("mean":9.98E0,"worst_window":8.1E0},)"));
  EXPECT_THAT(text, HasSubstr(R"("cap":30,"mean":3.01E1,"worst_window":3.3E1}])"));
  const Result<Results> back = parse_results(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_json(*back), text);
}

TEST(Json, malformed_results_are_refused_with_the_reason) {
  const std::string good = to_json(sample());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "not JSON"},
      {"[]", "not a JSON object"},
      {good.substr(0, good.size() / 2), "not JSON"},
      {with("loam-bench/1", "loam-bench/2"), "the format is 'loam-bench/2'"},
      {with("\"cores\":2", "\"cores\":\"two\""), "'cores' is not a number"},
      {with("at_least", "at_about"), "no mark has the side 'at_about'"},
      {with("1.25E1", "\"much\""), "'value' is not a number"},
      {with("1.25E1", "1e999"), "'value' is not finite"},
      {with("\"low\":", "\"lower\":"), "'low' is not a number"},
      {with("\"benchmarks\":", "\"benches\":"), "'benchmarks' is not an array"},
  };
  for (const auto& [text, reason] : cases) {
    const Result<Results> parsed = parse_results(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(reason)) << text;
  }
}

TEST(Json, figures_of_a_program_must_be_promised_and_come_once) {
  const auto taken = [](std::string_view text) {
    Report report(std::vector<Promise>{{"a.b", "ms", at_most(5)}, {"a.c", "ms"}});
    const Result<void> done = take_figures(text, report);
    return done.ok() ? std::string("ok") : done.error().message;
  };
  EXPECT_EQ(taken(R"({"figures":[{"name":"a.b","value":4},{"name":"a.c","value":1}]})"), "ok");
  EXPECT_EQ(taken(R"({"figures":[{"name":"a.b","value":null,"note":"none"}]})"), "ok");
  EXPECT_THAT(taken(R"({"figures":[{"name":"a.d","value":4}]})"),
              HasSubstr("'a.d' was not promised"));
  EXPECT_THAT(taken(R"({"figures":[{"name":"a.b","value":1},{"name":"a.b","value":2}]})"),
              HasSubstr("'a.b' comes twice"));
  EXPECT_THAT(taken(R"({"figures":[{"name":"a.b"}]})"), HasSubstr("'value' is not a number"));
  EXPECT_THAT(taken("{}"), HasSubstr("'figures' is not an array"));
}

}  // namespace
}  // namespace loam::bench

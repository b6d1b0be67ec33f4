// Files of spot availability and its model: what is read, and what is refused and where.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sim/trace/spot.hpp"

namespace loam::sim {
namespace {

TEST(AvailabilityFile, CountsOfInstancesAreThereOrNot) {
  const auto trace = parse_availability(
      "a.json", R"({"metadata":{"gap_seconds":195,"region":"x"},"data":[0, 1, 3.0, 0.0, 7]})");
  ASSERT_TRUE(trace.ok()) << to_text(trace.error());
  EXPECT_EQ(trace->gap, Duration::seconds(195));
  EXPECT_EQ(trace->available, (std::vector<std::uint8_t>{0, 1, 1, 0, 1}));
}

TEST(AvailabilityFile, BadInputIsRefusedWithFilePlaceAndReason) {
  struct Bad {
    const char* text;
    const char* says;
  };
  for (const Bad& bad : {
           Bad{"", "a.json:1:1"},
           Bad{"{", "a.json:1:2"},
           Bad{"{\n \"metadata\": {,", "a.json:2:15"},
           Bad{"[]", "no object"},
           Bad{R"({"data":[1]})", "'metadata'"},
           Bad{R"({"metadata":7,"data":[1]})", "'metadata'"},
           Bad{R"({"metadata":{},"data":[1]})", "gap_seconds"},
           Bad{R"({"metadata":{"gap_seconds":"195"},"data":[1]})", "gap_seconds"},
           Bad{R"({"metadata":{"gap_seconds":0},"data":[1]})", "above 0"},
           Bad{R"({"metadata":{"gap_seconds":-3},"data":[1]})", "above 0"},
           Bad{R"({"metadata":{"gap_seconds":1e300},"data":[1]})", "above 0"},
           Bad{R"({"metadata":{"gap_seconds":195}})", "'data'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":{}})", "'data'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":[]})", "no sample"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":[1,-1]})", "'data[1]'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":[1,0.5]})", "'data[1]'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":[null]})", "'data[0]'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":[true]})", "'data[0]'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":["1"]})", "'data[0]'"},
           Bad{R"({"metadata":{"gap_seconds":195},"data":[1]} x)", "a.json:1:45"},
       }) {
    const auto trace = parse_availability("a.json", bad.text);
    ASSERT_FALSE(trace.ok()) << bad.text;
    EXPECT_NE(trace.error().message.find("a.json"), std::string::npos) << trace.error().message;
    EXPECT_NE(trace.error().message.find(bad.says), std::string::npos) << trace.error().message;
    EXPECT_FALSE(trace.error().next_step.empty());
  }
  EXPECT_EQ(read_availability("/nonexistent/a.json").error().kind, ErrorKind::not_found);
}

TEST(AvailabilityFile, ARunBeyondItsEndIsRefused) {
  const auto terms = schedule::spot::terms_of(Duration::minutes(10), Duration::minutes(20),
                                              Duration::minutes(1), Duration::minutes(1), 317'000);
  ASSERT_TRUE(terms.ok());
  const std::vector<std::uint8_t> available(12, 1);
  EXPECT_TRUE(run_spot(schedule::spot::Policy::reserve, *terms, available, 1).ok());
  const auto beyond = run_spot(schedule::spot::Policy::reserve, *terms, available, 5);
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.error().message.find("sample 12"), std::string::npos);
}

TEST(AvailabilityModelFile, RowsAreNormalisedAndTheLongRunIsStationary) {
  const auto model = parse_availability_model("m", "1 2\n0.9 0.05 0.0501\n\n0.3 0.7 0\n.5 0 .5\n");
  ASSERT_TRUE(model.ok()) << to_text(model.error());
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_NEAR(model->transitions[row * 3] + model->transitions[row * 3 + 1] +
                    model->transitions[row * 3 + 2],
                1, 1e-12);
  const auto share = model->stationary();
  EXPECT_NEAR(std::accumulate(share.begin(), share.end(), 0.0), 1, 1e-9);
  const auto trace = generate_availability(*model, 100'000, 5);
  const double there = std::accumulate(trace.begin(), trace.end(), 0.0) / 100'000;
  EXPECT_NEAR(there, share[0], 0.02);
  EXPECT_EQ(trace, generate_availability(*model, 100'000, 5));
  EXPECT_NE(trace, generate_availability(*model, 100'000, 6));
}

TEST(AvailabilityModelFile, BadInputIsRefusedWithFileLineAndReason) {
  struct Bad {
    const char* text;
    const char* says;
  };
  for (const Bad& bad : {
           Bad{"", "m:1"},
           Bad{"1\n1", "two numbers"},
           Bad{"0 1\n1", "m:1: '0'"},
           Bad{"1 65\n", "'65'"},
           Bad{"-1 1\n", "'-1'"},
           Bad{"1 1\n1 0\n", "1 rows for 2 states"},
           Bad{"1 1\n1 0\n1 0\n1 0\n", "3 rows for 2"},
           Bad{"1 1\n1 0\n1\n", "m:3: 1 probabilities"},
           Bad{"1 1\n1 0\n1 0 0\n", "m:3: 3 probabilities"},
           Bad{"1 1\n1 0\nx 1\n", "m:3: 'x'"},
           Bad{"1 1\n1 0\nnan 1\n", "m:3: 'nan'"},
           Bad{"1 1\n1 0\n-0.1 1.1\n", "m:3: '-0.1'"},
           Bad{"1 1\n1 0\n0.5 0.4\n", "m:3: the row sums"},
       }) {
    const auto model = parse_availability_model("m", bad.text);
    ASSERT_FALSE(model.ok()) << bad.text;
    EXPECT_NE(model.error().message.find(bad.says), std::string::npos) << model.error().message;
    EXPECT_FALSE(model.error().next_step.empty());
  }
  EXPECT_EQ(read_availability_model("/nonexistent/m").error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace loam::sim

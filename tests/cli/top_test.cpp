// The endpoints in `loam top`, from what the gateway tells.
#include <gtest/gtest.h>

#include "app/loam/top_endpoints.hpp"

namespace loam::cli {
namespace {

TEST(TopEndpoints, AnEndpointIsALineWithWhatClientsSee) {
  const auto lines = parse_endpoints(
      R"({"endpoints":[{"model":"tiny","state":"serving","instances":2,"queued":0,"in_flight":9,
      "waiting":0,"requests":40,"memory_mib":100,"why":"","tokens_per_second":512.5,
      "first_token_p50_ms":8.25,"first_token_p99_ms":1250,"gap_p50_ms":2,"gap_p99_ms":31.4,
      "cached":0.5,"batch":9,"queue":3,"kv_used":0.125,"weights_bytes":1,"compute":"x"},
      {"model":"cold","state":"cold","instances":0,"first_token_p50_ms":null,"cached":null}]})");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  ASSERT_EQ(lines->size(), 2U);
  EXPECT_EQ(lines->front().memory_mib, 200);
  const std::string text = endpoints_text(*lines, false, 0);
  for (const char* words : {"tiny", "512.5", "8.2ms", "1.2s", "2.0ms", "31ms", "50 %", "12.5 %"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_NE(text.find("cold"), std::string::npos);
  EXPECT_NE(text.find(" - "), std::string::npos) << "what was not seen is no figure";
}

TEST(TopEndpoints, OneThatSomebodyElseRunsShowsTheMemoryItTellsOf) {
  const auto lines = parse_endpoints(
      R"({"endpoints":[{"model":"m","weights_bytes":3145728,"kv_bytes":1048576,"memory_mib":0}]})");
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(lines->front().memory_mib, 4);
}

TEST(TopEndpoints, WithoutEndpointsThereIsNoTable) {
  EXPECT_EQ(endpoints_text({}, false, 80), "");
  EXPECT_EQ(TopEndpoints{}.text(false, 80), "");
  TopEndpoints silent;
  silent.trouble = "no loam-gateway answers\nat x";
  EXPECT_EQ(silent.text(false, 80), "\nendpoints: no loam-gateway answers\\nat x\n");
}

TEST(TopEndpoints, WhatIsNotThatAnswerIsRefused) {
  for (const char* body :
       {"", "{", "[]", "3", "{}", R"({"endpoints":3})", R"({"endpoints":[3]})"}) {
    const auto lines = parse_endpoints(body);
    ASSERT_FALSE(lines.ok()) << body;
    EXPECT_EQ(lines.error().kind, ErrorKind::corrupt);
  }
  // Fields of another kind count as not told.
  EXPECT_TRUE(parse_endpoints(R"({"endpoints":[{"model":3,"instances":"x","cached":[]}]})").ok());
}

}  // namespace
}  // namespace loam::cli

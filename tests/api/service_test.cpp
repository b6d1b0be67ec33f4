#include <gmock/gmock.h>

#include <set>

#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using ServiceTest = ApiTest;

TEST_F(ServiceTest, backup_and_reload_say_what_they_did) {
  const auto done = post("/v1/backup", R"({"path":"/srv/loam.bak"})");
  ASSERT_EQ(done.status(), 201);
  EXPECT_EQ(done.as<BackupView>().bytes, 4096);
  EXPECT_EQ(post("/v1/backup", R"({"path":"/exists"})").status(), 409);
  EXPECT_EQ(post("/v1/backup", R"({"path":"relative"})").status(), 400);
  EXPECT_EQ(post("/v1/reload").as<ReloadView>().summary, "nothing changed");
}

// Writes that are in no journal have one effect for one key, too.
TEST_F(ServiceTest, one_key_makes_one_token_with_one_secret) {
  const std::string body = R"({"name":"ci","role":"operator"})";
  const Caught first = post("/v1/tokens", body, root, "k1");
  ASSERT_EQ(first.status(), 201);
  const Caught again = post("/v1/tokens", body, root, "k1");
  ASSERT_EQ(again.status(), 201);
  EXPECT_FALSE(first.as<TokenView>().token.empty());
  EXPECT_EQ(again.as<TokenView>().token, first.as<TokenView>().token);
  EXPECT_EQ(post("/v1/tokens", body, root, "k2").status(), 409) << "another request: there is one";
  const Caught other = post("/v1/tokens", R"({"name":"cd","role":"operator"})", root, "k1");
  EXPECT_EQ(other.status(), 409);
  EXPECT_THAT(other.response->body, ::testing::HasSubstr("another request"));
  EXPECT_EQ(get("/v1/tokens").as<TokenList>().tokens.size(), 1U);
  const auto revoke = [&] {
    return ask(http::Method::del, "/v1/tokens/ci", {}, root, {{"Idempotency-Key", "k3"}});
  };
  EXPECT_EQ(revoke().status(), 200);
  EXPECT_EQ(revoke().status(), 200) << "the same request";
}

TEST_F(ServiceTest, a_key_whose_request_failed_may_be_used_again) {
  EXPECT_EQ(post("/v1/tokens", R"({"name":"ci","role":"king"})", root, "k").status(), 400);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"ci","role":"operator"})", root, "k").status(), 201);
}

// Every line of the exposition format as its description has it.
void expect_exposition(const std::string& text) {
  constexpr const char* sample =
      R"re([a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? (-?[0-9.e+-]+|NaN|\+Inf))re";
  std::set<std::string> families;
  std::string family;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos) << "the last line has no end";
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family << " stands in two places";
      continue;
    }
    if (line.starts_with("# HELP ")) continue;
    EXPECT_THAT(line, ::testing::MatchesRegex(sample));
    EXPECT_TRUE(line.starts_with(family)) << line << " is not of " << family;
  }
}

TEST_F(ServiceTest, metrics_hold_what_operators_look_at) {
  for (int i = 0; i < 5; ++i) submit();
  post("/v1/tasks", R"({"tenant":"acme","command":["x"],"ce":"101"})");
  daemon.clock.advance(Duration::seconds(10));
  daemon.start(TaskId{1});
  daemon.end(TaskId{1});
  const Caught answer = get("/metrics");
  ASSERT_EQ(answer.status(), 200);
  EXPECT_TRUE(
      answer.response->headers.get("Content-Type").starts_with("text/plain; version=0.0.4"));
  const std::string& text = answer.response->body;
  expect_exposition(text);
  for (const char* line :
       {R"(loam_device_allocated_ratio{device="n1/0",type="A100-SXM-80GB",uuid="gpu-1"} 1)",
        R"(loam_device_busy_ratio{device="n1/0",type="A100-SXM-80GB",uuid="gpu-1"} 0.5)",
        R"(loam_tasks{state="starting"} 4)", R"(loam_tasks{state="waiting"} 0)",
        R"(loam_submissions_total{outcome="accepted"} 5)",
        R"(loam_submissions_total{outcome="does_not_fit"} 1)",
        R"(loam_allocation_success_ratio 0.8333333333)", R"(loam_moves_total 0)",
        R"(loam_journal_healthy 1)", R"(loam_wait_seconds_bucket{le="0.1"} 4)",
        R"(loam_wait_seconds_bucket{le="30"} 5)", R"(loam_wait_seconds_bucket{le="+Inf"} 5)",
        R"(loam_wait_seconds_sum 10)", R"(loam_wait_seconds_count 5)",
        R"(loam_tasks_finished_total{outcome="succeeded"} 1)"}) {
    EXPECT_NE(text.find(std::string(line) + "\n"), std::string::npos) << line << " in\n" << text;
  }
  EXPECT_NE(text.find("loam_held_money{currency=\"USD\"} "), std::string::npos);
}

TEST_F(ServiceTest, the_servers_own_refusals_are_problems_too) {
  const http::Response response = Api::refusal(413, "the body is too large");
  EXPECT_EQ(response.status, 413);
  const auto problem = from_json<Problem>(response.body);
  ASSERT_TRUE(problem.ok());
  EXPECT_EQ(problem->detail, "the body is too large");
}

}  // namespace
}  // namespace loam::api::testing

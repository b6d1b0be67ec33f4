// What people and broken programs send. Every answer is a problem that says where.
#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using BadInputTest = ApiTest;

void expect_problem(const Caught& answer, int status, const std::string& names) {
  EXPECT_EQ(answer.status(), status) << answer.response->body;
  EXPECT_EQ(answer.response->headers.get("Content-Type"), "application/problem+json");
  const Problem problem = answer.problem();
  EXPECT_EQ(problem.status, status);
  EXPECT_NE(problem.title, "");
  EXPECT_NE(problem.code, "");
  EXPECT_NE(problem.detail.find(names), std::string::npos) << problem.detail;
}

TEST_F(BadInputTest, malformed_json_is_refused_with_the_place) {
  for (const char* body : {"{", "{\"tenant\":}", "[1,2", "{\"a\":1} x", "\"", "{'a':1}", "nul",
                           "{\"share\":NaN}", "{\"share\":.5}", "{\"tenant\":\"\xff\"}"}) {
    expect_problem(post("/v1/tasks", body), 400, "line 1");
    expect_problem(post("/v1/quote", body), 400, "line 1");
    expect_problem(post("/v1/tenants", body), 400, "line 1");
  }
  expect_problem(post("/v1/tasks", "{\n  \"tenant\": oops\n}"), 400, "line 2");
  expect_problem(post("/v1/tasks", std::string(100'000, '[')), 400, "not JSON");
}

TEST_F(BadInputTest, other_shapes_than_an_object_are_refused) {
  for (const char* body : {"null", "1", "\"x\"", "[]", "true"})
    expect_problem(post("/v1/tasks", body), 400, "not an object");
  expect_problem(post("/v1/tasks", ""), 400, "no body");
}

TEST_F(BadInputTest, unknown_fields_are_refused_by_name_at_any_depth) {
  expect_problem(post("/v1/tasks", task_body("acme", R"("memroy":"1GiB")")), 400, "'memroy'");
  expect_problem(post("/v1/tasks", task_body("acme", R"("mounts":[{"src":"/a"}])")), 400,
                 "'mounts.0.src'");
  expect_problem(post("/v1/tenants", R"({"name":"x","quota":1})"), 400, "'quota'");
  expect_problem(post("/v1/tenants/acme/topup", R"({"amount":"1","currency":"USD"})"), 400,
                 "'currency'");
  expect_problem(get("/v1/tasks?stat=running"), 400, "'stat'");
  expect_problem(get("/v1/health?verbose=1"), 400, "'verbose'");
}

TEST_F(BadInputTest, a_key_that_is_given_twice_is_refused_at_any_depth) {
  expect_problem(
      post("/v1/tasks", R"({"tenant":"acme","command":["x"],"share":"0.1","share":"0.2"})"), 400,
      "'share' is given twice");
  expect_problem(post("/v1/tasks", task_body("acme", R"("env":{"A":"1","\u0041":"2"})")), 400,
                 "'A' is given twice");
  // The same key in two objects is no fault: this one is refused for its source.
  expect_problem(post("/v1/tasks", task_body("acme", R"("mounts":[{"src":"/a"},{"src":"/b"}])")),
                 400, "'mounts.0.src'");
}

TEST_F(BadInputTest, wrong_types_are_refused_by_name) {
  expect_problem(post("/v1/tasks", R"({"tenant":"acme","command":"ls","share":"1"})"), 400,
                 "'command'");
  expect_problem(post("/v1/tasks", R"({"tenant":"acme","command":[1],"share":"1"})"), 400,
                 "'command.0'");
  expect_problem(post("/v1/tasks", R"({"tenant":"acme","command":["x"],"share":0.3})"), 400,
                 "'share'");
  expect_problem(post("/v1/tasks", task_body("acme", R"("gang":1.5)")), 400, "'gang'");
  expect_problem(post("/v1/tasks", task_body("acme", R"("gang":1e30)")), 400, "'gang'");
  expect_problem(post("/v1/tasks", task_body("acme", R"("env":{"A":1})")), 400, "'env.A'");
}

TEST_F(BadInputTest, absurd_quantities_are_refused_by_name) {
  const auto ask_for = [&](const std::string& field, const std::string& value) {
    return post("/v1/tasks",
                R"({"tenant":"acme","command":["x"],")" + field + "\":\"" + value + "\"}");
  };
  for (const char* value : {"0", "-1", "NaN", "nan", "inf", "", " 1", "1 ", "1e3", "0x10", "1,5",
                            "1000000000000000000000000000000", "0.0001", "١"}) {
    expect_problem(ask_for("ce", value), 400, "'ce'");
    expect_problem(ask_for("share", value), 400, "'share'");
  }
  expect_problem(ask_for("share", "1.001"), 400, "'share'");
  for (const char* value : {"0", "0GiB", "-1GiB", "1e3GiB", "NaNGiB", "10", "10GB", "10 GiB",
                            "99999999999999999999GiB", "0.0001GiB", "GiB"}) {
    const Caught answer =
        post("/v1/tasks", task_body("acme", "\"memory\":\"" + std::string(value) + "\""));
    expect_problem(answer, 400, "'memory'");
  }
  for (const char* value : {"", "1", "-1h", "1e9h", "1h1h", "99999999h", "h", "1y"}) {
    const Caught answer =
        post("/v1/tasks", R"({"tenant":"acme","command":["x"],"share":"1","time":")" +
                              std::string(value) + "\"}");
    expect_problem(answer, 400, "'time'");
  }
  expect_problem(post("/v1/tasks", R"({"tenant":"acme","command":["x"],"share":"1","time":"0s"})"),
                 400, "time limit");
  for (const char* value : {"0", "-5", "NaN", "1e30", "10000000000000000", "1.0000000000001"})
    EXPECT_EQ(
        post("/v1/tenants/acme/topup", "{\"amount\":\"" + std::string(value) + "\"}").status(), 400)
        << value;
  for (const char* value : {"-1", "101", "NaN", "12.345"})
    expect_problem(
        post("/v1/tenants", R"({"name":"x","discount_percent":")" + std::string(value) + "\"}"),
        400, "'discount_percent'");
}

TEST_F(BadInputTest, words_that_are_not_known_are_answered_with_those_that_are) {
  const Caught answer = post("/v1/tasks", task_body("acme", R"("purchase_model":"free")"));
  expect_problem(answer, 400, "'purchase_model'");
  EXPECT_NE(answer.problem().next_step.find("on_demand"), std::string::npos);
  expect_problem(get("/v1/tasks?state=sleeping"), 400, "'sleeping'");
}

TEST_F(BadInputTest, bad_parameters_are_refused_by_name) {
  expect_problem(get("/v1/tasks?limit=0"), 400, "0 tasks");
  expect_problem(get("/v1/tasks?limit=-1"), 400, "'limit'");
  expect_problem(get("/v1/tasks?limit=501"), 400, "'limit'");
  expect_problem(get("/v1/tasks?limit=1&limit=2"), 400, "'limit'");
  expect_problem(get("/v1/tasks?after=5"), 400, "'after'");
  const TaskId id = submit();
  expect_problem(get("/v1/tasks/" + id.text() + "/logs?stream=all"), 400, "'stream'");
  expect_problem(get("/v1/tasks/" + id.text() + "/logs?offset=-1"), 400, "'offset'");
  expect_problem(get("/v1/tasks/" + id.text() + "/logs?follow=yes"), 400, "'follow'");
}

TEST_F(BadInputTest, ids_of_nothing_are_not_found) {
  for (const char* id : {"t1", "t0", "t01", "1", "task", "t99999999999999999999", "t-1", "T1"}) {
    expect_problem(get("/v1/tasks/" + std::string(id)), 404, id);
    expect_problem(post("/v1/tasks/" + std::string(id) + "/stop"), 404, id);
    expect_problem(get("/v1/tasks/" + std::string(id) + "/logs"), 404, id);
    expect_problem(get("/v1/tasks/" + std::string(id) + "/events"), 404, id);
  }
}

TEST_F(BadInputTest, keys_that_cannot_be_kept_are_refused) {
  for (const std::string& key : {std::string("a b"), std::string(256, 'k'), std::string("\x7f")})
    expect_problem(post("/v1/tasks", task_body(), root, key), 400, "Idempotency-Key");
  const Caught twice = ask(http::Method::post, "/v1/tasks", task_body(), root,
                           {{"Idempotency-Key", "a"}, {"Idempotency-Key", "b"}});
  expect_problem(twice, 400, "Idempotency-Key");
  const Caught empty =
      ask(http::Method::post, "/v1/tasks", task_body(), root, {{"Idempotency-Key", ""}});
  expect_problem(empty, 400, "Idempotency-Key");
}

TEST_F(BadInputTest, unknown_paths_and_methods_are_told_apart) {
  expect_problem(get("/v1/nothing"), 404, "/v1/nothing");
  expect_problem(get("/v2/tasks"), 404, "/v2/tasks");
  const Caught wrong = ask(http::Method::del, "/v1/tasks");
  expect_problem(wrong, 405, "DELETE");
  EXPECT_NE(wrong.response->headers.get("Allow").find("POST"), std::string::npos);
}

TEST_F(BadInputTest, other_media_types_are_refused) {
  const Caught answer = ask(http::Method::post, "/v1/tasks", "tenant=acme", root,
                            {{"Content-Type", "application/x-www-form-urlencoded"}});
  expect_problem(answer, 415, "form");
  const Caught good = ask(http::Method::post, "/v1/tasks", task_body(), root,
                          {{"Content-Type", "application/json; charset=utf-8"}});
  EXPECT_EQ(good.status(), 201);
  expect_problem(post("/v1/tasks/t1/stop", "{\"now\":true}"), 400, "no body");
}

}  // namespace
}  // namespace loam::api::testing

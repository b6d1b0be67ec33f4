#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using TasksTest = ApiTest;

TEST_F(TasksTest, a_quote_says_where_when_and_how_much) {
  const Caught answer = post("/v1/quote", task_body());
  ASSERT_EQ(answer.status(), 200);
  const auto quote = answer.as<QuoteView>();
  EXPECT_EQ(quote.tenant, "acme");
  EXPECT_EQ(quote.device, "n1/0");
  EXPECT_EQ(quote.share, 0.25);
  EXPECT_NE(answer.response->body.find("\"share\":0.25,"), std::string::npos);
  EXPECT_EQ(quote.memory_mib, 20'480);
  EXPECT_EQ(quote.ce, "25");
  EXPECT_EQ(quote.billable_ce, "25");
  EXPECT_EQ(quote.unit_price, "0.02");
  EXPECT_EQ(quote.per_hour, "0.5");
  EXPECT_EQ(quote.limit_ms, 3'600'000);
  EXPECT_TRUE(quote.starts_now);
}

TEST_F(TasksTest, a_submitted_task_can_be_followed_to_its_end) {
  const Caught submitted = post("/v1/tasks", task_body("acme", R"("name":"train")"));
  ASSERT_EQ(submitted.status(), 201) << submitted.response->body;
  const auto first = submitted.as<TaskView>();
  EXPECT_EQ(submitted.response->headers.get("Location"), "/v1/tasks/" + first.id);
  EXPECT_EQ(first.tenant, "acme");
  EXPECT_EQ(first.state, "starting");
  EXPECT_EQ(first.device, "n1/0");
  EXPECT_EQ(first.command, (std::vector<std::string>{"/bin/true", "a b", "c\nd"}));
  EXPECT_NE(first.held, "0");

  const TaskId id = *TaskId::parse(first.id);
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(30));
  const auto running = get("/v1/tasks/" + first.id).as<TaskView>();
  EXPECT_EQ(running.state, "running");
  EXPECT_EQ(running.run_ms, 1'800'000);
  EXPECT_EQ(running.cost, "0.25");
  EXPECT_FALSE(running.share_measured.has_value());

  daemon.end(id, 7);
  const auto done = get("/v1/tasks/" + first.id).as<TaskView>();
  EXPECT_EQ(done.state, "finished");
  EXPECT_EQ(done.outcome, "failed");
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.run_ms, 1'800'000);
  EXPECT_EQ(done.billed_ms, 1'800'000);
  EXPECT_EQ(done.cost, "0.25");
  EXPECT_EQ(done.held, "0");
  EXPECT_EQ(done.share_measured, 0.5);
  EXPECT_TRUE(done.started_at && done.finished_at);
}

TEST_F(TasksTest, what_is_measured_of_a_running_task_is_shown) {
  const TaskId id = submit();
  daemon.start(id);
  daemon.measured[LeaseId{1}] = {0.24137, Mebibytes{100}, true};
  const auto view = get("/v1/tasks/" + id.text()).as<TaskView>();
  EXPECT_EQ(view.share_measured, 0.2414);
  EXPECT_EQ(view.isolation, "advisory");
}

TEST_F(TasksTest, the_list_is_newest_first_in_pages_and_filtered) {
  for (int i = 0; i < 5; ++i) submit(i % 2 == 0 ? "acme" : "beta");  // 4 run, the fifth waits
  const auto first = get("/v1/tasks?limit=2").as<TaskPage>();
  ASSERT_EQ(first.tasks.size(), 2U);
  EXPECT_EQ(first.tasks[0].id, "t5");
  EXPECT_EQ(first.tasks[0].state, "waiting");
  EXPECT_NE(first.tasks[0].reason, "");
  EXPECT_EQ(first.next, "t4");
  const auto second = get("/v1/tasks?limit=2&after=t4").as<TaskPage>();
  EXPECT_EQ(second.tasks[0].id, "t3");
  const auto last = get("/v1/tasks?limit=2&after=t2").as<TaskPage>();
  EXPECT_EQ(last.tasks.size(), 1U);
  EXPECT_EQ(last.next, "");
  EXPECT_EQ(get("/v1/tasks?tenant=beta").as<TaskPage>().tasks.size(), 2U);
  EXPECT_EQ(get("/v1/tasks?state=waiting").as<TaskPage>().tasks.size(), 1U);
  EXPECT_EQ(get("/v1/tasks?state=waiting,starting").as<TaskPage>().tasks.size(), 5U);
  EXPECT_EQ(get("/v1/tasks?name=nothing").as<TaskPage>().tasks.size(), 0U);
}

TEST_F(TasksTest, a_paused_task_goes_on_by_another_purchase_model) {
  daemon.clock.advance(Duration::minutes(1));
  const Caught card = post("/v1/rates", R"({"on_demand":"0.02","terms":{"spot":{"sold":true}}})");
  ASSERT_EQ(card.status(), 201) << card.response->body;
  daemon.clock.advance(Duration::minutes(2));
  daemon.run(StopTask{TaskId{99}});
  const TaskId id = submit("acme", R"("purchase_model":"spot")");
  daemon.start(id);
  post("/v1/tasks/" + id.text() + "/pause");
  daemon.end(id);
  daemon.clock.advance(Duration::minutes(1));
  ASSERT_EQ(post("/v1/rates", R"({"on_demand":"0.02"})").status(), 201);
  const std::string path = "/v1/tasks/" + id.text() + "/resume";
  const auto refused = post(path).problem();
  EXPECT_EQ(refused.code, "not_sold");
  EXPECT_NE(refused.next_step.find("--purchase on_demand"), std::string::npos) << refused.next_step;
  EXPECT_EQ(post(path + "?purchase_model=gold").status(), 400);
  const auto resumed = post(path + "?purchase_model=on_demand");
  ASSERT_EQ(resumed.status(), 200) << resumed.response->body;
  EXPECT_EQ(resumed.as<TaskView>().purchase_model, "on_demand");
}

TEST_F(TasksTest, what_a_task_says_it_made_is_told) {
  const TaskId id = submit();
  EXPECT_FALSE(get("/v1/tasks/" + id.text()).as<TaskView>().output);
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(1));
  daemon.end(id, Duration{}, 1'250'500);
  EXPECT_EQ(get("/v1/tasks/" + id.text()).as<TaskView>().output, "1250.5");
}

TEST_F(TasksTest, a_quote_suggests_what_the_last_runs_needed) {
  const std::string named = R"("name":"train")";
  const auto quote = [&](const std::string& more) {
    return post("/v1/quote", task_body("acme", more)).as<QuoteView>();
  };
  EXPECT_FALSE(quote(named).suggested_ce);
  // A quarter of 100 CE, of which it used two fifths.
  const TaskId id = submit("acme", named);
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(10));
  daemon.end(id, Duration::minutes(1), std::nullopt);
  const QuoteView suggested = quote(named);
  EXPECT_EQ(suggested.suggested_ce, "12");
  EXPECT_EQ(suggested.suggestion, "its last run used at most 10 of 25 CE: 12 CE would do");
  // Of another name, of none, or where no more than that is asked for, there is nothing to say.
  EXPECT_FALSE(quote(R"("name":"other")").suggested_ce);
  EXPECT_FALSE(quote(R"("model":"m")").suggested_ce);
  const Caught less = post("/v1/quote", R"({"tenant":"acme","command":["/bin/true"],"ce":"12",
                                            "time":"1h","name":"train"})");
  ASSERT_EQ(less.status(), 200) << less.response->body;
  EXPECT_FALSE(less.as<QuoteView>().suggested_ce);
  EXPECT_EQ(less.as<QuoteView>().suggestion, "");
}

TEST_F(TasksTest, compute_is_taken_from_earlier_runs_and_said_why) {
  const auto body = [](const std::string& ce) {
    return R"({"tenant":"acme","command":["/bin/true"],"time":"1h","name":"train","memory":"4GiB","ce":")" +
           ce + "\"}";
  };
  const auto first = post("/v1/tasks", body("auto:40")).as<TaskView>();
  EXPECT_EQ(first.ce, "40");
  EXPECT_EQ(first.takes, "40 CE, the most: no run of its name was measured before");
  const TaskId id = *TaskId::parse(first.id);
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(10));
  daemon.end(id, Duration::minutes(1), std::nullopt);
  const std::string why =
      "12 of at most 40 CE: its last run used 10 CE at most, and a fifth is added";
  const auto quote = post("/v1/quote", body("auto:40")).as<QuoteView>();
  EXPECT_EQ(quote.takes, why);
  EXPECT_EQ(quote.ce, "12");
  EXPECT_FALSE(quote.suggested_ce) << "it is taken already";
  const auto second = post("/v1/tasks", body("auto:40")).as<TaskView>();
  EXPECT_EQ(second.ce, "12");
  EXPECT_EQ(get("/v1/tasks/" + second.id).as<TaskView>().takes, why);
  EXPECT_EQ(post("/v1/tasks", body("40")).as<TaskView>().takes, "");
  for (const char* wrong : {"auto", "auto:", "auto:0", "auto40", "auto:much", "automatic:40"})
    EXPECT_EQ(post("/v1/quote", body(wrong)).status(), 400) << wrong;
}

TEST_F(TasksTest, a_task_that_waited_as_long_as_it_would_has_expired) {
  const TaskId first = submit("acme", R"("gang":4)");
  const Caught waits = post("/v1/tasks", task_body("beta", R"("wait_at_most":"30m")"));
  ASSERT_EQ(waits.status(), 201) << waits.response->body;
  const auto waiting = waits.as<TaskView>();
  EXPECT_EQ(waiting.state, "waiting");
  EXPECT_EQ(waiting.expires_at, "2026-03-02T00:30:00Z");
  EXPECT_FALSE(get("/v1/tasks/" + first.text()).as<TaskView>().expires_at);
  daemon.clock.advance(Duration::minutes(30));
  daemon.run(TimePassed{});
  const auto over = get("/v1/tasks/" + waiting.id).as<TaskView>();
  EXPECT_EQ(over.outcome, "expired");
  EXPECT_EQ(over.reason, "it waited 30m and did not start");
  EXPECT_EQ(over.held, "0");
  EXPECT_FALSE(over.expires_at);
  EXPECT_EQ(get("/v1/tenants/beta").as<TenantView>().wallet, "1000");
  EXPECT_EQ(post("/v1/tasks", task_body("beta", R"("wait_at_most":"soon")")).status(), 400);
  EXPECT_EQ(post("/v1/tasks", task_body("beta", R"("wait_at_most":"0ms")")).status(), 400);
}

TEST_F(TasksTest, stop_pause_and_resume_say_what_became_of_the_task) {
  const TaskId id = submit();
  daemon.start(id);
  EXPECT_EQ(post("/v1/tasks/" + id.text() + "/pause").as<TaskView>().state, "stopping");
  daemon.end(id);
  EXPECT_EQ(get("/v1/tasks/" + id.text()).as<TaskView>().state, "paused");
  EXPECT_EQ(post("/v1/tasks/" + id.text() + "/resume").as<TaskView>().state, "starting");
  daemon.start(id);
  const auto stopping = post("/v1/tasks/" + id.text() + "/stop").as<TaskView>();
  EXPECT_EQ(stopping.state, "stopping");
  EXPECT_EQ(stopping.reason, "stopping on request");
  daemon.end(id);
  const Caught again = post("/v1/tasks/" + id.text() + "/stop");
  EXPECT_EQ(again.status(), 409);
  EXPECT_EQ(again.problem().code, "wrong_state");
  EXPECT_NE(again.problem().next_step, "");
  EXPECT_EQ(post("/v1/tasks/" + id.text() + "/stop", {}, root, "new").problem().code,
            "wrong_state");
}

TEST_F(TasksTest, the_same_key_twice_has_one_effect_and_one_answer) {
  const Caught first = post("/v1/tasks", task_body(), root, "k1");
  const Caught second = post("/v1/tasks", task_body(), root, "k1");
  EXPECT_EQ(second.status(), 201);
  EXPECT_EQ(first.as<TaskView>().id, second.as<TaskView>().id);
  EXPECT_EQ(get("/v1/tasks").as<TaskPage>().tasks.size(), 1U);
  // The same key for something else is a mistake.
  const Caught other = post("/v1/tasks", task_body("beta"), root, "k1");
  EXPECT_EQ(other.status(), 422);
  EXPECT_EQ(other.problem().code, "key_reused");
  // Another caller's key is another key.
  const Caught theirs = post("/v1/tasks", task_body(), uid(1001), "k1");
  EXPECT_EQ(theirs.status(), 201);
  EXPECT_NE(theirs.as<TaskView>().id, first.as<TaskView>().id);
}

TEST_F(TasksTest, a_repeated_stop_with_its_key_gets_its_first_answer_after_the_end_too) {
  const TaskId id = submit();
  daemon.start(id);
  ASSERT_EQ(post("/v1/tasks/" + id.text() + "/stop", {}, root, "s1").status(), 200);
  daemon.end(id);
  const Caught again = post("/v1/tasks/" + id.text() + "/stop", {}, root, "s1");
  ASSERT_EQ(again.status(), 200);
  EXPECT_EQ(again.as<TaskView>().state, "finished");
}

TEST_F(TasksTest, the_price_and_the_pool_can_refuse_a_task) {
  EXPECT_EQ(post("/v1/tasks", R"({"tenant":"acme","command":["x"],"ce":"101"})").problem().code,
            "does_not_fit");
  const Caught poor =
      post("/v1/tasks", R"({"tenant":"acme","command":["x"],"share":"1","time":"8000h"})");
  EXPECT_EQ(poor.status(), 402);
  EXPECT_EQ(poor.problem().code, "insufficient_funds");
  const Caught unbuilt = post("/v1/tasks", task_body("acme", R"("image":"sha256:0")"));
  EXPECT_EQ(unbuilt.status(), 422);
  EXPECT_EQ(unbuilt.problem().code, "unsupported_field");
  EXPECT_NE(unbuilt.problem().detail.find("'image'"), std::string::npos);
}

TEST_F(TasksTest, a_mount_against_the_nodes_policy_is_refused) {
  daemon.mounts_refused.insert("/etc");
  const std::string mount = R"("mounts":[{"source":"/etc","target":"/data"}])";
  for (const auto& caller : {uid(1001), uid(1003)}) {  // a member, an operator
    EXPECT_EQ(post("/v1/tasks", task_body("acme", mount), caller).status(), 403);
    EXPECT_EQ(post("/v1/quote", task_body("acme", mount), caller).status(), 403);
  }
  // Who runs the daemon could change the policy.
  EXPECT_EQ(post("/v1/quote", task_body("acme", mount)).status(), 200);
}

TEST_F(TasksTest, a_mount_that_only_operators_may_make_is_refused_to_the_tenant_itself) {
  daemon.mounts_of_operators.insert("/run/gateway");
  const std::string mount = R"("mounts":[{"source":"/run/gateway","target":"/run/gateway"}])";
  EXPECT_EQ(post("/v1/quote", task_body("acme", mount)).status(), 200);
  EXPECT_EQ(post("/v1/quote", task_body("acme", mount), uid(1003)).status(), 200);
  EXPECT_EQ(post("/v1/quote", task_body("acme", mount), uid(1001)).status(), 403);
  EXPECT_EQ(post("/v1/tasks", task_body("acme", mount), uid(1001)).status(), 403);
}

TEST_F(TasksTest, a_device_can_be_asked_for_by_id_name_or_uuid) {
  for (const char* device : {"d1", "n1/0", "gpu-1"}) {
    const Caught answer =
        post("/v1/quote", task_body("acme", "\"device\":\"" + std::string(device) + "\""));
    EXPECT_EQ(answer.status(), 200) << device << answer.response->body;
  }
  EXPECT_EQ(post("/v1/quote", task_body("acme", R"("device":"d2")")).status(), 404);
}

TEST_F(TasksTest, while_the_disk_is_full_work_is_refused_and_later_taken) {
  daemon.journal.full = true;
  const Caught refused = post("/v1/tasks", task_body());
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.problem().code, "unavailable");
  EXPECT_EQ(get("/v1/health").status(), 503);
  daemon.journal.full = false;
  EXPECT_EQ(post("/v1/tasks", task_body()).status(), 201);
}

}  // namespace
}  // namespace loam::api::testing

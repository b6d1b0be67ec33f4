// A budget's open request, answered over the API: who may, what an answer must say, and what
// becomes of it.
#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

class BudgetsTest : public ApiTest {
 protected:
  // A task runs, another has spent 0.25 USD, and a budget of 0.20 finds more than 120 % of it
  // spent.
  BudgetsTest() {
    const Caught longer = post(
        "/v1/tasks", R"({"tenant":"acme","command":["/bin/true"],"share":"0.25","time":"10h"})");
    running = *TaskId::parse(longer.as<TaskView>().id);
    daemon.start(running);
    const TaskId done = submit();
    daemon.start(done);
    daemon.clock.advance(Duration::minutes(30));
    daemon.end(done);
    const Caught made =
        post("/v1/budgets",
             R"({"name":"ci","tenant":"acme","monthly":"0.20","approval_wait":"2h"})", finance);
    EXPECT_EQ(made.status(), 201) << made.response->body;
  }

  Caught answer(const std::string& body, const As& who = finance) {
    return post("/v1/budgets/ci/answer", body, who);
  }
  BudgetView budget() { return get("/v1/budgets/ci").as<BudgetView>(); }
  std::vector<std::string> notices() {
    std::vector<std::string> kinds;
    for (const BudgetNoticeView& notice : budget().notices) kinds.push_back(notice.kind);
    return kinds;
  }
  std::string state_of(TaskId task) { return get("/v1/tasks/" + task.text()).as<TaskView>().state; }

  static inline const As finance = uid(1004);
  const std::string yes = R"({"approve":true,"until":"2026-03-03T00:00:00Z","limit":"10"})";
  TaskId running;
};

TEST_F(BudgetsTest, beyond_120_percent_a_request_is_open) {
  EXPECT_TRUE(budget().request_open);
  EXPECT_EQ(notices(), (std::vector<std::string>{"approval_requested", "limited",
                                                 "reminder"}));  // newest first
  EXPECT_EQ(post("/v1/tasks", task_body()).problem().code, "budget_exceeded");
}

TEST_F(BudgetsTest, approved_tasks_start_again_up_to_the_new_limit) {
  const Caught given = answer(yes);
  ASSERT_EQ(given.status(), 200) << given.response->body;
  const auto view = given.as<BudgetView>();
  EXPECT_FALSE(view.request_open);
  EXPECT_EQ(view.limit, "10");
  EXPECT_EQ(view.approved_by, "socket:uid:1004");
  EXPECT_EQ(view.approved_until, "2026-03-03T00:00:00Z");
  EXPECT_EQ(notices().front(), "approved");
  EXPECT_EQ(state_of(running), "running");
  EXPECT_EQ(post("/v1/tasks", task_body()).status(), 201);
  EXPECT_EQ(answer(yes).problem().code, "wrong_state") << "it was answered";
  EXPECT_EQ(notices().front(), "approved") << "and told once";
}

TEST_F(BudgetsTest, refused_its_running_tasks_end) {
  const Caught given = answer(R"({"approve":false})");
  ASSERT_EQ(given.status(), 200) << given.response->body;
  EXPECT_FALSE(given.as<BudgetView>().request_open);
  EXPECT_FALSE(given.as<BudgetView>().approved_by.has_value());
  EXPECT_EQ(notices().front(), "approval_refused");
  EXPECT_EQ(state_of(running), "stopping");
  EXPECT_EQ(post("/v1/tasks", task_body()).problem().code, "budget_exceeded");
}

TEST_F(BudgetsTest, an_answer_says_until_when_and_up_to_what) {
  const char* wrong[] = {R"({"approve":true})",
                         R"({"approve":true,"until":"2026-03-03T00:00:00Z"})",
                         R"({"approve":true,"limit":"10"})",
                         R"({"approve":true,"until":"tomorrow","limit":"10"})",
                         R"({"approve":true,"until":"2026-03-01T00:00:00Z","limit":"10"})",
                         R"({"approve":true,"until":"2026-03-03T00:00:00Z","limit":"0.25"})",
                         R"({"approve":true,"until":"2026-03-03T00:00:00Z","limit":"much"})",
                         R"({"approve":true,"by":"me"})"};
  for (const char* body : wrong) EXPECT_EQ(answer(body).status(), 400) << body;
  EXPECT_TRUE(budget().request_open) << "nothing was answered";
  EXPECT_EQ(post("/v1/budgets/none/answer", yes, finance).status(), 404);
}

TEST_F(BudgetsTest, only_those_who_may_spend_for_all_answer) {
  EXPECT_EQ(answer(yes, uid(1001)).status(), 403) << "a member of the tenant";
  EXPECT_EQ(answer(yes, uid(1003)).status(), 403) << "an operator";
  EXPECT_TRUE(budget().request_open);
}

TEST_F(BudgetsTest, unanswered_the_request_expires) {
  daemon.clock.advance(Duration::hours(2));
  EXPECT_EQ(answer(yes).problem().code, "wrong_state");
  EXPECT_EQ(notices().front(), "approval_expired");
  EXPECT_EQ(state_of(running), "stopping");
}

}  // namespace
}  // namespace loam::api::testing

// What attempts held and used, for those who may see it, and what devices could give over time.
#include "api/fixture.hpp"

namespace loam::api {
namespace {

using testing::ApiTest;
using testing::Caught;

class LeasesTest : public ApiTest {
 protected:
  void tell(TaskId task, Duration device_time) {
    ReportServices report;
    daemon.read([&](const engine::State& state, Instant) {
      report.lease = state.tasks.at(task).leases.front();
      report.epoch = state.tasks.at(task).epoch;
    });
    report.at = daemon.clock.now();
    report.device_time = device_time;
    const auto told = daemon.run(report);
    EXPECT_FALSE(told.reject) << told.reject->message;
  }
  // Newest first.
  static std::string ids(const Caught& answer) {
    std::string all;
    for (const LeaseView& lease : answer.as<LeasePage>().leases)
      all += (all.empty() ? "" : " ") + lease.id;
    return all;
  }
};

TEST_F(LeasesTest, they_are_listed_for_whoever_may_see_them) {
  const TaskId mine = submit("acme", R"("name":"train")"), theirs = submit("beta");
  daemon.start(mine);
  daemon.start(theirs);
  daemon.clock.advance(Duration::minutes(30));
  tell(mine, Duration::minutes(6));
  const auto all = get("/v1/leases").as<LeasePage>();
  ASSERT_EQ(all.leases.size(), 2U);
  EXPECT_EQ(all.next, "");
  EXPECT_EQ(all.leases[0].tenant, "beta");
  EXPECT_FALSE(all.leases[0].share_measured.has_value()) << "nobody has told of it yet";
  const LeaseView& lease = all.leases[1];
  EXPECT_EQ(lease.task, mine.text());
  EXPECT_EQ(lease.name, "train");
  ASSERT_EQ(lease.slices.size(), 1U);
  EXPECT_EQ(lease.slices[0].device, "n1/0");
  EXPECT_EQ(lease.slices[0].share, 0.25);
  EXPECT_EQ(lease.share_measured, 0.2);
  EXPECT_EQ(lease.ce, "25");
  EXPECT_EQ(lease.run_ms, Duration::minutes(30).ms);
  EXPECT_EQ(lease.cost, "0.25") << "until now, though nothing is rated yet";
  EXPECT_FALSE(lease.ended_at.has_value());
  EXPECT_EQ(lease.outcome, "none");

  EXPECT_EQ(ids(get("/v1/leases", uid(1001))), "l1");
  EXPECT_EQ(ids(get("/v1/leases?tenant=beta")), "l2");
  EXPECT_EQ(get("/v1/leases?tenant=beta", uid(1001)).status(), 404);
  EXPECT_EQ(ids(get("/v1/leases?task=t1", uid(1001))), "l1");
  EXPECT_EQ(get("/v1/leases?task=t2", uid(1001)).status(), 404);
  EXPECT_EQ(get("/v1/leases?limit=1").as<LeasePage>().next, "l2");
  EXPECT_EQ(ids(get("/v1/leases?limit=1&after=l2")), "l1");
  for (const char* bad : {"limit=0", "limit=501", "after=x", "from=yesterday",
                          "from=2026-03-03T00:00:00Z&to=2026-03-02T00:00:00Z"})
    EXPECT_EQ(get(std::string("/v1/leases?") + bad).status(), 400) << bad;
}

TEST_F(LeasesTest, a_task_that_was_paused_has_one_for_each_of_its_runs) {
  const TaskId task = submit();
  const Instant start = daemon.clock.now();
  daemon.start(task);
  daemon.clock.advance(Duration::minutes(10));
  tell(task, Duration::minutes(1));
  daemon.clock.advance(Duration::minutes(10));
  post("/v1/tasks/" + task.text() + "/pause");
  daemon.end(task, Duration::minutes(3), 1'500);
  daemon.clock.advance(Duration::hours(2));
  post("/v1/tasks/" + task.text() + "/resume");
  daemon.clock.advance(Duration::minutes(1));
  daemon.start(task);
  daemon.clock.advance(Duration::minutes(20));
  daemon.end(task, Duration{}, std::nullopt);
  const auto both = get("/v1/leases?task=" + task.text()).as<LeasePage>();
  ASSERT_EQ(both.leases.size(), 2U);
  EXPECT_EQ(both.leases[0].share_measured, 0.0);
  EXPECT_EQ(both.leases[0].queued_at, to_text(start + Duration::minutes(140)));
  EXPECT_EQ(both.leases[0].outcome, "succeeded");
  EXPECT_EQ(both.leases[1].share_measured, 0.15);
  EXPECT_EQ(both.leases[1].stop_reason, "paused");
  EXPECT_EQ(both.leases[1].output, "1.5");
  // What was measured of it in a time is of that time.
  const auto late = get("/v1/leases?from=" + to_text(start + Duration::minutes(10)) +
                        "&to=" + to_text(start + Duration::minutes(20)))
                        .as<LeasePage>();
  ASSERT_EQ(late.leases.size(), 1U);
  EXPECT_EQ(late.leases[0].id, "l1");
  EXPECT_EQ(late.leases[0].share_measured, 0.2);
  EXPECT_EQ(ids(get("/v1/leases?from=" + to_text(start + Duration::minutes(20)) +
                    "&to=" + to_text(start + Duration::hours(1)))),
            "");
}

TEST_F(LeasesTest, a_bill_tells_what_was_measured_of_its_time) {
  const TaskId task = submit();
  daemon.start(task);
  const Instant start = daemon.clock.now();
  daemon.clock.advance(Duration::minutes(20));
  tell(task, Duration::minutes(2));
  daemon.clock.advance(Duration::minutes(20));
  daemon.end(task, Duration::minutes(10), std::nullopt);
  daemon.clock.advance(Duration::minutes(1));
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  ASSERT_EQ(bill.lines.size(), 1U);
  EXPECT_EQ(bill.lines[0].share_measured, 0.25);
  // A record that is cut has its part of it: 40 minutes with 10, evenly.
  const auto half = get("/v1/bill?tenant=acme&from=" + to_text(start + Duration::minutes(20)));
  EXPECT_EQ(half.as<BillView>().lines[0].billed_ms, Duration::minutes(20).ms);
  EXPECT_EQ(half.as<BillView>().lines[0].share_measured, 0.25);
  EXPECT_EQ(get("/v1/bill?tenant=beta").as<BillView>().lines.size(), 0U);
}

TEST_F(LeasesTest, capacity_is_what_was_in_service_so_far) {
  const Instant start = daemon.clock.now();
  daemon.clock.advance(Duration::hours(1));
  ASSERT_EQ(post("/v1/devices/n1/0/drain").status(), 200);
  daemon.clock.advance(Duration::hours(1));
  ASSERT_EQ(post("/v1/devices/n1/0/undrain").status(), 200);
  daemon.clock.advance(Duration::hours(1));
  const auto list = get("/v1/capacity?to=2027-01-01T00:00:00Z").as<CapacityList>();
  EXPECT_EQ(list.to, to_text(start + Duration::hours(3))) << "not what is to come";
  ASSERT_EQ(list.pieces.size(), 2U);
  EXPECT_EQ(list.pieces[0].device, "n1/0");
  EXPECT_EQ(list.pieces[0].ce, "100");
  EXPECT_EQ(list.pieces[0].from, to_text(start));
  EXPECT_EQ(list.pieces[0].to, to_text(start + Duration::hours(1)));
  EXPECT_EQ(list.pieces[1].from, to_text(start + Duration::hours(2)));
  EXPECT_EQ(list.pieces[1].to, list.to);
  EXPECT_EQ(get("/v1/capacity?from=" + to_text(start + Duration::hours(1)) +
                "&to=" + to_text(start + Duration::hours(2)))
                .as<CapacityList>()
                .pieces.size(),
            0U);
  EXPECT_EQ(get("/v1/capacity?from=2027-01-01T00:00:00Z").status(), 400);
  EXPECT_EQ(get("/v1/capacity", tcp()).status(), 401);
}

}  // namespace
}  // namespace loam::api

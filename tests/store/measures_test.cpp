// What was measured of leases, hour by hour, and what devices could give over time.
#include <gtest/gtest.h>

#include "history.hpp"
#include "store/journal.hpp"
#include "store/queries.hpp"

namespace loam::store {
namespace {

constexpr Duration hour = Duration::hours(1);

class MeasuresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = SqliteJournal::open(folder.path());
    ASSERT_TRUE(opened.ok());
    journal = std::move(*opened);
    queries = std::make_unique<Queries>(journal->path());
    history.found_region();
    t0 = history.now;
  }
  void store() {
    const auto done = journal->append(history.take());
    ASSERT_TRUE(done.ok()) << to_text(done.error());
  }
  void go(Instant to) {
    while (history.now < to) {
      history.now = std::min(to, history.now + Duration::minutes(30));
      history.settle();
    }
  }
  TaskId begin(const std::string& name, TenantId tenant = acme) {
    const TaskId task = history.submit(tenant, name);
    history.settle();
    history.start(task);
    return task;
  }
  void tell(TaskId task, Duration device_time) {
    const Lease& lease = *history.state().find_lease(history.lease_of(task));
    history.act(ReportServices{lease.id, lease.epoch, history.now, {}, device_time});
  }
  void end(TaskId task, Duration device_time, AttemptEnd how = AttemptEnd::exited) {
    const Lease& lease = *history.state().find_lease(history.lease_of(task));
    ReportEnded report;
    report.lease = lease.id;
    report.epoch = lease.epoch;
    report.end = how;
    report.started_at = lease.started_at;
    report.ended_at = history.now;
    report.device_time = device_time;
    history.act(report);
  }
  // Of each record of usage: what of it was measured, and how long its device was busy.
  std::vector<std::pair<Duration, Duration>> measured(TenantId tenant = acme) {
    std::vector<std::pair<Duration, Duration>> all;
    const auto done = queries->usage_between(tenant, Instant{}, Instant::never(),
                                             [&](const UsageRecord&, const UsageFacts& facts) {
                                               all.emplace_back(facts.measured, facts.device_time);
                                             });
    EXPECT_TRUE(done.ok());
    return all;
  }
  std::vector<LeaseUseRow> leases(const LeaseFilter& filter, LeaseId before = {},
                                  std::int64_t limit = 100) {
    auto rows = queries->leases(filter, before, limit);
    EXPECT_TRUE(rows.ok());
    return rows.ok() ? std::move(*rows) : std::vector<LeaseUseRow>();
  }
  // "n1/0 0-2.5", in hours since the start.
  std::vector<std::string> capacity(Duration to) {
    const auto rows = queries->capacity(t0, t0 + to);
    EXPECT_TRUE(rows.ok());
    std::vector<std::string> all;
    const auto hours = [&](Instant at) { return decimal_text((at - t0).ms * 10 / hour.ms, 1); };
    for (const CapacityRow& row : *rows)
      all.push_back(row.name + " " + hours(row.from) + "-" + hours(row.to));
    return all;
  }

  TestFolder folder;
  History history;
  std::unique_ptr<SqliteJournal> journal;
  std::unique_ptr<Queries> queries;
  Instant t0;
};

using Measured = std::vector<std::pair<Duration, Duration>>;

TEST_F(MeasuresTest, EachHourOfALeaseHasItsShare) {
  const TaskId task = begin("long");
  go(t0 + hour);
  tell(task, Duration::minutes(30));
  tell(task, Duration::minutes(30));  // again
  go(t0 + hour * 2);
  store();
  EXPECT_EQ(measured(), (Measured{{hour, Duration::minutes(30)}})) << "while it runs";
  // The second hour's report was lost: the third's is spread over both.
  go(t0 + hour * 3);
  tell(task, Duration::minutes(150));
  go(t0 + hour * 3 + Duration::minutes(30));
  end(task, Duration::minutes(165));
  store();
  const Duration half = Duration::minutes(30);
  EXPECT_EQ(measured(),
            (Measured{{hour, half}, {hour, hour}, {hour, hour}, {half, Duration::minutes(15)}}));
  auto rows = leases({});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].task_name, "long");
  EXPECT_EQ(rows[0].lease.measured, hour * 3 + half);
  EXPECT_EQ(rows[0].lease.device_time, Duration::minutes(165));
  EXPECT_EQ(rows[0].net, queries->bill(acme, Instant{}, Instant::never())->net);
  LeaseFilter second_hour;
  second_hour.from = t0 + hour + half;
  second_hour.to = t0 + hour * 2;
  rows = leases(second_hour);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].lease.measured, half);
  EXPECT_EQ(rows[0].lease.device_time, half);
  auto database = Database::open(journal->path(), OpenMode::read_only);
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(*database->text("SELECT group_concat(share_measured) FROM v_usage"), "0.5,1.0,1.0,0.5");
}

TEST_F(MeasuresTest, WhatNobodyMeasuredHasNoShare) {
  const TaskId lost = begin("lost");
  go(t0 + hour);
  tell(lost, Duration::minutes(20));
  go(t0 + hour * 2);
  history.act(
      ReportDeviceHealth{history.state().find_lease(history.lease_of(lost))->slices.front().device,
                         DeviceHealth::lost, "gone", history.now});
  history.settle();
  store();
  EXPECT_EQ(measured(), (Measured{{hour, Duration::minutes(20)}, {Duration{}, Duration{}}}))
      << "nobody told of its last hour";
  // What ran without a sandbox and used nothing may have gone around the guard.
  const TaskId loose = history.submit(beta, "loose");
  history.settle();
  const LeaseId lease = history.lease_of(loose);
  history.act(ReportStarted{lease, history.state().find_lease(lease)->epoch, history.now, true});
  go(history.now + Duration::minutes(20));
  end(loose, Duration{});
  store();
  EXPECT_EQ(measured(beta), (Measured{{Duration{}, Duration{}}}));
}

TEST_F(MeasuresTest, LeasesAreListedByTaskTenantAndTime) {
  const TaskId first = begin("one");
  go(t0 + hour);
  history.act(PauseTask{first});
  end(first, Duration{});
  const TaskId other = begin("two", beta);
  go(t0 + hour * 3);
  history.act(ResumeTask{first});
  history.settle();
  history.pass(Duration::minutes(1));
  history.start(first);
  go(t0 + hour * 4);
  store();
  const auto ids = [&](const LeaseFilter& filter, LeaseId before = {}, std::int64_t limit = 100) {
    std::vector<std::uint64_t> all;
    for (const LeaseUseRow& row : leases(filter, before, limit)) all.push_back(row.lease.id.value);
    return all;
  };
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ids({}), (Ids{3, 2, 1}));
  EXPECT_EQ(ids({}, {}, 2), (Ids{3, 2}));
  EXPECT_EQ(ids({}, LeaseId{2}), (Ids{1}));
  EXPECT_EQ(ids({acme}), (Ids{3, 1}));
  EXPECT_EQ(ids({{}, {first, other}}), (Ids{3, 2, 1}));
  EXPECT_EQ(ids({{}, {other}}), (Ids{2}));
  EXPECT_EQ(ids({{}, {}, t0, t0 + hour}), (Ids{1})) << "the second begins then";
  EXPECT_EQ(ids({{}, {}, t0 + hour, t0 + hour * 3}), (Ids{2}));
  EXPECT_EQ(ids({{}, {}, t0 + hour * 3 + Duration::minutes(30), Instant::never()}), (Ids{3, 2}));
  const auto rows = leases({acme});
  EXPECT_EQ(rows[0].lease.queued_at, t0 + hour * 3) << "paused, it did not wait";
  EXPECT_EQ(rows[1].lease.queued_at, t0);
  EXPECT_EQ(rows[0].lease.slices.front().name.substr(0, 3), "n1/");
  EXPECT_FALSE(queries->leases({}, {}, 0).ok());
}

TEST_F(MeasuresTest, CapacityIsWhatWasInServiceWhileItWas) {
  using Pieces = std::vector<std::string>;
  const auto device = [&](std::size_t index) { return history.state().devices.at(index).id; };
  go(t0 + hour);
  history.act(DrainDevice{device(1), true});
  go(t0 + hour * 2);
  history.act(DrainDevice{device(1), false});
  go(t0 + hour * 3);
  history.act(ReportDeviceHealth{device(0), DeviceHealth::lost, "gone",
                                 t0 + hour * 2 + Duration::minutes(30)});
  go(t0 + hour * 4);
  history.act(ReportDeviceHealth{device(0), DeviceHealth::healthy, "", {}});
  go(t0 + hour * 5);
  DeviceFacts facts = *history.state().devices.front().facts;
  facts.uuid = "added";
  history.act(AttachDevice{"n1", facts});
  store();
  EXPECT_EQ(capacity(hour * 6),
            (Pieces{"n1/0 0-2.5", "n1/0 4-6", "n1/1 0-1", "n1/1 2-6", "n1/2 5-6"}));
  EXPECT_EQ(capacity(hour * 2), (Pieces{"n1/0 0-2", "n1/1 0-1"}))
      << "what came later is not of the past";
  // What is calibrated anew is worth something else from then on.
  facts.factors.general = MilliCe{1'000};
  go(t0 + hour * 6);
  history.act(AttachDevice{"n1", facts});
  store();
  const auto rows = queries->capacity(t0 + hour * 5, t0 + hour * 8);
  EXPECT_EQ(rows->at(rows->size() - 2).ce, MilliCe{228'000});
  EXPECT_EQ(rows->back().ce, MilliCe{1'000});
  EXPECT_EQ(rows->back().from, t0 + hour * 6);
}

TEST_F(MeasuresTest, ADrainingDeviceCountsUntilItsLastLeaseHasEnded) {
  using Pieces = std::vector<std::string>;
  const TaskId task = begin("last");
  const DeviceId device = history.state().find_lease(history.lease_of(task))->slices.front().device;
  const std::string name = device == history.state().devices.front().id ? "n1/0" : "n1/1";
  go(t0 + hour);
  history.act(DrainDevice{device, true});
  go(t0 + hour * 3);
  end(task, Duration{});
  store();
  Pieces of_it;
  for (const std::string& piece : capacity(hour * 5))
    if (piece.starts_with(name)) of_it.push_back(piece);
  EXPECT_EQ(of_it, (Pieces{name + " 0-1", name + " 1-3"}));
}

}  // namespace
}  // namespace loam::store

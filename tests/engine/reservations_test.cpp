// Reservations in the engine: used or not, the whole of one is charged by its card's rule and no
// instant twice, from what was set aside for it; and who may run on one.
#include <algorithm>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

constexpr ReservationId first{1};

PriceTerms with_reservations(const char* price, BasisPoints unused = BasisPoints{10'000}) {
  Price reservation;
  reservation.purchase_model = PurchaseModel::reservation;
  reservation.tiers = {{0, money(price)}};
  PriceTerms terms;
  terms.prices = {reservation};
  terms.reservation_unused = unused;
  return terms;
}

class ReservationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    region.on_decision = [this](const Decision& made) { hear(made); };
  }

  // With 5 % off for the tenant, a CE-hour costs 2.85.
  void publish(BasisPoints unused = BasisPoints{10'000}) {
    ASSERT_FALSE(region.publish(with_reservations("3", unused), "2").reject);
  }
  void hear(const Decision& decision) {
    for (const Event& event : decision.events) {
      if (const auto* charged = std::get_if<ReservationCharged>(&event)) {
        for (const AdjustmentLine& line : charged->lines) besides[line.key.kind] += line.net;
      } else if (const auto* usage = std::get_if<UsageRated>(&event)) {
        used += usage->record.net;
      } else if (const auto* over = std::get_if<ReservationEnded>(&event)) {
        ends.push_back(*over);
      }
    }
  }
  static ReservationOrder order(std::int64_t ce, Duration from, Duration to) {
    ReservationOrder made;
    made.request.ce = MilliCe{ce * 1000};
    made.from = start + from;
    made.to = start + to;
    return made;
  }
  Decision reserve(const ReservationOrder& made) { return region.act(MakeReservation{acme, made}); }
  static TaskSpec spec(std::int64_t ce, Duration limit) {
    TaskSpec made = Region::spec();
    made.request = {};
    made.request.ce = MilliCe{ce * 1000};
    made.request.cpu = MilliCpu{1};
    made.request.host_memory = Mebibytes{1};
    made.limit = limit;
    made.grace = Duration{0};
    made.purchase_model = PurchaseModel::reservation;
    made.reservation = first;
    return made;
  }
  // Submits it; it starts when it can.
  TaskId submit(const TaskSpec& made) {
    const Decision decision = region.act(SubmitTask{acme, made});
    EXPECT_FALSE(decision.reject) << decision.reject->message;
    region.settle();
    begin_all();
    return *TaskId::parse(decision.subject);
  }
  void begin_all() {
    for (const auto& [id, lease] : std::map(region.state.leases))
      if (!lease.started()) region.act(ReportStarted{id, lease.epoch, region.now, false});
  }
  void go(Instant to) {
    region.go(to);
    begin_all();
  }
  // Ends what was asked to.
  void end_stopped() {
    for (const auto& [id, lease] : std::map(region.state.leases))
      if (lease.stopping != StopReason::none) end(id, region.now);
  }
  void end(LeaseId id, Instant at) {
    const Lease& lease = region.state.leases.at(id);
    ReportEnded ended;
    ended.lease = id;
    ended.epoch = lease.epoch;
    ended.started_at = lease.started_at;
    ended.ended_at = at;
    region.act(ended);
    region.settle();
  }
  const Reservation& reservation() const { return *find_reservation(region.state, first); }
  Money unused() { return besides[InvoiceLineKind::unused]; }

  Region region;
  std::map<InvoiceLineKind, Money> besides;
  Money used = Money::zero(usd);
  std::vector<ReservationEnded> ends;
};

TEST_F(ReservationTest, WhatNobodyUsesIsChargedInFull) {
  publish();
  ASSERT_FALSE(reserve(order(50, hour, hour * 3)).reject);
  EXPECT_EQ(region.held(), reservation().held);
  EXPECT_GE(region.held(), money("285"));
  go(start + hour * 5);
  EXPECT_EQ(unused(), money("285"));  // 50 CE × 2 h × 2.85
  EXPECT_EQ(region.revenue(), money("285"));
  EXPECT_TRUE(region.held().is_zero());
  EXPECT_EQ(region.wallet(), money("100000") - money("285"));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends.front().end, ReservationEnd::over);
}

TEST_F(ReservationTest, OnlyTheCardsShareOfUnusedTimeIsCharged) {
  publish(BasisPoints{4'000});
  ASSERT_FALSE(reserve(order(50, hour, hour * 3)).reject);
  go(start + hour * 5);
  EXPECT_EQ(unused(), money("114"));
}

TEST_F(ReservationTest, WhatIsUsedInFullCostsNothingBesides) {
  publish();
  ASSERT_FALSE(reserve(order(50, Duration{0}, hour * 2)).reject);
  const TaskId task = submit(spec(50, hour * 8));
  const Lease& lease = region.state.leases.at(region.state.tasks.at(task).leases.front());
  EXPECT_EQ(lease.purchase_model, PurchaseModel::reservation);
  EXPECT_EQ(lease.stop_at, start + hour * 2) << "it ends with its reservation";
  EXPECT_TRUE(region.state.tasks.at(task).held.is_zero());
  go(start + hour * 2);
  end_stopped();
  go(start + hour * 4);
  EXPECT_EQ(used, money("285"));
  EXPECT_TRUE(unused().is_zero());
  EXPECT_EQ(region.revenue(), money("285"));
  EXPECT_TRUE(region.held().is_zero());
}

TEST_F(ReservationTest, UsedAndUnusedTimeComeToTheWhole) {
  publish();
  ASSERT_FALSE(reserve(order(50, Duration::minutes(30), hour * 4)).reject);
  go(start + Duration::minutes(50));
  const TaskId task = submit(spec(20, hour));
  go(start + Duration::minutes(95));
  const LeaseId lease = region.state.tasks.at(task).leases.front();
  end(lease, region.now);
  go(start + hour * 6);
  EXPECT_EQ(used, money("42.75"));  // 20 CE × 45 min × 2.85
  EXPECT_EQ(used + unused(), money("498.75"));
}

// An end that is told late takes use back; what was not used then is charged after all.
TEST_F(ReservationTest, ALateEndIsReckonedAnew) {
  publish();
  ASSERT_FALSE(reserve(order(50, Duration{0}, hour * 6)).reject);
  const TaskId task = submit(spec(50, hour * 5));
  const LeaseId lease = region.state.tasks.at(task).leases.front();
  go(start + hour * 3 + Duration::minutes(30));
  EXPECT_TRUE(unused().is_zero());
  end(lease, start + hour + Duration::minutes(15));
  go(start + hour * 8);
  EXPECT_EQ(used, money("178.125"));  // 50 CE × 1.25 h × 2.85
  EXPECT_EQ(used + unused(), money("855"));
  EXPECT_EQ(region.revenue(), money("855"));
}

// By compute one and by memory the other: together more than was reserved.
TEST_F(ReservationTest, MoreThanWasReservedIsGivenBack) {
  publish();
  ReservationOrder made = order(100, Duration{0}, hour * 2);
  made.request.memory = Mebibytes{80 * 1024};
  made.request.cpu = MilliCpu{2};
  made.request.host_memory = Mebibytes{2};
  ASSERT_FALSE(reserve(made).reject);
  TaskSpec wide = spec(90, hour * 2);
  wide.request.memory = Mebibytes{1024};
  TaskSpec deep = spec(10, hour * 2);
  deep.request.memory = Mebibytes{72 * 1024};
  submit(wide);
  submit(deep);
  ASSERT_EQ(region.state.leases.size(), 2U);
  go(start + hour * 2);
  end_stopped();
  go(start + hour * 4);
  EXPECT_EQ(used, money("1026"));  // (90 + 90) CE × 2 h × 2.85
  EXPECT_EQ(besides[InvoiceLineKind::covered], -money("456"));
  EXPECT_EQ(region.revenue(), money("570"));
}

TEST_F(ReservationTest, AWalletWithWhatIsHeldLastsToItsEnd) {
  publish();
  const ReservationAnswer answer =
      quote_reservation(region.state, region.now, acme, order(50, Duration{0}, hour * 24));
  ASSERT_FALSE(answer.reject);
  const Money paid = answer.quote->held;
  ASSERT_FALSE(region.act(PayOut{acme, money("100000") - paid, "all but"}).reject);
  ASSERT_FALSE(reserve(order(50, Duration{0}, hour * 24)).reject);
  EXPECT_TRUE(available(region.state, acme).is_zero());
  submit(spec(30, hour * 24));
  for (int at = 1; at <= 26; ++at) {
    go(start + hour * at);
    end_stopped();
    EXPECT_FALSE(available(region.state, acme).is_negative()) << at;
  }
  EXPECT_EQ(region.revenue(), answer.quote->used);
  EXPECT_EQ(answer.quote->used, money("3420"));
  EXPECT_EQ(ends.front().end, ReservationEnd::over);
}

TEST_F(ReservationTest, ADearerCardIsPaidOrEndsIt) {
  publish();
  ASSERT_FALSE(reserve(order(50, Duration{0}, hour * 4)).reject);
  ASSERT_FALSE(region.act(PayOut{acme, available(region.state, acme), "all"}).reject);
  go(start + hour + Duration::minutes(10));
  ASSERT_FALSE(region.publish(with_reservations("30"), "2").reject);
  go(start + hour * 6);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends.front().end, ReservationEnd::unpaid);
  EXPECT_TRUE(region.held().is_zero());
}

TEST_F(ReservationTest, BeforeItBeginsItIsCancelledForNothing) {
  publish();
  ASSERT_FALSE(reserve(order(50, hour, hour * 3)).reject);
  ASSERT_FALSE(region.act(CancelReservation{first, "not needed"}).reject);
  EXPECT_TRUE(region.held().is_zero());
  go(start + hour * 5);
  EXPECT_TRUE(region.revenue().is_zero());
  EXPECT_TRUE(region.act(CancelReservation{first, ""}).reject);
  ASSERT_FALSE(reserve(order(100, hour * 6, hour * 30)).reject) << "its place is free again";
  go(start + hour * 7);
  const Decision late = region.act(CancelReservation{ReservationId{2}, ""});
  ASSERT_TRUE(late.reject);
  EXPECT_EQ(late.reject->code, RejectCode::wrong_state);
}

TEST_F(ReservationTest, WhatIsLockedIsNobodyElses) {
  publish();
  ASSERT_FALSE(reserve(order(60, hour, hour * 3)).reject);
  EXPECT_EQ(reserve(order(60, hour * 2, hour * 4)).reject->code, RejectCode::does_not_fit);
  ASSERT_FALSE(reserve(order(60, hour * 3, hour * 4)).reject) << "one follows another";
  TaskSpec other = Region::spec();
  other.request = spec(60, hour).request;
  other.limit = hour * 2;
  const TaskId task = submit(other);
  EXPECT_TRUE(region.state.tasks.at(task).leases.empty()) << "it would sit on what is reserved";
  EXPECT_EQ(why_waits(region.state, region.state.tasks.at(task)).code,
            "held_by_reservation(rsv-1)");
  other.limit = Duration::minutes(50);
  const TaskId brief = submit(other);
  EXPECT_FALSE(region.state.tasks.at(brief).leases.empty()) << "it has left by then";
}

TEST_F(ReservationTest, WhoWaitsForItEndsWithIt) {
  publish();
  ASSERT_FALSE(reserve(order(50, hour, hour * 2)).reject);
  submit(spec(50, hour));
  const TaskId waits = submit(spec(50, hour));
  EXPECT_TRUE(region.state.leases.empty()) << "it has not begun";
  go(start + hour);
  ASSERT_EQ(region.state.leases.size(), 1U);
  go(start + hour * 2);
  end_stopped();
  go(start + hour * 4);
  EXPECT_EQ(region.state.find_task(waits), nullptr);
}

TEST_F(ReservationTest, WhoMayNotRunOnItIsTold) {
  publish();
  ASSERT_FALSE(reserve(order(50, hour, hour * 2)).reject);
  const auto refusal = [&](TaskSpec made) { return region.act(SubmitTask{acme, made}).reject; };
  TaskSpec made = spec(50, hour);
  made.reservation = {};
  EXPECT_EQ(refusal(made)->code, RejectCode::invalid_argument);
  made = spec(50, hour);
  made.purchase_model = PurchaseModel::on_demand;
  EXPECT_EQ(refusal(made)->code, RejectCode::invalid_argument);
  made = spec(50, hour);
  made.reservation = ReservationId{7};
  EXPECT_EQ(refusal(made)->code, RejectCode::not_found);
  go(start + hour * 3);
  EXPECT_EQ(refusal(spec(50, hour))->code, RejectCode::wrong_state);
  const auto late = reserve(order(50, hour, hour * 4)).reject;
  EXPECT_EQ(late->code, RejectCode::invalid_argument) << "it would begin in the past";
}

// A snapshot in the middle goes on alike.
TEST_F(ReservationTest, ASnapshotGoesOnAlike) {
  publish();
  ASSERT_FALSE(reserve(order(50, Duration::minutes(20), hour * 4)).reject);
  ASSERT_FALSE(reserve(order(30, hour * 2, hour * 5)).reject);
  go(start + Duration::minutes(30));
  submit(spec(20, hour * 2));
  go(start + hour + Duration::minutes(5));
  Region other;
  other.state = state_of(image_of(region.state));
  other.now = region.now;
  EXPECT_EQ(digest(other.state), digest(region.state));
  for (Region* each : {&region, &other}) each->go(start + hour * 2 + Duration::minutes(30));
  EXPECT_EQ(digest(other.state), digest(region.state));
  EXPECT_EQ(next_due(other.state, other.now), next_due(region.state, region.now));
}

}  // namespace
}  // namespace loam::engine

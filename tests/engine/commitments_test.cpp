// Commitments in the engine: what is given back is what a minute-by-minute reckoning of the leases
// gives, however late their ends are told; and shortfalls.
#include <algorithm>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

PriceTerms with_commitments(const char* price) {
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, money(price)}};
  PriceTerms terms;
  terms.prices = {commitment};
  return terms;
}

struct Ran {
  LeaseId lease;
  Instant from;
  Instant to = Instant::never();
};

class CommitmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(region.publish(with_commitments("1"), "2").reject);
    region.on_decision = [this](const Decision& decision) { hear(decision); };
  }

  void hear(const Decision& decision) {
    for (const Event& event : decision.events) {
      if (const auto* covered = std::get_if<UseCovered>(&event)) {
        ++settlements;
        for (const AdjustmentLine& line : covered->lines) given -= line.net;
      } else if (const auto* charged = std::get_if<CommitmentCharged>(&event)) {
        fees += charged->line.net;
      } else if (const auto* usage = std::get_if<UsageRated>(&event)) {
        used += usage->record.net;
      }
    }
  }
  Decision act(const Command& command) { return region.act(command); }
  void settle() { region.settle(); }
  void go(Instant to) { region.go(to); }
  void buy(std::int64_t ce, std::optional<Instant> until = std::nullopt) {
    BuyCommitment order;
    order.tenant = acme;
    order.ce = MilliCe{ce * 1000};
    order.until = until;
    const Decision decision = act(order);
    ASSERT_FALSE(decision.reject) << decision.reject->message;
    bought.emplace_back(region.now, MilliCe{ce * 1000});
  }
  void submit() {
    TaskSpec spec = Region::spec();
    spec.request.share = MilliDevice{250};
    spec.grace = Duration{0};
    ASSERT_FALSE(act(SubmitTask{acme, spec}).reject);
    settle();
    for (const auto& [id, lease] : region.state.leases) {
      if (lease.started()) continue;
      act(ReportStarted{id, lease.epoch, region.now, false});
      ran.push_back({id, region.now});
      break;
    }
  }
  void end(Ran& one, Instant at) {
    const Lease& lease = region.state.leases.at(one.lease);
    ReportEnded ended;
    ended.lease = lease.id;
    ended.epoch = lease.epoch;
    ended.started_at = lease.started_at;
    ended.ended_at = std::max(at, lease.started_at);
    one.to = ended.ended_at;
    act(ended);
    settle();
  }

  // 25 CE a lease at 2.00, less the tenant's 5 %, minute by minute: who began first is covered
  // first.
  Money slow_reckoning(Instant last) const {
    std::vector<Ran> order = ran;
    std::sort(order.begin(), order.end(), [](const Ran& a, const Ran& b) {
      return std::pair(a.from, a.lease) < std::pair(b.from, b.lease);
    });
    std::int64_t milli_ce_minutes = 0;
    for (Instant at = start; at < last; at = at + Duration::minutes(1)) {
      std::int64_t left = 0;
      for (const auto& [from, ce] : bought) left += from <= at ? ce.value : 0;
      for (const Ran& one : order) {
        if (at < one.from || at >= one.to) continue;
        const std::int64_t taken = std::min<std::int64_t>(left, 25'000);
        milli_ce_minutes += taken;
        left -= taken;
      }
    }
    return money("1.9").times_ratio(milli_ce_minutes, 60'000, Rounding::half_even);
  }

  Region region;
  std::vector<Ran> ran;
  std::vector<std::pair<Instant, MilliCe>> bought;
  Money given = Money::zero(usd), fees = given, used = given;
  int settlements = 0;
};

TEST_F(CommitmentTest, give_back_what_a_minute_by_minute_reckoning_gives) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    region = Region();
    SetUp();
    ran.clear();
    bought.clear();
    given = fees = used = Money::zero(usd);
    settlements = 0;
    Random random(seed);
    go(start + Duration::minutes(1));
    buy(random.between(1, 60));
    for (int step = 0; step < 60; ++step) {
      go(region.now + Duration::minutes(random.between(1, 25)));
      const std::uint64_t dice = random.below(10);
      std::vector<Ran*> live;
      for (Ran& one : ran) {
        if (one.to == Instant::never()) live.push_back(&one);
      }
      if (dice < 5 && live.size() < 4) {
        submit();
      } else if (dice < 9 && !live.empty()) {
        // Told up to three hours late.
        const bool late = random.below(2) == 0;
        const Duration ago = Duration::minutes(late ? random.between(1, 180) : 0);
        end(*live[random.below(live.size())], region.now - ago);
      } else if (bought.size() < 3) {
        buy(random.between(1, 30));
      }
    }
    for (Ran& one : ran) {
      if (one.to == Instant::never()) end(one, region.now);
    }
    go(region.now + Duration::hours(2));
    const Money expected = slow_reckoning(region.now);
    const Money off = given - expected;
    // Every part is rounded by itself.
    EXPECT_TRUE(off.units() < 1000 && -off.units() < 1000)
        << to_text(given) << " against " << to_text(expected);
    EXPECT_GT(settlements, 0);
    // The ledger holds exactly what was used, paid in fees and given back.
    EXPECT_EQ(region.revenue(), used + fees - given);
    EXPECT_EQ(region.wallet(), money("100000") - region.revenue());
    EXPECT_TRUE(region.held().is_zero());
    // A snapshot has all of it, and goes on alike.
    State again = state_of(image_of(region.state));
    EXPECT_EQ(digest(again), digest(region.state));
    EXPECT_EQ(next_due(again, region.now), next_due(region.state, region.now));
  }
}

TEST_F(CommitmentTest, hours_are_forgotten_after_eight_days) {
  go(start + Duration::minutes(1));
  buy(25);
  submit();
  ASSERT_EQ(ran.size(), 1U);
  go(start + Duration::minutes(31));
  const Money before = given;
  end(ran.front(), region.now);
  go(start + Duration::hours(2));
  EXPECT_EQ(given, before + money("23.75"));  // 25 CE for half an hour at 1.90
  const std::size_t kept = region.state.commitment_books.at(acme).hours.size();
  EXPECT_EQ(kept, 1U);
  // Ten days on the hour is forgotten, once another one was settled.
  go(start + Duration::hours(240));
  submit();
  go(start + Duration::hours(241));
  end(ran.back(), region.now);
  go(start + Duration::hours(242));
  EXPECT_FALSE(region.state.commitment_books.at(acme).hours.contains(start));
}

TEST_F(CommitmentTest, a_fee_counts_in_a_budget_and_cover_is_taken_off) {
  Budget budget;
  budget.name = "b";
  budget.scope.tenant = acme;
  budget.monthly = money("100000");
  ASSERT_FALSE(act(SetBudget{budget}).reject);
  go(start + Duration::minutes(1));
  buy(25);
  const Money fee = money("17337.5");  // 25 CE × 730 h × 1.00, less 5 %
  EXPECT_EQ(fees, fee);
  EXPECT_EQ(region.state.budgets.standing("b", region.now).spent, fee);
  submit();
  go(start + Duration::minutes(61));
  end(ran.front(), region.now);
  EXPECT_EQ(region.state.budgets.standing("b", region.now).spent, fee + money("47.5"));
  go(start + Duration::hours(3));
  EXPECT_EQ(region.state.budgets.standing("b", region.now).spent, fee);
}

TEST_F(CommitmentTest, a_shortfall_is_credited_at_the_mean_price_once) {
  go(start + Duration::minutes(1));
  submit();
  const LeaseId lease = ran.front().lease;
  go(start + Duration::minutes(31));
  ReportShortfall report;
  report.lease = lease;
  report.epoch = region.state.leases.at(lease).epoch;
  report.from = region.now - Duration::minutes(1);
  report.to = region.now;
  report.promised = BasisPoints{2500};
  report.delivered = BasisPoints{1000};
  const Money before = region.wallet();
  ASSERT_FALSE(act(report).reject);
  // 25 CE × 1.90 are 47.50 an hour: of one minute three fifths.
  EXPECT_EQ(region.wallet() - before, money("0.475"));
  EXPECT_EQ(act(report).reject->code, RejectCode::duplicate_report);
  // The same interval, as another clock reading has it.
  report.from = report.from + Duration{40};
  report.to = report.to + Duration{40};
  EXPECT_EQ(act(report).reject->code, RejectCode::duplicate_report);
  report.epoch = Epoch{9};
  EXPECT_EQ(act(report).reject->code, RejectCode::stale_epoch);
  end(ran.front(), region.now);
  EXPECT_EQ(region.revenue(), used - money("0.475"));
  EXPECT_TRUE(region.held().is_zero());
}

}  // namespace
}  // namespace loam::engine

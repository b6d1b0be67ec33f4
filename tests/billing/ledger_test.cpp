// Two-phase holds, wallets that cannot be overspent, reversals: once each, summing to zero.
#include "billing/ledger.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

constexpr TenantId acme{1};

Ledger ledger_with(const char* amount, PaymentMode mode = PaymentMode::prepaid,
                   const char* credit = "0") {
  Ledger ledger;
  ledger.open(acme, {usd, mode, money(credit)});
  if (money(amount) > Money::zero(usd)) {
    EXPECT_TRUE(ledger.top_up(TransactionId{1}, acme, money(amount), "").ok());
  }
  return ledger;
}

TEST(Ledger, a_hold_is_posted_up_to_its_amount_and_the_rest_comes_back) {
  Ledger ledger = ledger_with("10");
  ASSERT_TRUE(ledger.hold(TransactionId{2}, acme, TaskId{7}, money("6")).ok());
  EXPECT_EQ(ledger.available(acme), money("4"));
  EXPECT_NE(refusal(ledger.post(TransactionId{3}, TransactionId{2}, money("6.01"))).find("6.01"),
            std::string::npos);
  ASSERT_TRUE(ledger.post(TransactionId{3}, TransactionId{2}, money("2.5")).ok());
  EXPECT_EQ(ledger.wallet(acme), money("7.5"));
  EXPECT_EQ(ledger.held(acme), money("0"));
  EXPECT_EQ(ledger.accounts().balance(revenue_in(usd)), money("2.5"));
  EXPECT_EQ(ledger.state_of(TransactionId{2}), Ledger::HoldState::posted);
}

TEST(Ledger, a_hold_ends_once_and_every_operation_takes_effect_once) {
  Ledger ledger = ledger_with("10");
  ASSERT_TRUE(ledger.hold(TransactionId{2}, acme, TaskId{7}, money("6")).ok());
  ASSERT_TRUE(ledger.hold(TransactionId{2}, acme, TaskId{7}, money("6")).ok());  // sent again
  EXPECT_EQ(ledger.held(acme), money("6"));
  EXPECT_FALSE(ledger.hold(TransactionId{2}, acme, TaskId{7}, money("5")).ok());
  ASSERT_TRUE(ledger.post(TransactionId{3}, TransactionId{2}, money("1")).ok());
  ASSERT_TRUE(ledger.post(TransactionId{3}, TransactionId{2}, money("1")).ok());  // sent again
  EXPECT_NE(
      refusal(ledger.post(TransactionId{4}, TransactionId{2}, money("1"))).find("posted already"),
      std::string::npos);
  EXPECT_NE(refusal(ledger.release(TransactionId{5}, TransactionId{2})).find("posted already"),
            std::string::npos);
  EXPECT_EQ(ledger.wallet(acme), money("9"));
  EXPECT_FALSE(ledger.post(TransactionId{6}, TransactionId{99}, money("1")).ok());
}

TEST(Ledger, holds_expire_at_their_time_and_not_before) {
  Ledger ledger = ledger_with("10");
  const Instant now = at("2025-03-01T00:00:00Z");
  ASSERT_TRUE(ledger.hold(TransactionId{2}, acme, TaskId{1}, money("3"), now + hm(1)).ok());
  ASSERT_TRUE(ledger.hold(TransactionId{3}, acme, TaskId{2}, money("3"), now + hm(2)).ok());
  EXPECT_TRUE(ledger.expire(now + hm(0, 59), TransactionId{100}).empty());
  EXPECT_EQ(ledger.expire(now + hm(1), TransactionId{100}).size(), 1u);
  EXPECT_EQ(ledger.state_of(TransactionId{2}), Ledger::HoldState::expired);
  EXPECT_EQ(ledger.available(acme), money("7"));
  EXPECT_FALSE(ledger.post(TransactionId{4}, TransactionId{2}, money("1")).ok());
  ASSERT_TRUE(ledger.post(TransactionId{5}, TransactionId{3}, money("1")).ok());
  EXPECT_TRUE(ledger.expire(now + hm(9), TransactionId{200}).empty());
}

TEST(Ledger, credit_reaches_as_far_as_its_limit) {
  Ledger ledger = ledger_with("0", PaymentMode::postpaid, "5");
  EXPECT_TRUE(ledger.hold(TransactionId{2}, acme, TaskId{1}, money("5")).ok());
  EXPECT_FALSE(ledger.hold(TransactionId{3}, acme, TaskId{1}, money("0.000000000001")).ok());
  EXPECT_FALSE(ledger.charge(TransactionId{4}, acme, TaskId{1}, money("1")).ok());
}

TEST(Ledger, refunds_never_give_more_than_was_charged) {
  Ledger ledger = ledger_with("10");
  ASSERT_TRUE(ledger.charge(TransactionId{2}, acme, TaskId{1}, money("4")).ok());
  ASSERT_TRUE(ledger.refund(TransactionId{3}, acme, TaskId{1}, money("3")).ok());
  EXPECT_FALSE(ledger.refund(TransactionId{4}, acme, TaskId{1}, money("2")).ok());
  ASSERT_TRUE(ledger.reverse(TransactionId{5}, TransactionId{3}, "wrong one").ok());
  EXPECT_TRUE(ledger.refund(TransactionId{6}, acme, TaskId{1}, money("4")).ok());
  EXPECT_EQ(ledger.wallet(acme), money("10"));
}

TEST(Ledger, a_reversed_payment_that_was_spent_is_owed_and_stops_further_holds) {
  Ledger ledger = ledger_with("10");
  ASSERT_TRUE(ledger.charge(TransactionId{2}, acme, TaskId{1}, money("4")).ok());
  ASSERT_TRUE(ledger.reverse(TransactionId{3}, TransactionId{1}, "card disputed").ok());
  EXPECT_EQ(ledger.wallet(acme), money("-4"));
  EXPECT_FALSE(ledger.hold(TransactionId{4}, acme, TaskId{1}, money("0.01")).ok());
}

TEST(Ledger, bad_amounts_are_refused_and_nothing_booked) {
  Ledger ledger = ledger_with("10");
  EXPECT_FALSE(ledger.top_up(TransactionId{2}, acme, money("0"), "").ok());
  EXPECT_FALSE(ledger.top_up(TransactionId{2}, acme, money("-1"), "").ok());
  EXPECT_FALSE(ledger.top_up(TransactionId{2}, acme, money("1", Currency("EUR")), "").ok());
  EXPECT_FALSE(ledger.hold(TransactionId{2}, TenantId{9}, TaskId{1}, money("1")).ok());
  EXPECT_EQ(ledger.transactions().size(), 1u);
}

TEST(Ledger, any_sequence_of_operations_sums_to_zero_and_never_overspends) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Ledger ledger = ledger_with("20", PaymentMode::postpaid, "3");
    std::uint64_t id = 2;
    std::vector<TransactionId> holds;
    for (int step = 0; step < 200; ++step) {
      const Money amount(random.between(1, 3'000'000'000'000), usd);
      const TransactionId next{id++};
      switch (random.below(7)) {
        case 0:
          static_cast<void>(ledger.top_up(next, acme, amount, ""));
          break;
        case 1:
        case 2:
          if (ledger.hold(next, acme, TaskId{1}, amount, Instant{step + random.between(1, 50)})
                  .ok())
            holds.push_back(next);
          break;
        case 3:
          if (!holds.empty())
            static_cast<void>(ledger.post(next, holds[random.below(holds.size())], amount));
          break;
        case 4:
          if (!holds.empty())
            static_cast<void>(ledger.release(next, holds[random.below(holds.size())]));
          break;
        case 5:
          static_cast<void>(ledger.charge(next, acme, TaskId{1}, amount));
          break;
        default:
          id += ledger.expire(Instant{step}, next).size();
          break;
      }
      ASSERT_TRUE(ledger.imbalance(usd).is_zero()) << "seed " << seed;
      ASSERT_GE(ledger.wallet(acme), money("-3")) << "seed " << seed;
      ASSERT_FALSE(ledger.held(acme).is_negative()) << "seed " << seed;
    }
  }
}

TEST(Ledger, sixty_four_threads_cannot_overspend_a_wallet) {
  // The ledger is a plain structure: whoever shares it orders the operations, here with a lock.
  // What is held and posted between the two phases is open to every other thread.
  Ledger ledger = ledger_with("10");
  std::mutex turn;
  std::atomic<std::uint64_t> id{2};
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const TransactionId hold{id++};
        {
          const std::lock_guard lock(turn);
          if (!ledger.hold(hold, acme, TaskId{1}, money("0.05")).ok()) continue;
        }
        ++admitted;
        std::this_thread::yield();
        const TransactionId post{id++};
        const std::lock_guard lock(turn);
        EXPECT_TRUE(ledger.post(post, hold, money("0.05")).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 200);  // 10.00 / 0.05 of 1280 asked
  EXPECT_EQ(ledger.wallet(acme), money("0"));
  EXPECT_EQ(ledger.accounts().balance(revenue_in(usd)), money("10"));
  EXPECT_TRUE(ledger.imbalance(usd).is_zero());
}

}  // namespace
}  // namespace loam::billing

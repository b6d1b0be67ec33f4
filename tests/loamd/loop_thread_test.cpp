// The daemon's loop under many clients at once: what a wallet or a budget covers is admitted and no
// more, whoever comes first, and what is held, spent and left always makes up what was paid in.
#include "app/loamd/loop_thread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "billing/accounts.hpp"
#include "engine/terms.hpp"

namespace loam::daemon {
namespace {

const Currency usd("USD");
const Actor actor{"test", "client"};
constexpr int clients = 64;
constexpr int covered = 10;  // tasks
constexpr TenantId acme{1};

Money cents(std::int64_t amount) {
  return Money(Int128{Money::units_per_one} / 100 * amount, usd);
}

class StillClock final : public engine::Clock {
 public:
  Instant now() override { return Instant{1'767'225'600'000}; }
};

class MemoryJournal final : public engine::Journal {
 public:
  Result<void> append(std::span<const Record> batch) override {
    records.insert(records.end(), batch.begin(), batch.end());
    return {};
  }
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const Record&)>& each) override {
    for (const Record& record : records) {
      if (record.sequence > after) LOAM_CHECK(each(record));
    }
    return {};
  }
  Result<engine::StateImage> load_snapshot() override { return engine::StateImage{}; }

  std::vector<Record> records;
};

class NoExecutor final : public engine::Executor {
 public:
  void launch(const engine::State&, const engine::LaunchEffect&) override {}
  void stop(const engine::State&, const engine::StopEffect&) override {}
};

class LoopThreadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loop.recover().ok());
    loop.start();
    loop.settled();
    DeviceFacts facts;
    facts.uuid = "gpu-0";
    facts.memory = Mebibytes{64'000};
    facts.factors = {MilliCe{640'000}, MilliCe{640'000}, MilliCe{640'000}, MilliCe{640'000}};
    RateCard card;
    card.on_demand = cents(100);
    card.ce_per_gibibyte = MilliCe{0};
    ask(AttachNode{"n1", "", MilliCpu{}, Mebibytes{}});
    ask(AttachDevice{"n1", facts});
    ask(PublishRateCard{card});
    TenantSpec tenant;
    tenant.name = "acme";
    tenant.credit_limit = Money::zero(usd);
    ask(CreateTenant{tenant});
  }
  void TearDown() override { loop.stop(); }

  engine::Answer ask(Command command, RequestKey key = {}) {
    std::promise<engine::Answer> answered;
    loop.post({std::move(command), actor, std::move(key),
               [&](const engine::Answer& answer) { answered.set_value(answer); }});
    return answered.get_future().get();
  }

  // What one task sets aside: that of the quote.
  static TaskSpec spec() {
    TaskSpec made;
    made.command = {"true"};
    made.request.ce = MilliCe{10'000};
    made.request.memory = Mebibytes{500};
    made.limit = Duration::hours(1);
    return made;
  }
  Money one_task() {
    Money amount;
    loop.read([&](const engine::State& state, Instant now) {
      amount = engine::hold_for(state, now, state.tenant(acme), spec(), Duration{}).amount;
    });
    return amount;
  }

  // Every client submits at the same time; the codes of the refusals.
  std::vector<RejectCode> all_submit() {
    std::vector<std::optional<RejectCode>> codes(clients);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients; ++i) {
      threads.emplace_back([&, i] {
        const engine::Answer answer =
            ask(SubmitTask{acme, spec()}, {"client", std::to_string(i), "f"});
        if (answer.reject) codes[i] = answer.reject->code;
        EXPECT_FALSE(answer.error);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<RejectCode> refused;
    for (const auto& code : codes) {
      if (code) refused.push_back(*code);
    }
    return refused;
  }
  Money balance(const Account& account) {
    Money amount;
    loop.read(
        [&](const engine::State& state, Instant) { amount = state.accounts.balance(account); });
    return amount;
  }

  StillClock clock;
  MemoryJournal journal;
  NoExecutor executor;
  LoopThread loop{clock, journal, executor};
};

TEST_F(LoopThreadTest, sixty_four_clients_start_what_the_wallet_covers_and_no_more) {
  const Money each = one_task();
  ASSERT_TRUE(each > Money::zero(usd));
  const Money paid_in = each.times_ratio(covered, 1, Rounding::up) + Money(7, usd);
  ASSERT_TRUE(ask(TopUp{acme, paid_in, ""}).ok());
  const std::vector<RejectCode> refused = all_submit();
  EXPECT_EQ(refused.size(), clients - covered);
  EXPECT_TRUE(std::all_of(refused.begin(), refused.end(),
                          [](RejectCode code) { return code == RejectCode::insufficient_funds; }));
  const Money wallet = balance(billing::wallet_of(acme, usd));
  const Money held = balance(billing::held_of(acme, usd));
  EXPECT_FALSE(wallet.is_negative()) << to_text(wallet);
  EXPECT_EQ(wallet + held, paid_in);
  EXPECT_EQ(held, each.times_ratio(covered, 1, Rounding::up));
}

TEST_F(LoopThreadTest, sixty_four_clients_start_what_a_budget_covers_and_no_more) {
  const Money each = one_task();
  ASSERT_TRUE(ask(TopUp{acme, each.times_ratio(clients, 1, Rounding::up), ""}).ok());
  Budget budget;
  budget.name = "b";
  budget.scope.tenant = acme;
  budget.monthly = each.times_ratio(covered, 1, Rounding::up) + Money(7, usd);
  ASSERT_TRUE(ask(SetBudget{budget}).ok());
  const std::vector<RejectCode> refused = all_submit();
  EXPECT_EQ(refused.size(), clients - covered);
  EXPECT_TRUE(std::all_of(refused.begin(), refused.end(),
                          [](RejectCode code) { return code == RejectCode::budget_exceeded; }));
}

// Money goes out, comes in and is turned round while tasks are asked for: the wallet is never below
// zero by what clients take, and nothing is lost.
TEST_F(LoopThreadTest, sixty_four_clients_cannot_take_out_more_than_there_is) {
  ASSERT_TRUE(ask(TopUp{acme, cents(1000), ""}).ok());
  std::atomic<int> paid = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] { paid += ask(PayOut{acme, cents(100), "back"}).ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(paid, 10);
  EXPECT_TRUE(balance(billing::wallet_of(acme, usd)).is_zero());
  EXPECT_TRUE(balance(billing::cash_in(usd)).is_zero());
}

}  // namespace
}  // namespace loam::daemon

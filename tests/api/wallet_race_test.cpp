// Sixty-four clients at once against one wallet, and against one budget: what is admitted is what
// it reaches for, whoever comes first.
#include <atomic>
#include <thread>

#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

class RaceTest : public ApiTest {
 protected:
  static constexpr int clients = 64;
  static constexpr int reach = 10;

  std::string at_most_of_one() {
    return post("/v1/quote", task_body("acme")).as<QuoteView>().at_most;
  }
  // Ten times that, in the same currency.
  std::string ten_of(const std::string& amount) {
    const Money one = *Money::parse(amount, Currency("USD"));
    return amount_text(one.times_ratio(reach, 1, Rounding::up));
  }
  struct Counted {
    int accepted = 0;
    int refused = 0;  // for want of money or budget
    int other = 0;
  };
  Counted all_submit(const std::string& tenant) {
    std::atomic<int> accepted = 0, refused = 0, other = 0, ready = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < clients) std::this_thread::yield();
        const Caught answer =
            post("/v1/tasks", task_body(tenant), root, "race-" + tenant + std::to_string(i));
        if (answer.status() == 201) {
          ++accepted;
        } else {
          const std::string code = answer.problem().code;
          ++(code == "insufficient_funds" || code == "budget_exceeded" ? refused : other);
        }
      });
    }
    for (std::thread& each : threads) each.join();
    return {accepted, refused, other};
  }
};

TEST_F(RaceTest, a_wallet_for_ten_tasks_starts_ten_of_sixty_four) {
  const std::string one = at_most_of_one();
  const std::string all = ten_of(one);
  ASSERT_EQ(post("/v1/tenants", R"({"name":"gamma"})").status(), 201);
  daemon.run(TopUp{TenantId{3}, *Money::parse(all, Currency("USD")), "for ten"});
  const Counted counted = all_submit("gamma");
  EXPECT_EQ(counted.accepted, reach);
  EXPECT_EQ(counted.refused, clients - reach);
  EXPECT_EQ(counted.other, 0);
  const auto view = get("/v1/tenants/gamma").as<TenantView>();
  EXPECT_EQ(view.held, all);
  EXPECT_EQ(view.wallet, "0");
}

TEST_F(RaceTest, a_budget_for_ten_tasks_starts_ten_of_sixty_four) {
  const std::string all = ten_of(at_most_of_one());
  ASSERT_EQ(
      post("/v1/budgets", R"({"name":"cap","tenant":"acme","monthly":")" + all + "\"}").status(),
      201);
  const Counted counted = all_submit("acme");
  EXPECT_EQ(counted.accepted, reach);
  EXPECT_EQ(counted.refused, clients - reach);
  EXPECT_EQ(counted.other, 0);
  EXPECT_EQ(get("/v1/budgets/cap").as<BudgetView>().reserved, all);
}

}  // namespace
}  // namespace loam::api::testing

// Budgets: the three thresholds, approvals that expire, months, scopes, and 64 threads.
#include "billing/budgets.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

constexpr TenantId acme{1};
const Instant now = parse_instant("2025-03-05T00:00:00Z").value();

Budget budget(const char* name = "b", const char* monthly = "100") {
  Budget made;
  made.name = name;
  made.scope.tenant = acme;
  made.monthly = money(monthly);
  made.channels = {"https://hooks.example/budget"};
  return made;
}

BudgetBook book_with(Budget made) {
  BudgetBook books;
  EXPECT_TRUE(books.add(std::move(made)).ok());
  return books;
}

std::vector<std::string> kinds(const std::vector<BudgetNotice>& notices) {
  std::vector<std::string> names;
  for (const BudgetNotice& notice : notices) names.push_back(name_of(notice.kind));
  return names;
}

using Kinds = std::vector<std::string>;

TEST(Budget, reminds_then_limits_then_asks_each_once) {
  BudgetBook books = book_with(budget());
  EXPECT_EQ(kinds(books.spend(acme, {}, money("79.99"), now)), Kinds{});
  const auto reminder = books.spend(acme, {}, money("0.01"), now);
  ASSERT_EQ(kinds(reminder), Kinds{"reminder"});
  EXPECT_EQ(reminder[0].channels, budget().channels);
  EXPECT_EQ(kinds(books.spend(acme, {}, money("1"), now)), Kinds{});
  EXPECT_TRUE(books.admit(acme, {}, money("19"), now).ok());
  EXPECT_EQ(kinds(books.spend(acme, {}, money("19"), now)), Kinds{"limited"});
  EXPECT_NE(refusal(books.admit(acme, {}, money("0.01"), now)).find("budget 'b'"),
            std::string::npos);
  EXPECT_EQ(kinds(books.spend(acme, {}, money("20"), now)), Kinds{"approval_requested"});
  EXPECT_EQ(kinds(books.spend(acme, {}, money("20"), now)), Kinds{});
}

TEST(Budget, a_jump_over_all_thresholds_tells_all_of_them) {
  Budget strict = budget();
  strict.running = RunningPolicy::stop;
  BudgetBook books = book_with(strict);
  EXPECT_EQ(kinds(books.spend(acme, {}, money("500"), now)),
            (Kinds{"reminder", "limited", "stop_running", "approval_requested"}));
}

TEST(Budget, an_approval_names_who_until_when_and_how_much_and_ends) {
  BudgetBook books = book_with(budget());
  EXPECT_FALSE(books.approve("b", {"ann", now + hm(48), money("200")}, now).ok());  // nobody asked
  books.spend(acme, {}, money("120"), now);
  EXPECT_FALSE(books.approve("b", {"ann", now, money("200")}, now).ok());
  EXPECT_FALSE(books.approve("b", {"ann", now + hm(48), money("120")}, now).ok());
  EXPECT_FALSE(books.approve("b", {"", now + hm(48), money("200")}, now).ok());
  ASSERT_TRUE(books.approve("b", {"ann", now + hm(48), money("200")}, now).ok());
  EXPECT_TRUE(books.admit(acme, {}, money("80"), now).ok());
  EXPECT_FALSE(books.admit(acme, {}, money("80.01"), now).ok());
  EXPECT_EQ(kinds(books.spend(acme, {}, money("80"), now)), Kinds{"approval_requested"});
  EXPECT_EQ(kinds(books.tick(now + hm(48))), (Kinds{"approval_expired", "approval_expired"}));
  EXPECT_FALSE(books.admit(acme, {}, money("0.01"), now + hm(48)).ok());
}

TEST(Budget, an_unanswered_request_expires) {
  BudgetBook books = book_with(budget());
  books.spend(acme, {}, money("120"), now);
  EXPECT_TRUE(books.standing("b", now).request_open);
  EXPECT_EQ(kinds(books.tick(now + hm(23, 59))), Kinds{});
  EXPECT_EQ(kinds(books.tick(now + hm(24))), Kinds{"approval_expired"});
  EXPECT_FALSE(books.approve("b", {"ann", now + hm(48), money("200")}, now + hm(24)).ok());
}

TEST(Budget, a_month_ends_at_local_midnight) {
  Budget local = budget();
  local.zone = "America/New_York";
  BudgetBook books = book_with(local);
  books.spend(acme, {}, money("100"), now);
  EXPECT_FALSE(books.admit(acme, {}, money("1"), at("2025-04-01T03:59:59Z")).ok());
  EXPECT_TRUE(books.admit(acme, {}, money("1"), at("2025-04-01T04:00:00Z")).ok());
}

TEST(Budget, counts_what_its_scope_names) {
  Budget narrow = budget();
  narrow.scope.project = "vision";
  narrow.scope.environment = "production";
  BudgetBook books = book_with(narrow);
  Attribution inside, outside;
  inside.project = outside.project = "vision";
  inside.environment = "production";
  outside.environment = "test";
  books.spend(acme, outside, money("500"), now);
  books.spend(TenantId{2}, inside, money("500"), now);
  EXPECT_EQ(books.standing("b", now).spent, money("0"));
  books.spend(acme, inside, money("5"), now);
  EXPECT_EQ(books.standing("b", now).spent, money("5"));
}

TEST(Budget, denies_where_what_was_spent_is_not_known_if_it_is_hard) {
  BudgetBook books = book_with(budget());
  const auto refused = books.admit(acme, {}, money("1"), now, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  Budget soft = budget("s");
  soft.hard = false;
  EXPECT_TRUE(book_with(soft).admit(acme, {}, money("1"), now, false).ok());
}

TEST(Budget, definitions_that_cannot_work_are_refused) {
  BudgetBook books = book_with(budget());
  EXPECT_FALSE(books.add(budget()).ok());
  EXPECT_FALSE(books.add(budget("zero", "0")).ok());
  Budget falling = budget("falling");
  falling.remind_at = {11'000};
  EXPECT_FALSE(books.add(falling).ok());
  Budget nowhere = budget("nowhere");
  nowhere.zone = "Mars/Olympus";
  EXPECT_FALSE(books.add(nowhere).ok());
  EXPECT_FALSE(books.remove("nobody").ok());
  EXPECT_FALSE(books.admit(acme, {}, money("1", Currency("EUR")), now).ok());
}

TEST(Budget, sixty_four_threads_cannot_pass_the_limit) {
  BudgetBook books = book_with(budget("b", "10"));
  std::mutex turn;
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        {
          const std::lock_guard lock(turn);
          if (!books.reserve(key, acme, {}, money("0.10"), now).ok()) continue;
        }
        ++admitted;
        std::this_thread::yield();
        const std::lock_guard lock(turn);
        books.settle(key, acme, {}, money("0.10"), now);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 100);
  EXPECT_EQ(books.standing("b", now).spent, money("10"));
  EXPECT_EQ(books.standing("b", now).reserved, money("0"));
}

}  // namespace
}  // namespace loam::billing

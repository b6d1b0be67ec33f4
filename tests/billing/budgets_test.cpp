// Budgets: the three thresholds, approvals that expire, months and scopes. That 64 clients at once
// cannot pass one is shown on the daemon.
#include "billing/budgets.hpp"

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

// All that is to be told at an instant, and noted as told.
std::vector<BudgetNotice> tell(BudgetBook& books, Instant at) {
  std::vector<BudgetNotice> notices;
  while (auto next = books.due(at)) {
    books.told(*next);
    notices.push_back(std::move(*next));
  }
  return notices;
}

std::vector<BudgetNotice> spend(BudgetBook& books, const char* amount,
                                const Attribution& what = {}) {
  books.count(acme, what, money(amount), now);
  return tell(books, now);
}

bool approve(BudgetBook& books, const Approval& approval, Instant at) {
  const auto notice = books.check("b", approval, at);
  if (!notice.ok()) return false;
  books.apply("b", approval);
  EXPECT_EQ(notice->limit, books.standing("b", at).limit);
  return true;
}

TEST(Budget, reminds_then_limits_then_asks_each_once) {
  BudgetBook books = book_with(budget());
  EXPECT_EQ(kinds(spend(books, "79.99")), Kinds{});
  const auto reminder = spend(books, "0.01");
  ASSERT_EQ(kinds(reminder), Kinds{"reminder"});
  EXPECT_EQ(reminder[0].channels, budget().channels);
  EXPECT_EQ(kinds(spend(books, "1")), Kinds{});
  EXPECT_TRUE(books.admit(acme, {}, money("19"), now).ok());
  EXPECT_EQ(kinds(spend(books, "19")), Kinds{"limited"});
  EXPECT_NE(refusal(books.admit(acme, {}, money("0.01"), now)).find("budget 'b'"),
            std::string::npos);
  EXPECT_EQ(kinds(spend(books, "20")), Kinds{"approval_requested"});
  EXPECT_EQ(kinds(spend(books, "20")), Kinds{});
}

TEST(Budget, a_jump_over_all_thresholds_tells_all_of_them) {
  Budget strict = budget();
  strict.running = RunningPolicy::stop;
  BudgetBook books = book_with(strict);
  EXPECT_EQ(kinds(spend(books, "500")),
            (Kinds{"reminder", "limited", "stop_running", "approval_requested"}));
}

TEST(Budget, an_approval_names_who_until_when_and_how_much_and_ends) {
  BudgetBook books = book_with(budget());
  EXPECT_FALSE(approve(books, {"ann", now + hm(48), money("200")}, now));  // nobody asked
  spend(books, "120");
  EXPECT_FALSE(approve(books, {"ann", now, money("200")}, now));
  EXPECT_FALSE(approve(books, {"ann", now + hm(48), money("120")}, now));
  EXPECT_FALSE(approve(books, {"", now + hm(48), money("200")}, now));
  ASSERT_TRUE(approve(books, {"ann", now + hm(48), money("200")}, now));
  EXPECT_TRUE(books.admit(acme, {}, money("80"), now).ok());
  EXPECT_FALSE(books.admit(acme, {}, money("80.01"), now).ok());
  EXPECT_EQ(kinds(spend(books, "80")), Kinds{"approval_requested"});
  EXPECT_EQ(kinds(tell(books, now + hm(48))), (Kinds{"approval_expired", "approval_expired"}));
  EXPECT_FALSE(books.admit(acme, {}, money("0.01"), now + hm(48)).ok());
}

TEST(Budget, an_unanswered_request_expires) {
  BudgetBook books = book_with(budget());
  spend(books, "120");
  EXPECT_TRUE(books.standing("b", now).request_open);
  EXPECT_EQ(kinds(tell(books, now + hm(23, 59))), Kinds{});
  EXPECT_EQ(kinds(tell(books, now + hm(24))), Kinds{"approval_expired"});
  EXPECT_FALSE(approve(books, {"ann", now + hm(48), money("200")}, now + hm(24)));
}

TEST(Budget, a_month_ends_at_local_midnight) {
  Budget local = budget();
  local.zone = "America/New_York";
  BudgetBook books = book_with(local);
  spend(books, "100");
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
  spend(books, "500", outside);
  books.count(TenantId{2}, inside, money("500"), now);
  EXPECT_EQ(books.standing("b", now).spent, money("0"));
  spend(books, "5", inside);
  EXPECT_EQ(books.standing("b", now).spent, money("5"));
}

TEST(Budget, what_is_set_aside_is_not_there_for_others) {
  BudgetBook books = book_with(budget());
  books.set_aside("t1", acme, {}, money("60"), now);
  EXPECT_FALSE(books.admit(acme, {}, money("40.01"), now).ok());
  EXPECT_TRUE(books.admit(acme, {}, money("40"), now).ok());
  books.set_aside("t1", acme, {}, money("30"), now);  // another amount, not one more
  EXPECT_EQ(books.standing("b", now).reserved, money("30"));
  books.set_aside("t1", acme, {}, money("0"), now);
  EXPECT_EQ(books.standing("b", now).available, money("100"));
}

TEST(Budget, a_request_is_refused_once_and_ends_what_runs) {
  BudgetBook books = book_with(budget());
  EXPECT_FALSE(books.check_refusal("b", "ann", now).ok());  // nobody asked
  spend(books, "120");
  EXPECT_FALSE(books.ends(acme, {}, now));
  const auto refused = books.check_refusal("b", "ann", now);
  ASSERT_TRUE(refused.ok());
  books.told(*refused);
  EXPECT_EQ(books.ends(acme, {}, now), "b");
  EXPECT_FALSE(books.check_refusal("b", "ann", now).ok());
  EXPECT_FALSE(approve(books, {"ann", now + hm(48), money("200")}, now));
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

}  // namespace
}  // namespace loam::billing

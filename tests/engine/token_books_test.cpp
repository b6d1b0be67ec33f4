// Tokens in the books: charged once, passed on to the owner once, whatever is sent again.
#include "billing/invoicing.hpp"
#include "engine/region.hpp"

namespace loam::engine {
namespace {

constexpr TenantId beta{2};

class TokenBooksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TenantSpec tenant;
    tenant.name = "beta";
    tenant.currency = usd;
    tenant.credit_limit = Money::zero(usd);
    region.act(CreateTenant{tenant});
    region.act(TopUp{beta, money("100"), ""});
    PriceTerms terms;
    terms.taxes = {{"VAT", 190'000}};
    terms.tokens = {{"tiny", money("1"), money("0.5"), money("4")}};
    ASSERT_FALSE(region.publish(terms, "2").reject);
  }
  TokenUse use(TenantId caller = beta) const {
    TokenUse made;
    made.caller = caller;
    made.owner = acme;
    made.project = "vision";
    made.environment = "default";
    made.model = "tiny";
    made.from = made.to = region.now;
    made.requests = 2;
    made.prompt_tokens = 3'000'000;
    made.cached_tokens = 2'000'000;
    made.generated_tokens = 1'000'000;
    return made;
  }
  Money wallet(TenantId tenant) const {
    return region.state.accounts.balance(billing::wallet_of(tenant, usd));
  }

  Region region;
};

TEST_F(TokenBooksTest, TheCallerPaysAndTheOwnerIsCreditedOnce) {
  const Decision decision = region.act(RecordTokens{"g", 10, {use()}});
  ASSERT_FALSE(decision.reject) << decision.reject->message;
  EXPECT_EQ(decision.subject, "10");
  // 1 + 2 × 0.5 + 4 = 6, and 19 % on it; the owner gets the 6 with the tax it need not pay.
  EXPECT_EQ(wallet(beta), money("92.86"));
  EXPECT_EQ(wallet(acme), money("100007.14"));
  EXPECT_TRUE(region.state.accounts.balance({AccountKind::revenue, {}, usd}).is_zero());
  EXPECT_TRUE(region.state.accounts.balance({AccountKind::tax, {}, usd}).is_zero());
  for (const std::int64_t again : {10, 9, 1}) {
    const Decision repeated = region.act(RecordTokens{"g", again, {use()}});
    EXPECT_FALSE(repeated.reject);
    EXPECT_TRUE(repeated.events.empty());
    EXPECT_EQ(repeated.subject, "10");
  }
  EXPECT_EQ(wallet(beta), money("92.86"));
  EXPECT_EQ(region.act(RecordTokens{"other", 10, {use()}}).events.size(), 3U);
  EXPECT_EQ(region.act(RecordTokens{"g", 11, {use()}}).events.size(), 3U);
  EXPECT_EQ(wallet(beta), money("78.58"));
}

TEST_F(TokenBooksTest, InvoicesHoldTheTokensAndWhatWasEarned) {
  region.act(RecordTokens{"g", 10, {use(), use(acme)}});
  for (const auto& [tenant, total] : {std::pair{beta, "7.14"}, {acme, "-7.14"}}) {
    const Decision issued = region.act(IssueInvoice{tenant});
    ASSERT_FALSE(issued.reject) << issued.reject->message;
    const auto* invoice = std::get_if<InvoiceIssued>(&issued.events.back());
    ASSERT_NE(invoice, nullptr);
    EXPECT_EQ(invoice->invoice.total, money(total));
    std::int64_t tokens = 0;
    for (const InvoiceLine& line : invoice->invoice.lines) {
      EXPECT_TRUE(counts_tokens(line.key.kind));
      if (line.key.kind != InvoiceLineKind::token_income) tokens += line.milli_ce_ms;
    }
    EXPECT_EQ(tokens, 4'000'000);  // acme's own too, at no price
  }
}

TEST_F(TokenBooksTest, WithoutAnOwnerThePoolEarnsAndWithoutAPriceNobody) {
  TokenUse nobodys = use();
  nobodys.owner = {};
  region.act(RecordTokens{"g", 1, {nobodys}});
  EXPECT_EQ(region.state.accounts.balance({AccountKind::revenue, {}, usd}), money("6"));
  TokenUse unpriced = use();
  unpriced.model = "other";
  const Decision decision = region.act(RecordTokens{"g", 2, {unpriced}});
  ASSERT_EQ(decision.events.size(), 1U);
  EXPECT_EQ(std::get<TokensUsed>(decision.events[0]).charged.size(), 3U);  // counted at 0
  EXPECT_EQ(wallet(beta), money("92.86"));
}

TEST_F(TokenBooksTest, ABudgetCountsTokensWithTheirTax) {
  Budget budget;
  budget.name = "tokens";
  budget.scope = {beta, "vision", std::nullopt, std::nullopt};
  budget.monthly = money("5");
  const Decision set = region.act(SetBudget{budget});
  ASSERT_FALSE(set.reject) << set.reject->message;
  region.act(RecordTokens{"g", 1, {use()}});
  bool told = false;
  for (bool more = true; more && !told;) {
    const Decision decision = region.act(TimePassed{});
    more = !decision.events.empty();
    for (const Event& event : decision.events)
      told = told || std::holds_alternative<BudgetNoticed>(event);
  }
  EXPECT_TRUE(told);
}

TEST_F(TokenBooksTest, AnImageKeepsHowFarEachSourceIs) {
  region.act(RecordTokens{"g", 10, {use()}});
  const auto image = decode_image(encode(image_of(region.state)), snapshot_version);
  ASSERT_TRUE(image.ok()) << to_text(image.error());
  const State again = state_of(*image);
  EXPECT_EQ(digest(again), digest(region.state));
  EXPECT_EQ(again.token_sources.at("g"), 10);
}

TEST_F(TokenBooksTest, WhatCannotBeIsRefusedAsAWhole) {
  const auto refused = [&](const auto& change) {
    TokenUse bad = use();
    change(bad);
    const Decision decision = region.act(RecordTokens{"g", 5, {use(), bad}});
    EXPECT_TRUE(decision.events.empty());
    return decision.reject.has_value();
  };
  EXPECT_TRUE(refused([](TokenUse& u) { u.caller = TenantId{}; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.caller = TenantId{9}; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.owner = TenantId{9}; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.prompt_tokens = -1; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.generated_tokens = std::int64_t{1} << 60; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.cached_tokens = u.prompt_tokens + 1; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.from = u.to + Duration{1}; }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.model.clear(); }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.model = std::string(300, 'x'); }));
  EXPECT_TRUE(refused([](TokenUse& u) { u.project = "Not A Name"; }));
  EXPECT_TRUE(region.act(RecordTokens{"", 5, {use()}}).reject);
  EXPECT_TRUE(region.act(RecordTokens{"g", 0, {use()}}).reject);
  EXPECT_TRUE(region.act(RecordTokens{"g", 5, std::vector<TokenUse>(1001, use())}).reject);
  EXPECT_EQ(wallet(beta), money("100"));
}

}  // namespace
}  // namespace loam::engine

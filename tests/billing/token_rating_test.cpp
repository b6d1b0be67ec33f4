// Tokens by a rate card: the price that holds, sums to the last decimal, and what is refused.
#include "billing/token_rating.hpp"

#include <gtest/gtest.h>

namespace loam::billing {
namespace {

const Currency usd("USD");

Money money(const char* amount) {
  return *Money::parse(amount, usd);
}

RateCard card_with(std::vector<TokenPrice> tokens) {
  RateCard card;
  card.id = RateCardId{1};
  card.currency = usd;
  card.on_demand = money("0.02");
  card.terms.tokens = std::move(tokens);
  return card;
}

TokenUse use() {
  TokenUse made;
  made.caller = TenantId{2};
  made.owner = TenantId{1};
  made.project = made.environment = "default";
  made.model = "tiny-1";
  made.requests = 1;
  made.prompt_tokens = 1000;
  made.cached_tokens = 400;
  made.generated_tokens = 250;
  return made;
}

TEST(TokenRating, EachKindHasItsPriceOfAMillion) {
  const auto table =
      PriceTable::compile(card_with({{"*", money("0.15"), money("0.075"), money("0.60")}}));
  ASSERT_TRUE(table.ok()) << to_text(table.error());
  const auto lines = rate_tokens(*table, use(), BasisPoints{1000});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].key.kind, InvoiceLineKind::prompt_tokens);
  EXPECT_EQ(lines[0].milli_ce_ms, 600);
  EXPECT_EQ(lines[0].list, money("0.00009"));  // 600 × 0.15 / 1e6
  EXPECT_EQ(lines[0].net, money("0.000081"));  // less 10 %
  EXPECT_EQ(lines[1].milli_ce_ms, 400);
  EXPECT_EQ(lines[1].list, money("0.00003"));  // 400 × 0.075 / 1e6
  EXPECT_EQ(lines[2].milli_ce_ms, 250);
  EXPECT_EQ(lines[2].list, money("0.00015"));  // 250 × 0.60 / 1e6
  EXPECT_EQ(lines[2].key.unit_price, money("0.60"));
}

TEST(TokenRating, CachedTokensWithoutAPriceCostWhatThePromptDoes) {
  const auto table =
      PriceTable::compile(card_with({{"*", money("1"), std::nullopt, std::nullopt}}));
  ASSERT_TRUE(table.ok());
  const auto lines = rate_tokens(*table, use(), BasisPoints{0});
  EXPECT_EQ(lines[1].net, money("0.0004"));
  EXPECT_TRUE(lines[2].net.is_zero());  // generated: not charged, and seen
  EXPECT_EQ(lines[2].milli_ce_ms, 250);
}

TEST(TokenRating, TheLongestPatternThatFitsCounts) {
  PriceTerms terms;
  terms.tokens = {{"*", money("1"), {}, {}},
                  {"tiny*", money("2"), {}, {}},
                  {"tiny-1*", money("3"), {}, {}},
                  {"tiny-1", money("4"), {}, {}}};
  EXPECT_EQ(token_price(terms, "tiny-1")->prompt, money("4"));
  EXPECT_EQ(token_price(terms, "tiny-12")->prompt, money("3"));
  EXPECT_EQ(token_price(terms, "tiny")->prompt, money("2"));
  EXPECT_EQ(token_price(terms, "tin")->prompt, money("1"));
  terms.tokens.erase(terms.tokens.begin());
  EXPECT_EQ(token_price(terms, "tin"), nullptr);
}

TEST(TokenRating, ACardWithoutPricesChargesNothingAndCountsAll) {
  const auto table = PriceTable::compile(card_with({}));
  ASSERT_TRUE(table.ok());
  std::int64_t tokens = 0;
  for (const AdjustmentLine& line : rate_tokens(*table, use(), BasisPoints{0})) {
    EXPECT_TRUE(line.net.is_zero());
    tokens += line.milli_ce_ms;
  }
  EXPECT_EQ(tokens, 1250);
}

TEST(TokenRating, AnOwnersOwnTokensCostNothing) {
  const auto table = PriceTable::compile(card_with({{"*", money("1"), {}, money("1")}}));
  ASSERT_TRUE(table.ok());
  TokenUse own = use();
  own.caller = own.owner;
  const auto lines = rate_tokens(*table, own, BasisPoints{0});
  for (const AdjustmentLine& line : lines) EXPECT_TRUE(line.net.is_zero());
  EXPECT_TRUE(income_of(own, lines, RateCardId{1}).empty());
}

TEST(TokenRating, IncomeIsWhatWasChargedToTheLastDecimal) {
  const auto table =
      PriceTable::compile(card_with({{"*", money("0.333333"), money("0.1"), money("0.000001")}}));
  ASSERT_TRUE(table.ok());
  const auto lines = rate_tokens(*table, use(), BasisPoints{333});
  Money charged = money("0");
  Money earned = money("0");
  for (const AdjustmentLine& line : lines) charged += line.net;
  TokenUse sold = use();
  sold.owner_project = "models";
  for (const AdjustmentLine& line : income_of(sold, lines, RateCardId{1})) {
    earned += line.net;
    EXPECT_EQ(line.key.project, "models");
  }
  EXPECT_GT(charged, money("0"));
  EXPECT_EQ(charged + earned, money("0"));
}

TEST(TokenRating, PricesThatCannotBeUsedAreRefusedByTheirModel) {
  const Money euro = *Money::parse("1", Currency("EUR"));
  const std::vector<TokenPrice> bad[] = {
      {{"", money("1"), {}, {}}},    {{"a*b", money("1"), {}, {}}},
      {{"*b", money("1"), {}, {}}},  {{"tiny", money("-1"), {}, {}}},
      {{"tiny", {}, euro, {}}},      {{"tiny", money("1"), {}, {}}, {"tiny", money("2"), {}, {}}},
      std::vector<TokenPrice>(1001),
  };
  for (const auto& tokens : bad) {
    const auto table = PriceTable::compile(card_with(tokens));
    ASSERT_FALSE(table.ok()) << tokens.size();
    EXPECT_NE(table.error().message.find("token"), std::string::npos) << table.error().message;
  }
}

}  // namespace
}  // namespace loam::billing

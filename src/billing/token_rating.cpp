#include "billing/token_rating.hpp"

#include <algorithm>

namespace loam::billing {
namespace {

constexpr std::int64_t million = 1'000'000;
constexpr std::int64_t whole_bp = 10'000;

bool fits(std::string_view pattern, std::string_view model) {
  if (!pattern.ends_with('*')) return pattern == model;
  return model.starts_with(pattern.substr(0, pattern.size() - 1));
}

Result<void> check_amount(const std::optional<Money>& price, const std::string& model,
                          Currency currency) {
  if (!price || (price->currency() == currency && !price->is_negative())) return {};
  return invalid("the price " + to_text(*price) + " of a million tokens of '" + model +
                     "' is not an amount of " + std::string(currency.code()),
                 "give zero or more in the card's currency");
}

}  // namespace

Result<void> check_token_prices(const PriceTerms& terms, Currency currency) {
  constexpr std::size_t entries_max = 1000;
  if (terms.tokens.size() > entries_max)
    return invalid("the card has too many prices of tokens", "the most is 1000");
  for (std::size_t i = 0; i < terms.tokens.size(); ++i) {
    const TokenPrice& price = terms.tokens[i];
    for (const auto& amount : {price.prompt, price.cached, price.generated})
      LOAM_CHECK(check_amount(amount, price.model, currency));
    if (price.model.empty() || price.model.find('*') < price.model.size() - 1) {
      return invalid("the model '" + price.model + "' of a token price is no pattern",
                     "give a name, the beginning of names and '*', or '*' for all");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (terms.tokens[k].model == price.model)
        return invalid("there are two token prices for '" + price.model + "'", "leave one out");
    }
  }
  return {};
}

const TokenPrice* token_price(const PriceTerms& terms, std::string_view model) {
  const TokenPrice* best = nullptr;
  for (const TokenPrice& price : terms.tokens) {
    if (!fits(price.model, model)) continue;
    const bool exact = price.model == model;
    if (exact) return &price;
    if (best == nullptr || price.model.size() > best->model.size()) best = &price;
  }
  return best;
}

std::vector<AdjustmentLine> rate_tokens(const PriceTable& table, const TokenUse& use,
                                        BasisPoints off) {
  const Money zero = Money::zero(table.card().currency);
  const bool own = use.caller == use.owner;
  const TokenPrice* price = own ? nullptr : token_price(table.terms(), use.model);
  const TokenPrice none;
  const TokenPrice& at = price == nullptr ? none : *price;
  struct Kind {
    InvoiceLineKind kind;
    std::int64_t tokens;
    Money unit_price;
  };
  const Kind kinds[] = {
      {InvoiceLineKind::prompt_tokens, use.prompt_tokens - use.cached_tokens,
       at.prompt.value_or(zero)},
      {InvoiceLineKind::cached_tokens, use.cached_tokens,
       at.cached ? *at.cached : at.prompt.value_or(zero)},
      {InvoiceLineKind::generated_tokens, use.generated_tokens, at.generated.value_or(zero)},
  };
  std::vector<AdjustmentLine> lines;
  for (const Kind& kind : kinds) {
    if (kind.tokens == 0) continue;
    AdjustmentLine line;
    line.key.kind = kind.kind;
    line.key.project = use.project;
    line.key.environment = use.environment;
    line.key.model = use.model;
    line.key.unit_price = kind.unit_price;
    line.card = table.card().id;
    line.milli_ce_ms = kind.tokens;
    line.list = kind.unit_price.times_ratio(kind.tokens, million, Rounding::half_even);
    const std::int64_t due_bp = whole_bp - std::clamp<std::int64_t>(off.value, 0, whole_bp);
    line.net =
        kind.unit_price.times_ratio(static_cast<Int128>(kind.tokens) * due_bp,
                                    static_cast<Int128>(million) * whole_bp, Rounding::half_even);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<AdjustmentLine> income_of(const TokenUse& use,
                                      const std::vector<AdjustmentLine>& charged,
                                      RateCardId card_of_owner) {
  std::vector<AdjustmentLine> lines;
  for (const AdjustmentLine& line : charged) {
    if (line.net.is_zero()) continue;
    AdjustmentLine income;
    income.key.kind = InvoiceLineKind::token_income;
    income.key.project = use.owner_project;
    income.key.environment = use.owner_environment;
    income.key.model = line.key.model;
    income.key.unit_price = line.key.unit_price;
    income.card = card_of_owner;
    income.milli_ce_ms = line.milli_ce_ms;
    income.list = income.net = -line.net;
    lines.push_back(std::move(income));
  }
  return lines;
}

}  // namespace loam::billing

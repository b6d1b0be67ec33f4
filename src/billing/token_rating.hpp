// Tokens by a rate card: which price holds for a model, and what tokens come to. Pure and exact.
#pragma once

#include <string_view>
#include <vector>

#include "billing/price_table.hpp"
#include "domain/ledger.hpp"
#include "domain/token_use.hpp"

namespace loam::billing {

// Refuses another currency, amounts below zero, two prices for one pattern, and a pattern with a
// '*' elsewhere than at its end.
Result<void> check_token_prices(const PriceTerms& terms, Currency currency);

// The price of the longest pattern that fits the model; nullptr where none does: then its tokens
// cost nothing. A pattern is a name, or the beginning of names before a '*'; "*" is all.
const TokenPrice* token_price(const PriceTerms& terms, std::string_view model);

// A line for each kind of token that was used. Prices are per million; `off` is the tenant's own
// discount, and the card's do not apply. Each line is rounded once, half to even. The owner of a
// model pays for its instances, and nothing for its own tokens.
std::vector<AdjustmentLine> rate_tokens(const PriceTable& table, const TokenUse& use,
                                        BasisPoints off);

// What the owner is credited of it, to its own project and environment: line by line what the
// caller was charged, before tax.
std::vector<AdjustmentLine> income_of(const TokenUse& use,
                                      const std::vector<AdjustmentLine>& charged,
                                      RateCardId card_of_owner);

}  // namespace loam::billing

// Lines besides usage (fees, credits, tokens, storage) in the books: what they come to, onto the
// tenant's next invoice, and against its budgets. Pure.
#pragma once

#include <vector>

#include "domain/ledger.hpp"

namespace loam::engine {

class State;

struct LineSum {
  Money net;
  Money tax;

  Money whole() const { return net + tax; }
};
// Of lines in `currency`, each with the taxes of its card.
LineSum sum_of(const State& state, const std::vector<AdjustmentLine>& lines, Currency currency);

// For evolve().
void add_open(State& state, TenantId tenant, const AdjustmentLine& line, Instant at);
void count_in_budgets(State& state, TenantId tenant, const AdjustmentLine& line, Instant at);

}  // namespace loam::engine

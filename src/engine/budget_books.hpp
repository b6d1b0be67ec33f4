// Budgets in the state: what was set, told and approved, and whose tasks are to end by them. Pure.
#pragma once

#include "domain/event.hpp"

namespace loam::engine {

class State;

// For evolve(), after its event.
void apply_to_budgets(State& state, const BudgetSet& event, Instant at);
void apply_to_budgets(State& state, const BudgetRemoved& event, Instant at);
void apply_to_budgets(State& state, const BudgetNoticed& event, Instant at);
void apply_to_budgets(State& state, const BudgetApproved& event, Instant at);

}  // namespace loam::engine

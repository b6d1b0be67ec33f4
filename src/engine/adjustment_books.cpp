#include "engine/adjustment_books.hpp"

#include "billing/accounts.hpp"
#include "engine/months.hpp"
#include "engine/state.hpp"

namespace loam::engine {

LineSum sum_of(const State& state, const std::vector<AdjustmentLine>& lines, Currency currency) {
  LineSum sum{Money::zero(currency), Money::zero(currency)};
  for (const AdjustmentLine& line : lines) {
    sum.net += line.net;
    sum.tax += billing::tax_on(state.card(line.card).terms(), line.net);
  }
  return sum;
}

void add_open(State& state, TenantId tenant, const AdjustmentLine& line, Instant at) {
  state.open_charges[tenant].add(line, state.card(line.card).terms().taxes, at);
  set_invoice_due(state, tenant);
}

void count_in_budgets(State& state, TenantId tenant, const AdjustmentLine& line, Instant at) {
  Attribution who;
  who.project = line.key.project;
  who.environment = line.key.environment;
  who.model = line.key.model;
  const Money whole = line.net + billing::tax_on(state.card(line.card).terms(), line.net);
  if (!whole.is_zero()) state.budgets.count(tenant, who, whole, at);
}

}  // namespace loam::engine

// What people ask, read into the domain's types: text to quantities, names to enumerators. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/money_types.hpp"
#include "api/types.hpp"
#include "base/result.hpp"
#include "domain/budget.hpp"
#include "domain/rate.hpp"
#include "domain/reservation.hpp"
#include "domain/task.hpp"
#include "domain/tenant.hpp"

namespace loam::api {

// Errors name the field. What only the engine can judge (does it fit, may it be paid) is left to
// it.
Result<TaskSpec> spec_of(const TaskRequest& request);
// Without `from`: from the decision on, and a length counts from `now`.
Result<ReservationOrder> order_of(const ReservationRequest& request, Instant now);
// How long the task is thought to run; nothing where it is not said.
// Refused where it is longer than the task's time limit.
Result<std::optional<Duration>> expected_of(const TaskRequest& request, Duration limit);
Result<TenantSpec> spec_of(const TenantRequest& request);
// `present` with the changes of `patch`.
Result<TenantSpec> patched(TenantSpec present, const TenantPatch& patch);
// effective_from 0: from the decision on.
Result<RateCard> card_of(const RateRequest& request);
Result<Budget> budget_of(const BudgetRequest& request, TenantId tenant, Currency currency);
Result<Money> amount_of(const TopUpRequest& request, Currency currency);
// "waiting,running"; empty text gives none.
Result<std::vector<TaskState>> parse_states(std::string_view text);

}  // namespace loam::api

// What was paid for and not used, as FOCUS rows of those who bear it: from bills of the API. Pure.
#include <algorithm>
#include <map>

#include "app/loam/spending.hpp"

namespace loam::cli {
namespace {

bool is_idle(const billing::FocusRow& row) {
  return !row.correction &&
         (row.commitment_status == "Unused" || row.reservation_status == "Unused");
}

// The tasks that were billed for compute, by id.
Result<std::vector<billing::FocusBearer>> bearers_of(const api::BillView& bill) {
  std::map<std::string, billing::FocusBearer> by_task;
  for (const api::BillLine& line : bill.lines) {
    LOAM_TRY(ce, parse_ce(line.ce));
    billing::FocusBearer& bearer = by_task[line.task];
    bearer.resource = line.task;
    bearer.name = line.name;
    bearer.tags = billing::focus_tags(who_of(line), line.group);
    bearer.milli_ce_ms += static_cast<Int128>(ce.value) * line.billed_ms;
  }
  std::vector<billing::FocusBearer> bearers;
  for (auto& [task, bearer] : by_task) {
    if (bearer.milli_ce_ms > 0) bearers.push_back(std::move(bearer));
  }
  return bearers;
}

}  // namespace

Result<void> split_idle(const std::vector<BucketBill>& bills, billing::IdleMethod method,
                        std::vector<billing::FocusRow>& rows) {
  if (method == billing::IdleMethod::kept) return {};
  // Of each tenant, by the end of its bucket.
  std::map<std::pair<std::string, Instant>, std::vector<billing::FocusBearer>> bearers;
  for (const BucketBill& each : bills) {
    LOAM_TRY(some, bearers_of(each.bill));
    bearers[{each.bill.tenant, each.period.to}] = std::move(some);
  }
  std::vector<billing::FocusRow> split;
  for (billing::FocusRow& row : rows) {
    // The bucket in which it begins: the first that ends later.
    const auto found = bearers.upper_bound({row.billing_account_id, row.charge_period.from});
    if (!is_idle(row) || found == bearers.end() || found->first.first != row.billing_account_id) {
      split.push_back(std::move(row));
      continue;
    }
    for (billing::FocusRow& part : billing::focus_split(row, found->second, method))
      split.push_back(std::move(part));
  }
  rows = std::move(split);
  return {};
}

}  // namespace loam::cli

// What was spent, by group and time, and its FOCUS rows: from bills of the API. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/money_types.hpp"
#include "billing/attribution.hpp"
#include "billing/documents.hpp"
#include "billing/focus.hpp"

namespace loam::cli {

// A bill of one bucket of time.
struct BucketBill {
  billing::Period period;
  api::BillView bill;
};

// Its lines as costs. ErrorKind::corrupt for amounts that are none.
Result<std::vector<billing::CostRow>> cost_rows(const std::vector<BucketBill>& bills);
Result<std::vector<billing::FocusRow>> focus_rows(const std::vector<BucketBill>& bills,
                                                  const std::string& issuer);
// What is charged or given back besides usage: a commitment's fee as its purchase, spread over its
// days as what was used and what stayed unused of it; what it covers, and service credits, as
// credits against the usage rows. BilledCost adds up to the bills' totals.
Result<std::vector<billing::FocusRow>> focus_adjustments(
    const std::vector<BucketBill>& bills, const std::vector<api::CommitmentView>& commitments,
    const std::string& issuer);
std::string cost_text(const std::vector<billing::CostLine>& lines, const billing::CostQuery& query,
                      Currency currency, bool colour, std::size_t width);
std::string cost_json(const std::vector<billing::CostLine>& lines, const billing::CostQuery& query,
                      Currency currency);

// An invoice of the API as a document, for its renderings. The payable amounts are those issued.
Result<billing::Document> document_of(const api::InvoiceView& invoice);

}  // namespace loam::cli

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

// Whose months the tenant is billed by; UTC where a bill does not say.
Result<billing::Zone> zone_of(const api::BillView& bill);

// Whose cost something of a bill is.
template <class Charged>
Attribution who_of(const Charged& charged) {
  Attribution who;
  who.project = charged.project;
  who.environment = charged.environment;
  who.model = charged.model;
  who.model_version = charged.model_version;
  who.tags = charged.tags;
  return who;
}

// The price of something of a bill, and what it depends on besides its SKU.
template <class Priced>
void put_price(const Priced& priced, const std::string& sku, billing::FocusRow& row) {
  row.sku_price_id = sku + "/" + priced.purchase_model + "/" + priced.tariff + "/" +
                     (priced.window.empty() ? "" : priced.window + "/") + priced.unit_price;
  row.sku_price_details = {{"x_PurchaseModel", priced.purchase_model}, {"x_Tariff", priced.tariff}};
  if (!priced.window.empty()) row.sku_price_details.emplace_back("x_Window", priced.window);
}

// Its lines as costs. ErrorKind::corrupt for amounts that are none.
Result<std::vector<billing::CostRow>> cost_rows(const std::vector<BucketBill>& bills);
Result<std::vector<billing::FocusRow>> focus_rows(const std::vector<BucketBill>& bills,
                                                  const std::string& issuer);
// The invoices issued in the bills' time: each one's taxes, and what it was rounded by to be
// payable; its credit notes with their taxes. Where all rows of an invoice are in `rows` they are
// marked with its total.
Result<void> add_focus_documents(const std::vector<BucketBill>& bills, const std::string& issuer,
                                 std::vector<billing::FocusRow>& rows);
// What is charged or given back besides usage: a commitment's fee as its purchase, spread over its
// days as what was used and what stayed unused of it; what it covers, and service credits, as
// credits against the usage rows; what was reserved and not used, as unused capacity. Credit notes
// are left to add_focus_documents.
Result<std::vector<billing::FocusRow>> focus_adjustments(
    const std::vector<BucketBill>& bills, const std::vector<api::CommitmentView>& commitments,
    const std::string& issuer);
// What was committed or reserved and not used, over the tasks of its tenant that used compute in
// the bill's time: by what they were billed for (weighted), or alike (even). It stays as it is
// where there are none, where it is kept, and where it corrects what was told before.
Result<void> split_idle(const std::vector<BucketBill>& bills, billing::IdleMethod method,
                        std::vector<billing::FocusRow>& rows);
// Bills of buckets as the API lists them, and the time that they were asked for.
struct BucketBills {
  std::string tenant;  // as asked for; empty: of all that the caller may see
  billing::Period period;
  std::vector<BucketBill> bills;
};
Result<BucketBills> buckets_of(api::BillList list);
// The API leaves out buckets with nothing on them; who holds a commitment has a share of its fee in
// them all the same. Adds bills without lines for those of `buckets`.
void add_empty_bills(const std::vector<api::CommitmentView>& commitments,
                     const std::vector<billing::Period>& buckets, std::vector<BucketBill>& bills);
std::string cost_text(const std::vector<billing::CostLine>& lines, const billing::CostQuery& query,
                      Currency currency, bool colour, std::size_t width);
std::string cost_json(const std::vector<billing::CostLine>& lines, const billing::CostQuery& query,
                      Currency currency);

// An invoice of the API as a document, for its renderings. The payable amounts are those issued.
Result<billing::Document> document_of(const api::InvoiceView& invoice);
// A credit note over `invoice`, likewise.
Result<billing::Document> document_of(const api::CreditNoteView& note,
                                      const api::InvoiceView& invoice);

}  // namespace loam::cli

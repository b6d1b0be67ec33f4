// The client: tenants and money.
#include "api/client_core.hpp"

namespace loam::api {

Result<TenantList> Client::tenants() {
  return core_->get<TenantList>("/v1/tenants");
}

Result<TenantView> Client::tenant(const std::string& name) {
  LOAM_TRY(part, segment("tenant", name));
  return core_->get<TenantView>("/v1/tenants/" + part);
}

Result<TenantView> Client::create_tenant(const TenantRequest& request, const std::string& key) {
  return core_->write<TenantView>(Method::post, "/v1/tenants", to_json(request), key);
}

Result<TenantView> Client::change_tenant(const std::string& name, const TenantPatch& patch,
                                         const std::string& key) {
  LOAM_TRY(part, segment("tenant", name));
  return core_->write<TenantView>(Method::patch, "/v1/tenants/" + part, to_json(patch), key);
}

Result<TenantView> Client::top_up(const std::string& name, const TopUpRequest& request,
                                  const std::string& key) {
  LOAM_TRY(part, segment("tenant", name));
  return core_->write<TenantView>(Method::post, "/v1/tenants/" + part + "/topup", to_json(request),
                                  key);
}

Result<TenantView> Client::pay_out(const std::string& name, const TopUpRequest& request,
                                   const std::string& key) {
  LOAM_TRY(part, segment("tenant", name));
  return core_->write<TenantView>(Method::post, "/v1/tenants/" + part + "/refund", to_json(request),
                                  key);
}

Result<TenantView> Client::reverse(const std::string& id, const ReverseRequest& request,
                                   const std::string& key) {
  LOAM_TRY(part, segment("transaction id", id));
  return core_->write<TenantView>(Method::post, "/v1/ledger/" + part + "/reverse", to_json(request),
                                  key);
}

Result<PartyView> Client::buyer(const std::string& name) {
  LOAM_TRY(part, segment("tenant", name));
  return core_->get<PartyView>("/v1/tenants/" + part + "/buyer");
}

Result<PartyView> Client::set_buyer(const std::string& name, const PartyRequest& party) {
  LOAM_TRY(part, segment("tenant", name));
  return core_->write<PartyView>(Method::put, "/v1/tenants/" + part + "/buyer", to_json(party));
}

Result<RateList> Client::rates() {
  return core_->get<RateList>("/v1/rates");
}

Result<SpotPriceList> Client::spot_prices(const std::string& currency, const std::string& from,
                                          const std::string& to) {
  http::Request request = core_->request(Method::get, "/v1/rates/spot");
  add_query(request, "currency", currency);
  add_query(request, "from", from);
  add_query(request, "to", to);
  return core_->call<SpotPriceList>(request);
}

Result<RateView> Client::publish_rate(const RateRequest& request, const std::string& key) {
  return core_->write<RateView>(Method::post, "/v1/rates", to_json(request), key);
}

Result<BillView> Client::bill(const std::string& tenant, const std::string& from,
                              const std::string& to) {
  http::Request request = core_->request(Method::get, "/v1/bill");
  add_query(request, "tenant", tenant);
  add_query(request, "from", from);
  add_query(request, "to", to);
  return core_->call<BillView>(request);
}

Result<BillList> Client::bills(const std::string& tenant, const std::string& from,
                               const std::string& to, const std::string& bucket,
                               const std::string& zone) {
  http::Request request = core_->request(Method::get, "/v1/bills");
  add_query(request, "tenant", tenant);
  add_query(request, "from", from);
  add_query(request, "to", to);
  add_query(request, "bucket", bucket);
  add_query(request, "zone", zone);
  return core_->call<BillList>(request);
}

Result<InvoiceList> Client::invoices(const std::string& tenant, const std::string& after) {
  http::Request request = core_->request(Method::get, "/v1/invoices");
  add_query(request, "tenant", tenant);
  add_query(request, "after", after);
  return core_->call<InvoiceList>(request);
}

Result<InvoiceView> Client::invoice(const std::string& id) {
  LOAM_TRY(part, segment("invoice id", id));
  return core_->get<InvoiceView>("/v1/invoices/" + part);
}

Result<InvoiceView> Client::issue_invoice(const InvoiceRequest& request, const std::string& key) {
  return core_->write<InvoiceView>(Method::post, "/v1/invoices", to_json(request), key);
}

Result<CreditNoteView> Client::credit_note(const std::string& id) {
  LOAM_TRY(part, segment("credit note id", id));
  return core_->get<CreditNoteView>("/v1/credit-notes/" + part);
}

Result<CreditNoteView> Client::credit_invoice(const std::string& id, const CreditRequest& request,
                                              const std::string& key) {
  LOAM_TRY(part, segment("invoice id", id));
  return core_->write<CreditNoteView>(Method::post, "/v1/invoices/" + part + "/credit",
                                      to_json(request), key);
}

Result<CommitmentList> Client::commitments() {
  return core_->get<CommitmentList>("/v1/commitments");
}

Result<CommitmentView> Client::buy_commitment(const CommitmentRequest& request,
                                              const std::string& key) {
  return core_->write<CommitmentView>(Method::post, "/v1/commitments", to_json(request), key);
}

Result<CommitmentView> Client::cancel_commitment(const std::string& id,
                                                 const CancelRequest& request,
                                                 const std::string& key) {
  LOAM_TRY(part, segment("commitment id", id));
  return core_->write<CommitmentView>(Method::post, "/v1/commitments/" + part + "/cancel",
                                      to_json(request), key);
}

Result<ReservationList> Client::reservations() {
  return core_->get<ReservationList>("/v1/reservations");
}

Result<ReservationQuoteView> Client::quote_reservation(const ReservationRequest& request) {
  return core_->call<ReservationQuoteView>(
      core_->request(Method::post, "/v1/reservations/quote", to_json(request)));
}

Result<ReservationView> Client::make_reservation(const ReservationRequest& request,
                                                 const std::string& key) {
  return core_->write<ReservationView>(Method::post, "/v1/reservations", to_json(request), key);
}

Result<ReservationView> Client::cancel_reservation(const std::string& id,
                                                   const CancelRequest& request,
                                                   const std::string& key) {
  LOAM_TRY(part, segment("reservation id", id));
  return core_->write<ReservationView>(Method::post, "/v1/reservations/" + part + "/cancel",
                                       to_json(request), key);
}

Result<TokenUsageView> Client::record_tokens(const TokenUsageRequest& request) {
  return core_->write<TokenUsageView>(Method::post, "/v1/token-usage", to_json(request), {});
}

Result<TokenUsageView> Client::token_source(const std::string& source) {
  LOAM_TRY(part, segment("source", source));
  return core_->get<TokenUsageView>("/v1/token-usage/" + part);
}

Result<BudgetList> Client::budgets() {
  return core_->get<BudgetList>("/v1/budgets");
}

Result<BudgetView> Client::budget(const std::string& name) {
  LOAM_TRY(part, segment("budget", name));
  return core_->get<BudgetView>("/v1/budgets/" + part);
}

Result<BudgetView> Client::set_budget(const BudgetRequest& request, const std::string& key) {
  return core_->write<BudgetView>(Method::post, "/v1/budgets", to_json(request), key);
}

Result<BudgetView> Client::remove_budget(const std::string& name, const std::string& key) {
  LOAM_TRY(part, segment("budget", name));
  return core_->write<BudgetView>(Method::del, "/v1/budgets/" + part, "", key);
}

Result<BudgetView> Client::answer_budget(const std::string& name, const BudgetAnswer& answer,
                                         const std::string& key) {
  LOAM_TRY(part, segment("budget", name));
  return core_->write<BudgetView>(Method::post, "/v1/budgets/" + part + "/answer", to_json(answer),
                                  key);
}

Result<LedgerView> Client::ledger(const std::string& tenant, const std::string& after) {
  http::Request request = core_->request(Method::get, "/v1/ledger");
  add_query(request, "tenant", tenant);
  add_query(request, "after", after);
  return core_->call<LedgerView>(request);
}

}  // namespace loam::api

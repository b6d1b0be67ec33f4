// Invoices of scenarios, and how tenants get them. Pure.
#include "base/assert.hpp"
#include "billing/attribution.hpp"
#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {

// invoice TENANT [month=2025-03]
Result<Step> read_invoice(Words& words) {
  LOAM_TRY(tenant, words.next("the tenant"));
  InvoiceNow step{tenant->text, {}};
  LOAM_CHECK(words.take("month", step.month, [](std::string_view text) -> Result<std::string> {
    LOAM_TRY(month, billing::parse_month(billing::Zone(), text));
    static_cast<void>(month);
    return std::string(text);
  }));
  return Step(std::move(step));
}

IssueInvoice order_of(const InvoiceNow& step, TenantId tenant, const engine::State& state) {
  if (step.month.empty()) return {tenant, std::nullopt};
  const auto month =
      billing::parse_month(state.zones.at(state.tenant(tenant).spec.billing_zone), step.month);
  LOAM_ASSERT(month.ok());  // as it was read
  return {tenant, month->to};
}

// [zone=America/New_York] [invoicing=monthly]
Result<void> read_invoicing(Words& words, TenantSpec& spec) {
  LOAM_CHECK(words.take("zone", spec.billing_zone, parse_text));
  return words.take("invoicing", spec.invoicing, parse_name_of<Invoicing>);
}

// model=NAME@VERSION [group=] [role=critical]
Result<void> read_group(Words& words, TaskSpec& spec) {
  LOAM_CHECK(words.take("group", spec.group, parse_text));
  LOAM_CHECK(words.take("role", spec.role, parse_name_of<GroupRole>));
  return words.take("model", spec.attribution, [&](std::string_view text) -> Result<Attribution> {
    Attribution who = spec.attribution;
    LOAM_CHECK(billing::take_model(text, who));
    return who;
  });
}

}  // namespace loam::sim

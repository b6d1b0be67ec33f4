// The handlers, one a route. Each answers its call exactly once, at once or later. They run on
// workers. Internal to this folder.
#pragma once

#include "api/call.hpp"

namespace loam::api::handlers {

#define LOAM_API_HANDLER(name) void name(const CallPtr& call)
// The service itself.
LOAM_API_HANDLER(health);
LOAM_API_HANDLER(whoami);
LOAM_API_HANDLER(openapi);
LOAM_API_HANDLER(metrics);
LOAM_API_HANDLER(list_tokens);
LOAM_API_HANDLER(create_token);
LOAM_API_HANDLER(revoke_token);
LOAM_API_HANDLER(backup);
LOAM_API_HANDLER(reload);
// Tasks.
LOAM_API_HANDLER(quote);
LOAM_API_HANDLER(submit_task);
LOAM_API_HANDLER(list_tasks);
LOAM_API_HANDLER(show_task);
LOAM_API_HANDLER(stop_task);
LOAM_API_HANDLER(pause_task);
LOAM_API_HANDLER(resume_task);
LOAM_API_HANDLER(task_logs);
LOAM_API_HANDLER(task_events);
LOAM_API_HANDLER(top);
LOAM_API_HANDLER(list_leases);
// Devices.
LOAM_API_HANDLER(list_devices);
LOAM_API_HANDLER(discover_devices);
LOAM_API_HANDLER(calibrate_device);
LOAM_API_HANDLER(drain_device);
LOAM_API_HANDLER(undrain_device);
LOAM_API_HANDLER(capacity);
// Tenants and money.
LOAM_API_HANDLER(list_tenants);
LOAM_API_HANDLER(show_tenant);
LOAM_API_HANDLER(create_tenant);
LOAM_API_HANDLER(change_tenant);
LOAM_API_HANDLER(show_buyer);
LOAM_API_HANDLER(set_buyer);
LOAM_API_HANDLER(top_up);
LOAM_API_HANDLER(pay_out);
LOAM_API_HANDLER(reverse_transaction);
LOAM_API_HANDLER(list_rates);
LOAM_API_HANDLER(publish_rate);
LOAM_API_HANDLER(bill);
LOAM_API_HANDLER(bills);
LOAM_API_HANDLER(list_invoices);
LOAM_API_HANDLER(show_invoice);
LOAM_API_HANDLER(issue_invoice);
LOAM_API_HANDLER(ledger);
LOAM_API_HANDLER(credit_invoice);
LOAM_API_HANDLER(show_credit_note);
LOAM_API_HANDLER(spot_prices);
LOAM_API_HANDLER(list_budgets);
LOAM_API_HANDLER(show_budget);
LOAM_API_HANDLER(set_budget);
LOAM_API_HANDLER(remove_budget);
LOAM_API_HANDLER(answer_budget);
LOAM_API_HANDLER(list_commitments);
LOAM_API_HANDLER(buy_commitment);
LOAM_API_HANDLER(cancel_commitment);
LOAM_API_HANDLER(list_reservations);
LOAM_API_HANDLER(quote_reservation);
LOAM_API_HANDLER(make_reservation);
LOAM_API_HANDLER(cancel_reservation);
LOAM_API_HANDLER(record_tokens);
LOAM_API_HANDLER(show_token_source);
#undef LOAM_API_HANDLER

}  // namespace loam::api::handlers

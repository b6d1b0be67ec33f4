#include "api/routes.hpp"

#include "api/handlers.hpp"

namespace loam::api {
namespace {

using http::Method;

constexpr QueryParameter task_query[] = {
    {"tenant", "string", "tasks of this tenant only"},
    {"state", "string", "tasks in this state, or these with commas: waiting,running"},
    {"name", "string", "tasks of this name"},
    {"after", "string", "the page that follows this task id"},
    {"limit", "integer", "tasks a page, 1 to 500; default 100"},
};
constexpr QueryParameter resume_query[] = {
    {"purchase_model", "string", "by which it goes on, where that is another than before"},
};
constexpr QueryParameter log_query[] = {
    {"stream", "string", "stdout (the default) or stderr"},
    {"offset", "integer", "first byte wanted; default 0, or Last-Event-ID"},
    {"follow", "boolean", "true: server-sent events as the log grows, until the task ends"},
};
constexpr QueryParameter event_query[] = {
    {"logs", "boolean", "true: the task's output too, as `log` events"},
    {"stdout_offset", "integer", "first byte of standard output wanted"},
    {"stderr_offset", "integer", "first byte of standard error wanted"},
};
constexpr QueryParameter top_query[] = {
    {"follow", "boolean", "true: server-sent events, about one a second"},
};
constexpr QueryParameter bill_query[] = {
    {"tenant", "string", "whose bill; a member's own may be left out"},
    {"from", "string", "usage from this UTC instant on; default: the beginning"},
    {"to", "string", "usage before this UTC instant; default: now"},
};
constexpr QueryParameter spot_query[] = {
    {"currency", "string", "whose price; default: USD"},
    {"from", "string", "prices that held at this UTC instant or later; default: the one in force"},
    {"to", "string", "prices that began before this UTC instant; default: now"},
    {"limit", "integer", "prices at most, 1 to 500; default 100"},
};
constexpr QueryParameter bills_query[] = {
    {"tenant", "string", "whose bills; left out: of all that the caller may see"},
    {"from", "string", "usage from this UTC instant on; default: the first there is"},
    {"to", "string", "usage before this UTC instant; default: now"},
    {"bucket", "string", "cut the time: none (default), hour, day, week, month"},
    {"zone", "string", "whose days, weeks and months; default: UTC"},
};
constexpr QueryParameter invoice_query[] = {
    {"tenant", "string", "invoices of this tenant only"},
    {"after", "string", "the page that follows this invoice id"},
    {"limit", "integer", "invoices a page, 1 to 500; default 100"},
};
constexpr QueryParameter ledger_query[] = {
    {"tenant", "string", "whose ledger; a member's own may be left out"},
    {"after", "string", "the page that follows this transaction id"},
    {"limit", "integer", "entries a page, 1 to 500; default 100"},
};
constexpr std::span<const QueryParameter> no_query;

// In the order of `Route`: what it is, who may, shapes, query, stream, key, handler.
const Route table[] = {
    {Method::get, "/v1/health", "health", "Whether the daemon works.", Action::see_self, true, "",
     "HealthView", 200, no_query, "", false, handlers::health},
    {Method::get, "/v1/whoami", "whoami", "Who the caller is taken for.", Action::see_self, false,
     "", "WhoAmIView", 200, no_query, "", false, handlers::whoami},
    {Method::get, "/v1/openapi.json", "openapi", "This description.", Action::see_self, true, "",
     "application/json", 200, no_query, "", false, handlers::openapi},
    {Method::get, "/metrics", "metrics", "Figures for Prometheus.", Action::see_metrics, false, "",
     "text/plain", 200, no_query, "", false, handlers::metrics},

    {Method::post, "/v1/quote", "quote", "What a task would get, when, and at what price.",
     Action::see_tasks, false, "TaskRequest", "QuoteView", 200, no_query, "", false,
     handlers::quote},
    {Method::post, "/v1/tasks", "submitTask", "Submits a task.", Action::change_tasks, false,
     "TaskRequest", "TaskView", 201, no_query, "", true, handlers::submit_task},
    {Method::get, "/v1/tasks", "listTasks", "Tasks, newest first.", Action::see_tasks, false, "",
     "TaskPage", 200, task_query, "", false, handlers::list_tasks},
    {Method::get, "/v1/tasks/{id}", "showTask", "One task.", Action::see_tasks, false, "",
     "TaskView", 200, no_query, "", false, handlers::show_task},
    {Method::post, "/v1/tasks/{id}/stop", "stopTask", "Asks a task to end.", Action::stop_tasks,
     false, "", "TaskView", 200, no_query, "", true, handlers::stop_task},
    {Method::post, "/v1/tasks/{id}/pause", "pauseTask", "Asks a task to checkpoint and rest.",
     Action::change_tasks, false, "", "TaskView", 200, no_query, "", true, handlers::pause_task},
    {Method::post, "/v1/tasks/{id}/resume", "resumeTask", "Puts a paused task back in the queue.",
     Action::change_tasks, false, "", "TaskView", 200, resume_query, "", true,
     handlers::resume_task},
    {Method::get, "/v1/tasks/{id}/logs", "taskLogs", "A piece of a task's output.",
     Action::see_tasks, false, "", "LogView", 200, log_query, "log (LogView)", false,
     handlers::task_logs},
    {Method::get, "/v1/tasks/{id}/events", "taskEvents",
     "A task's state, cost and share as they change, until it has finished.", Action::see_tasks,
     false, "", "", 200, event_query, "task (TaskView), log (LogView)", false,
     handlers::task_events},
    {Method::get, "/v1/top", "top", "What runs where, now.", Action::see_devices, false, "",
     "TopView", 200, top_query, "top (TopView)", false, handlers::top},

    {Method::get, "/v1/devices", "listDevices", "Devices, those that were refused last.",
     Action::see_devices, false, "", "DeviceList", 200, no_query, "", false,
     handlers::list_devices},
    {Method::post, "/v1/devices/discover", "discoverDevices", "Looks for devices anew.",
     Action::change_devices, false, "", "DeviceList", 200, no_query, "", true,
     handlers::discover_devices, true},
    // A device is pointed at by id or UUID, or by its name, node and index ("n1/0").
    {Method::post, "/v1/devices/{device}/calibrate", "calibrateDevice",
     "Measures a device and stores its CE. Answers as a stream.", Action::change_devices, false, "",
     "", 200, no_query, "progress (ProgressView), done (DeviceView), problem (Problem)", true,
     handlers::calibrate_device, true},
    {Method::post, "/v1/devices/{node}/{index}/calibrate", "calibrateDeviceByName",
     "Measures a device and stores its CE. Answers as a stream.", Action::change_devices, false, "",
     "", 200, no_query, "progress (ProgressView), done (DeviceView), problem (Problem)", true,
     handlers::calibrate_device, true},
    {Method::post, "/v1/devices/{device}/drain", "drainDevice", "Lets a device take no new leases.",
     Action::change_devices, false, "", "DeviceView", 200, no_query, "", true,
     handlers::drain_device},
    {Method::post, "/v1/devices/{node}/{index}/drain", "drainDeviceByName",
     "Lets a device take no new leases.", Action::change_devices, false, "", "DeviceView", 200,
     no_query, "", true, handlers::drain_device},
    {Method::post, "/v1/devices/{device}/undrain", "undrainDevice",
     "Lets a device take leases again.", Action::change_devices, false, "", "DeviceView", 200,
     no_query, "", true, handlers::undrain_device},
    {Method::post, "/v1/devices/{node}/{index}/undrain", "undrainDeviceByName",
     "Lets a device take leases again.", Action::change_devices, false, "", "DeviceView", 200,
     no_query, "", true, handlers::undrain_device},

    {Method::get, "/v1/tenants", "listTenants", "Tenants.", Action::see_tenants, false, "",
     "TenantList", 200, no_query, "", false, handlers::list_tenants},
    {Method::post, "/v1/tenants", "createTenant", "Makes a tenant.", Action::change_tenants, false,
     "TenantRequest", "TenantView", 201, no_query, "", true, handlers::create_tenant},
    {Method::get, "/v1/tenants/{name}", "showTenant", "One tenant.", Action::see_tenants, false, "",
     "TenantView", 200, no_query, "", false, handlers::show_tenant},
    {Method::patch, "/v1/tenants/{name}", "changeTenant", "Changes what is given of a tenant.",
     Action::change_tenants, false, "TenantPatch", "TenantView", 200, no_query, "", true,
     handlers::change_tenant},
    {Method::post, "/v1/tenants/{name}/topup", "topUp", "Pays into a tenant's wallet.",
     Action::top_up, false, "TopUpRequest", "TenantView", 200, no_query, "", true,
     handlers::top_up},
    {Method::post, "/v1/tenants/{name}/refund", "payOut",
     "Pays out of a tenant's wallet, at most what is free of it.", Action::top_up, false,
     "TopUpRequest", "TenantView", 200, no_query, "", true, handlers::pay_out},
    {Method::get, "/v1/tenants/{name}/buyer", "showBuyer", "Who a tenant is on its invoices.",
     Action::see_money, false, "", "PartyView", 200, no_query, "", false, handlers::show_buyer},
    {Method::put, "/v1/tenants/{name}/buyer", "setBuyer",
     "Says who a tenant is on its invoices from now on; all empty: forgets it.",
     Action::change_tenants, false, "PartyRequest", "PartyView", 200, no_query, "", true,
     handlers::set_buyer, true},
    {Method::post, "/v1/ledger/{id}/reverse", "reverseTransaction",
     "Turns a payment into or out of a wallet round, once.", Action::top_up, false,
     "ReverseRequest", "TenantView", 200, no_query, "", true, handlers::reverse_transaction},
    {Method::get, "/v1/rates", "listRates", "Rate cards, in order of publication.",
     Action::see_rates, false, "", "RateList", 200, no_query, "", false, handlers::list_rates},
    {Method::post, "/v1/rates", "publishRate", "Publishes a rate card.", Action::change_rates,
     false, "RateRequest", "RateView", 201, no_query, "", true, handlers::publish_rate},
    {Method::get, "/v1/rates/spot", "spotPrices", "What spot costs, and has cost.",
     Action::see_rates, false, "", "SpotPriceList", 200, spot_query, "", false,
     handlers::spot_prices},
    {Method::get, "/v1/bill", "bill", "A tenant's usage, by task and price.", Action::see_money,
     false, "", "BillView", 200, bill_query, "", false, handlers::bill},
    {Method::get, "/v1/bills", "bills", "Bills of one tenant or of all, cut into buckets of time.",
     Action::see_money, false, "", "BillList", 200, bills_query, "", false, handlers::bills},
    {Method::get, "/v1/invoices", "listInvoices", "Invoices, newest first.", Action::see_money,
     false, "", "InvoiceList", 200, invoice_query, "", false, handlers::list_invoices},
    {Method::post, "/v1/invoices", "issueInvoice", "Closes what is open into an invoice.",
     Action::issue_invoices, false, "InvoiceRequest", "InvoiceView", 201, no_query, "", true,
     handlers::issue_invoice},
    {Method::get, "/v1/invoices/{id}", "showInvoice", "One invoice.", Action::see_money, false, "",
     "InvoiceView", 200, no_query, "", false, handlers::show_invoice},
    {Method::post, "/v1/invoices/{id}/credit", "creditInvoice",
     "Gives back a part of an invoice, or what is left of it, as a credit note.",
     Action::issue_invoices, false, "CreditRequest", "CreditNoteView", 201, no_query, "", true,
     handlers::credit_invoice},
    {Method::get, "/v1/credit-notes/{id}", "showCreditNote", "One credit note.", Action::see_money,
     false, "", "CreditNoteView", 200, no_query, "", false, handlers::show_credit_note},
    {Method::get, "/v1/budgets", "listBudgets", "Budgets and where they stand.", Action::see_money,
     false, "", "BudgetList", 200, no_query, "", false, handlers::list_budgets},
    {Method::post, "/v1/budgets", "setBudget", "Makes a budget, or gives one other terms.",
     Action::issue_invoices, false, "BudgetRequest", "BudgetView", 201, no_query, "", true,
     handlers::set_budget},
    {Method::get, "/v1/budgets/{name}", "showBudget", "One budget with its last notices.",
     Action::see_money, false, "", "BudgetView", 200, no_query, "", false, handlers::show_budget},
    {Method::del, "/v1/budgets/{name}", "removeBudget", "Removes a budget.", Action::issue_invoices,
     false, "", "BudgetView", 200, no_query, "", true, handlers::remove_budget},
    {Method::post, "/v1/budgets/{name}/answer", "answerBudget",
     "Approves or refuses a budget's open request to go on.", Action::issue_invoices, false,
     "BudgetAnswer", "BudgetView", 200, no_query, "", true, handlers::answer_budget},
    {Method::get, "/v1/commitments", "listCommitments", "Commitments, with their fees.",
     Action::see_money, false, "", "CommitmentList", 200, no_query, "", false,
     handlers::list_commitments},
    {Method::post, "/v1/commitments", "buyCommitment",
     "Buys capacity for a tenant by the month, the quarter or the year.", Action::issue_invoices,
     false, "CommitmentRequest", "CommitmentView", 201, no_query, "", true,
     handlers::buy_commitment},
    {Method::post, "/v1/commitments/{id}/cancel", "cancelCommitment",
     "Ends a commitment before its first day, or with the period that is paid.",
     Action::issue_invoices, false, "CancelRequest", "CommitmentView", 200, no_query, "", true,
     handlers::cancel_commitment},
    {Method::post, "/v1/token-usage", "recordTokens",
     "Records what a gateway counted; again, it changes nothing.", Action::record_tokens, false,
     "TokenUsageRequest", "TokenUsageView", 200, no_query, "", true, handlers::record_tokens},
    {Method::get, "/v1/token-usage/{source}", "showTokenSource",
     "How far a source's tokens are recorded.", Action::record_tokens, false, "", "TokenUsageView",
     200, no_query, "", false, handlers::show_token_source},
    {Method::get, "/v1/ledger", "ledger", "A tenant's transactions, newest first.",
     Action::see_money, false, "", "LedgerView", 200, ledger_query, "", false, handlers::ledger},

    {Method::get, "/v1/tokens", "listTokens", "Tokens, without their secrets.", Action::administer,
     false, "", "TokenList", 200, no_query, "", false, handlers::list_tokens},
    {Method::post, "/v1/tokens", "createToken", "Makes a token; its secret is shown here only.",
     Action::administer, false, "TokenRequest", "TokenView", 201, no_query, "", true,
     handlers::create_token, true},
    {Method::del, "/v1/tokens/{name}", "revokeToken", "Revokes a token.", Action::administer, false,
     "", "TokenView", 200, no_query, "", true, handlers::revoke_token, true},
    {Method::post, "/v1/backup", "backup", "Writes a backup on the daemon's machine.",
     Action::administer, false, "BackupRequest", "BackupView", 201, no_query, "", true,
     handlers::backup, true},
    {Method::post, "/v1/reload", "reload", "Reads the configuration again.", Action::administer,
     false, "", "ReloadView", 200, no_query, "", true, handlers::reload, true},
};

}  // namespace

std::span<const Route> routes() {
  return table;
}

}  // namespace loam::api

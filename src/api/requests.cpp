#include "api/requests.hpp"

#include <limits>

#include "base/currency_codes.hpp"
#include "billing/attribution.hpp"
#include "domain/enumerators.hpp"

namespace loam::api {
namespace {

Error in_field(const char* field, const Error& error) {
  return {error.kind, "'" + std::string(field) + "': " + error.message, error.next_step};
}

// Reads `text` by `parse` into `out`, naming the field where it cannot.
template <class T, class Parse>
Result<void> take(const char* field, const std::string& text, T& out, Parse parse) {
  auto value = parse(std::string_view(text));
  if (!value) return in_field(field, value.error());
  out = *value;
  return {};
}
template <class T, class Parse>
Result<void> take(const char* field, const std::optional<std::string>& text, T& out, Parse parse) {
  return text ? take(field, *text, out, parse) : Result<void>{};
}

Result<std::optional<MilliCe>> parse_ce_quota(std::string_view text) {
  if (text == "none") return std::optional<MilliCe>();
  LOAM_TRY(value, parse_decimal(text, 3, milli_ce_max.value, "number of CE"));
  return std::optional(MilliCe{value});
}
Result<std::optional<Mebibytes>> parse_memory_quota(std::string_view text) {
  if (text == "none") return std::optional<Mebibytes>();
  if (text == "0") return std::optional(Mebibytes{0});
  LOAM_TRY(value, parse_memory(text));
  return std::optional(value);
}
Result<std::optional<std::int64_t>> parse_count_quota(std::string_view text) {
  if (text == "none") return std::optional<std::int64_t>();
  LOAM_TRY(value,
           parse_decimal(text, 0, std::numeric_limits<std::int32_t>::max(), "number of tasks"));
  return std::optional(value);
}
Result<std::optional<MilliDevice>> parse_devices_quota(std::string_view text) {
  if (text == "none") return std::optional<MilliDevice>();
  constexpr std::int64_t most = 1'000'000'000;
  LOAM_TRY(value, parse_decimal(text, 3, most, "number of devices"));
  return std::optional(MilliDevice{value});
}
Result<std::optional<Duration>> parse_time_quota(std::string_view text) {
  if (text == "none") return std::optional<Duration>();
  LOAM_TRY(value, parse_duration(text));
  return std::optional(value);
}
Result<std::optional<std::int64_t>> parse_hours_quota(std::string_view text) {
  if (text == "none") return std::optional<std::int64_t>();
  constexpr std::int64_t most = 1'000'000'000'000'000;
  LOAM_TRY(value, parse_decimal(text, 3, most, "number of CE-hours"));
  return std::optional(value);
}
Result<std::string> parse_cohort(std::string_view text) {
  return std::string(text == "none" ? "" : text);
}
Result<std::optional<BasisPoints>> parse_part(std::string_view text) {
  if (text == "none") return std::optional<BasisPoints>();
  LOAM_TRY(value, parse_decimal(text, 2, 10'000'000, "percentage"));
  return std::optional(BasisPoints{value});
}
Result<BasisPoints> parse_percent(std::string_view text) {
  LOAM_TRY(value, parse_decimal(text, 2, 10'000, "percentage"));
  return BasisPoints{value};
}

// A task's, or a reservation's; but its CE.
template <class Asked>
Result<void> take_resources(const Asked& asked, ResourceRequest& out) {
  LOAM_CHECK(take("share", asked.share, out.share, parse_share));
  LOAM_CHECK(take("memory", asked.memory, out.memory, parse_memory));
  LOAM_CHECK(take("bandwidth", asked.bandwidth, out.bandwidth, parse_share));
  LOAM_CHECK(take("cpu", asked.cpu, out.cpu, parse_cpu));
  LOAM_CHECK(take("host_memory", asked.host_memory, out.host_memory, parse_memory));
  LOAM_CHECK(take("work_class", asked.work_class, out.work_class, parse_enumerator<WorkClass>));
  LOAM_CHECK(take("isolation", asked.isolation, out.isolation, parse_enumerator<Isolation>));
  LOAM_CHECK(take("mode", asked.mode, out.mode, parse_enumerator<ShareMode>));
  out.devices = asked.devices;
  out.device = asked.device;
  out.device_type = asked.device_type;
  out.region = asked.region;
  out.labels = asked.labels;
  return {};
}

template <class Asked>
Result<void> take_attribution(const Asked& asked, Attribution& out) {
  out.project = asked.project;
  out.environment = asked.environment;
  out.tags = asked.tags;
  if (const auto model = billing::take_model(asked.model, out); !model.ok())
    return in_field("model", model.error());
  if (const auto good = billing::check(asked.tags); !good.ok())
    return in_field("tags", good.error());
  return {};
}

Result<ReservationId> parse_reservation(std::string_view text) {
  if (const auto id = ReservationId::parse(text)) return *id;
  return invalid("'" + std::string(text) + "' names no reservation",
                 "write it as rsv-1; see them with: loam reservation list");
}

// A task that names a reservation is bought as one where nothing else was said.
Result<void> take_terms(const TaskRequest& asked, TaskSpec& spec) {
  if (!asked.reservation.empty()) {
    LOAM_CHECK(take("reservation", asked.reservation, spec.reservation, parse_reservation));
    spec.purchase_model = PurchaseModel::reservation;
  }
  LOAM_CHECK(take("purchase_model", asked.purchase_model, spec.purchase_model,
                  parse_enumerator<PurchaseModel>));
  return take("tariff", asked.tariff, spec.tariff, parse_enumerator<Tariff>);
}

}  // namespace

Result<TaskSpec> spec_of(const TaskRequest& asked) {
  TaskSpec spec;
  spec.name = asked.name;
  spec.command = asked.command;
  spec.image = asked.image;
  spec.working_directory = asked.working_directory;
  for (const MountRequest& mount : asked.mounts)
    spec.mounts.push_back({mount.source, mount.target, mount.read_only});
  spec.environment = asked.env;
  spec.secrets = asked.secrets;
  spec.ports = asked.ports;
  LOAM_CHECK(take("deadline", asked.deadline, spec.deadline, parse_instant));
  LOAM_CHECK(
      take("spot_policy", asked.spot_policy, spec.spot_policy, parse_enumerator<SpotPolicy>));
  LOAM_CHECK(take("changeover", asked.changeover, spec.changeover, parse_duration));
  LOAM_CHECK(take("wait_at_most", asked.wait_at_most, spec.wait_at_most, parse_duration));
  spec.recurrence = asked.recurrence;
  spec.segments = asked.segments;
  spec.gang = asked.gang;
  std::optional<AskedCe> ce;
  LOAM_CHECK(take("ce", asked.ce, ce, parse_asked_ce));
  if (ce) {
    spec.request.ce = ce->ce;
    spec.auto_ce = ce->auto_ce;
  }
  LOAM_CHECK(take_resources(asked, spec.request));
  LOAM_CHECK(take_attribution(asked, spec.attribution));
  LOAM_CHECK(take("role", asked.role, spec.role, parse_enumerator<GroupRole>));
  spec.group = asked.group;
  LOAM_CHECK(take_terms(asked, spec));
  spec.service_class = asked.service_class;
  spec.queue = asked.queue;
  LOAM_CHECK(take("time", asked.time, spec.limit, parse_duration));
  LOAM_CHECK(take("grace", asked.grace, spec.grace, parse_duration));
  spec.restarts_max = asked.restarts_max;
  spec.backups = asked.backups;
  return spec;
}

Result<ReservationOrder> order_of(const ReservationRequest& asked, Instant now) {
  ReservationOrder order;
  LOAM_CHECK(take("ce", asked.ce, order.request.ce, parse_ce));
  LOAM_CHECK(take_resources(asked, order.request));
  LOAM_CHECK(take_attribution(asked, order.attribution));
  order.gang = asked.gang;
  LOAM_CHECK(take("tariff", asked.tariff, order.tariff, parse_enumerator<Tariff>));
  order.queue = asked.queue;
  LOAM_CHECK(take("from", asked.from, order.from, parse_instant));
  if (asked.from && order.from == Instant{})
    return invalid("'from' lies in the past", "leave it out for now");
  if (asked.to.has_value() == asked.length.has_value()) {
    return invalid(asked.to ? "both 'to' and 'length' are given" : "its end is missing",
                   "give 'to', an instant, or 'length', such as 4h");
  }
  LOAM_CHECK(take("to", asked.to, order.to, parse_instant));
  if (asked.length) {
    Duration length;
    LOAM_CHECK(take("length", asked.length, length, parse_duration));
    order.to = (asked.from ? order.from : now) + length;
  }
  return order;
}

template <class Asked>
Result<void> take_cohort(const Asked& asked, Quota& quota) {
  LOAM_CHECK(take("quota_devices", asked.quota_devices, quota.devices, parse_devices_quota));
  LOAM_CHECK(take("quota_longest", asked.quota_longest, quota.longest, parse_time_quota));
  LOAM_CHECK(take("quota_ce_hours", asked.quota_ce_hours, quota.ce_hours_month, parse_hours_quota));
  LOAM_CHECK(take("cohort", asked.cohort, quota.cohort, parse_cohort));
  LOAM_CHECK(take("borrow_percent", asked.borrow_percent, quota.borrow, parse_part));
  return take("lend_percent", asked.lend_percent, quota.lend, parse_part);
}

Result<TenantSpec> spec_of(const TenantRequest& asked) {
  TenantSpec spec;
  spec.name = asked.name;
  LOAM_CHECK(take("payment", asked.payment, spec.payment, parse_enumerator<PaymentMode>));
  LOAM_CHECK(take("currency", asked.currency, spec.currency, listed_currency));
  const auto money = [&](std::string_view text) { return Money::parse(text, spec.currency); };
  spec.credit_limit = Money::zero(spec.currency);
  LOAM_CHECK(take("credit_limit", asked.credit_limit, spec.credit_limit, money));
  LOAM_CHECK(take("discount_percent", asked.discount_percent, spec.discount, parse_percent));
  LOAM_CHECK(take("quota_ce", asked.quota_ce, spec.quota.ce, parse_ce_quota));
  LOAM_CHECK(take("quota_memory", asked.quota_memory, spec.quota.memory, parse_memory_quota));
  spec.quota.tasks = asked.quota_tasks;
  spec.quota.queued = asked.quota_queued;
  LOAM_CHECK(take_cohort(asked, spec.quota));
  LOAM_CHECK(take("invoicing", asked.invoicing, spec.invoicing, parse_enumerator<Invoicing>));
  if (asked.billing_zone) spec.billing_zone = *asked.billing_zone;
  return spec;
}

Result<std::optional<Duration>> expected_of(const TaskRequest& asked, Duration limit) {
  std::optional<Duration> expected;
  LOAM_CHECK(take("expected", asked.expected, expected, parse_duration));
  if (expected && *expected > limit) {
    return invalid("it is expected to run " + to_text(*expected) + " and may run " +
                       to_text(limit) + " at most",
                   "raise its time limit (loam: --time), or expect less");
  }
  return expected;
}

Result<TenantSpec> patched(TenantSpec spec, const TenantPatch& patch) {
  const auto money = [&](std::string_view text) { return Money::parse(text, spec.currency); };
  LOAM_CHECK(take("payment", patch.payment, spec.payment, parse_enumerator<PaymentMode>));
  LOAM_CHECK(take("credit_limit", patch.credit_limit, spec.credit_limit, money));
  LOAM_CHECK(take("discount_percent", patch.discount_percent, spec.discount, parse_percent));
  LOAM_CHECK(take("quota_ce", patch.quota_ce, spec.quota.ce, parse_ce_quota));
  LOAM_CHECK(take("quota_memory", patch.quota_memory, spec.quota.memory, parse_memory_quota));
  LOAM_CHECK(take("quota_tasks", patch.quota_tasks, spec.quota.tasks, parse_count_quota));
  LOAM_CHECK(take("quota_queued", patch.quota_queued, spec.quota.queued, parse_count_quota));
  LOAM_CHECK(take_cohort(patch, spec.quota));
  LOAM_CHECK(take("invoicing", patch.invoicing, spec.invoicing, parse_enumerator<Invoicing>));
  if (patch.billing_zone) spec.billing_zone = *patch.billing_zone;
  return spec;
}

Result<RateCard> card_of(const RateRequest& asked) {
  RateCard card;
  LOAM_CHECK(take("currency", asked.currency, card.currency, listed_currency));
  const auto money = [&](std::string_view text) { return Money::parse(text, card.currency); };
  if (asked.on_demand.empty()) {
    return invalid("'on_demand' is missing", "give the price of a CE-hour, such as 0.02");
  }
  LOAM_CHECK(take("on_demand", asked.on_demand, card.on_demand, money));
  const auto ratio = [](std::string_view text) -> Result<MilliCe> {
    LOAM_TRY(value, parse_decimal(text, 3, milli_ce_max.value, "number of CE per GiB"));
    return MilliCe{value};
  };
  LOAM_CHECK(take("ce_per_gibibyte", asked.ce_per_gibibyte, card.ce_per_gibibyte, ratio));
  LOAM_CHECK(take("effective_from", asked.effective_from, card.effective_from, parse_instant));
  if (asked.effective_from && card.effective_from == Instant{})
    return invalid("'effective_from' lies in the past", "leave it out for now");
  card.terms = asked.terms;
  return card;
}

Result<Budget> budget_of(const BudgetRequest& asked, TenantId tenant, Currency currency) {
  const auto money = [&](std::string_view text) { return Money::parse(text, currency); };
  const auto threshold = [](std::string_view text) -> Result<BasisPoints> {
    LOAM_TRY(value, parse_decimal(text, 2, 1'000'000, "threshold in %"));
    return BasisPoints{value};
  };
  Budget budget;
  budget.name = asked.name;
  budget.scope = {tenant, asked.project, asked.environment, asked.model};
  budget.monthly = Money::zero(currency);
  LOAM_CHECK(take("monthly", asked.monthly, budget.monthly, money));
  budget.zone = asked.zone;
  LOAM_CHECK(take("remind_percent", asked.remind_percent, budget.remind_at, threshold));
  LOAM_CHECK(take("limit_percent", asked.limit_percent, budget.limit_at, threshold));
  LOAM_CHECK(take("approve_percent", asked.approve_percent, budget.approve_at, threshold));
  LOAM_CHECK(take("running", asked.running, budget.running, parse_enumerator<RunningPolicy>));
  LOAM_CHECK(take("approval_wait", asked.approval_wait, budget.approval_wait, parse_duration));
  budget.channels = asked.channels;
  return budget;
}

Result<Money> amount_of(const TopUpRequest& asked, Currency currency) {
  auto amount = Money::parse(asked.amount, currency);
  if (amount) amount = payable(*amount);
  if (!amount) return in_field("amount", amount.error());
  return amount;
}

Result<std::vector<TaskState>> parse_states(std::string_view text) {
  std::vector<TaskState> states;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    LOAM_TRY(state, parse_enumerator<TaskState>(text.substr(0, comma)));
    states.push_back(state);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return states;
}

}  // namespace loam::api

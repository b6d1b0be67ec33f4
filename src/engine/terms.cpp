#include "engine/terms.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "engine/decide.hpp"

namespace loam::engine {

DemandAnswer demand_of(const State& state, const TaskSpec& spec) {
  DemandAnswer answer;
  const ResourceRequest& request = spec.request;
  answer.demand.ce = request.ce;
  answer.demand.share = request.share;
  answer.demand.memory = request.memory;
  answer.demand.device_type = request.device_type;
  answer.demand.work_class = request.work_class;
  if (request.device.empty()) return answer;
  const Device* device = state.find_device(request.device);
  if (device == nullptr) {
    answer.reject =
        Reject{RejectCode::no_such_device, "there is no device '" + request.device + "'",
               "see the devices with: loam device list"};
    return answer;
  }
  if (!request.device_type.empty() && device->facts->type != request.device_type) {
    answer.reject = Reject{RejectCode::invalid_argument,
                           "the device '" + request.device + "' is a " + device->facts->type +
                               ", not a " + request.device_type,
                           "leave out the device or its type"};
    return answer;
  }
  answer.demand.device = device->id;
  return answer;
}

billing::Payer payer_of(const Tenant& tenant) {
  return {tenant.spec.currency, tenant.spec.discount};
}

Money most_it_costs(const State& state, Instant now, const Tenant& tenant, MilliCe billable,
                    Duration rest_of_limit, Duration grace) {
  const RateCard* dearest = state.rates.dearest_from(tenant.spec.currency, now);
  LOAM_ASSERT(dearest != nullptr);
  const Duration longest = rest_of_limit + grace + hold_margin;
  return billing::rate(billable, longest, dearest->on_demand, tenant.spec.discount).net;
}

namespace {

// What is above a tenant's quota even while nothing else of it runs would wait for ever.
std::optional<Reject> beyond_quota(const Tenant& tenant, std::int64_t gang,
                                   const std::vector<schedule::Capacity::Fit>& fits) {
  Tenant idle = tenant;
  idle.tasks_running = 0;
  idle.ce_used = MilliCe{};
  idle.memory_used = Mebibytes{};
  std::optional<std::string> words;
  for (const auto& fit : fits) {
    words = over_quota(idle, fit.needs.ce * gang, fit.needs.memory * gang);
    if (!words) return std::nullopt;
  }
  return Reject{RejectCode::quota_exceeded, *words,
                "ask for less, or have the operator raise the quota of " + tenant.spec.name};
}

}  // namespace

HoldAnswer hold_for(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                    Duration run_time) {
  const DemandAnswer wanted = demand_of(state, spec);
  if (wanted.reject) return {{}, wanted.reject};
  const RateCard* card = state.rates.at(tenant.spec.currency, now);
  if (card == nullptr) {
    const std::string code(tenant.spec.currency.code());
    return {{},
            Reject{RejectCode::no_rate_card, "there is no price in " + code + " yet",
                   "ask the operator to publish one: loam rate set PRICE --currency " + code}};
  }
  const auto fits = state.capacity.fits_when_empty(wanted.demand);
  if (fits.empty()) {
    return {{},
            Reject{RejectCode::does_not_fit, "no device of this pool could ever hold this task",
                   "see what there is with: loam device list; then ask for less"}};
  }
  if (auto reject = beyond_quota(tenant, spec.gang, fits)) return {{}, std::move(reject)};
  MilliCe billable;
  for (const auto& fit : fits) {
    billable = std::max(billable, billing::billable_ce(fit.needs.ce, fit.needs.memory, *card));
  }
  const Duration rest{std::max<std::int64_t>(0, spec.limit.ms - run_time.ms)};
  return {most_it_costs(state, now, tenant, billable * spec.gang, rest, spec.grace), std::nullopt};
}

std::optional<std::string> over_quota(const Tenant& tenant, MilliCe ce, Mebibytes memory) {
  const Quota& quota = tenant.spec.quota;
  const std::string whose = "the quota of " + tenant.spec.name;
  if (quota.tasks && tenant.tasks_running + 1 > *quota.tasks) {
    return whose + " is " + std::to_string(*quota.tasks) + " running tasks";
  }
  if (quota.ce && tenant.ce_used + ce > *quota.ce) {
    return whose + " is " + to_text(*quota.ce) + " CE; " + to_text(tenant.ce_used) +
           " are in use and " + to_text(ce) + " more are asked for";
  }
  if (quota.memory && tenant.memory_used + memory > *quota.memory) {
    return whose + " is " + to_text(*quota.memory) + " of device memory; " +
           to_text(tenant.memory_used) + " are in use and " + to_text(memory) +
           " more are asked for";
  }
  return std::nullopt;
}

}  // namespace loam::engine

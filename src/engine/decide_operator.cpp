// Decisions on what operators ask: nodes, devices, tenants, prices, money.
#include <algorithm>

#include "billing/accounts.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/reservations.hpp"
#include "engine/scheduling.hpp"

namespace loam::engine {
namespace {

Reject no_such_device(DeviceId id) {
  return {RejectCode::no_such_device, "there is no device " + id.text(),
          "see the devices with: loam device list"};
}

Reject no_such_tenant(TenantId id) {
  return {RejectCode::no_such_tenant, "there is no " + id.text(),
          "see the tenants with: loam tenant list"};
}

bool known(const State& state, DeviceId id) {
  return id.valid() && id.value <= state.devices.size();
}
bool known(const State& state, TenantId id) {
  return id.valid() && id.value <= state.tenants.size();
}

std::optional<Reject> validate(const DeviceFacts& facts) {
  const CeFactors& f = facts.factors;
  const auto good = [](MilliCe ce) { return ce.value > 0 && ce <= milli_ce_max; };
  if (facts.uuid.empty() || facts.memory.value <= 0 || facts.memory > mebibytes_max) {
    return Reject{RejectCode::invalid_argument,
                  "the device '" + facts.uuid + "' has no UUID or no memory",
                  "check what its driver reports"};
  }
  if (!good(f.general) || !good(f.train) || !good(f.prefill) || !good(f.decode)) {
    return Reject{RejectCode::invalid_argument,
                  "the device " + facts.uuid + " has no CE for every work class",
                  "measure it with: loam device calibrate " + facts.uuid};
  }
  if (facts.numa_node.value_or(0) < 0) {
    return Reject{
        RejectCode::invalid_argument,
        "the device " + facts.uuid + " cannot be on NUMA node " + std::to_string(*facts.numa_node),
        "name one from 0, or none where it is unknown"};
  }
  return std::nullopt;
}

// Leases depend on a device's facts, but for which others are near.
bool same_but_nearness(const DeviceFacts& known, DeviceFacts asked) {
  asked.link_group = known.link_group;
  asked.numa_node = known.numa_node;
  return known == asked;
}

NodeAttached attached(NodeId id, const AttachNode& asked) {
  return {id, asked.name, asked.region, asked.labels, asked.cpu, asked.memory, asked.sandboxed};
}

}  // namespace

Decision decide_on(const State& state, Instant now, const AttachNode& asked) {
  Draft draft(state, now);
  if (const auto found = state.node_by_name.find(asked.name); found != state.node_by_name.end()) {
    const Node& node = state.node(found->second);
    draft.subject(node.id.text());
    const bool same = node.region == asked.region && node.labels == asked.labels &&
                      node.cpu == asked.cpu && node.memory == asked.memory &&
                      node.sandboxed == asked.sandboxed;
    if (!same) draft.add(attached(node.id, asked));
    return draft.done();
  }
  if (!is_name(asked.name)) {
    return Draft::rejected({RejectCode::invalid_argument, "'" + asked.name + "' is not a node name",
                            "use 1 to 63 of a-z, 0-9 and '-', starting with a letter"});
  }
  const NodeId id{state.nodes.size() + 1};
  draft.add(attached(id, asked));
  draft.subject(id.text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const AttachDevice& asked) {
  Draft draft(state, now);
  const auto node = state.node_by_name.find(asked.node);
  if (node == state.node_by_name.end()) {
    return Draft::rejected(
        {RejectCode::not_found, "there is no node '" + asked.node + "'", "attach the node first"});
  }
  if (auto reject = validate(asked.facts)) return Draft::rejected(std::move(*reject));
  const auto found = state.device_by_uuid.find(asked.facts.uuid);
  if (found == state.device_by_uuid.end()) {
    const auto index = static_cast<std::uint32_t>(state.node(node->second).devices.size());
    const DeviceId id{state.devices.size() + 1};
    draft.add(DeviceAttached{id, node->second, index, asked.facts});
    draft.subject(id.text());
    return draft.done();
  }
  const Device& device = state.device(found->second);
  draft.subject(device.id.text());
  if (*device.facts == asked.facts && device.health == DeviceHealth::healthy) return draft.done();
  if (device.leases > 0 && !same_but_nearness(*device.facts, asked.facts)) {
    return Draft::rejected({RejectCode::wrong_state,
                            "the device " + asked.facts.uuid + " is in use by " +
                                std::to_string(device.leases) +
                                " leases, so its facts cannot change",
                            "drain it first: loam device drain " + asked.facts.uuid});
  }
  draft.add(DeviceAttached{device.id, device.node, device.index, asked.facts});
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const ReportDeviceHealth& asked) {
  if (!known(state, asked.device)) return Draft::rejected(no_such_device(asked.device));
  Draft draft(state, now);
  draft.subject(asked.device.text());
  if (state.device(asked.device).health == asked.health) return draft.done();
  // Its leases are ended one after the other as time passes: at once, but each by itself.
  draft.add(
      DeviceHealthChanged{asked.device, asked.health, asked.reason, std::min(asked.seen_at, now)});
  if (asked.health == DeviceHealth::lost)
    leave_device(draft, asked.device, std::min(asked.seen_at, now));
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const DrainDevice& asked) {
  if (!known(state, asked.device)) return Draft::rejected(no_such_device(asked.device));
  Draft draft(state, now);
  draft.subject(asked.device.text());
  if (state.device(asked.device).draining != asked.draining) {
    draft.add(DeviceDrainChanged{asked.device, asked.draining});
    if (asked.draining) leave_device(draft, asked.device, std::nullopt);
  }
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const CreateTenant& asked) {
  if (auto reject = validate(asked.spec)) return Draft::rejected(std::move(*reject));
  if (state.find_tenant(asked.spec.name) != nullptr) {
    return Draft::rejected({RejectCode::name_taken,
                            "there is a tenant '" + asked.spec.name + "' already",
                            "choose another name"});
  }
  Draft draft(state, now);
  const TenantId id{state.tenants.size() + 1};
  draft.add(TenantCreated{id, asked.spec});
  draft.subject(id.text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const ChangeTenant& asked) {
  if (!known(state, asked.tenant)) return Draft::rejected(no_such_tenant(asked.tenant));
  if (auto reject = validate(asked.spec)) return Draft::rejected(std::move(*reject));
  const TenantSpec& present = state.tenant(asked.tenant).spec;
  if (present.name != asked.spec.name || present.currency != asked.spec.currency) {
    return Draft::rejected({RejectCode::wrong_state, "a tenant keeps its name and its currency",
                            "create another tenant"});
  }
  const auto open = state.open_charges.find(asked.tenant);
  if (present.billing_zone != asked.spec.billing_zone && open != state.open_charges.end() &&
      !open->second.empty()) {
    return Draft::rejected({RejectCode::wrong_state,
                            "the billing zone cannot change while something is to be invoiced",
                            "issue an invoice first: loam invoice issue " + present.name});
  }
  // Leases are priced with the discount they began under until their records are rated, so it only
  // changes while none runs.
  if (present.discount != asked.spec.discount && state.tenant(asked.tenant).tasks_running > 0) {
    return Draft::rejected({RejectCode::wrong_state, "the discount cannot change while tasks run",
                            "wait for them to end, or stop them"});
  }
  Draft draft(state, now);
  draft.subject(asked.tenant.text());
  if (!(present == asked.spec)) draft.add(TenantChanged{asked.tenant, asked.spec});
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const PublishRateCard& asked) {
  RateCard card = asked.card;
  if (card.effective_from == Instant{}) card.effective_from = now;
  if (card.ce_per_gibibyte.value < 0 || card.ce_per_gibibyte > milli_ce_max) {
    return Draft::rejected({RejectCode::invalid_argument,
                            to_text(card.ce_per_gibibyte) + " CE per GiB is out of range",
                            "use zero or more"});
  }
  const auto& versions = state.rates.of(card.currency);
  if (card.effective_from < now ||
      (!versions.empty() && card.effective_from <= versions.back()->card().effective_from)) {
    return Draft::rejected({RejectCode::invalid_argument,
                            "prices cannot change in the past: " + to_text(card.effective_from) +
                                " is before the present or before a price already published",
                            "choose a later time"});
  }
  card.id = RateCardId{state.rates.all().size() + 1};
  const auto table = billing::PriceTable::compile(card);
  const Result<void> taken = table.ok() ? state.rates.check(*table) : table.error();
  if (!taken.ok()) {
    return Draft::rejected(
        {RejectCode::invalid_argument, taken.error().message, taken.error().next_step});
  }
  Draft draft(state, now);
  draft.add(RateCardPublished{card});
  draft.subject(card.id.text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const SetScheduling& asked) {
  if (auto reject = validate(asked.settings)) return Draft::rejected(std::move(*reject));
  // Queues keep their numbers: those known come first, in their order, then the new ones.
  SchedulingSettings settings = asked.settings;
  settings.queues.clear();
  std::vector<QueueSettings> fresh = asked.settings.queues;
  for (QueueSettings queue : state.settings.queues) {
    const auto named = std::find_if(fresh.begin(), fresh.end(), [&](const QueueSettings& other) {
      return other.name == queue.name;
    });
    queue.closed = named == fresh.end();
    settings.queues.push_back(queue.closed ? queue : *named);
    if (!queue.closed) fresh.erase(named);
  }
  settings.queues.insert(settings.queues.end(), fresh.begin(), fresh.end());
  if (auto reject = validate(settings)) return Draft::rejected(std::move(*reject));
  Draft draft(state, now);
  draft.subject("scheduling");
  if (!(settings == state.settings)) draft.add(SchedulingSet{std::move(settings)});
  return draft.done();
}

namespace {

// `what`: in or out.
std::optional<Reject> check_payment(Money amount, Currency currency, const char* what) {
  if (amount.currency() == currency && !amount.is_negative() && !amount.is_zero()) return {};
  return Reject{RejectCode::invalid_argument, to_text(amount) + " cannot be paid " + what,
                "give more than zero " + std::string(currency.code())};
}

}  // namespace

Decision decide_on(const State& state, Instant now, const TopUp& asked) {
  if (!known(state, asked.tenant)) return Draft::rejected(no_such_tenant(asked.tenant));
  const Currency currency = state.tenant(asked.tenant).spec.currency;
  if (const auto reject = check_payment(asked.amount, currency, "in"))
    return Draft::rejected(*reject);
  Draft draft(state, now);
  const TransactionId id{draft.next().transaction++};
  draft.add(TransactionPosted{billing::top_up(id, asked.tenant, asked.amount, asked.note)});
  draft.subject(id.text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const PayOut& asked) {
  if (!known(state, asked.tenant)) return Draft::rejected(no_such_tenant(asked.tenant));
  const Tenant& tenant = state.tenant(asked.tenant);
  const Currency currency = tenant.spec.currency;
  if (const auto reject = check_payment(asked.amount, currency, "out"))
    return Draft::rejected(*reject);
  const Money wallet = state.accounts.balance(billing::wallet_of(tenant.id, currency));
  if (asked.amount > wallet) {
    return Draft::rejected({RejectCode::insufficient_funds,
                            to_text(asked.amount) + " cannot be paid out: " + to_text(wallet) +
                                " are in the wallet of " + tenant.spec.name +
                                ", what is held for tasks apart",
                            "give at most that, or wait for tasks to end"});
  }
  Draft draft(state, now);
  const TransactionId id{draft.next().transaction++};
  draft.add(TransactionPosted{billing::payout(id, tenant.id, asked.amount, asked.note)});
  draft.subject(id.text());
  return draft.done();
}

// May take the wallet below zero: what was bought with money that never came is owed.
Decision decide_on(const State& state, Instant now, const ReverseTransaction& asked) {
  const auto found = state.payments.find(asked.transaction);
  if (found == state.payments.end()) {
    return Draft::rejected({RejectCode::not_found,
                            asked.transaction.text() + " is no payment into or out of a wallet",
                            "only those are reversed: see their numbers with: loam ledger TENANT"});
  }
  const Payment& payment = found->second;
  if (payment.reversed) {
    return Draft::rejected({RejectCode::wrong_state,
                            asked.transaction.text() + " was reversed before",
                            "a payment is reversed once"});
  }
  Draft draft(state, now);
  const TransactionId id{draft.next().transaction++};
  draft.add(TransactionPosted{
      billing::reversal(id, payment.id, payment.tenant, payment.amount, asked.note)});
  draft.subject(id.text());
  return draft.done();
}

}  // namespace loam::engine

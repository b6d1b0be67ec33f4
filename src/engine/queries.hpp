// Questions about the state: quotes, live cost, why a task waits. Pure; none changes anything.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "domain/command.hpp"
#include "engine/state.hpp"

namespace loam::engine {

// What would run where, when and at what price. The same rules bill it.
struct Quote {
  std::string device;  // "n1/0" where it would go now, or an example that it would fit when free
  std::string device_type;
  std::int64_t devices = 1;  // slices of all members together
  MilliDevice share;         // of each device
  Mebibytes memory;          // likewise
  MilliCe ce;                // of all together
  MilliCe billable_ce;       // likewise
  MilliCe ce_per_gibibyte;   // the rate card's floor: why billable may be above what was asked
  Money unit_price;          // list, per CE-hour, or per task
  bool per_task = false;
  BasisPoints discount;  // the tenant's and the card's
  Money per_hour;        // net
  // Net, before tax: for the time expected, starting now; the same at the card's cheapest; and the
  // longest run at the dearest price known.
  Money expected;
  Money best;
  Money worst;
  std::int64_t tax_parts_per_million = 0;
  Money at_most;     // for the whole limit, tax included: what is held aside
  std::string rule;  // how it is billed, in words
  Duration expected_time;
  Duration limit;
  bool starts_now = false;
  std::string waits_for;  // why not now, in words; empty when it starts now
  // Then: by when there is room, should all that runs use its whole time and nobody go before;
  // nothing where that is not known.
  std::optional<Instant> room_by;
  // Of a spot task with a deadline: when it is bought on demand should no spot come before.
  std::optional<Instant> turns_at;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  std::string service_class;
  Isolation isolation = Isolation::software;
  std::string takes;    // where earlier runs say how much compute: how much and why, in words
  std::string promise;  // of an oversubscribed device: what it gets at the least, in words
};
BOOST_DESCRIBE_STRUCT(Quote, (),
                      (device, device_type, devices, share, memory, ce, billable_ce,
                       ce_per_gibibyte, unit_price, per_task, discount, per_hour, expected, best,
                       worst, tax_parts_per_million, at_most, rule, expected_time, limit,
                       starts_now, waits_for, room_by, turns_at, purchase_model, tariff,
                       service_class, isolation, takes, promise))

struct QuoteAnswer {
  std::optional<Quote> quote;
  std::optional<Reject> reject;
};
// "may cost up to 8.17 USD and acme has 1.00 USD available".
std::string beyond_means_words(const State& state, const Tenant& tenant, Money needed);

// A submission of the same spec at the same instant is accepted exactly when this gives a quote and
// the tenant has the money.
// `expected`: how long it is thought to run; nothing: as long as its limit.
QuoteAnswer quote(const State& state, Instant now, TenantId tenant, const TaskSpec& spec,
                  std::optional<Duration> expected = std::nullopt);

struct WaitReason {
  std::string code;   // "no_room", "would_delay(t7)", …: stable, for scripts
  std::string words;  // for people
  TaskId other;       // whom the code names, if anybody
};

// Why tasks wait: one look at all queues, made when it is first asked for. The state must outlive
// it and not change. O(waiting lines) once, within a bound, then O(log tasks) each.
class WaitReasons {
 public:
  explicit WaitReasons(const State& state) : state_(state) {}

  // Requires a waiting task.
  WaitReason of(const Task& task);

 private:
  void look();
  WaitReason in_queue(const Task& task);

  const State& state_;
  bool looked_ = false;
  std::map<const schedule::Line*, schedule::Wait> waits_;
};
// Of one task alone. Requires a waiting task.
WaitReason why_waits(const State& state, const Task& task);

// When a waiting task expires should it not have started before: so long after it came, or was due,
// as it says itself, or else as the pool does. Nothing is said of one that has run before, and by
// the pool of one that a reservation pays for. never(): it waits on. O(log tasks).
Instant expires_at(const State& state, TaskId task);

// What a wait that is too long says, in words and as JSON: for people and channels.
std::string words_of(const TaskLate& late);
std::string to_json(const TaskLate& late, Instant at);
// Likewise of a deadline that spot does not meet.
std::string words_of(const DeadlineNoticed& notice);
std::string to_json(const DeadlineNoticed& notice, Instant at);

struct DemandAnswer;
// Whether all that is free now is reserved for a time before it would have ended.
bool on_reserved(const State& state, Instant now, const DemandAnswer& wanted, const TaskSpec& spec);

struct LiveCost {
  Duration run_time;  // all attempts, until now
  Money net;          // charged and running, until now
};
LiveCost live_cost(const State& state, Instant now, const Task& task);
// What a lease has run since it was last rated comes to, net.
Money unrated(const State& state, Instant now, const Lease& lease);

// What a tenant can still commit: the wallet, and a postpaid tenant's credit limit with it.
Money available(const State& state, TenantId tenant);

}  // namespace loam::engine

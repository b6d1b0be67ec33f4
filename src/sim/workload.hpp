// Workload: what one seed makes happen. Internal to this folder. Pure.
#pragma once

#include <string>
#include <vector>

#include "domain/command.hpp"
#include "sim/virtual_executor.hpp"

namespace loam::sim {

enum class ActKind {
  submit,
  retry,  // a request sent before, again
  stop,
  pause,
  resume,
  drain,
  undrain,
  lose,  // a device dies; the daemon hears of it later
  rejoin,
  kill,  // the daemon, and starts at once
  down,
  up,
  kill_before_effects,
  tear,  // the next append, at any byte
  journal_full,
  journal_ok,
  step_clock,
  publish_price,
  top_up,
  invoice,
  snapshot,
  stale_report,
  commit,     // buys a commitment; amount: milli-CE
  shortfall,  // a node tells of one; amount: basis points delivered
  pay_out,    // from a tenant's wallet
  reverse,    // a payment, by its order
  cancel,     // a commitment, by its number
  reserve,    // capacity, as its task asks for it; amount: ms until it begins
  unreserve,  // a reservation, by its number
};
const char* name_of(ActKind kind);

struct Act {
  Duration at;  // after the start
  ActKind kind = ActKind::submit;
  std::size_t which = 0;    // task by order of submission, device, or tenant
  std::int64_t amount = 0;  // ms, bytes, or milli-units of money
  // Of a submission; its name is unique. One on a reservation asks for `amount` permille of what
  // one of its tenant's has.
  TaskSpec spec;
};

struct Workload {
  struct NodePlan {
    std::string name;
    std::vector<DeviceFacts> devices;
  };
  std::vector<NodePlan> nodes;
  struct TenantPlan {
    TenantSpec spec;
    Money wallet;
  };
  std::vector<TenantPlan> tenants;
  std::vector<RateCard> cards;
  SchedulingSettings scheduling;
  ReportFaults reports;
  std::vector<Act> acts;  // in order of time
};

inline constexpr Instant workload_start{1'767'225'600'000};  // 2026-01-01T00:00:00Z

// Prices for the service classes that the tasks of a workload name: a class that no price names is
// not sold.
void sell_classes(RateCard& card);

Workload workload_of(std::uint64_t seed);
// For people, a line for each thing in it.
std::string described(const Workload& plan);

}  // namespace loam::sim

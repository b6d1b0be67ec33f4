// Lease: the right to hold a logical unit, and what has been billed of it. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <vector>

#include "domain/rate.hpp"
#include "domain/service_use.hpp"
#include "domain/task.hpp"

namespace loam {

// A share of one device.
struct Slice {
  DeviceId device;
  MilliDevice share;
  Mebibytes memory;
  // Of these, what it has only while others leave it: above zero where it was oversubscribed.
  MilliDevice unpromised{};
  Mebibytes memory_unpromised{};

  // What it gets at the least, when all are busy.
  MilliDevice promised() const { return share - unpromised; }
  Mebibytes memory_promised() const { return memory - memory_unpromised; }

  friend bool operator==(const Slice&, const Slice&) = default;
};
BOOST_DESCRIBE_STRUCT(Slice, (), (device, share, memory, unpromised, memory_unpromised))

struct Lease {
  LeaseId id;
  TaskId task;
  TenantId tenant;
  Epoch epoch;
  std::int64_t rank = 0;      // in its gang; a lone task has rank 0 only
  std::vector<Slice> slices;  // on one node
  MilliCpu cpu;               // of that node's
  Mebibytes host_memory;      // likewise
  MilliCe ce;                 // bought: what the task asked, or its share in CE
  MilliCe billable_ce;        // max(bought, device memory × the rate card's CE per GiB)
  Isolation isolation = Isolation::software;
  PurchaseModel purchase_model = PurchaseModel::on_demand;  // by which it is billed
  Instant granted_at;
  // Instant::never() until the program runs; what never started costs nothing.
  Instant started_at = Instant::never();
  Instant stop_at = Instant::never();  // when the run time limit is reached
  StopReason stopping = StopReason::none;
  // Rating: the sums of its usage records, and what rounding has left over of them, so that the
  // whole lease is rounded once however its records are cut.
  Instant billed_until = Instant::never();
  Money rated_list;
  Money rated_net;
  std::int64_t list_residue = 0;
  std::int64_t net_residue = 0;
  // Up to when shortfalls were credited, by slice; empty before the first. And what they came to.
  std::vector<Instant> credited_until;
  Money credited;
  ServiceUse services;  // rated so far
  Instant services_until = Instant::never();

  bool started() const { return started_at != Instant::never(); }
};
BOOST_DESCRIBE_STRUCT(Lease, (),
                      (id, task, tenant, epoch, rank, slices, cpu, host_memory, ce, billable_ce,
                       isolation, purchase_model, granted_at, started_at, stop_at, stopping,
                       billed_until, rated_list, rated_net, list_residue, net_residue,
                       credited_until, credited, services, services_until))

}  // namespace loam

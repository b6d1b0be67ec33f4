// Task: what a tenant submits, and where it stands. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/device.hpp"
#include "domain/ids.hpp"

namespace loam {

// hybrid: spot, or on demand while spot is tight; decided when the task starts.
BOOST_DEFINE_ENUM_CLASS(PurchaseModel, on_demand, reservation, commitment, spot, hybrid)
BOOST_DEFINE_ENUM_CLASS(Tariff, flat, time_of_day)
// Of a hybrid group: critical tasks run on demand, auxiliary ones on spot while there is enough.
BOOST_DEFINE_ENUM_CLASS(GroupRole, auxiliary, critical)
// When a spot task with a deadline is on spot, on demand or waits: schedule/spot/deadline.hpp.
BOOST_DEFINE_ENUM_CLASS(SpotPolicy, reserve, uniform_progress, greedy)
// Isolation a tenant asks for (any, software, hardware), and what a lease says was given. advisory:
// no sandbox bound the guard to the task, so it held only as far as the task let it.
BOOST_DEFINE_ENUM_CLASS(Isolation, any, software, hardware, advisory)
// strict: the share and no more. burstable: also what idles.
BOOST_DEFINE_ENUM_CLASS(ShareMode, strict, burstable)

// The device side of a request. Exactly one of `ce` and `share` is set in an accepted task.
struct ResourceRequest {
  std::optional<MilliCe> ce;
  std::optional<MilliDevice> share;      // of one device
  std::optional<Mebibytes> memory;       // device memory; default: in proportion to the share
  std::optional<MilliDevice> bandwidth;  // copy bandwidth share; default: the compute share
  // Devices that act as one logical unit; CE, share and memory are of each.
  std::int64_t devices = 1;
  std::string device;               // a certain device, by UUID or node/index; empty: any
  std::string device_type;          // a certain device type; empty: any
  std::string region;               // of the node; empty: any
  std::vector<std::string> labels;  // the node bears all of these
  WorkClass work_class = WorkClass::general;
  Isolation isolation = Isolation::any;
  ShareMode mode = ShareMode::strict;
  MilliCpu cpu{1000};
  Mebibytes host_memory{2048};

  friend bool operator==(const ResourceRequest&, const ResourceRequest&) = default;
};
BOOST_DESCRIBE_STRUCT(ResourceRequest, (),
                      (ce, share, memory, bandwidth, devices, device, device_type, region, labels,
                       work_class, isolation, mode, cpu, host_memory))

struct Mount {
  std::string source;  // absolute path on the node
  std::string target;  // absolute path inside
  bool read_only = true;

  friend bool operator==(const Mount&, const Mount&) = default;
};
BOOST_DESCRIBE_STRUCT(Mount, (), (source, target, read_only))

// Who a charge is attributed to below the tenant.
struct Attribution {
  std::string project = "default";
  std::string environment = "default";
  std::string model;
  std::map<std::string, std::string> tags;
  std::string model_version;

  friend bool operator==(const Attribution&, const Attribution&) = default;
};
BOOST_DESCRIBE_STRUCT(Attribution, (), (project, environment, model, tags, model_version))

// Compute that is taken from what earlier runs of the task's name used: the request's `ce` is what
// was taken.
struct AutoCe {
  MilliCe most;           // as stated
  std::int64_t runs = 0;  // that were looked at; 0: none was measured, and the most is taken
  MilliCe used;           // by any of them, at most

  friend bool operator==(const AutoCe&, const AutoCe&) = default;
};
BOOST_DESCRIBE_STRUCT(AutoCe, (), (most, runs, used))

// "40", or "auto:40" for what earlier runs used and 40 CE at most. Positive, as parse_ce() has it.
struct AskedCe {
  MilliCe ce;
  std::optional<AutoCe> auto_ce;
};
Result<AskedCe> parse_asked_ce(std::string_view text);

struct TaskSpec {
  std::string name;
  std::vector<std::string> command;
  std::string image;  // by digest; empty: the node's own files
  std::string working_directory;
  std::vector<Mount> mounts;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> secrets;  // variable -> secret reference
  std::vector<std::int64_t> ports;
  std::optional<Instant> deadline;  // has ended by then: runs in the cheapest hours before it
  // Of a spot task with a deadline, which is bought on demand where spot would miss that.
  SpotPolicy spot_policy = SpotPolicy::reserve;
  std::optional<Duration> changeover;  // to save and to load; nothing: a minute
  // A cron expression, and a time zone where it is not UTC: runs each time that is due.
  std::string recurrence;
  std::int64_t segments = 1;  // equal pieces of its limit that each end in a checkpoint
  std::int64_t gang = 1;
  ResourceRequest request;
  Attribution attribution;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  std::string service_class = "standard";
  std::string queue;                       // empty: the pool's first
  Duration limit = Duration::hours(1);     // longest run time, all attempts together
  Duration grace = Duration::seconds(30);  // between the notice and the kill
  std::int64_t restarts_max = 0;           // after the loss of a device or node
  GroupRole role = GroupRole::auxiliary;   // what a hybrid task is to its group
  std::string group;                       // whose cost is shown together; empty: none
  ReservationId reservation;               // on whose capacity it runs; none: the pool's
  // How long it waits to run for the first time; then it has expired. Nothing: as the pool says.
  std::optional<Duration> wait_at_most{};
  std::optional<AutoCe> auto_ce{};  // nothing: the request's CE are what its tenant stated
  // So many of the checkpoints that it went on from are kept as copies that it cannot write to.
  std::int64_t backups = 0;

  friend bool operator==(const TaskSpec&, const TaskSpec&) = default;
};
BOOST_DESCRIBE_STRUCT(TaskSpec, (),
                      (name, command, image, working_directory, mounts, environment, secrets, ports,
                       deadline, spot_policy, changeover, recurrence, segments, gang, request,
                       attribution, purchase_model, tariff, service_class, queue, limit, grace,
                       restarts_max, role, group, reservation, wait_at_most, auto_ce, backups))

BOOST_DEFINE_ENUM_CLASS(TaskState, waiting, starting, running, stopping, paused, finished)
// How a finished task ended.
// unable: no node was able to start it. expired: it waited as long as it would.
BOOST_DEFINE_ENUM_CLASS(TaskOutcome, none, succeeded, failed, stopped, limit_reached, refused,
                        device_lost, unable, expired)

// Why the engine asked an attempt to stop. gang: another member of its gang ended badly. segment: a
// piece of it is done; it goes on from its checkpoint. resold: it goes on from there, bought on
// demand instead of as spot, or the other way. moved: it goes on from there at another place.
BOOST_DEFINE_ENUM_CLASS(StopReason, none, by_tenant, paused, limit, device_lost, funds, preempted,
                        gang, budget, segment, resold, moved)

// How an attempt ended, and what it had been asked before.
struct AttemptVerdict {
  TaskOutcome outcome = TaskOutcome::none;
  StopReason stopping = StopReason::none;
  std::int64_t exit_code = 0;  // 128 + signal where a signal ended it
  std::string reason;          // in words, for people

  friend bool operator==(const AttemptVerdict&, const AttemptVerdict&) = default;
};
BOOST_DESCRIBE_STRUCT(AttemptVerdict, (), (outcome, stopping, exit_code, reason))

// A task that has not finished. Finished tasks leave the state for the projections. The spec never
// changes, and is shared: a snapshot of the state copies pointers, not strings.
struct Task {
  TaskId id;
  TenantId tenant;
  std::shared_ptr<const TaskSpec> spec;
  TaskState state = TaskState::waiting;
  Instant submitted_at;
  // Of the live attempts, by rank; none while waiting or paused. They share one epoch.
  std::vector<LeaseId> leases;
  Epoch epoch;                        // of the last leases
  std::int64_t members_up = 0;        // live attempts that have started
  Duration run_time;                  // in ended rounds: from epoch to epoch, the longest member's
  Duration attempt_time;              // of all ended attempts, members added up
  Duration round_run;                 // the longest of this round's ended attempts
  AttemptVerdict verdict;             // of this round's first attempt that did not succeed, if any
  std::int64_t losses = 0;            // rounds ended by the loss of a device
  std::vector<Instant> preempted_at;  // the last ones, oldest first
  std::int64_t failures = 0;          // starts in a row that a node was not able to make
  Money held;                         // what is set aside for it now
  Money charged;                      // so far
  std::int64_t late_steps = 0;        // taken, since it waits longer than its class promises
  Mebibytes kept;                     // of its storage, while it does not run
  Mebibytes backed_up;                // copies of its checkpoints, always
  Instant kept_from = Instant::never();  // not rated yet from then on; never while it runs
  Instant not_before;                    // as it was accepted
};
BOOST_DESCRIBE_STRUCT(Task, (),
                      (id, tenant, spec, state, submitted_at, leases, epoch, members_up, run_time,
                       attempt_time, round_run, verdict, losses, preempted_at, failures, held,
                       charged, late_steps, kept, backed_up, kept_from, not_before))

}  // namespace loam

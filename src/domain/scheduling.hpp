// Scheduling: what an operator settles about queues, service classes and fair shares. Part of the
// journal, so that a replay decides as it did. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/device.hpp"

namespace loam {

// Where tasks wait. A name that was once given stays: a queue that is no longer listed is closed,
// its tasks run to their end and no new ones come.
struct QueueSettings {
  std::string name = "default";
  std::string discipline = "priority";  // "fifo", "easy", "drf", …; see docs/operating.md
  std::int64_t rank = 0;                // queues of a higher rank are tried first
  std::int64_t weight = 1;              // among queues of one rank
  std::vector<std::string> barred_environments;
  // Over what the discipline brings along; absent: as that has it.
  std::optional<Duration> safe;               // a task runs so long before it may be preempted
  std::optional<std::int64_t> preemptions;    // of one task in a window; then it is protected
  std::optional<Duration> preemption_window;  // 0: a task's whole life
  std::optional<Duration> ageing;             // of waiting that counts as one level more
  std::optional<Duration> overdue;            // after so long a task is tried before all others
  bool closed = false;
  // The devices that its tasks may have: of these types, on nodes of that region that bear all
  // these labels. Empty: any.
  std::vector<std::string> device_types;
  std::string region;
  std::vector<std::string> labels;
  // What tasks may say they do, which decides how much CE a device counts for. Empty: anything.
  std::vector<WorkClass> work_classes;

  friend bool operator==(const QueueSettings&, const QueueSettings&) = default;
};
BOOST_DESCRIBE_STRUCT(QueueSettings, (),
                      (name, discipline, rank, weight, barred_environments, safe, preemptions,
                       preemption_window, ageing, overdue, closed, device_types, region, labels,
                       work_classes))

// What is done about a task that waits longer than its class promises.
BOOST_DEFINE_ENUM_CLASS(LateStepKind, alarm, larger_queue, on_demand, split)

// alarm: it is said. larger_queue: it goes on waiting in another queue. on_demand: a spot task is
// bought on demand, if its tenant can pay that. split: that it would start in parts is proposed.
struct LateStep {
  LateStepKind kind = LateStepKind::alarm;
  Duration after;     // of waiting beyond what is promised
  std::string queue;  // larger_queue

  friend bool operator==(const LateStep&, const LateStep&) = default;
};
BOOST_DESCRIBE_STRUCT(LateStep, (), (kind, after, queue))

// "on_demand:10m", "larger_queue/big:20m", "split": the kind, the queue where there is one, and how
// long after the alarm.
Result<LateStep> parse_late_step(std::string_view text);
std::string to_text(const LateStep& step);

struct ServiceClass {
  std::string name = "standard";
  std::int64_t level = 0;        // a higher one is tried first, and may preempt lower ones
  std::optional<Duration> wait;  // what it promises: a task waits no longer, or there is an alarm
  std::vector<LateStep> late;    // what follows the alarm, in the order of `after`

  friend bool operator==(const ServiceClass&, const ServiceClass&) = default;
};
BOOST_DESCRIBE_STRUCT(ServiceClass, (), (name, level, wait, late))

// A tenant's part of a queue with fair shares, or a project's part of its tenant's; 1 by default.
struct ShareWeight {
  std::string tenant;
  std::string project;  // empty: the tenant as a whole
  std::int64_t weight = 1;

  friend bool operator==(const ShareWeight&, const ShareWeight&) = default;
};
BOOST_DESCRIBE_STRUCT(ShareWeight, (), (tenant, project, weight))

// Running tasks that are moved so that one of a higher level can start.
struct DefragSettings {
  std::int64_t moves_per_hour = 0;                 // 0: nobody is moved
  std::int64_t moves_at_once = 2;                  // for one start
  Duration lost_work_max = Duration::minutes(10);  // of one task, by one move

  friend bool operator==(const DefragSettings&, const DefragSettings&) = default;
};
BOOST_DESCRIBE_STRUCT(DefragSettings, (), (moves_per_hour, moves_at_once, lost_work_max))

// How many times burstable leases may be lent what there is of a device: of each the part 1 ÷
// factor is promised, and strict ones, whole devices and what is reserved are promised all they
// have. What is promised of a device never comes to more than the device.
struct Oversubscription {
  std::int64_t ce_permille = 1000;      // of compute; 1000: nothing is lent twice
  std::int64_t memory_permille = 1000;  // of memory that a driver lets go to the host

  friend bool operator==(const Oversubscription&, const Oversubscription&) = default;
};
BOOST_DESCRIBE_STRUCT(Oversubscription, (), (ce_permille, memory_permille))

inline constexpr std::int64_t oversubscription_permille_max = 8000;
// "1.5" as 1500. Whether that is a factor which settings may have is not looked at.
Result<std::int64_t> parse_factor(std::string_view text);
std::string factor_text(std::int64_t permille);

struct SchedulingSettings {
  std::vector<QueueSettings> queues{{}};  // the first one is where tasks go that name none
  std::vector<ServiceClass> classes{{}};
  std::vector<ShareWeight> weights;
  Duration share_half_life = Duration::hours(1);
  std::string placement = "packing_value";  // on which device a task goes; see docs/operating.md
  // How long tasks wait to run for the first time, money set aside, that say nothing of it
  // themselves. Nothing: for ever.
  std::optional<Duration> hold_expires{};
  DefragSettings defrag;
  Oversubscription oversubscription;

  friend bool operator==(const SchedulingSettings&, const SchedulingSettings&) = default;
};
BOOST_DESCRIBE_STRUCT(SchedulingSettings, (),
                      (queues, classes, weights, share_half_life, placement, hold_expires, defrag,
                       oversubscription))

}  // namespace loam

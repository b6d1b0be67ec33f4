// Efficiency: what was used of what was asked and paid for, and what to change. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "billing/calendar.hpp"
#include "domain/ids.hpp"

namespace loam::billing {

struct SliceHeld {
  std::string device;
  MilliDevice share;  // of it
};

// One lease of a task, measured.
struct RunMeasure {
  TaskId task;
  std::string name;               // runs of one name are one piece of work
  std::vector<SliceHeld> slices;  // what it asked and used is spread over them by their shares
  Instant submitted;              // since when it waited
  Instant from;
  Instant to;
  MilliCe asked;
  MilliCe used;          // mean, measured
  bool measured = true;  // false: nobody knows; then only what it held counts
  Mebibytes memory_asked;
  Mebibytes memory_peak;
  Money cost;
  std::int64_t output = 0;  // thousandths of whatever the work makes; 0: not told
};

// What was used of `ce`: the part of the devices' time that was measured, over the part that was
// promised, of `measured` by the share of all slices together. At most all. Requires a time and a
// share above zero.
MilliCe used_of(MilliCe ce, MilliDevice share, Duration measured, Duration device_time);
// What would do for work of which no run used more: a fifth more, at least 0.001 CE.
MilliCe would_do(MilliCe used_most);

// A device that was in service over [from, to).
struct DeviceCapacity {
  std::string device;
  MilliCe ce;
  Instant from;
  Instant to;
};
// All of it that lies in the period, in milli-CE × ms.
Int128 capacity_in(const std::vector<DeviceCapacity>& devices, const Period& period);

struct DeviceEfficiency {
  std::string device;
  BasisPoints asked;  // share of capacity × time that leases held
  BasisPoints used;   // share that was measured busy
  BasisPoints idle;   // not held by anybody of the runs
};

// Slices of one size of a device, all that there were in the period.
struct SliceEfficiency {
  std::string device;
  MilliDevice share;
  std::int64_t runs = 0;  // measured ones
  Duration time;          // that they held it, added up
  BasisPoints used;       // of what was asked for it
};

struct WorkEfficiency {
  std::string name;
  bool measured = true;  // false: what was used is not known
  std::int64_t runs = 0;
  MilliCe asked;  // mean over time
  MilliCe used;
  BasisPoints use;  // used / asked
  Duration queue_mean;
  Money cost;
  Money wasted;                     // cost × (asked − used) / asked
  std::int64_t output = 0;          // thousandths, of the runs that told
  std::optional<Money> per_output;  // the cost of those, over it
};

struct Proposal {
  std::string name;  // of the work
  MilliCe asked;
  // The most used in any run and a fifth more, at least 0.001 CE, under what is asked.
  MilliCe suggested;
  Money saving;       // of this report's time, at the same prices
  std::string words;  // "train asked for 40 CE and used 9: ask for 10.8"
};

struct EfficiencyReport {
  Period period;
  std::vector<DeviceEfficiency> devices;  // by device
  std::vector<SliceEfficiency> slices;    // by device and share
  std::vector<WorkEfficiency> works;      // most wasted first
  std::vector<Proposal> proposals;        // largest saving first
  Duration queue_mean;
  BasisPoints used;  // of all capacity
};

// Runs and devices are cut to the period; of those devices that were in service in it. Requires
// runs whose end is not before their start, slices of more than nothing, money of one currency.
EfficiencyReport efficiency(const std::vector<RunMeasure>& runs,
                            const std::vector<DeviceCapacity>& devices, const Period& period);
// The report's proposals for the next run of each work: what a scheduler may take as a hint.
std::map<std::string, MilliCe> hints(const EfficiencyReport& report);

// --- Business figures
// -------------------------------------------------------------------------------

// "time,group,name,value": requests served, users by group. The error names the line.
struct BusinessFigure {
  Instant at;
  std::string group;
  std::string name;
  std::int64_t value = 0;  // thousandths
};
// The columns in any order. The error begins with "FILE:LINE: "; `file` is for that.
Result<std::vector<BusinessFigure>> read_business_csv(std::string_view text,
                                                      std::string_view file = "figures");

struct UnitCost {
  std::string group;
  std::string name;
  std::int64_t value = 0;         // thousandths, summed over the period
  Money cost;                     // of the group
  std::optional<Money> per_unit;  // nothing where the value is zero
};
// Cost per unit and group: `costs` by the group's name. Sorted by group and name. A group with
// figures and no cost is there with a cost of zero; one that cost and has no figure, with no name
// and no value. Requires costs of one currency.
std::vector<UnitCost> unit_costs(const std::vector<BusinessFigure>& figures,
                                 const std::map<std::string, Money>& costs, const Period& period,
                                 Currency currency);

}  // namespace loam::billing

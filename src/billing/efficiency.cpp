#include "billing/efficiency.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"
#include "billing/csv.hpp"

namespace loam::billing {
namespace {

constexpr Int128 whole_bp = 10'000;
// Under this share of what was asked, a proposal is made.
constexpr std::int64_t wasteful_bp = 7'000;

BasisPoints share(Int128 part, Int128 whole) {
  if (whole <= 0) return {0};
  return {static_cast<std::int64_t>(part * whole_bp / whole)};
}

// Of a run, or of a device's service.
template <class Timed>
Int128 time_in(const Timed& timed, const Period& period) {
  const Instant from = std::max(timed.from, period.from);
  const Instant to = std::min(timed.to, period.to);
  return from < to ? (to - from).ms : 0;
}

Int128 whole_in(const DeviceCapacity& device, const Period& period) {
  return device.ce.value * time_in(device, period);
}

struct Sums {
  std::int64_t runs = 0;
  Int128 time = 0;
  Int128 asked = 0;  // milli-CE × ms
  Int128 used = 0;
  Int128 queue = 0;
  Int128 cost = 0;
  std::int64_t used_most = 0;
};

// A run's cost for the part of it that lies in the period.
Int128 cost_in(const RunMeasure& run, Int128 time) {
  const Int128 all = (run.to - run.from).ms;
  if (all == time) return run.cost.units();
  return run.cost.times_ratio(time, all, Rounding::half_even).units();
}

void add(Sums& sums, const RunMeasure& run, Int128 time) {
  ++sums.runs;
  sums.time += time;
  sums.asked += run.asked.value * time;
  sums.used += run.used.value * time;
  sums.queue += (run.from - run.submitted).ms;
  sums.cost += cost_in(run, time);
  sums.used_most = std::max(sums.used_most, run.used.value);
}

WorkEfficiency work_of(const std::string& name, const Sums& sums, Currency currency) {
  WorkEfficiency work;
  work.name = name;
  work.runs = sums.runs;
  work.asked = {static_cast<std::int64_t>(sums.asked / sums.time)};
  work.used = {static_cast<std::int64_t>(sums.used / sums.time)};
  work.use = share(sums.used, sums.asked);
  work.queue_mean = Duration{static_cast<std::int64_t>(sums.queue / sums.runs)};
  work.cost = Money(sums.cost, currency);
  const Int128 unused = std::max<Int128>(0, sums.asked - sums.used);
  work.wasted = sums.asked > 0 ? work.cost.times_ratio(unused, sums.asked, Rounding::half_even)
                               : Money::zero(currency);
  return work;
}

// What the runs of one name made, measured or not: of a run that lies in part in the period, that
// part.
struct Made {
  std::int64_t runs = 0;
  Int128 time = 0;
  Int128 asked = 0;   // milli-CE × ms
  Int128 output = 0;  // thousandths
  Int128 cost = 0;
};

void add(Made& made, const RunMeasure& run, Int128 time) {
  const Int128 all = (run.to - run.from).ms;
  ++made.runs;
  made.time += time;
  made.asked += run.asked.value * time;
  made.output += all == time ? run.output : run.output * time / all;
  made.cost += cost_in(run, time);
}

void put(const Made& made, Currency currency, WorkEfficiency& work) {
  if (made.output <= 0) return;
  work.output = static_cast<std::int64_t>(made.output);
  work.per_output = Money(made.cost, currency).times_ratio(1000, made.output, Rounding::half_even);
}

// Of work that nobody measured: what it asked and cost, and what it made.
WorkEfficiency unmeasured_work(const std::string& name, const Made& made, Currency currency) {
  WorkEfficiency work;
  work.name = name;
  work.measured = false;
  work.runs = made.runs;
  work.asked = {static_cast<std::int64_t>(made.asked / made.time)};
  work.cost = Money(made.cost, currency);
  work.wasted = Money::zero(currency);
  put(made, currency, work);
  return work;
}

std::optional<Proposal> proposal_of(const WorkEfficiency& work, const Sums& sums) {
  if (work.use.value >= wasteful_bp) return std::nullopt;
  Proposal proposal;
  proposal.name = work.name;
  proposal.asked = work.asked;
  proposal.suggested = would_do(MilliCe{sums.used_most});
  if (proposal.suggested >= proposal.asked) return std::nullopt;
  proposal.saving = work.cost.times_ratio(proposal.asked.value - proposal.suggested.value,
                                          proposal.asked.value, Rounding::half_even);
  proposal.words = work.name + " asked for " + to_text(work.asked) + " CE and used " +
                   to_text(work.used) + ": ask for " + to_text(proposal.suggested);
  return proposal;
}

// What of each slice's part of a run lies in the period; `give` takes the slice, its time and its
// part of what was asked and used, in milli-CE × ms.
template <class Give>
void each_slice(const RunMeasure& run, const Period& period, const Give& give) {
  const Int128 time = time_in(run, period);
  if (time == 0) return;
  Int128 shares = 0;
  for (const SliceHeld& slice : run.slices) shares += slice.share.value;
  for (const SliceHeld& slice : run.slices) {
    LOAM_ASSERT(slice.share.value > 0);
    give(slice, time, run.asked.value * time * slice.share.value / shares,
         run.used.value * time * slice.share.value / shares);
  }
}

std::vector<DeviceEfficiency> devices_of(const std::vector<RunMeasure>& runs,
                                         const std::vector<DeviceCapacity>& devices,
                                         const Period& period) {
  std::map<std::string, Int128> wholes;
  for (const DeviceCapacity& device : devices) wholes[device.device] += whole_in(device, period);
  std::map<std::string, Sums> sums;
  for (const RunMeasure& run : runs) {
    each_slice(run, period, [&](const SliceHeld& slice, Int128, Int128 asked, Int128 used) {
      sums[slice.device].asked += asked;
      sums[slice.device].used += used;
    });
  }
  std::vector<DeviceEfficiency> all;
  for (const auto& [device, whole] : wholes) {
    if (whole == 0) continue;
    const Sums& held = sums[device];
    all.push_back({device, share(held.asked, whole), share(held.used, whole),
                   share(std::max<Int128>(0, whole - held.asked), whole)});
  }
  return all;
}

std::vector<SliceEfficiency> slices_of(const std::vector<RunMeasure>& runs, const Period& period) {
  std::map<std::pair<std::string, MilliDevice>, Sums> sums;
  for (const RunMeasure& run : runs) {
    if (!run.measured) continue;
    each_slice(run, period, [&](const SliceHeld& slice, Int128 time, Int128 asked, Int128 used) {
      Sums& sum = sums[{slice.device, slice.share}];
      ++sum.runs;
      sum.time += time;
      sum.asked += asked;
      sum.used += used;
    });
  }
  std::vector<SliceEfficiency> all;
  for (const auto& [slice, sum] : sums) {
    all.push_back({slice.first, slice.second, sum.runs,
                   Duration{static_cast<std::int64_t>(sum.time)}, share(sum.used, sum.asked)});
  }
  return all;
}

}  // namespace

MilliCe used_of(MilliCe ce, MilliDevice share, Duration measured, Duration device_time) {
  LOAM_ASSERT(share.value > 0 && measured.ms > 0);
  const Int128 promised = static_cast<Int128>(measured.ms) * share.value;
  const Int128 used =
      std::min<Int128>(static_cast<Int128>(device_time.ms) * whole_device.value, promised);
  return {static_cast<std::int64_t>(used * ce.value / promised)};
}

MilliCe would_do(MilliCe used_most) {
  return std::max(MilliCe{(used_most.value * 6 + 4) / 5}, MilliCe{1});
}

Int128 capacity_in(const std::vector<DeviceCapacity>& devices, const Period& period) {
  Int128 whole = 0;
  for (const DeviceCapacity& device : devices) whole += whole_in(device, period);
  return whole;
}

EfficiencyReport efficiency(const std::vector<RunMeasure>& runs,
                            const std::vector<DeviceCapacity>& devices, const Period& period) {
  LOAM_ASSERT(period.from < period.to);
  EfficiencyReport report;
  report.period = period;
  report.devices = devices_of(runs, devices, period);
  report.slices = slices_of(runs, period);
  std::map<std::string, Sums> works;
  std::map<std::string, Made> made;
  Sums all;
  Currency currency;
  for (const RunMeasure& run : runs) {
    LOAM_ASSERT(run.from <= run.to);
    const Int128 time = time_in(run, period);
    if (time == 0) continue;
    currency = run.cost.currency();
    if (run.output > 0) add(made[run.name], run, time);
    if (!run.measured) continue;
    add(works[run.name], run, time);
    add(all, run, time);
  }
  for (const auto& [name, sums] : works) {
    report.works.push_back(work_of(name, sums, currency));
    if (const auto found = made.find(name); found != made.end())
      put(found->second, currency, report.works.back());
    if (auto proposal = proposal_of(report.works.back(), sums))
      report.proposals.push_back(std::move(*proposal));
  }
  for (const auto& [name, of] : made) {
    if (works.count(name) == 0) report.works.push_back(unmeasured_work(name, of, currency));
  }
  std::stable_sort(report.works.begin(), report.works.end(),
                   [](const auto& a, const auto& b) { return a.wasted > b.wasted; });
  std::stable_sort(report.proposals.begin(), report.proposals.end(),
                   [](const auto& a, const auto& b) { return a.saving > b.saving; });
  if (all.runs > 0) report.queue_mean = Duration{static_cast<std::int64_t>(all.queue / all.runs)};
  report.used = share(all.used, capacity_in(devices, period));
  return report;
}

std::map<std::string, MilliCe> hints(const EfficiencyReport& report) {
  std::map<std::string, MilliCe> all;
  for (const Proposal& proposal : report.proposals) all.emplace(proposal.name, proposal.suggested);
  return all;
}

// --- Business figures
// -------------------------------------------------------------------------------

Result<std::vector<BusinessFigure>> read_business_csv(std::string_view text,
                                                      std::string_view file) {
  LOAM_TRY(rows, read_csv(text, file));
  const std::vector<std::string> head = rows.empty() ? std::vector<std::string>{} : rows.front();
  LOAM_TRY(columns, find_columns(file, head, {"time", "group", "name", "value"}));
  std::vector<BusinessFigure> figures;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& row = rows[i];
    if (row.size() != columns.size())
      return fault_at(file, i + 1,
                      invalid("there are " + std::to_string(row.size()) + " fields instead of " +
                                  std::to_string(columns.size()),
                              "write time,group,name,value"));
    const auto at = parse_instant(row[columns[0]]);
    if (!at.ok()) return fault_at(file, i + 1, at.error());
    constexpr std::int64_t value_max = 1'000'000'000'000'000;
    const auto value = parse_decimal(row[columns[3]], 3, value_max, "value");
    if (!value.ok()) return fault_at(file, i + 1, value.error());
    figures.push_back({*at, row[columns[1]], row[columns[2]], *value});
  }
  return figures;
}

std::vector<UnitCost> unit_costs(const std::vector<BusinessFigure>& figures,
                                 const std::map<std::string, Money>& costs, const Period& period,
                                 Currency currency) {
  std::map<std::pair<std::string, std::string>, std::int64_t> sums;
  std::set<std::string> told;
  for (const BusinessFigure& figure : figures) {
    if (!period.contains(figure.at)) continue;
    sums[{figure.group, figure.name}] += figure.value;
    told.insert(figure.group);
  }
  for (const auto& [group, cost] : costs) {
    if (!told.contains(group)) sums[{group, ""}] = 0;
  }
  std::vector<UnitCost> all;
  for (const auto& [key, value] : sums) {
    const auto cost = costs.find(key.first);
    UnitCost unit{key.first, key.second, value,
                  cost == costs.end() ? Money::zero(currency) : cost->second, std::nullopt};
    if (value > 0) unit.per_unit = unit.cost.times_ratio(1000, value, Rounding::half_even);
    all.push_back(std::move(unit));
  }
  return all;
}

}  // namespace loam::billing

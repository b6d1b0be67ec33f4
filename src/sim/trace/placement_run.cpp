#include "sim/trace/placement_run.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "schedule/moves.hpp"

namespace loam::sim {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

schedule::Demand demand_of(const TraceTask& task, std::int64_t cpu_percent) {
  schedule::Demand demand = task.demand();
  demand.cpu = MilliCpu{demand.cpu.value * cpu_percent / 100};
  return demand;
}

// The demand of each distinct task, worked out once.
std::vector<schedule::Demand> demands_of(const PlacementTrace& trace, std::int64_t cpu_percent) {
  std::vector<schedule::Demand> demands;
  demands.reserve(trace.tasks.size());
  for (const TraceTask& task : trace.tasks) demands.push_back(demand_of(task, cpu_percent));
  return demands;
}

std::int64_t milli_of(const schedule::UnitPlacement& place) {
  std::int64_t sum = 0;
  for (const schedule::Placement& slice : place.slices) sum += slice.share.value;
  return sum;
}

std::vector<double> device_use(const PlacementTrace& trace, const schedule::Pool& pool) {
  std::vector<double> use;
  std::uint64_t id = 0;
  for (const TraceNode& node : trace.nodes) {
    for (std::int64_t i = 0; i < node.devices; ++i) {
      const MilliDevice free = pool.free_of(DeviceId{++id});
      use.push_back(1.0 - static_cast<double>(free.value) / 1000);
    }
  }
  return use;
}

}  // namespace

schedule::Pool pool_of(const PlacementTrace& trace, const schedule::PoolOptions& options) {
  schedule::Pool pool(options);
  std::map<std::string, std::shared_ptr<DeviceFacts>> facts;
  std::uint64_t next_node = 0;
  std::uint64_t next_device = 0;
  for (const TraceNode& node : trace.nodes) {
    const NodeId id{++next_node};
    pool.refresh(schedule::NodeFigures{
        id, node.region, {}, MilliCpu{node.cpu_milli}, Mebibytes{node.memory_mib}, {}, {}});
    auto& shared = facts[node.device_type];
    if (!shared) {
      // The trace knows no worth: every device counts the same, which is how its results count.
      shared = std::make_shared<DeviceFacts>();
      shared->type = node.device_type;
      const MilliCe ce{100'000};
      shared->factors = {ce, ce, ce, ce};
    }
    for (std::int64_t i = 0; i < node.devices; ++i) {
      Device device;
      device.id = DeviceId{++next_device};
      device.node = id;
      device.index = static_cast<std::uint32_t>(i);
      device.facts = shared;
      pool.refresh(device);
    }
  }
  return pool;
}

std::vector<std::size_t> arrivals_of(const PlacementTrace& trace, std::int64_t arrivals_percent,
                                     std::uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15ULL + 1);
  std::vector<std::size_t> order(trace.tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const std::int64_t limit = trace.device_milli() * arrivals_percent / 100;
  std::int64_t arrived = 0;
  bool any = false;
  for (const TraceTask& task : trace.tasks) {
    arrived += task.milli;
    any = any || task.milli > 0;
  }
  while (arrived > limit && !order.empty()) {
    const std::size_t at = random.below(order.size());
    arrived -= trace.tasks[order[at]].milli;
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
  }
  while (any) {
    const std::size_t drawn = random.below(trace.tasks.size());
    if (arrived + trace.tasks[drawn].milli > limit) break;
    arrived += trace.tasks[drawn].milli;
    order.push_back(drawn);
  }
  return order;
}

PlacementOutcome run_placement(const PlacementTrace& trace, const PlacementRun& run,
                               std::uint64_t seed, const std::function<void(int)>& progress) {
  const std::vector<std::size_t> order = arrivals_of(trace, run.arrivals_percent, seed);
  const std::vector<schedule::Demand> demands = demands_of(trace, run.cpu_percent);
  PlacementOutcome outcome;
  outcome.seed = seed;
  const auto begin = Clock::now();
  const double cpu_begin = thread_cpu_s();
  schedule::PoolOptions options = run.pool;
  options.placement.seed = seed;
  schedule::Pool pool = pool_of(trace, options);
  if (options.mix == schedule::MixSource::known) pool.set_mix(schedule::mix_of(demands));
  schedule::Mover mover(pool);
  const std::int64_t all = std::max<std::int64_t>(1, trace.device_milli());
  std::int64_t arrived_milli = 0;
  std::int64_t allocated = 0;
  const auto percent = [&](std::int64_t milli) {
    return 100.0 * static_cast<double>(milli) / static_cast<double>(all);
  };
  for (const std::size_t at : order) {
    const schedule::Demand& demand = demands[at];
    pool.note_request(demand);
    ++outcome.arrived;
    auto place = pool.find(demand);
    if (!place && outcome.moves < run.moves_max) {
      place = mover.make_room(demand, run.moves_max - outcome.moves, outcome.moves);
    }
    if (place) {
      pool.take(*place);
      allocated += milli_of(*place);
      ++outcome.placed;
      if (run.moves_max > 0) mover.add(demand, *place);
    }
    arrived_milli += trace.tasks[at].milli;
    const auto reached = static_cast<std::size_t>(arrived_milli * 100 / all);
    while (outcome.curve.size() <= reached) outcome.curve.push_back(percent(allocated));
    if (progress && outcome.arrived % 512 == 0)
      progress(static_cast<int>(outcome.arrived * 100 / static_cast<std::int64_t>(order.size())));
  }
  outcome.wall_s = seconds_since(begin);
  outcome.cpu_s = thread_cpu_s() - cpu_begin;
  outcome.allocated_percent = percent(allocated);
  outcome.device_use = device_use(trace, pool);
  return outcome;
}

ChurnOutcome run_with_departures(const PlacementTrace& trace, const PlacementRun& run) {
  LOAM_ASSERT(trace.has_times);
  const std::vector<schedule::Demand> demands = demands_of(trace, run.cpu_percent);
  std::vector<std::size_t> order(trace.tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return trace.tasks[a].created_s < trace.tasks[b].created_s;
  });
  ChurnOutcome outcome;
  const auto begin = Clock::now();
  schedule::Pool pool = pool_of(trace, run.pool);
  if (run.pool.mix == schedule::MixSource::known) pool.set_mix(schedule::mix_of(demands));
  const auto all = static_cast<double>(std::max<std::int64_t>(1, trace.device_milli()));
  std::multimap<std::int64_t, schedule::UnitPlacement> ends;
  std::int64_t allocated = 0;
  std::int64_t asked = 0;
  std::int64_t refused = 0;
  double area = 0;
  std::int64_t now = order.empty() ? 0 : trace.tasks[order.front()].created_s;
  const std::int64_t first = now;
  const auto advance = [&](std::int64_t to) {
    area += static_cast<double>(allocated) * static_cast<double>(to - now);
    now = to;
  };
  const auto depart_until = [&](std::int64_t until) {
    while (!ends.empty() && ends.begin()->first <= until) {
      advance(ends.begin()->first);
      pool.give_back(ends.begin()->second);
      allocated -= milli_of(ends.begin()->second);
      ends.erase(ends.begin());
    }
    advance(until);
  };
  for (const std::size_t at : order) {
    const TraceTask& task = trace.tasks[at];
    depart_until(task.created_s);
    pool.note_request(demands[at]);
    asked += task.milli * task.devices;
    const auto place = pool.find(demands[at]);
    if (!place) {
      ++outcome.refused;
      refused += task.milli * task.devices;
      continue;
    }
    pool.take(*place);
    allocated += milli_of(*place);
    ++outcome.placed;
    outcome.allocated_peak_percent =
        std::max(outcome.allocated_peak_percent, 100.0 * static_cast<double>(allocated) / all);
    if (task.deleted_s > 0) ends.emplace(task.deleted_s, *place);
    outcome.curve.emplace_back(static_cast<double>(now - first) / 3600,
                               100.0 * static_cast<double>(allocated) / all);
  }
  outcome.wall_s = seconds_since(begin);
  if (now > first) {
    outcome.allocated_mean_percent = 100.0 * area / (all * static_cast<double>(now - first));
  }
  if (asked > 0)
    outcome.refused_milli_percent =
        100.0 * static_cast<double>(refused) / static_cast<double>(asked);
  return outcome;
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

double jain_index(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  if (squares == 0) return 1;
  return sum * sum / (static_cast<double>(values.size()) * squares);
}

}  // namespace loam::sim

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
#include "sim/trace/fairness.hpp"

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

std::int64_t milli_of(const TraceTask& task) {
  return task.milli * task.devices;
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
    arrived += milli_of(task);
    any = any || task.milli > 0;
  }
  const bool too_many = arrived > limit;
  while (arrived > limit && !order.empty()) {
    const std::size_t at = random.below(order.size());
    arrived -= milli_of(trace.tasks[order[at]]);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
  }
  while (any && !too_many) {
    const std::size_t drawn = random.below(trace.tasks.size());
    if (arrived + trace.tasks[drawn].milli > limit) break;
    arrived += milli_of(trace.tasks[drawn]);
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
  std::vector<bool> fits;
  fits.reserve(order.size());
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
    fits.push_back(place.has_value());
    arrived_milli += milli_of(trace.tasks[at]);
    const auto reached = static_cast<std::size_t>(arrived_milli * 100 / all);
    while (outcome.curve.size() <= reached) outcome.curve.push_back(percent(allocated));
    if (progress && outcome.arrived % 512 == 0)
      progress(static_cast<int>(outcome.arrived * 100 / static_cast<std::int64_t>(order.size())));
  }
  outcome.wall_s = seconds_since(begin);
  outcome.cpu_s = thread_cpu_s() - cpu_begin;
  outcome.allocated_percent = percent(allocated);
  outcome.device_use = device_use(trace, pool);
  TenantShares tenants;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TraceTask& task = trace.tasks[order[i]];
    tenants.add(task.tenant, milli_of(task), fits[i] ? milli_of(task) : 0);
  }
  outcome.jain = tenants.jain();
  return outcome;
}

namespace {

// The pool while tasks come and go, and what is measured of it. Times in seconds of the trace.
class Departures {
 public:
  Departures(const PlacementTrace& trace, const PlacementRun& run)
      : trace_(trace),
        demands_(demands_of(trace, run.cpu_percent)),
        pool_(pool_of(trace, run.pool)),
        all_(static_cast<double>(std::max<std::int64_t>(1, trace.device_milli()))) {
    if (run.pool.mix == schedule::MixSource::known) pool_.set_mix(schedule::mix_of(demands_));
    for (const TraceNode& node : trace.nodes)
      device_area_.resize(device_area_.size() + static_cast<std::size_t>(node.devices));
  }

  ChurnOutcome run() {
    std::vector<std::size_t> order(trace_.tasks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return trace_.tasks[a].created_s < trace_.tasks[b].created_s;
    });
    if (!order.empty()) first_ = now_ = trace_.tasks[order.front()].created_s;
    for (const std::size_t at : order) {
      depart_until(trace_.tasks[at].created_s);
      arrive(at);
    }
    outcome_.wall_s = seconds_since(begin_);
    sum_up();
    return std::move(outcome_);
  }

 private:
  void arrive(std::size_t at) {
    const TraceTask& task = trace_.tasks[at];
    pool_.note_request(demands_[at]);
    asked_ += milli_of(task);
    const auto place = pool_.find(demands_[at]);
    tenants_.add(task.tenant, milli_of(task), place ? milli_of(task) : 0);
    if (!place) {
      ++outcome_.refused;
      refused_ += milli_of(task);
      return;
    }
    pool_.take(*place);
    hold(*place, 1);
    ++outcome_.placed;
    outcome_.allocated_peak_percent = std::max(outcome_.allocated_peak_percent, percent());
    if (task.deleted_s > 0) ends_.emplace(task.deleted_s, *place);
    outcome_.curve.emplace_back(static_cast<double>(now_ - first_) / 3600, percent());
  }

  void depart_until(std::int64_t until) {
    while (!ends_.empty() && ends_.begin()->first <= until) {
      advance(ends_.begin()->first);
      pool_.give_back(ends_.begin()->second);
      hold(ends_.begin()->second, -1);
      ends_.erase(ends_.begin());
    }
    advance(until);
  }

  void advance(std::int64_t to) {
    area_ += static_cast<double>(allocated_) * static_cast<double>(to - now_);
    now_ = to;
  }

  // Taken (1) or given back (-1) now. A share held from a to b adds share * (b - a) to its device's
  // area: -share * a when it is taken, share * b when it is given back.
  void hold(const schedule::UnitPlacement& place, std::int64_t sign) {
    allocated_ += sign * milli_of(place);
    for (const schedule::Placement& slice : place.slices)
      device_area_[slice.device.value - 1] -= sign * slice.share.value * (now_ - first_);
  }

  double percent() const { return 100.0 * static_cast<double>(allocated_) / all_; }

  void sum_up() {
    outcome_.device_use = device_use(trace_, pool_);
    if (now_ > first_) {
      const auto length = static_cast<double>(now_ - first_);
      outcome_.allocated_mean_percent = 100.0 * area_ / (all_ * length);
      // What is held still is held until now.
      for (std::size_t i = 0; i < device_area_.size(); ++i)
        outcome_.device_use[i] += static_cast<double>(device_area_[i]) / (1000 * length);
    }
    if (asked_ > 0)
      outcome_.refused_milli_percent =
          100.0 * static_cast<double>(refused_) / static_cast<double>(asked_);
    outcome_.jain = tenants_.jain();
  }

  const PlacementTrace& trace_;
  std::vector<schedule::Demand> demands_;
  Clock::time_point begin_ = Clock::now();  // building the pool is timed too
  schedule::Pool pool_;
  double all_;  // milli-device
  ChurnOutcome outcome_;
  std::multimap<std::int64_t, schedule::UnitPlacement> ends_;
  std::vector<std::int64_t> device_area_;  // milli-device times seconds, but for what is held now
  TenantShares tenants_;
  std::int64_t allocated_ = 0;
  std::int64_t asked_ = 0;
  std::int64_t refused_ = 0;
  double area_ = 0;
  std::int64_t first_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace

ChurnOutcome run_with_departures(const PlacementTrace& trace, const PlacementRun& run) {
  LOAM_ASSERT(trace.has_times);
  return Departures(trace, run).run();
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

}  // namespace loam::sim

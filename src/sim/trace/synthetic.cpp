#include "sim/trace/synthetic.hpp"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/quantity.hpp"
#include "base/random.hpp"
#include "sim/trace/fairness.hpp"

namespace loam::sim {
namespace {

// Seconds of this thread on its core: what others run on the machine does not count.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Requests of a shared pool: many parts of one device, some whole ones, few large ones, and tasks
// of the host alone. Share in milli-device, how often in permille.
struct Size {
  std::int64_t devices;
  std::int64_t milli;
  std::int64_t permille;
};
constexpr Size sizes[] = {
    {0, 0, 100},  {1, 1000, 400}, {1, 810, 120}, {1, 650, 40},  {1, 470, 90},  {1, 320, 50},
    {1, 230, 30}, {1, 160, 20},   {2, 1000, 60}, {4, 1000, 50}, {8, 1000, 40},
};
// CPU beside one whole device, in milli; a task takes one of them in proportion to its devices.
constexpr std::int64_t cpu_steps[] = {6'000, 8'000, 10'000, 12'000};

constexpr std::int64_t node_cpu_milli = 96'000;
constexpr std::int64_t node_memory_mib = 786'432;
constexpr std::int64_t memory_mib_per_cpu = 5'120;

std::vector<schedule::RequestType> request_types() {
  std::vector<schedule::RequestType> types;
  for (const Size& size : sizes) {
    for (const std::int64_t step : cpu_steps) {
      schedule::Demand demand;
      demand.devices = size.devices;
      std::int64_t cpu = step;
      if (size.devices > 0) {
        demand.share = MilliDevice{size.milli};
        demand.memory = Mebibytes{0};
        cpu = std::max<std::int64_t>(500, step * size.devices * size.milli / 1000);
      }
      demand.cpu = MilliCpu{cpu};
      demand.host_memory = Mebibytes{cpu * memory_mib_per_cpu / 1000};
      types.push_back({demand, size.permille});
    }
  }
  return types;
}

class Requests {
 public:
  explicit Requests(std::uint64_t seed) : random_(seed), types_(request_types()) {
    for (const auto& type : types_) total_ += type.count;
  }
  const schedule::Demand& next() {
    auto drawn = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(total_)));
    for (const auto& type : types_) {
      drawn -= type.count;
      if (drawn < 0) return type.demand;
    }
    return types_.back().demand;
  }
  Random& random() { return random_; }
  schedule::Mix mix() const { return {types_}; }

 private:
  Random random_;
  std::vector<schedule::RequestType> types_;
  std::int64_t total_ = 0;
};

schedule::Pool build(const SyntheticPool& synthetic, const schedule::PoolOptions& options) {
  schedule::Pool pool(options);
  auto facts = std::make_shared<DeviceFacts>();
  facts->type = "synthetic";
  const MilliCe ce{100'000};
  facts->factors = {ce, ce, ce, ce};
  std::uint64_t device_id = 0;
  for (std::int64_t n = 0; n < synthetic.nodes; ++n) {
    const NodeId node{static_cast<std::uint64_t>(n) + 1};
    pool.refresh(schedule::NodeFigures{
        node, "", {}, MilliCpu{node_cpu_milli}, Mebibytes{node_memory_mib}, {}, {}});
    // As even as it comes: the first nodes have one more where it does not divide.
    const std::int64_t count =
        synthetic.devices / synthetic.nodes + (n < synthetic.devices % synthetic.nodes ? 1 : 0);
    for (std::int64_t i = 0; i < count; ++i) {
      Device device;
      device.id = DeviceId{++device_id};
      device.node = node;
      device.index = static_cast<std::uint32_t>(i);
      device.facts = facts;
      pool.refresh(device);
    }
  }
  return pool;
}

std::int64_t milli_of(const schedule::Demand& demand) {
  return demand.share ? demand.share->value * demand.devices : 0;
}

// The highest resident size of this process.
double rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

class Churn {
 public:
  Churn(const SyntheticPool& synthetic, const schedule::PoolOptions& options)
      : requests_(synthetic.seed),
        pool_(build(synthetic, options)),
        all_(synthetic.devices * whole_device.value),
        target_(all_ / 1000 * synthetic.load_permille) {
    if (options.mix == schedule::MixSource::known) pool_.set_mix(requests_.mix());
  }

  // One arrival; false where it does not fit. `us`: what the decision took.
  bool arrive(double* us = nullptr) {
    const schedule::Demand& demand = requests_.next();
    const double begin = us != nullptr ? cpu_s() : 0;
    pool_.note_request(demand);
    auto place = pool_.find(demand);
    if (place) pool_.take(*place);
    if (us != nullptr) *us = (cpu_s() - begin) * 1e6;
    arrived_ += milli_of(demand);
    if (!place) return false;
    used_ += milli_of(demand);
    residents_.push_back(std::move(*place));
    return true;
  }

  void depart() {
    const std::size_t at = requests_.random().below(residents_.size());
    for (const auto& slice : residents_[at].slices) used_ -= slice.share.value;
    pool_.give_back(residents_[at]);
    std::swap(residents_[at], residents_.back());
    residents_.pop_back();
  }

  bool is_full() const { return used_ >= target_; }
  bool has_residents() const { return !residents_.empty(); }
  std::int64_t used() const { return used_; }
  // Of each device, 0 to 1.
  std::vector<double> device_use() const {
    std::vector<double> use;
    for (std::int64_t i = 1; i <= all_ / whole_device.value; ++i) {
      const MilliDevice free = pool_.free_of(DeviceId{static_cast<std::uint64_t>(i)});
      use.push_back(1 - static_cast<double>(free.value) / 1000);
    }
    return use;
  }
  std::int64_t all() const { return all_; }
  const schedule::Pool& pool() const { return pool_; }

 private:
  Requests requests_;
  schedule::Pool pool_;
  std::vector<schedule::UnitPlacement> residents_;
  std::int64_t all_;
  std::int64_t target_;
  std::int64_t used_ = 0;
  std::int64_t arrived_ = 0;
};

double percentile(std::vector<double>& values, double p) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(p * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

Result<SyntheticPool> parse_synthetic(std::string_view text) {
  SyntheticPool synthetic;
  const std::string whole(text);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto equals = part.find('=');
    const std::string key(part.substr(0, equals));
    const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    if (key == "load") {
      LOAM_TRY(load, parse_decimal(value, 3, 1000, "load"));
      synthetic.load_permille = load;
    } else if (key == "devices" || key == "nodes") {
      LOAM_TRY(count, parse_decimal(value, 0, 10'000'000, key));
      (key == "devices" ? synthetic.devices : synthetic.nodes) = count;
    } else if (key == "placements") {
      LOAM_TRY(count, parse_decimal(value, 0, 100'000'000, key));
      synthetic.placements = count;
    } else if (key == "seed") {
      LOAM_TRY(seed, parse_decimal(value, 0, 1'000'000'000, key));
      synthetic.seed = static_cast<std::uint64_t>(seed);
    } else {
      return invalid("'" + std::string(part) + "' is not understood in '" + whole + "'",
                     "write it as devices=100000,nodes=12500,load=0.9");
    }
  }
  if (synthetic.nodes < 1 || synthetic.devices < synthetic.nodes)
    return invalid("a made-up pool has at least one node, and a device on each: '" + whole + "'",
                   "write it as devices=100000,nodes=12500,load=0.9");
  return synthetic;
}

SyntheticOutcome run_synthetic(const SyntheticPool& synthetic, const schedule::PoolOptions& options,
                               const std::function<void(int)>& progress) {
  SyntheticOutcome outcome;
  Churn churn(synthetic, options);
  // Filled up, then churned until what was placed first is mostly gone.
  std::int64_t failed = 0;
  while (!churn.is_full() && failed < 1'000) failed += churn.arrive() ? 0 : 1;
  std::vector<double> decisions;
  decisions.reserve(static_cast<std::size_t>(synthetic.placements));
  const std::int64_t warm_up = synthetic.placements / 4;
  double begin = cpu_s();
  std::int64_t placed = 0;
  for (std::int64_t done = -warm_up; done < synthetic.placements;) {
    if (done == 0 && placed == 0) begin = cpu_s();
    if (churn.is_full() && churn.has_residents()) {
      churn.depart();
      continue;
    }
    double us = 0;
    const bool fits = churn.arrive(&us);
    if (!fits && churn.has_residents()) churn.depart();
    if (done >= 0) {
      decisions.push_back(us);
      (fits ? placed : outcome.refused) += 1;
    }
    ++done;
    if (progress && done % 4096 == 0)
      progress(static_cast<int>((done + warm_up) * 100 / (synthetic.placements + warm_up)));
  }
  const double spent = cpu_s() - begin;
  outcome.placements = placed;
  outcome.placements_per_s = static_cast<double>(placed) / std::max(spent, 1e-9);
  outcome.decision_p50_us = percentile(decisions, 0.5);
  outcome.decision_p99_us = percentile(decisions, 0.99);
  outcome.decision_max_us = percentile(decisions, 1);
  outcome.states = churn.pool().totals().states;
  // To the brim: 40 % of the pool's devices are asked for on top of the 90 % that are taken.
  const std::int64_t more =
      static_cast<std::int64_t>(static_cast<double>(churn.all()) *
                                (1.3 - static_cast<double>(synthetic.load_permille) / 1000));
  Requests sizes_of(synthetic.seed);
  for (std::int64_t asked = 0; asked < more;) {
    asked += std::max<std::int64_t>(1, milli_of(sizes_of.next()));
    churn.arrive();
  }
  outcome.allocated_percent =
      100.0 * static_cast<double>(churn.used()) / static_cast<double>(churn.all());
  outcome.jain_devices = jain_index(churn.device_use());
  outcome.rss_mib = rss_mib();
  return outcome;
}

}  // namespace loam::sim

// The policies' figures against their definitions, computed the slow way.
#include "schedule/placement/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "schedule/placement/packing_value.hpp"
#include "schedule/placement/world.hpp"
#include "schedule/pool.hpp"

namespace loam::schedule {
namespace {

using testing::kind;
using testing::share;

std::vector<DeviceKind> kinds() {
  return {{*kind("a", 100'000, 0), 1000, 0}, {*kind("b", 100'000, 0), 1000, 0}};
}

Mix random_mix(Random& random) {
  std::vector<Demand> demands;
  for (std::int64_t n = random.between(1, 30); n > 0; --n) {
    Demand demand = testing::random_demand(random);
    demand.ce.reset();
    if (demand.devices > 0 && !demand.share) demand.share = MilliDevice{500};
    demand.exclusive = false;
    demand.region.clear();
    demand.labels.clear();
    for (std::int64_t m = random.between(1, 5); m > 0; --m) demands.push_back(demand);
  }
  return mix_of(demands);
}

struct Node {
  std::vector<DeviceSlot> slots;
  NodeView view;
};

Node random_node(Random& random, std::size_t kind_count) {
  Node node;
  const bool mixed = random.chance(300);
  const auto only = static_cast<KindIndex>(random.below(kind_count));
  for (std::int64_t n = random.between(1, 8); n > 0; --n) {
    const auto k = mixed ? static_cast<KindIndex>(random.below(kind_count)) : only;
    node.slots.push_back({k, static_cast<std::int32_t>(random.between(0, 10) * 100), 0});
  }
  std::sort(node.slots.begin(), node.slots.end());
  node.view = {random.between(0, 40) * 1000, random.between(0, 40) * 8192, node.slots};
  return node;
}

bool runs_on(const Demand& demand, const NodeView& view, const std::vector<DeviceKind>& of) {
  if (demand.cpu.value > view.cpu_milli || demand.host_memory.value > view.memory_mib) return false;
  std::int64_t room = 0;
  for (const DeviceSlot& slot : view.slots) {
    room += admits(demand, of[slot.kind].facts.type) && slot.free_milli >= demand.share->value;
  }
  return room >= demand.devices;
}

// FGD's F by its definition, over the most frequent shapes that cover 95 % of requests.
double fragment_by_hand(const Mix& mix, const NodeView& view, const std::vector<DeviceKind>& of) {
  std::vector<RequestType> typical = mix.types;
  std::stable_sort(typical.begin(), typical.end(),
                   [](const RequestType& a, const RequestType& b) { return a.count > b.count; });
  std::int64_t covered = 0;
  std::size_t kept = 0;
  while (kept < typical.size() &&
         static_cast<double>(covered) < 0.95 * static_cast<double>(mix.total())) {
    covered += typical[kept++].count;
  }
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const Demand& demand = typical[i].demand;
    double frag = 0;
    const bool useless = demand.devices == 0 || !runs_on(demand, view, of);
    for (const DeviceSlot& slot : view.slots) {
      const bool small = !useless && (slot.free_milli < demand.share->value ||
                                      !admits(demand, of[slot.kind].facts.type));
      if (useless || small) frag += slot.free_milli;
    }
    sum += static_cast<double>(typical[i].count) / static_cast<double>(covered) * frag;
  }
  return sum;
}

TEST(Policy, FragmentationIsItsDefinition) {
  const auto of = kinds();
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const Mix mix = random_mix(random);
    const auto scorer = make_scorer(PlacementPolicy::fragmentation, mix, of, {});
    const Node node = random_node(random, of.size());
    ASSERT_NEAR(scorer->value(node.view), fragment_by_hand(mix, node.view, of), 1e-6)
        << "seed " << seed;
  }
}

TEST(Policy, FragmentationIsPublishedAsASigmoidOfItsFall) {
  const auto of = kinds();
  const auto scorer = make_scorer(PlacementPolicy::fragmentation, {}, of, {});
  const NodeView none{};
  EXPECT_EQ(scorer->published(scorer->cost(none, none, {}, 0, 0)), -50);
  EXPECT_EQ(scorer->published(scorer->cost(none, none, {}, 1000, 0)), -73);
  EXPECT_EQ(scorer->published(scorer->cost(none, none, {}, 0, 1000)), -26);
}

TEST(Policy, BestFitAndDotProdAreTheirPublishedFormulas) {
  const auto of = kinds();
  const std::vector<DeviceSlot> before{{0, 1000, 0}, {0, 1000, 0}};
  const std::vector<DeviceSlot> after{{0, 500, 0}, {0, 1000, 0}};
  const NodeView from{64'000, 0, before};
  const NodeView to{56'000, 0, after};
  const NodeNeed need{8'000, 0, 1, 500};
  const auto best_fit = make_scorer(PlacementPolicy::best_fit, {}, of, {});
  // 100·(1 − ½·56/128 − ½·1500/8000) = 68.75
  EXPECT_EQ(best_fit->published(best_fit->cost(from, to, need, 0, 0)), -68);
  const auto dot = make_scorer(PlacementPolicy::dot_prod, {}, of, {});
  // 100·(1 − ½·64·8/128² − ½·2000·500/8000²) = 97.65
  EXPECT_EQ(dot->published(dot->cost(from, to, need, 0, 0)), -97);
}

// The packing value from its words, for nodes of one kind and mixes of at most 1000 milli.
double value_by_hand(const Mix& mix, const NodeView& view, const std::vector<DeviceKind>& of,
                     const std::vector<double>& v, double cpu_mean, double memory_mean) {
  double with_device = 0;
  for (const RequestType& type : mix.types) {
    if (type.demand.devices > 0) with_device += static_cast<double>(type.count);
  }
  double a = 0;
  double idle = 0;
  std::int64_t whole = 0;
  for (const DeviceSlot& slot : view.slots) {
    a += v[static_cast<std::size_t>(slot.free_milli / 10)];
    idle += slot.free_milli / 1000.0;
    whole += slot.free_milli == 1000;
  }
  double several = 0;
  double fits = 0;
  for (const RequestType& type : mix.types) {
    const Demand& d = type.demand;
    if (d.devices == 0) continue;
    const double p = static_cast<double>(type.count) / with_device;
    if (runs_on(d, view, of)) fits += p;
    if (d.devices > 1 && admits(d, of[view.slots[0].kind].facts.type)) {
      std::int64_t copies = whole / d.devices;
      if (d.cpu.value > 0) copies = std::min(copies, view.cpu_milli / d.cpu.value);
      if (d.host_memory.value > 0) copies = std::min(copies, view.memory_mib / d.host_memory.value);
      several += p * static_cast<double>(d.devices * copies);
    }
  }
  double soft = 0;
  const bool cpu_gone = cpu_mean > 0 && view.cpu_milli == 0;
  const bool memory_gone = memory_mean > 0 && view.memory_mib == 0;
  if (a > 0 && !cpu_gone && !memory_gone) {
    double sum = 1;
    if (cpu_mean > 0) sum += std::pow(static_cast<double>(view.cpu_milli) / (cpu_mean * a), -8);
    if (memory_mean > 0)
      sum += std::pow(static_cast<double>(view.memory_mib) / (memory_mean * a), -8);
    soft = a * std::pow(sum, -1.0 / 8);
  }
  return 0.4 * a + 0.3 * soft + 0.15 * several + 0.1 * a * a / 64 + 0.05 * idle * fits -
         0.05 * fragment_by_hand(mix, view, of) / 1000;
}

TEST(Policy, PackingValueIsItsWords) {
  const auto of = kinds();
  // Halves and wholes: v(f) = ⌊f/500⌋/2.
  std::vector<double> v;
  for (int f = 0; f <= 100; ++f) v.push_back((f / 50) * 0.5);
  Mix mix;
  Demand pair = share(1000, 2, 16'000);
  pair.host_memory = Mebibytes{32'768};
  Demand picky = share(500, 1, 6'000);
  picky.device_types = {"b"};
  Demand host;
  host.devices = 0;
  host.cpu = MilliCpu{4'000};
  mix.types = {
      {share(500, 1, 4'000), 5}, {share(1000, 1, 8'000), 4}, {pair, 2}, {picky, 1}, {host, 3}};
  const double devices = (5 * 0.5 + 4 * 1 + 2 * 2 + 1 * 0.5) / 12;
  const double cpu = (5 * 4'000 + 4 * 8'000 + 2 * 16'000 + 6'000) / 12.0 / devices;
  const double memory = 2 * 32'768 / 12.0 / devices;
  const PackingValue value(mix, of, {});
  ASSERT_FALSE(value.cpu_is_scarce());
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    const Node node = random_node(random, of.size());
    if (node.slots.front().kind != node.slots.back().kind) continue;
    ++compared;
    ASSERT_NEAR(value.value(node.view), value_by_hand(mix, node.view, of, v, cpu, memory), 1e-9)
        << "seed " << seed;
  }
  EXPECT_GT(compared, 500);
}

TEST(Policy, ScarceCpuIsToldByTheRatio) {
  const auto of = kinds();
  Mix mix;
  mix.types = {{share(1000, 1, 10'200), 1}};
  EXPECT_TRUE(PackingValue(mix, of, {100'000, 10}).cpu_is_scarce());
  mix.types[0].demand.cpu = MilliCpu{10'190};
  EXPECT_FALSE(PackingValue(mix, of, {100'000, 10}).cpu_is_scarce());
}

TEST(Policy, NamesAreReadBackAndOthersRefusedWithTheList) {
  for (const auto policy :
       {PlacementPolicy::packing_value, PlacementPolicy::fragmentation, PlacementPolicy::best_fit,
        PlacementPolicy::dot_prod, PlacementPolicy::packing, PlacementPolicy::clustering,
        PlacementPolicy::spread, PlacementPolicy::random}) {
    const auto read = parse_placement_policy(name_of(policy));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, policy);
  }
  const auto wrong = parse_placement_policy("worst_fit");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("worst_fit"), std::string::npos);
  EXPECT_NE(wrong.error().next_step.find("best_fit"), std::string::npos);
}

TEST(Policy, TheMixIsLearntFromTheLatestRequests) {
  MixEstimator estimator;
  int taken_up = 0;
  for (int i = 0; i < 1000; ++i) taken_up += estimator.note(share(i % 4 == 0 ? 500 : 1000));
  EXPECT_GT(taken_up, 5);
  const Mix mix = estimator.mix();
  ASSERT_EQ(mix.types.size(), 2u);
  EXPECT_EQ(mix.total(), 1000);
  // What nobody asks for any more is forgotten.
  for (int i = 0; i < 30'000; ++i) estimator.note(share(250));
  EXPECT_EQ(estimator.mix().types.size(), 1u);
}

TEST(Policy, MixesAreAsFarApartAsTheirShares) {
  Mix a;
  Mix b;
  EXPECT_EQ(distance(a, b), 0);
  a.types = {{share(500), 1}, {share(1000), 1}};
  EXPECT_EQ(distance(a, b), 1);
  b.types = {{share(500), 3}, {share(1000), 1}};
  EXPECT_NEAR(distance(a, b), 0.25, 1e-12);
  b.types = {{share(250), 7}};
  EXPECT_NEAR(distance(a, b), 1, 1e-12);
}

TEST(Policy, EqualDemandsHaveEqualKeysAndOthersDoNot) {
  Demand a = share(500);
  Demand b = share(500);
  EXPECT_EQ(key_of(a), key_of(b));
  a.labels = {"x", "y"};
  b.labels = {"xy"};
  EXPECT_NE(key_of(a), key_of(b));
  a.labels = {"x"};
  b.labels.clear();
  b.device_types = {"x"};
  EXPECT_NE(key_of(a), key_of(b));
}

}  // namespace
}  // namespace loam::schedule

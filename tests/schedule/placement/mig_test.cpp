// Hardware slices against brute force over every layout of a card.
#include "schedule/mig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/random.hpp"

namespace loam::schedule {
namespace {

const MigGeometry card = seven_slice_geometry(Mebibytes{81'920}, 80);
constexpr std::size_t one = 0;
constexpr std::size_t one_wide = 1;
constexpr std::size_t two = 2;
constexpr std::size_t three = 3;
constexpr std::size_t four = 4;
constexpr std::size_t seven = 5;

// By hand: slots in a plain array.
bool valid_by_hand(const MigLayout& layout) {
  std::vector<int> slots(8, 0);
  int compute = 0;
  for (const MigInstance& instance : layout) {
    const MigProfile& profile = card.profiles[instance.profile];
    if (std::count(profile.starts.begin(), profile.starts.end(), instance.start) == 0) return false;
    for (int i = 0; i < profile.memory_slots; ++i) {
      const auto at = static_cast<std::size_t>(instance.start + i);
      if (at >= slots.size() || slots[at]++ > 0) return false;
    }
    compute += profile.compute_slices;
  }
  return compute <= 7;
}

std::vector<MigInstance> every_instance() {
  std::vector<MigInstance> all;
  for (std::size_t i = 0; i < card.profiles.size(); ++i) {
    for (const std::int32_t start : card.profiles[i].starts) all.push_back({i, start});
  }
  return all;
}

// All valid sets of instances beside `base`.
std::vector<MigLayout> every_layout(const MigLayout& base) {
  const std::vector<MigInstance> all = every_instance();
  std::vector<MigLayout> found;
  for (std::uint32_t set = 0; set < (1U << all.size()); ++set) {
    if (__builtin_popcount(set) > 7) continue;
    MigLayout layout = base;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((set >> i & 1U) != 0) layout.push_back(all[i]);
    }
    if (valid_by_hand(layout))
      found.emplace_back(layout.begin() + static_cast<long>(base.size()), layout.end());
  }
  return found;
}

std::int64_t count_of(const MigLayout& layout, std::size_t profile) {
  return std::count_if(layout.begin(), layout.end(),
                       [&](const MigInstance& instance) { return instance.profile == profile; });
}

const std::vector<MigLayout>& empty_card_layouts() {
  static const std::vector<MigLayout> layouts = every_layout({});
  return layouts;
}

TEST(Mig, ProfilesAreNamedAndSizedAsTheVendorDoes) {
  std::vector<std::string> names;
  for (const MigProfile& profile : card.profiles) names.push_back(profile.name);
  EXPECT_EQ(names, (std::vector<std::string>{"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb",
                                             "7g.80gb"}));
  EXPECT_EQ(card.profiles[three].memory.value, 40'960);
  EXPECT_EQ(most_of(card, {}, one), 7);
  EXPECT_EQ(most_of(card, {}, one_wide), 4);
  EXPECT_EQ(most_of(card, {}, two), 3);
  EXPECT_EQ(most_of(card, {}, three), 2);
  EXPECT_EQ(most_of(card, {}, four), 1);
  EXPECT_EQ(most_of(card, {}, seven), 1);
}

TEST(Mig, KnownMixesFitAndOthersDoNot) {
  EXPECT_TRUE(is_valid(card, {{four, 0}, {three, 4}}));
  EXPECT_TRUE(is_valid(card, {{three, 0}, {three, 4}}));
  EXPECT_TRUE(is_valid(card, {{two, 0}, {two, 2}, {two, 4}, {one, 6}}));
  EXPECT_FALSE(is_valid(card, {{four, 0}, {four, 0}}));
  EXPECT_FALSE(is_valid(card, {{four, 4}}));
  EXPECT_FALSE(is_valid(card, {{two, 1}}));
  EXPECT_FALSE(is_valid(card, {{seven, 0}, {one, 6}}));
  EXPECT_FALSE(is_valid(card, {{99, 0}}));
}

TEST(Mig, ValidityIsWhatCountingSlotsSays) {
  Random random(7);
  const std::vector<MigInstance> all = every_instance();
  for (int i = 0; i < 20'000; ++i) {
    MigLayout layout;
    for (std::int64_t n = random.between(0, 5); n > 0; --n)
      layout.push_back(all[random.below(all.size())]);
    ASSERT_EQ(is_valid(card, layout), valid_by_hand(layout));
  }
}

TEST(Mig, TheStartTakenLeavesTheMostPossible) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const auto& layouts = empty_card_layouts();
    const MigLayout& layout = layouts[random.below(layouts.size())];
    const std::size_t profile = random.below(card.profiles.size());
    std::vector<std::int64_t> weights;
    for (std::size_t p = 0; p < card.profiles.size(); ++p) weights.push_back(random.between(0, 9));
    // By hand: the most of each profile over all sets of instances that fit beside it.
    std::int64_t best = -1;
    const auto worth = [&](std::int32_t start) {
      MigLayout next = layout;
      next.push_back({profile, start});
      std::vector<std::int64_t> most(card.profiles.size(), 0);
      for (const MigLayout& other : layouts) {
        MigLayout both = next;
        both.insert(both.end(), other.begin(), other.end());
        if (!valid_by_hand(both)) continue;
        for (std::size_t p = 0; p < most.size(); ++p)
          most[p] = std::max(most[p], count_of(other, p));
      }
      std::int64_t sum = 0;
      for (std::size_t p = 0; p < most.size(); ++p) sum += weights[p] * most[p];
      return sum;
    };
    for (const std::int32_t start : card.profiles[profile].starts) {
      MigLayout next = layout;
      next.push_back({profile, start});
      if (valid_by_hand(next)) best = std::max(best, worth(start));
    }
    const auto chosen = best_start(card, layout, profile, weights);
    ASSERT_EQ(chosen.has_value(), best >= 0);
    if (chosen) {
      ASSERT_EQ(worth(*chosen), best);
    }
  }
}

TEST(Mig, SmallOnesLeaveTheLowSlotsToLargeOnes) {
  // A 1g at slot 6 leaves room for 4g at 0; anywhere below 4 it would not.
  const auto start = best_start(card, {}, one);
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(most_of(card, {{one, *start}}, four), 1);
  EXPECT_EQ(most_of(card, {{one, *start}}, three), 1);
}

TEST(Mig, RepartitionServesAsMuchAsAnyLayout) {
  Random random(13);
  const auto& layouts = empty_card_layouts();
  for (int i = 0; i < 300; ++i) {
    const MigLayout& present = layouts[random.below(layouts.size())];
    MigLayout busy;
    MigLayout idle;
    for (const MigInstance& instance : present)
      (random.chance(300) ? busy : idle).push_back(instance);
    std::vector<std::int64_t> wanted;
    for (std::size_t p = 0; p < card.profiles.size(); ++p) wanted.push_back(random.between(0, 3));
    const auto served = [&](const MigLayout& layout) {
      std::int64_t slices = 0;
      std::int64_t requests = 0;
      for (std::size_t p = 0; p < wanted.size(); ++p) {
        const std::int64_t used = std::min(wanted[p], count_of(layout, p));
        requests += used;
        slices += used * card.profiles[p].compute_slices;
      }
      return std::pair(slices, requests);
    };
    std::pair<std::int64_t, std::int64_t> best{0, 0};
    for (const MigLayout& layout : layouts) {
      MigLayout both = busy;
      both.insert(both.end(), layout.begin(), layout.end());
      if (valid_by_hand(both)) best = std::max(best, served(layout));
    }
    const auto plan = repartition(card, busy, idle, wanted);
    if (!plan) {
      ASSERT_EQ(served(idle), best);
      continue;
    }
    ASSERT_GT(best, served(idle));
    ASSERT_EQ(std::pair(plan->served_slices, plan->served), best);
    // What stays, what is made and what is busy fit together.
    MigLayout after = busy;
    MigLayout free = plan->create;
    for (const MigInstance& instance : idle) {
      if (std::count(plan->remove.begin(), plan->remove.end(), instance) == 0)
        free.push_back(instance);
    }
    after.insert(after.end(), free.begin(), free.end());
    ASSERT_TRUE(valid_by_hand(after));
    ASSERT_EQ(served(free), best);
  }
}

TEST(Mig, ACardThatServesEverybodyIsLeftAlone) {
  EXPECT_FALSE(repartition(card, {}, {{three, 0}, {three, 4}}, {0, 0, 0, 2, 0, 0}).has_value());
  EXPECT_FALSE(repartition(card, {}, {{three, 0}}, {0, 0, 0, 0, 0, 0}).has_value());
}

TEST(Mig, OnlyWhatIsInTheWayIsRemoved) {
  const auto plan = repartition(card, {}, {{three, 0}, {one, 6}}, {0, 0, 1, 0, 0, 0});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->create, (MigLayout{{two, 4}}));
  EXPECT_TRUE(plan->remove.empty());
}

}  // namespace
}  // namespace loam::schedule

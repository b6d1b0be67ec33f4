// Cohorts lend what idles, whoever waits: an owner whose task asks for more than is left of its own
// keeps nobody from that rest, and has its own back as soon as it can use it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

// Tenants 1 to `nominal.size()` of one cohort, who lend one another all they have.
struct Lenders {
  std::vector<std::int64_t> nominal;  // devices
  std::int64_t all = 0;
};

Lenders lenders_of(Random& random) {
  Lenders lenders;
  lenders.nominal.push_back(random.between(2, 5));
  for (std::uint64_t others = 1 + random.below(3); others > 0; --others)
    lenders.nominal.push_back(random.between(0, 4));
  for (const std::int64_t nominal : lenders.nominal) lenders.all += nominal;
  return lenders;
}

// How many lines of the first tenant wait though not all of its own is in use by itself. Requires
// that the others' tasks are of one device, so that any number of them can give way.
std::size_t check_who_waits(const Story& story, const Lenders& lenders, const std::string& where) {
  const Quotas& quotas = story.scheduler.quotas();
  std::vector<std::int64_t> held;
  std::int64_t all_held = 0;
  for (std::uint64_t tenant = 1; tenant <= lenders.nominal.size(); ++tenant) {
    held.push_back(quotas.held(TenantId{tenant})[Dimension::devices]);
    all_held += held.back();
  }
  std::size_t lent = 0;
  for (const auto& [line, tasks] : story.scheduler.lines()) {
    const std::int64_t asks = line.takes[Dimension::devices];
    if (line.tenant == TenantId{1}) {
      EXPECT_GT(held[0] + asks, lenders.nominal[0] * 1000) << where << ": it is its own";
      if (held[0] < lenders.nominal[0] * 1000 && all_held == lenders.all * 1000) ++lent;
    } else {
      EXPECT_GT(all_held + asks, lenders.all * 1000) << where << ": something idles";
    }
  }
  return lent;
}

TEST(Lent, WhatIdlesOfAnOwnersQuotaWhileItsTaskWaitsForAllOfIt) {
  for (const char* name : {"fifo", "priority", "easy", "conservative", "any", "drf"}) {
    std::size_t lent = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      const Lenders lenders = lenders_of(random);
      Discipline how = discipline(name);
      how.safe_min = how.safe_max = Duration{0};
      how.preemptions_max = 0;
      Story story(how, lenders.all + random.between(0, 2));
      for (std::size_t i = 0; i < lenders.nominal.size(); ++i)
        story.scheduler.quotas().set(TenantId{i + 1}, quota(lenders.nominal[i], "c"));
      const std::string where = std::string(name) + ", seed " + std::to_string(seed);
      for (std::uint64_t id = 1; id <= 40; ++id) {
        const bool of_owner = random.chance(400);
        Job next = of_owner ? job(id, random.between(1, lenders.nominal[0]), 1)
                            : job(id, 1, 2 + random.below(lenders.nominal.size() - 1));
        next.limit = Duration::minutes(random.between(1, 30));
        story.submit(next, *next.limit);
        story.settle();
        lent += check_who_waits(story, lenders, where);
        story.run_for(Duration::seconds(random.between(0, 60)));
        lent += check_who_waits(story, lenders, where);
      }
      story.run_for(Duration::hours(40));
      EXPECT_EQ(story.ended.size(), 40U) << where;
    }
    EXPECT_GT(lent, 100U) << name << ": no owner waited while others had what it lent";
  }
}

}  // namespace
}  // namespace loam::schedule

// What was spent lately, by attribution: what a budget made in the middle of a month begins with.
// Pure.
#include "billing/budgets.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t day_ms = 24LL * 3'600'000;
// Zones are whole quarters of an hour off UTC, by 14 hours at most: their months begin on the last
// day of UTC's month or on the first of the next.
constexpr std::int64_t quarter_ms = 15LL * 60'000;
// Longer than any month and what its zone is off.
constexpr Duration kept = Duration::hours(33 * 24);

// Where the sum begins that an instant counts in.
Instant sum_of(Instant at) {
  const std::int64_t day = at.ms / day_ms;
  const Date date = date_of_day(day);
  if (date.day == 1 || date.day == days_in_month(date.year, date.month))
    return Instant{at.ms / quarter_ms * quarter_ms};
  return Instant{(day - (date.day - 2)) * day_ms};  // the second of the month
}

}  // namespace

void RecentSpending::add(TenantId tenant, const Attribution& what, Money amount, Instant at) {
  auto& sums = sums_[{tenant, what.project, what.environment, what.model}];
  const auto [sum, fresh] = sums.try_emplace(sum_of(at), amount);
  if (!fresh) {
    sum->second += amount;
    return;
  }
  while (sums.begin()->first + kept < at) sums.erase(sums.begin());
}

Money RecentSpending::since(const BudgetScope& scope, Instant from, Currency currency) const {
  Money sum = Money::zero(currency);
  for (auto at = sums_.lower_bound({scope.tenant, {}, {}, {}});
       at != sums_.end() && at->first.tenant == scope.tenant; ++at) {
    Attribution what;
    what.project = at->first.project;
    what.environment = at->first.environment;
    what.model = at->first.model;
    if (!scope.covers(scope.tenant, what)) continue;
    for (auto part = at->second.lower_bound(from); part != at->second.end(); ++part) {
      if (part->second.currency() == currency) sum += part->second;
    }
  }
  return sum;
}

std::vector<SpentImage> RecentSpending::images() const {
  std::vector<SpentImage> images;
  for (const auto& [who, sums] : sums_) {
    for (const auto& [from, amount] : sums)
      images.push_back({who.tenant, who.project, who.environment, who.model, from, amount});
  }
  return images;
}

void RecentSpending::restore(std::vector<SpentImage> images) {
  sums_.clear();
  for (SpentImage& image : images) {
    Who who{image.tenant, std::move(image.project), std::move(image.environment),
            std::move(image.model)};
    sums_[std::move(who)].emplace(image.from, image.amount);
  }
}

}  // namespace loam::billing

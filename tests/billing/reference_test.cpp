// The rater against an independent slow one that walks every second of a run: windows in any zone,
// tiers of both kinds, begun units, cards that change in the middle, spot and discounts, in any
// mixture and however the run is cut into records.
#include <date/tz.h>

#include <map>

#include "billing/fixture.hpp"
#include "billing/lease_rating.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t cuts[] = {0, 90, 8 * 60, 19 * 60 + 30, 24 * 60};  // minutes of the day
constexpr std::size_t parts = 4;
const std::vector<std::int64_t> workdays{1, 2, 3, 4, 5}, weekends{0, 6};

// --- The slow rater ----------------------------------------------------------------------------
// Second by second, its time zones straight from the date library, its sums in plain integers. It
// shares nothing with the rater but the cards.

// What a card says, as the slow rater reads it.
struct SlowCard {
  std::int64_t from = 0;  // second
  std::int64_t unit = 1;  // seconds that are billed whole
  Price flat;
  Price windows[2][parts];   // on workdays, on weekends
  std::int64_t payable = 0;  // what all discounts leave, in 1/10,000
  Int128 spot_low = 0;
  Int128 spot_high = 0;
};
struct SlowMove {
  std::int64_t from = 0;
  Int128 units = 0;
};

// The wall clock of a zone.
class SlowClock {
 public:
  explicit SlowClock(const std::string& zone) : zone_(date::locate_zone(zone)) {}

  struct Reading {
    int month = 0;  // of all: 12 × year + month
    bool weekend = false;
    std::size_t part = 0;
  };
  Reading at(std::int64_t second) {
    const date::sys_seconds now{std::chrono::seconds{second}};
    if (now < info_.begin || now >= info_.end) info_ = zone_->get_info(now);
    const auto local = now + info_.offset;
    const auto midnight = date::floor<date::days>(local);
    const auto minute = (local - midnight).count() / 60;
    const date::year_month_day day{midnight};
    const unsigned weekday = date::weekday{midnight}.c_encoding();
    Reading reading{static_cast<int>(day.year()) * 12 + static_cast<int>(unsigned(day.month())),
                    weekday == 0 || weekday == 6, 0};
    while (minute >= cuts[reading.part + 1]) ++reading.part;
    return reading;
  }

 private:
  const date::time_zone* zone_;
  date::sys_info info_{};
};

// What moving a month's use from `before` to `after` milli-CE × ms costs.
Int128 growth(const Price& price, Int128 before, Int128 after) {
  constexpr Int128 hour_ms = 3'600'000;
  if (price.tier_mode == TierMode::volume) {
    const auto all = [&](Int128 used) {
      Int128 units = price.tiers.front().price.units();
      for (const Tier& tier : price.tiers) {
        if (used > tier.above_milli_ce_hours * hour_ms) units = tier.price.units();
      }
      return units * used;
    };
    return all(after) - all(before);
  }
  Int128 sum = 0;
  for (std::size_t i = 0; i < price.tiers.size(); ++i) {
    const Int128 low = std::max(before, price.tiers[i].above_milli_ce_hours * hour_ms);
    const Int128 high = i + 1 < price.tiers.size()
                            ? std::min(after, price.tiers[i + 1].above_milli_ce_hours * hour_ms)
                            : after;
    if (high > low) sum += price.tiers[i].price.units() * (high - low);
  }
  return sum;
}

// What was met on the way, so that the cases are known to hold what they are for.
struct Met {
  int tiers = 0;
  int volume = 0;
  int begun = 0;
  int cards = 0;
  int spot_moves = 0;
  int months = 0;
};

struct Exact {
  Int128 list = 0;  // price × milli-CE × ms
  Int128 net = 0;   // × 10,000
};

// A tenant's cards, and where its months stand.
class SlowRater {
 public:
  SlowRater(std::vector<SlowCard> cards, std::vector<SlowMove> spot, const std::string& zone)
      : cards_(std::move(cards)), spot_(std::move(spot)), clock_(zone) {}

  Exact rate(std::int64_t from, std::int64_t to, MilliCe ce, const Terms& terms, Met& met) {
    const std::int64_t unit = card_at(from).unit;
    const std::int64_t billed = (to - from + unit - 1) / unit * unit;
    met.begun += billed != to - from ? 1 : 0;
    met.cards += &card_at(from) != &card_at(from + billed - 1) ? 1 : 0;
    Exact exact;
    Int128 last_spot = 0;
    for (std::int64_t second = from; second < from + billed; ++second) {
      const SlowCard& card = card_at(second);
      const Int128 quantity = Int128{ce.value} * 1000;
      Int128 list = 0;
      if (terms.purchase_model == PurchaseModel::spot) {
        const Int128 units = spot_at(second, card);
        met.spot_moves += last_spot != 0 && last_spot != units ? 1 : 0;
        last_spot = units;
        list = units * quantity;
      } else {
        list = in_tiers(second, quantity, card, terms, met);
      }
      exact.list += list;
      exact.net += list * card.payable;
    }
    return exact;
  }

 private:
  const SlowCard& card_at(std::int64_t second) const {
    std::size_t at = 0;
    while (at + 1 < cards_.size() && cards_[at + 1].from <= second) ++at;
    return cards_[at];
  }
  Int128 spot_at(std::int64_t second, const SlowCard& card) const {
    Int128 units = spot_.front().units;
    for (const SlowMove& move : spot_) {
      if (move.from <= second) units = move.units;
    }
    return std::clamp(units, card.spot_low, card.spot_high);
  }
  Int128 in_tiers(std::int64_t second, Int128 quantity, const SlowCard& card, const Terms& terms,
                  Met& met) {
    const SlowClock::Reading reading = clock_.at(second);
    const Price& price = terms.tariff == Tariff::flat
                             ? card.flat
                             : card.windows[reading.weekend ? 1 : 0][reading.part];
    if (price.tiers.size() == 1) return price.tiers.front().price.units() * quantity;
    const auto [used, fresh] = used_.try_emplace(reading.month, 0);
    met.months += fresh && used_.size() > 1 ? 1 : 0;
    const Int128 before = used->second;
    used->second += quantity;
    for (const Tier& tier : price.tiers) {
      const Int128 bound = tier.above_milli_ce_hours * Int128{3'600'000};
      if (tier.above_milli_ce_hours == 0 || before > bound || used->second <= bound) continue;
      ++(price.tier_mode == TierMode::volume ? met.volume : met.tiers);
    }
    return growth(price, before, used->second);
  }

  std::vector<SlowCard> cards_;
  std::vector<SlowMove> spot_;
  SlowClock clock_;
  std::map<int, Int128> used_;  // milli-CE × ms under tiered prices, by month
};

// --- Cases -------------------------------------------------------------------------------------

Price price_of(Random& random, Tariff tariff, const std::string& window, bool tiers) {
  Price price;
  price.tariff = tariff;
  price.window = window;
  price.tiers = {{0, Money(random.between(1, 3'000'000'000'000), usd)}};
  for (std::int64_t above = 0; tiers && random.chance(600);) {
    above += random.between(1, 300'000);
    price.tiers.push_back({above, Money(random.between(1, 3'000'000'000'000), usd)});
  }
  if (random.chance(400)) price.tier_mode = TierMode::volume;
  return price;
}

struct Case {
  Tables tables;
  std::vector<SlowCard> slow;
  std::vector<SlowMove> spot;
  std::string zone;
  BasisPoints discount;
  Terms terms;
  std::int64_t begin = 0;  // second
};

// One card for both raters.
void add_card(Case& to, Random& random, std::int64_t from, bool tiers) {
  constexpr Granularity units[] = {Granularity::exact, Granularity::second, Granularity::minute,
                                   Granularity::hour};
  constexpr std::int64_t lengths[] = {1, 1, 60, 3600};
  const std::size_t unit = random.below(4);
  SlowCard& slow = to.slow.emplace_back();
  slow.from = from;
  slow.unit = lengths[unit];
  RateCard card;
  card.id = RateCardId{to.slow.size()};
  card.effective_from = Instant{from * 1000};
  card.currency = usd;
  card.on_demand = Money(random.between(1, 300'000'000) * 10'000, usd);
  PriceTerms& terms = card.terms;
  terms.granularity = units[unit];
  terms.zone = to.zone;
  for (const bool on_weekend : {false, true}) {
    for (std::size_t part = 0; part < parts; ++part) {
      const std::string name = "w" + std::to_string(part) + (on_weekend ? "e" : "d");
      terms.windows.push_back(window(name.c_str(), Duration::minutes(cuts[part]),
                                     Duration::minutes(cuts[part + 1]),
                                     on_weekend ? weekends : workdays));
      Price& price = slow.windows[on_weekend ? 1 : 0][part];
      price = price_of(random, Tariff::time_of_day, name, tiers);
      terms.prices.push_back(price);
    }
  }
  slow.flat = price_of(random, Tariff::flat, "", tiers);
  terms.prices.push_back(slow.flat);
  const std::int64_t off = random.chance(300) ? random.between(0, 4'000) : 0;
  if (off > 0) terms.discounts = {{"card", {off}, {}}};
  slow.payable = std::max<std::int64_t>(0, 10'000 - off - to.discount.value);
  terms.spot = {{random.between(1'500, 5'000)}, {random.between(5'000, 10'000)}, {}, true};
  slow.spot_low = card.on_demand.units() / 10'000 * terms.spot.floor.value;
  slow.spot_high = card.on_demand.units() / 10'000 * terms.spot.ceiling.value;
  auto table = PriceTable::compile(card);
  ASSERT_TRUE(table.ok()) << to_text(table.error());
  ASSERT_TRUE(to.tables.add(std::move(*table)).ok());
}

Case case_of(Random& random) {
  const char* const zones[] = {"UTC",          "America/New_York",    "Europe/Berlin",
                               "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns",
                               "Pacific/Apia"};
  // Around changes of the clock, the ends of months, and a day that never was.
  const char* const near[] = {"2025-03-09T05:00:00Z", "2025-11-02T04:00:00Z",
                              "2025-03-30T00:00:00Z", "2025-10-26T00:00:00Z",
                              "2025-04-05T13:00:00Z", "2011-12-30T08:00:00Z",
                              "2025-04-01T00:00:00Z", "2024-02-29T22:00:00Z"};
  Case made;
  made.zone = zones[random.below(std::size(zones))];
  made.discount = {random.chance(500) ? random.between(0, 10'000) : 0};
  const Instant about = at(near[random.below(std::size(near))]);
  made.begin = about.ms / 1000 + random.between(-7'200, 7'200);
  if (random.chance(200)) {
    const Instant month_end = month_of(*Zone::open(made.zone), about).to;
    made.begin = month_end.ms / 1000 - random.between(1, 6'000);
  }
  if (random.chance(250)) {
    made.terms.purchase_model = PurchaseModel::spot;
  } else if (random.chance(600)) {
    made.terms.tariff = Tariff::time_of_day;
  }
  const bool tiers = random.chance(600);
  std::int64_t from = 0;
  for (std::uint64_t cards = 1 + random.below(3); cards > 0; --cards) {
    add_card(made, random, from, tiers);
    from = std::max(from, made.begin) + random.between(1, 3'000);
  }
  std::int64_t moved = made.begin - 600;
  for (int i = 0; i < 6; ++i) {
    made.spot.push_back({moved, random.between(1, 3'000'000'000'000)});
    made.tables.move_spot(usd, Instant{moved * 1000}, Money(made.spot.back().units, usd));
    moved += random.between(60, 1'500);
  }
  return made;
}

// Twice the distance, so that a half is whole.
bool within_half_unit(Money amount, Int128 exact, Int128 denominator) {
  const Int128 off = (amount.units() * denominator - exact) * 2;
  return -denominator <= off && off <= denominator;
}

// A few runs of a tenant, one after the other, each cut into records as the engine does it.
void compare(std::uint64_t seed, Met& met) {
  Random random(seed);
  Case of = case_of(random);
  SlowRater slow(of.slow, of.spot, of.zone);
  TierCounters counters;
  std::int64_t begin = of.begin;
  for (std::uint64_t run = 1; run <= 1 + random.below(3); ++run) {
    const std::int64_t end = begin + random.between(1, 5'000);
    Lease lease;
    lease.id = LeaseId{run};
    lease.billable_ce = MilliCe{random.between(1, 400'000)};
    lease.started_at = lease.billed_until = Instant{begin * 1000};
    lease.rated_list = lease.rated_net = Money::zero(usd);
    while (lease.billed_until < Instant{end * 1000}) {
      const Instant to{std::min(end * 1000, lease.billed_until.ms + random.between(1, 4'000'000))};
      for (const UsageRecord& record :
           rate_until(lease, of.terms, {usd, of.discount}, of.tables, counters, to)) {
        count(counters, record);
        advance(lease, record);
      }
    }
    const Exact exact = slow.rate(begin, end, lease.billable_ce, of.terms, met);
    const Int128 per_unit = Int128{1000} * 3'600'000;
    EXPECT_TRUE(within_half_unit(lease.rated_list, exact.list, per_unit))
        << "seed " << seed << " run " << run << " in " << of.zone;
    EXPECT_TRUE(within_half_unit(lease.rated_net, exact.net, per_unit * 10'000))
        << "seed " << seed << " run " << run << " in " << of.zone;
    begin = end + random.between(0, 3'000);
  }
}

TEST(Reference, rating_second_by_second_comes_to_the_same) {
  Met met;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    compare(seed, met);
    if (HasFailure()) return;  // one is enough to look at
  }
  EXPECT_GT(met.tiers, 100);
  EXPECT_GT(met.volume, 100);
  EXPECT_GT(met.begun, 100);
  EXPECT_GT(met.cards, 100);
  EXPECT_GT(met.spot_moves, 100);
  EXPECT_GT(met.months, 100);
}

}  // namespace
}  // namespace loam::billing

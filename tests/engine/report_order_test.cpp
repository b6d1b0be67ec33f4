// What nodes report comes in any order, late and more than once: whatever way it comes, the bill is
// that of reports told at once, each once.
#include <map>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

constexpr std::size_t runs = 8;
constexpr std::int64_t minute_ms = 60'000;

// What really ran: nobody knows it but by reports.
struct Attempted {
  TaskSpec spec;
  Instant submitted;
  Instant started;
  Instant ended;
};

// 36 GiB held and a GiB moved every four seconds: at 0.10 and 0.02 exact in every millisecond, so
// that where a report cuts the time shows in no decimal.
ServiceReport services_of(const Attempted& run, Instant at) {
  const std::int64_t ms = (at - run.started).ms;
  return {{36 * 1024 * ms, (ms / 4'000) << 30, 0}, {}};
}

std::vector<Attempted> plan(Random& random) {
  std::vector<Attempted> all;
  Instant at = start;
  for (std::size_t i = 0; i < runs; ++i) {
    Attempted& run = all.emplace_back();
    at = at + Duration{random.between(1, 60 * minute_ms)};
    run.submitted = at;
    run.started = at + Duration{random.between(0, 90'000)};
    run.ended = run.started + Duration{random.between(1, 400 * minute_ms)};
    run.spec = Region::spec();
    run.spec.attribution.project = random.chance(500) ? "vision" : "speech";
    run.spec.tariff = random.chance(500) ? Tariff::time_of_day : Tariff::flat;
  }
  return all;
}

// A region that hears of the runs; `random`: in disorder.
class Hearing {
 public:
  Hearing(const std::vector<Attempted>& all, Granularity unit, Random* random) : random_(random) {
    for (std::size_t d = 1; d <= runs; ++d) {
      DeviceFacts facts;
      facts.uuid = "pool-" + std::to_string(d);
      facts.type = "A100";
      facts.memory = Mebibytes{81'920};
      facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
      region_.act(AttachDevice{"n1", facts});
    }
    PriceTerms terms = day_and_night();
    terms.granularity = unit;
    terms.services = {money("0.10"), std::nullopt, money("0.02")};
    EXPECT_FALSE(region_.publish(terms, "1.1").reject);
    terms.prices.front().tiers.front().price = money("3.3");
    EXPECT_FALSE(region_.publish(terms, "1.3", start + Duration::minutes(200)).reject);
    for (const Attempted& run : all) {
      hear_until(run.submitted);
      const Decision decision = region_.act(SubmitTask{acme, run.spec});
      region_.settle();
      const Task& task = region_.state.tasks.at(*TaskId::parse(decision.subject));
      EXPECT_EQ(task.leases.size(), 1u) << "there is room for all";
      tell_of(run, task.leases.front());
    }
    hear_until(start + Duration::hours(24));
  }

  Invoice invoice() {
    EXPECT_TRUE(region_.state.tasks.empty());
    const Decision decision = region_.act(IssueInvoice{acme, {}});
    EXPECT_FALSE(decision.reject);
    Invoice issued = std::get<InvoiceIssued>(decision.events.back()).invoice;
    // What was rated ahead and taken back leaves a line of nothing.
    std::erase_if(issued.lines, [](const InvoiceLine& line) {
      return line.milli_ce_ms == 0 && line.list.is_zero() && line.net.is_zero();
    });
    return issued;
  }
  Money wallet() const { return region_.wallet() + region_.held(); }
  int again() const { return again_; }  // reports that said nothing new

 private:
  void tell_of(const Attempted& run, LeaseId lease) {
    const Epoch epoch = region_.state.leases.at(lease).epoch;
    send(run.started, ReportStarted{lease, epoch, run.started});
    for (Instant at = run.started + Duration::minutes(20); at < run.ended;
         at = at + Duration::minutes(20))
      send(at, ReportServices{lease, epoch, at, services_of(run, at), {}});
    ReportEnded ended;
    ended.lease = lease;
    ended.epoch = epoch;
    ended.started_at = run.started;
    ended.ended_at = run.ended;
    ended.services = services_of(run, run.ended);
    send(run.ended, ended);
  }
  void send(Instant at, const Command& command) {
    const bool once = random_ == nullptr;
    for (std::uint64_t copies = once ? 1 : 1 + random_->below(3); copies > 0; --copies) {
      const Duration late{once || random_->chance(300) ? 0 : random_->between(0, 150 * minute_ms)};
      reports_.emplace(std::pair(at + late, once ? 0 : random_->next()), command);
    }
  }
  void hear_until(Instant to) {
    while (!reports_.empty() && reports_.begin()->first.first <= to) {
      region_.go(reports_.begin()->first.first);
      const Decision decision = region_.act(reports_.begin()->second);
      again_ += decision.events.empty() ? 1 : 0;
      reports_.erase(reports_.begin());
      region_.settle();
    }
    region_.go(to);
  }

  Region region_;
  Random* random_;
  std::multimap<std::pair<Instant, std::uint64_t>, Command> reports_;
  int again_ = 0;
};

TEST(ReportOrder, NeitherOrderNorDelayNorRepetitionChangesTheBill) {
  constexpr Granularity units[] = {Granularity::exact, Granularity::second, Granularity::minute,
                                   Granularity::hour};
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Random random(seed);
    const std::vector<Attempted> all = plan(random);
    const Granularity unit = units[seed % 4];
    Hearing at_once(all, unit, nullptr);
    const Invoice expected = at_once.invoice();
    EXPECT_EQ(at_once.again(), 0) << "seed " << seed;
    EXPECT_FALSE(expected.lines.empty());
    for (int variant = 1; variant <= 4; ++variant) {
      Hearing disorder(all, unit, &random);
      const Invoice invoice = disorder.invoice();
      EXPECT_GT(disorder.again(), 0);
      EXPECT_EQ(invoice.lines, expected.lines) << "seed " << seed << " variant " << variant;
      EXPECT_EQ(invoice.total, expected.total) << "seed " << seed << " variant " << variant;
      EXPECT_EQ(disorder.wallet(), at_once.wallet()) << "seed " << seed << " variant " << variant;
    }
  }
}

}  // namespace
}  // namespace loam::engine

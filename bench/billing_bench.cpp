// Billing: records rated a second, two-phase transfers, a long invoice, a month's close, advice.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "bench/bench.hpp"
#include "billing/accounts.hpp"
#include "billing/advice.hpp"
#include "billing/documents.hpp"
#include "billing/rater.hpp"
#include "domain/event_codec.hpp"
#include "store/journal.hpp"

namespace loam::bench {
namespace {

using namespace loam::billing;

const Currency usd("USD");
constexpr Instant start{1'772'323'200'000};  // 2026-03-01T00:00:00Z
constexpr int series = 7;                    // an odd number, so that the median was measured

// Four windows of the local day, in a zone with daylight saving.
PriceTable four_windows() {
  RateCard card;
  card.id = RateCardId{1};
  card.on_demand = *Money::parse("0.02", usd);
  PriceTerms terms;
  terms.zone = "America/New_York";
  const std::array<std::pair<int, int>, 4> hours{{{0, 7}, {7, 12}, {12, 19}, {19, 24}}};
  for (std::size_t i = 0; i < hours.size(); ++i) {
    const std::string name = "w" + std::to_string(i);
    terms.windows.push_back(
        {name, {}, "", Duration::hours(hours[i].first), Duration::hours(hours[i].second)});
    Price price;
    price.tariff = Tariff::time_of_day;
    price.window = name;
    price.tiers = {{0, Money(10'000'000'000 + static_cast<std::int64_t>(i) * 7'000'000'001, usd)}};
    terms.prices.push_back(price);
  }
  return *PriceTable::compile(card, terms);
}

// Hours of a year of leases, each beginning anywhere in its hour.
std::vector<Usage> records(std::size_t count) {
  Random random(1);
  std::vector<Usage> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    Usage& usage = all[i];
    usage.id = "u" + std::to_string(i);
    usage.from = usage.run_from = start + Duration{random.between(0, 365LL * 24 * 3'600'000)};
    usage.to = usage.from + Duration::hours(1);
    usage.terms.tariff = Tariff::time_of_day;
    usage.billable_ce = MilliCe{random.between(1'000, 400'000)};
  }
  return all;
}

double median_seconds(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < series; ++i) times.push_back(core_seconds_of(work));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// --- Rating
// ----------------------------------------------------------------------------------------

void measure_rating(Report& report) {
  report.progress("rating");
  Tables tables;
  static_cast<void>(tables.add(four_windows()));
  const Rater rater(tables, {usd, {500}});
  constexpr std::size_t count = 200'000;
  const std::vector<Usage> all = records(count);
  std::vector<Charge> charges;
  charges.reserve(2 * count);
  const double seconds = median_seconds([&] {
    charges.clear();
    for (const Usage& usage : all) static_cast<void>(rater.rate(usage, charges));
  });
  report.set("billing.records_rated_per_second", count / seconds,
             "one core, four local windows, one hour each; " + std::to_string(charges.size()) +
                 " charges of " + std::to_string(count) + " records");
}

// --- Transfers
// -------------------------------------------------------------------------------------

// What the engine does to its accounts for a task: the wallet is looked at and the hold is made,
// then it is charged and the rest comes back.
void measure_transfers(Report& report) {
  report.progress("two-phase transfers in memory");
  constexpr std::uint64_t count = 50'000;
  constexpr std::uint64_t tenants = 1000;
  const Money million = *Money::parse("1000000", usd);
  const Money most = *Money::parse("0.80", usd);
  const Money amount = *Money::parse("0.75", usd);
  std::uint64_t refused = 0;
  const double seconds = median_seconds([&] {
    Accounts accounts;
    std::uint64_t id = 0;
    for (std::uint64_t t = 1; t <= tenants; ++t)
      accounts.apply(billing::top_up(TransactionId{++id}, TenantId{t}, million, ""));
    for (std::uint64_t i = 0; i < count; ++i) {
      const TenantId tenant{i % tenants + 1};
      const TaskId task{i + 1};
      if (accounts.balance(wallet_of(tenant, usd)) < most) ++refused;
      accounts.apply(billing::hold(TransactionId{++id}, tenant, task, most));
      accounts.apply(
          billing::charge(TransactionId{++id}, tenant, task, amount, Money::zero(usd), most));
      accounts.apply(billing::release(TransactionId{++id}, tenant, task, most - amount));
    }
  });
  LOAM_ASSERT(refused == 0);
  report.set("billing.transfers_per_second", count / seconds,
             "a transfer is a hold, its charge and what comes back; 1000 tenants");
}

// Holds and postings as the journal keeps them: 64 transfers a batch, one commit for all.
Result<void> measure_durable(Report& report) {
  report.progress("two-phase transfers in SQLite");
  std::string folder = "loam-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return Error{ErrorKind::unavailable, "no folder for the journal", {}};
  constexpr std::size_t batch_size = 64;
  constexpr std::size_t batches = 300;
  const Money amount = *Money::parse("0.75", usd);
  {
    LOAM_TRY(journal, store::SqliteJournal::open(folder));
    std::uint64_t sequence = 0, id = 0;
    std::vector<Record> tenants;
    for (std::size_t i = 0; i < batch_size; ++i) {
      TenantSpec spec;
      spec.name = "tenant-" + std::to_string(i + 1);
      tenants.push_back(
          {++sequence, start, Actor{"bench", "bench"}, TenantCreated{TenantId{i + 1}, spec}});
    }
    Result<void> appended = journal->append(tenants);
    const double seconds = seconds_of([&] {
      for (std::size_t b = 0; b < batches && appended.ok(); ++b) {
        std::vector<Record> batch;
        for (std::size_t i = 0; i < batch_size; ++i) {
          const TenantId tenant{i + 1};
          const TaskId task{++id};
          for (const Transaction& each : {billing::hold(TransactionId{++id}, tenant, task, amount),
                                          billing::charge(TransactionId{++id}, tenant, task, amount,
                                                          Money::zero(usd), amount)})
            batch.push_back({++sequence, start, Actor{"bench", "bench"}, TransactionPosted{each}});
        }
        appended = journal->append(batch);
      }
    });
    if (appended.ok())
      report.set("billing.durable_transfers_per_second", batch_size * batches / seconds,
                 "64 transfers a commit, journal with its hash chain on the disk of this folder");
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return appended;
  }
}

// --- Invoices
// --------------------------------------------------------------------------------------

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Document long_invoice(std::size_t lines) {
  Document draft;
  draft.tenant = TenantId{1};
  draft.period = {start, start + Duration::hours(24 * 31)};
  draft.lines.resize(lines);
  Random random(2);
  for (std::size_t i = 0; i < lines; ++i) {
    DocumentLine& line = draft.lines[i];
    line.project = "project-" + std::to_string(i % 5000);
    line.environment = "production";
    line.description = "on_demand compute";
    line.unit = "CE-Hours";
    line.quantity = random.between(1, 9'000'000'000'000);
    line.unit_price = Money(20'000'000'000, usd);
    line.list = line.net = Money(random.between(1, 9'000'000'000'000), usd);
  }
  return draft;
}

// In a process of its own, so that the peak of memory is the invoice's.
Result<void> measure_invoice(Report& report) {
  report.progress("an invoice of a million lines");
  int ends[2];
  if (pipe(ends) != 0) return Error{ErrorKind::unavailable, "no pipe", {}};
  const pid_t child = fork();
  if (child < 0) return Error{ErrorKind::unavailable, "no process", {}};
  if (child == 0) {
    Document draft = long_invoice(1'000'000);
    DocumentBook book;
    std::size_t bytes = 0;
    double figures[2];
    figures[0] = core_seconds_of([&] {
      const auto issued = book.issue(std::move(draft), {{"VAT", 190'000}});
      bytes = to_csv(**issued).size();
    });
    figures[1] = peak_mebibytes();
    const bool written = write(ends[1], figures, sizeof figures) == sizeof figures;
    _exit(written && bytes > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  double figures[2] = {0, 0};
  const bool read_all = read(ends[0], figures, sizeof figures) == sizeof figures;
  ::close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!read_all || status != 0)
    return Error{ErrorKind::internal, "the invoice's process failed", {}};
  report.set("billing.long_invoice_seconds", figures[0], "issued and written as CSV");
  report.set("billing.long_invoice_mebibytes", figures[1], "peak of the process");
  return {};
}

// --- A month's close
// -------------------------------------------------------------------------------

// 10,000 tenants with 100 records each: rated, gathered by project, invoiced.
void measure_close(Report& report) {
  report.progress("a month's close");
  constexpr std::uint64_t tenants = 10'000;
  constexpr std::size_t each = 100;
  Tables tables;
  static_cast<void>(tables.add(four_windows()));
  const std::vector<Usage> month = records(each * 10);
  DocumentBook book;
  Money total = Money::zero(usd);
  const double seconds = core_seconds_of([&] {
    for (std::uint64_t t = 1; t <= tenants; ++t) {
      const Rater rater(tables, {usd, {static_cast<std::int64_t>(t % 1000)}});
      std::map<std::pair<std::uint32_t, int>, DocumentLine> lines;
      std::vector<Charge> charges;
      for (std::size_t i = 0; i < each; ++i) {
        const std::size_t index = (t * 7 + i) % month.size();
        charges.clear();
        static_cast<void>(rater.rate(month[index], charges));
        for (const Charge& charge : charges) {
          const auto [at, fresh] = lines.try_emplace({charge.window, static_cast<int>(index % 5)});
          DocumentLine& line = at->second;
          if (fresh) {
            line.project = "project-" + std::to_string(index % 5);
            line.unit_price = charge.unit_price;
            line.list = line.net = Money::zero(usd);
          }
          line.list += charge.list;
          line.net += charge.net;
        }
      }
      Document draft;
      draft.tenant = TenantId{t};
      for (auto& [key, line] : lines) draft.lines.push_back(std::move(line));
      total += (*book.issue(std::move(draft), {{"VAT", 190'000}}))->total;
    }
  });
  report.set("billing.month_close_seconds", seconds,
             "10,000 tenants with 100 records each, rated and invoiced");
}

void measure_advice(Report& report) {
  report.progress("advice");
  Random random(3);
  std::vector<UsageStep> year;
  for (std::int64_t hour = 0; hour < 365 * 24; ++hour)
    year.push_back({start + Duration::hours(hour), Duration::hours(1),
                    random.between(0, 400'000) + (hour % 24 > 8 ? 200'000 : 0)});
  AdviceRequest request;
  request.on_demand = *Money::parse("2.00", usd);
  request.on_demand_hidden = Money::zero(usd);
  for (const char* price : {"1.30", "1.10", "0.90"}) {
    CommitOption option;
    option.name = price;
    option.price = *Money::parse(price, usd);
    option.used = *Money::parse("0.20", usd);
    request.options.push_back(option);
  }
  constexpr double milliseconds = 1000;
  report.set("billing.advice_ms",
             median_seconds([&] { static_cast<void>(advise(year, request)); }) * milliseconds,
             "a year of hours, three options");
}

LOAM_BENCHMARK(billing, {{"billing.records_rated_per_second", "1/s", at_least(1'000'000)},
                         {"billing.transfers_per_second", "1/s", at_least(100'000)},
                         {"billing.durable_transfers_per_second", "1/s", at_least(10'000)},
                         {"billing.long_invoice_seconds", "s", at_most(2)},
                         {"billing.long_invoice_mebibytes", "MiB", at_most(1024)},
                         {"billing.month_close_seconds", "s", at_most(10)},
                         {"billing.advice_ms", "ms", at_most(50)}}) {
  measure_rating(report);
  measure_transfers(report);
  LOAM_CHECK(measure_durable(report));
  LOAM_CHECK(measure_invoice(report));
  measure_close(report);
  measure_advice(report);
  return {};
}

}  // namespace
}  // namespace loam::bench

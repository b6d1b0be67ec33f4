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
#include "billing/invoicing.hpp"
#include "billing/rater.hpp"
#include "domain/event_codec.hpp"
#include "engine/decide.hpp"
#include "engine/state.hpp"
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

// Hours of leases, each beginning anywhere in so many days.
std::vector<Usage> records(std::size_t count, std::int64_t days) {
  Random random(1);
  std::vector<Usage> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    Usage& usage = all[i];
    usage.id = "u" + std::to_string(i);
    usage.from = usage.run_from = start + Duration{random.between(0, days * 24 * 3'600'000)};
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
  const std::vector<Usage> all = records(count, 365);
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

constexpr Instant month_end = start + Duration::hours(24 * 31);
const std::vector<Tax> taxes{{"VAT", 190'000}};

// What is charged of an hour under one of 5,000 projects and 200 models, each a line of its own.
OpenCharges charges_of_lines(std::int64_t lines) {
  OpenCharges open;
  Random random(2);
  Attribution who;
  who.environment = "production";
  UsageRecord record;
  record.from = start;
  record.to = start + Duration::hours(1);
  record.billed = Duration::hours(1);
  record.month_end = month_end;
  record.unit_price = Money(20'000'000'000, usd);
  for (std::int64_t i = 0; i < lines; ++i) {
    who.project = "project-" + std::to_string(i % 5000);
    who.model = "model-" + std::to_string(i / 5000);
    record.billable_ce = MilliCe{random.between(1, 1'000'000)};
    record.list = record.net = Money(random.between(1, 9'000'000'000'000), usd);
    open.add(who, record, taxes);
  }
  return open;
}

// As the command line has it for others.
Document document_of(const Invoice& invoice) {
  Document document;
  document.number = invoice.id.value;
  document.tenant = invoice.tenant;
  document.currency = invoice.currency;
  document.period = {invoice.from, invoice.to};
  document.subtotal = invoice.subtotal;
  document.taxes = invoice.taxes;
  document.total = invoice.total;
  document.lines.resize(invoice.lines.size());
  for (std::size_t i = 0; i < invoice.lines.size(); ++i) {
    const InvoiceLine& from = invoice.lines[i];
    DocumentLine& line = document.lines[i];
    line.project = from.key.project;
    line.environment = from.key.environment;
    line.model = from.key.model;
    line.description = "on demand compute";
    line.unit = "CE-Hours";
    line.quantity = Int128{from.milli_ce_ms} * Money::units_per_one / (Int128{1000} * 3'600'000);
    line.unit_price = from.key.unit_price;
    line.list = from.list;
    line.net = from.net;
    line.payable = from.payable;
  }
  return document;
}

struct InvoiceFigures {
  double seconds = 0;
  double mebibytes = 0;
};

// What has been charged is closed into the invoice, that is written as the journal keeps it, and
// then as CSV.
Result<InvoiceFigures> issue_long_invoice() {
  constexpr std::int64_t lines = 1'000'000;
  InvoiceFigures figures;
  Event event;
  {
    const OpenCharges open = charges_of_lines(lines);
    figures.seconds += core_seconds_of([&] {
      event = InvoiceIssued{billing::close(open, InvoiceId{1}, TenantId{1}, usd,
                                           {month_end, month_end}, Money::zero(usd))};
    });
  }
  std::size_t bytes = 0;
  figures.seconds += core_seconds_of([&] { bytes = encode(event).payload.size(); });
  const Document document = document_of(std::get<InvoiceIssued>(event).invoice);
  event = {};
  figures.seconds += core_seconds_of([&] { bytes += to_csv(document).size(); });
  if (document.lines.size() != lines || bytes < lines)
    return invalid("the invoice has " + std::to_string(document.lines.size()) + " lines");
  figures.mebibytes = peak_mebibytes();
  return figures;
}

// In a process of its own, so that the peak of memory is the invoice's.
Result<void> measure_invoice(Report& report) {
  report.progress("an invoice of a million lines");
  int ends[2];
  if (pipe(ends) != 0) return Error{ErrorKind::unavailable, "no pipe", {}};
  const pid_t child = fork();
  if (child < 0) return Error{ErrorKind::unavailable, "no process", {}};
  if (child == 0) {
    const auto issued = issue_long_invoice();
    const bool written = issued.ok() && write(ends[1], &*issued, sizeof *issued) == sizeof *issued;
    _exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  InvoiceFigures figures;
  const bool read_all = read(ends[0], &figures, sizeof figures) == sizeof figures;
  ::close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!read_all || status != 0)
    return Error{ErrorKind::internal, "the invoice's process failed", {}};
  report.set("billing.long_invoice_seconds", figures.seconds,
             "closed, written for the journal and as CSV; the charges were there before");
  report.set("billing.long_invoice_mebibytes", figures.mebibytes,
             "peak of the process, its charges included");
  return {};
}

// --- A month's close
// -------------------------------------------------------------------------------

// A month of a region: of each tenant 100 charges in four windows and five projects are open.
Result<engine::State> month_to_close(std::uint64_t tenants) {
  engine::State state;
  const auto act = [&](const Command& command) -> Result<void> {
    const engine::Decision decision = engine::decide(state, start, command);
    if (decision.reject) return invalid(decision.reject->message);
    for (const Event& event : decision.events)
      engine::evolve(state, {state.sequence + 1, start, Actor{"bench", "bench"}, event});
    return {};
  };
  PriceTable table = four_windows();
  RateCard card = table.card();
  card.terms = table.terms();
  card.terms.taxes = taxes;
  LOAM_CHECK(act(PublishRateCard{card}));
  Tables tables;
  LOAM_CHECK(tables.add(std::move(table)));
  constexpr std::size_t each = 100;
  const std::vector<Usage> month = records(each * 10, 30);
  std::vector<Charge> charges;
  for (std::uint64_t t = 1; t <= tenants; ++t) {
    TenantSpec spec;
    spec.name = "tenant-" + std::to_string(t);
    spec.currency = usd;
    spec.credit_limit = Money::zero(usd);
    LOAM_CHECK(act(CreateTenant{spec}));
    const Rater rater(tables, {usd, {static_cast<std::int64_t>(t % 1000)}});
    for (std::size_t i = 0; i < each; ++i) {
      const Usage& usage = month[(t * 7 + i) % month.size()];
      charges.clear();
      LOAM_CHECK(rater.rate(usage, charges));
      Attribution who;
      who.project = "project-" + std::to_string(i % 5);
      for (const Charge& charge : charges) {
        UsageRecord record;
        record.from = charge.from;
        record.to = charge.to;
        record.billed = charge.to - charge.from;
        record.billable_ce = usage.billable_ce;
        record.tariff = usage.terms.tariff;
        record.window = charge.table->window_name(charge.window);
        record.month_end = month_end;
        record.unit_price = charge.unit_price;
        record.list = charge.list;
        record.net = charge.net;
        state.open_charges[TenantId{t}].add(who, record, taxes);
      }
    }
  }
  return state;
}

// Each tenant's invoice is decided, applied and written for the journal.
Result<void> measure_close(Report& report) {
  report.progress("a month's close");
  constexpr std::uint64_t tenants = 10'000;
  LOAM_TRY(state, month_to_close(tenants));
  std::uint64_t issued = 0;
  const double seconds = core_seconds_of([&] {
    for (std::uint64_t t = 1; t <= tenants; ++t) {
      const engine::Decision decision =
          engine::decide(state, month_end, IssueInvoice{TenantId{t}, {}});
      for (const Event& event : decision.events) {
        if (encode(event).type == InvoiceIssued::type) ++issued;
        engine::evolve(state, {state.sequence + 1, month_end, Actor{"bench", "bench"}, event});
      }
    }
  });
  if (issued != tenants)
    return invalid(std::to_string(issued) + " of " + std::to_string(tenants) +
                   " tenants got an invoice");
  report.set("billing.month_close_seconds", seconds,
             "10,000 tenants with 100 charges each: decided, applied, written for the journal");
  return {};
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
  LOAM_CHECK(measure_invoice(report));  // first: its process begins with what this one has
  measure_rating(report);
  measure_transfers(report);
  LOAM_CHECK(measure_durable(report));
  LOAM_CHECK(measure_close(report));
  measure_advice(report);
  return {};
}

}  // namespace
}  // namespace loam::bench

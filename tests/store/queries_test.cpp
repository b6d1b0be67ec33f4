// Queries: pages of tasks, a task's story, bills whose totals and times add up, and the views that
// an operator reads with sqlite3.
#include "store/queries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "billing/accounts.hpp"
#include "history.hpp"
#include "store/journal.hpp"

namespace loam::store {
namespace {

InvoiceFilter of(TenantId tenant) {
  InvoiceFilter filter;
  filter.tenant = tenant;
  return filter;
}

struct Region {
  TestFolder folder;
  History history;
  std::unique_ptr<SqliteJournal> journal;
  std::unique_ptr<Queries> queries;

  Region() {
    auto opened = SqliteJournal::open(folder.path());
    EXPECT_TRUE(opened.ok());
    journal = std::move(*opened);
    queries = std::make_unique<Queries>(journal->path());
  }
  void store() {
    const auto done = journal->append(history.take());
    ASSERT_TRUE(done.ok()) << to_text(done.error());
  }
};

std::vector<std::uint64_t> ids_of(const TaskPage& page) {
  std::vector<std::uint64_t> ids;
  for (const TaskRow& row : page.tasks) ids.push_back(row.id.value);
  return ids;
}

TEST(QueriesTest, AnEmptyJournalAnswersWithNothing) {
  Region region;
  EXPECT_TRUE(region.queries->list_tasks({}, {}, 10)->tasks.empty());
  EXPECT_EQ(region.queries->task(TaskId{1}).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(region.queries->bill(acme, Instant{}, Instant::never())->lines.empty());
  EXPECT_TRUE(region.queries->invoices(of(acme))->empty());
  EXPECT_TRUE(region.queries->transactions(acme, {}, 10)->empty());
  EXPECT_TRUE(region.queries->usage(TaskId{1})->empty());
}

TEST(QueriesTest, PagesAreNewestFirstAndMissNothing) {
  Region region;
  region.history.found_region();
  for (int i = 0; i < 7; ++i)
    region.history.whole_task(i % 2 == 0 ? acme : beta, "t", Duration::seconds(1));
  region.store();
  std::vector<std::uint64_t> seen;
  TaskId after;
  do {
    const auto page = region.queries->list_tasks({}, after, 3);
    ASSERT_TRUE(page.ok()) << to_text(page.error());
    for (const std::uint64_t id : ids_of(*page)) seen.push_back(id);
    after = page->next;
  } while (after.valid());
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{7, 6, 5, 4, 3, 2, 1}));
  // A page that ends exactly at the end has no next one.
  EXPECT_FALSE(region.queries->list_tasks({}, {}, 7)->next.valid());
  EXPECT_FALSE(region.queries->list_tasks({}, {}, 0).ok());
  EXPECT_FALSE(region.queries->list_tasks({}, {}, 1001).ok());
}

TEST(QueriesTest, FiltersByTenantStateNameAndTime) {
  Region region;
  region.history.found_region();
  region.history.whole_task(acme, "alpha", Duration::seconds(1));
  region.history.whole_task(beta, "alpine", Duration::seconds(1));
  const TaskId running = region.history.submit(acme, "beta-run");
  region.history.settle();
  region.history.start(running);
  region.history.pass(Duration::minutes(1));
  const Instant late = region.history.now;
  // Three that fill the devices and one that waits.
  for (int i = 0; i < 3; ++i) region.history.submit(acme, "alx", {900});
  region.history.settle();
  region.store();
  Queries& queries = *region.queries;
  const auto ids = [&](const TaskFilter& filter) {
    return ids_of(*queries.list_tasks(filter, {}, 100));
  };
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ids({beta, {}, {}, {}}), (Ids{2}));
  EXPECT_EQ(ids({{}, {TaskState::finished}, {}, {}}), (Ids{2, 1}));
  EXPECT_EQ(ids({{}, {TaskState::running}, {}, {}}), (Ids{3}));
  EXPECT_EQ(ids({{}, {TaskState::running, TaskState::finished}, {}, {}}), (Ids{3, 2, 1}));
  EXPECT_EQ(ids({{}, {}, "alp", {}}), (Ids{2, 1}));
  EXPECT_EQ(ids({{}, {}, "%", {}}), Ids{});  // not a pattern
  EXPECT_EQ(ids({acme, {TaskState::finished}, "al", {}}), (Ids{1}));
  EXPECT_EQ(ids({{}, {}, {}, late}).size(), 3u);
  EXPECT_EQ(ids({{}, {TaskState::paused}, {}, {}}), Ids{});
}

TEST(QueriesTest, ATasksStoryIsComplete) {
  Region region;
  region.history.everything();
  region.store();
  const auto detail = region.queries->task(TaskId{3});  // "survivor"
  ASSERT_TRUE(detail.ok()) << to_text(detail.error());
  EXPECT_EQ(detail->task.name, "survivor");
  EXPECT_EQ(detail->task.tenant_name, "acme");
  EXPECT_EQ(detail->task.state, TaskState::finished);
  EXPECT_EQ(detail->task.outcome, TaskOutcome::failed);
  EXPECT_EQ(detail->task.exit_code, 7);
  EXPECT_EQ(detail->task.reason, "exit status 7");
  EXPECT_EQ(detail->task.attempts, 2);
  EXPECT_EQ(detail->task.ce, MilliCe{50'000});
  EXPECT_EQ(detail->task.submitted_by, "socket:uid:1000");
  EXPECT_EQ(detail->spec.command, std::vector<std::string>{"/bin/work"});
  ASSERT_EQ(detail->leases.size(), 2u);
  EXPECT_EQ(detail->leases[0].stop_reason, StopReason::device_lost);
  EXPECT_NE(detail->leases[0].slices[0].device, detail->leases[1].slices[0].device);
  EXPECT_EQ(detail->leases[1].slices[0].name, detail->task.device);
  EXPECT_EQ(detail->leases[1].memory_peak, Mebibytes{512});
  EXPECT_EQ(detail->task.run_time, Duration::minutes(2) - Duration{500});
  EXPECT_EQ(detail->task.billed_time, detail->task.run_time);
  // Tenants see their own words again, whatever is in them.
  EXPECT_EQ(region.queries->task(TaskId{1})->spec.command[2], "100 \"quoted\"\n\xc3\xa9");
}

TEST(QueriesTest, BillsAddUpAndBilledTimeIsRunTime) {
  Region region;
  region.history.everything();
  // A price change in the middle of a task gives it two lines.
  RateCard card;
  card.currency = Currency("USD");
  card.on_demand = usd("0.03");
  card.effective_from = region.history.now + Duration::minutes(20);
  region.history.act(PublishRateCard{card});
  region.history.whole_task(beta, "dearer", Duration::minutes(40));
  region.store();
  for (const TenantId tenant : {acme, beta}) {
    const auto bill = region.queries->bill(tenant, Instant{}, Instant::never());
    ASSERT_TRUE(bill.ok()) << to_text(bill.error());
    ASSERT_FALSE(bill->lines.empty());
    Money list = usd("0");
    Money discount = usd("0");
    Money net = usd("0");
    Duration length;
    for (const BillLine& line : bill->lines) {
      EXPECT_EQ(line.list - line.discount, line.net);
      list += line.list;
      discount += line.discount;
      net += line.net;
      length += line.length;
    }
    EXPECT_EQ(bill->list, list);
    EXPECT_EQ(bill->discount, discount);
    EXPECT_EQ(bill->net, net);
    EXPECT_EQ(bill->length, length);
    for (const BilledTime& proof : bill->proof) {
      EXPECT_EQ(proof.run_time, proof.billed_time) << proof.task.text();
      EXPECT_FALSE(proof.attempt_open);
      const auto detail = region.queries->task(proof.task);
      EXPECT_EQ(detail->task.run_time, proof.run_time);
      EXPECT_EQ(detail->task.billed_time, proof.billed_time);
    }
    // What was charged is what left the wallet, and what invoices rounded.
    InvoiceFilter issued;
    issued.tenant = tenant;
    const auto invoices = region.queries->invoices(issued);
    ASSERT_TRUE(invoices.ok());
    Money rounded = Money::zero(Currency("USD"));
    for (const InvoiceRow& row : *invoices) rounded += row.invoice.rounding;
    const auto& accounts = region.history.state().accounts;
    EXPECT_EQ(usd("100000") - bill->net - rounded,
              accounts.balance(billing::wallet_of(tenant, Currency("USD"))));
  }
  const auto bill = region.queries->bill(beta, Instant{}, Instant::never());
  EXPECT_FALSE(bill->discount.is_zero());
  ASSERT_GE(bill->lines.size(), 3u);
  const BillLine& dearer = bill->lines.back();
  EXPECT_EQ(dearer.name, "dearer");
  EXPECT_EQ(dearer.isolation, Isolation::software);
  EXPECT_EQ(dearer.unit_price, usd("0.03"));
  EXPECT_EQ(bill->lines[bill->lines.size() - 2].unit_price, usd("0.02"));
  EXPECT_EQ(bill->lines[bill->lines.size() - 2].task, dearer.task);
}

TEST(QueriesTest, ABillOfAPeriodHoldsTheUsageThatBeginsInIt) {
  Region region;
  region.history.found_region();
  const Instant start = region.history.now;
  region.history.whole_task(acme, "long", Duration::hours(5));
  region.store();
  const auto records = region.queries->usage(TaskId{1});
  ASSERT_TRUE(records.ok());
  ASSERT_GE(records->size(), 5u);
  const Instant middle = (*records)[2].from;
  const auto early = region.queries->bill(acme, start, middle);
  const auto late = region.queries->bill(acme, middle, Instant::never());
  const auto whole = region.queries->bill(acme, start, Instant::never());
  EXPECT_EQ(early->net + late->net, whole->net);
  EXPECT_EQ(early->length + late->length, whole->length);
  EXPECT_EQ(early->length, (*records)[0].length() + (*records)[1].length());
  EXPECT_EQ(whole->length, Duration::hours(5));
}

TEST(QueriesTest, AnOpenAttemptIsSaidInTheProof) {
  Region region;
  region.history.found_region();
  const TaskId task = region.history.submit(acme, "open");
  region.history.settle();
  region.history.start(task);
  for (int i = 0; i < 5; ++i) {
    region.history.pass(Duration::minutes(30));
    region.history.settle();
  }
  region.store();
  const auto bill = region.queries->bill(acme, Instant{}, Instant::never());
  ASSERT_EQ(bill->proof.size(), 1u);
  EXPECT_TRUE(bill->proof[0].attempt_open);
  EXPECT_EQ(bill->proof[0].run_time, Duration{});
  EXPECT_GT(bill->proof[0].billed_time, Duration::hours(1));
}

TEST(QueriesTest, InvoicesAndTransactionsComeBackAsTheyWere) {
  Region region;
  region.history.everything();
  std::vector<Record> records = region.history.take();
  ASSERT_TRUE(region.journal->append(records).ok());
  std::vector<Invoice> invoices;
  std::vector<Transaction> transactions;
  std::vector<UsageRecord> usage;
  for (const Record& record : records) {
    if (const auto* e = std::get_if<InvoiceIssued>(&record.event)) invoices.push_back(e->invoice);
    if (const auto* e = std::get_if<UsageRated>(&record.event)) usage.push_back(e->record);
    if (const auto* e = std::get_if<TransactionPosted>(&record.event))
      transactions.push_back(e->transaction);
  }
  const auto stored = region.queries->invoices(of(acme));
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(stored->size(), 1u);
  EXPECT_EQ(stored->front().invoice, invoices.front());
  std::vector<Transaction> found;
  for (const TenantId tenant : {acme, beta}) {
    TransactionId after;
    while (true) {
      const auto rows = region.queries->transactions(tenant, after, 2);
      ASSERT_TRUE(rows.ok()) << to_text(rows.error());
      if (rows->empty()) break;
      for (const TransactionRow& row : *rows) found.push_back(row.transaction);
      after = rows->back().transaction.id;
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  EXPECT_EQ(found, transactions);
  std::vector<UsageRecord> found_usage;
  for (std::uint64_t task = 1; task <= 3; ++task) {
    const auto found_here = region.queries->usage(TaskId{task});
    ASSERT_TRUE(found_here.ok()) << to_text(found_here.error());
    found_usage.insert(found_usage.end(), found_here->begin(), found_here->end());
  }
  EXPECT_EQ(found_usage, usage);
}

TEST(QueriesTest, SellersDuesOutputAndOtherTermsComeBackAsTheyWere) {
  Region region;
  region.history.found_region();
  region.history.sellers();
  const engine::State& state = region.history.state();
  region.store();
  const auto invoices = region.queries->invoices(of(acme));
  ASSERT_TRUE(invoices.ok()) << to_text(invoices.error());
  ASSERT_EQ(invoices->size(), 1U);
  const Invoice& invoice = invoices->front().invoice;
  EXPECT_EQ(invoice.seller.name, "Loam Lab GmbH");
  EXPECT_EQ(invoice.seller.address, "Beispielweg 1\nBerlin");
  EXPECT_EQ(invoice.seller.tax_id, "DE123");
  EXPECT_EQ(invoice.seller.terms, "net");
  EXPECT_EQ(invoice.due, usd("0"));  // it pays in advance
  EXPECT_FALSE(invoice.due_at.has_value());
  const auto task = region.queries->task(TaskId{state.next.task - 1});
  ASSERT_TRUE(task.ok()) << to_text(task.error());
  EXPECT_EQ(task->task.output, 1'250'500);
  EXPECT_EQ(task->task.purchase_model, PurchaseModel::on_demand);
  EXPECT_EQ(task->spec.purchase_model, PurchaseModel::spot);  // as it was accepted
}

TEST(QueriesTest, RecordsOfSomeTypesAreFoundFromASequenceOn) {
  Region region;
  region.history.found_region();
  region.history.sellers();
  region.store();
  const auto all = region.queries->records(0, {SellerSet::type, TaskPaused::type});
  ASSERT_TRUE(all.ok()) << to_text(all.error());
  ASSERT_EQ(all->size(), 2U);
  EXPECT_TRUE(std::holds_alternative<SellerSet>((*all)[0].event));
  EXPECT_TRUE(std::holds_alternative<TaskPaused>((*all)[1].event));
  const auto later = region.queries->records((*all)[0].sequence, {SellerSet::type});
  ASSERT_TRUE(later.ok());
  EXPECT_TRUE(later->empty());
  EXPECT_TRUE(region.queries->records(0, {})->empty());
}

TEST(QueriesTest, TaskStatesAreThoseOfTheEngineAtEveryStep) {
  Region region;
  region.history.everything();
  const std::vector<Record> records = region.history.take();
  engine::State state;
  for (const Record& record : records) {
    engine::evolve(state, record);
    ASSERT_TRUE(region.journal->append(std::span(&record, 1)).ok());
    const auto page = region.queries->list_tasks({}, {}, 100);
    ASSERT_TRUE(page.ok()) << to_text(page.error());
    for (const TaskRow& row : page->tasks) {
      const Task* task = state.find_task(row.id);
      EXPECT_EQ(row.state, task != nullptr ? task->state : TaskState::finished)
          << "record " << record.sequence << ", " << row.id.text();
      if (task == nullptr) continue;
      EXPECT_EQ(row.run_time, task->run_time) << "record " << record.sequence;
    }
  }
}

TEST(QueriesTest, ReservationsAreThoseOfTheEngineAtEveryStep) {
  Region region;
  region.history.found_region();
  region.history.reservations();
  engine::State state;
  Money unused = usd("0");
  for (const Record& record : region.history.take()) {
    engine::evolve(state, record);
    ASSERT_TRUE(region.journal->append(std::span(&record, 1)).ok());
    const auto rows = region.queries->reservations({});
    ASSERT_TRUE(rows.ok()) << to_text(rows.error());
    ASSERT_EQ(rows->size(), state.reservations.size());
    for (const ReservationRow& row : *rows) {
      const Reservation& real = state.reservations.at(row.reservation.id).reservation;
      EXPECT_EQ(row.reservation.held, real.held) << "record " << record.sequence;
      EXPECT_EQ(row.reservation.charged_to, real.charged_to) << "record " << record.sequence;
      EXPECT_EQ(row.reservation.ended_at, real.ended_at) << "record " << record.sequence;
      EXPECT_EQ(row.reservation.billable_ce, real.billable_ce);
      EXPECT_EQ(row.reservation.order.attribution, real.order.attribution);
    }
    if (const auto* charged = std::get_if<ReservationCharged>(&record.event)) {
      for (const AdjustmentLine& line : charged->lines) unused += line.net;
    }
  }
  const auto rows = region.queries->reservations(acme);
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().end, ReservationEnd::over);
  EXPECT_EQ(rows->front().reservation.held, usd("0"));
  EXPECT_NE(rows->front().devices.find("n1/"), std::string::npos) << rows->front().devices;
  EXPECT_TRUE(region.queries->reservations(beta)->empty());
  // Its lines are on the bill under its name.
  EXPECT_FALSE(unused.is_zero());
  const auto lines = region.queries->adjustments(acme, Instant{}, Instant::never());
  ASSERT_TRUE(lines.ok()) << to_text(lines.error());
  for (const AdjustmentRow& line : *lines) {
    EXPECT_EQ(line.reservation, rows->front().reservation.id);
    EXPECT_EQ(line.line.key.kind, InvoiceLineKind::unused);
    EXPECT_FALSE(line.task.valid());
    EXPECT_EQ(line.tags, (std::map<std::string, std::string>{{"plan", "night"}}));
    EXPECT_EQ(line.region, "lab");
    unused -= line.line.net;
  }
  EXPECT_TRUE(unused.is_zero());
}

// What is charged besides usage is joined with its lease's task; the rest has tags of its own.
TEST(QueriesTest, AnAdjustmentIsOfItsTaskOrHasTags) {
  Region region;
  region.history.everything();
  region.history.money();
  region.history.scheduling();
  region.history.commitments();
  region.history.tokens();
  region.store();
  using Tags = std::map<std::string, std::string>;
  std::map<InvoiceLineKind, std::size_t> kinds;
  for (const TenantId tenant : {acme, beta}) {
    const auto lines = region.queries->adjustments(tenant, Instant{}, Instant::never());
    ASSERT_TRUE(lines.ok()) << to_text(lines.error());
    for (const AdjustmentRow& row : *lines) {
      const InvoiceLineKind kind = row.line.key.kind;
      ++kinds[kind];
      if (kind == InvoiceLineKind::fee) {
        EXPECT_EQ(row.tags, (Tags{{"plan", "yearly"}}));
      } else if (kind == InvoiceLineKind::token_income) {
        EXPECT_EQ(row.tags, (Tags{{"team", "green"}}));
        EXPECT_EQ(row.line.key.project, "serving");
      } else if (counts_tokens(kind)) {
        EXPECT_EQ(row.tags, (Tags{{"team", "red"}}));
      } else {
        const auto task = region.queries->task(row.task);
        ASSERT_TRUE(task.ok()) << static_cast<int>(kind) << " is of " << row.task.text();
        const auto& leases = task->leases;
        EXPECT_EQ(task->spec.attribution.project, row.line.key.project);
        EXPECT_TRUE(std::any_of(leases.begin(), leases.end(),
                                [&](const LeaseRow& lease) { return lease.id == row.lease; }));
        EXPECT_TRUE(row.tags.empty());
        EXPECT_EQ(row.region, "lab");
        continue;
      }
      EXPECT_EQ(row.region, "") << "it ran nowhere";
      EXPECT_FALSE(row.task.valid());
    }
  }
  for (const InvoiceLineKind kind :
       {InvoiceLineKind::fee, InvoiceLineKind::covered, InvoiceLineKind::credit,
        InvoiceLineKind::storage, InvoiceLineKind::network, InvoiceLineKind::prompt_tokens,
        InvoiceLineKind::token_income})
    EXPECT_GT(kinds[kind], 0U) << static_cast<int>(kind);
}

// A node that comes back in another region takes what ran before nowhere.
TEST(QueriesTest, UsageIsOfTheRegionInWhichItsLeaseRan) {
  Region region;
  region.history.found_region();
  region.history.whole_task(acme, "first", Duration::minutes(10));
  region.history.act(AttachNode{"n1", "attic", MilliCpu{16'000}, Mebibytes{65'536}});
  region.history.whole_task(acme, "second", Duration::minutes(10));
  region.store();
  std::vector<std::string> regions;
  ASSERT_TRUE(region.queries
                  ->usage_between(acme, Instant{}, Instant::never(),
                                  [&](const UsageRecord&, const UsageFacts& facts) {
                                    regions.push_back(facts.region);
                                  })
                  .ok());
  EXPECT_EQ(regions, (std::vector<std::string>{"lab", "attic"}));
}

TEST(QueriesTest, ManyThreadsMayAskAtOnceWhileTheJournalGrows) {
  Region region;
  region.history.found_region();
  region.store();
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto bill = region.queries->bill(acme, Instant{}, Instant::never());
        ASSERT_TRUE(bill.ok()) << to_text(bill.error());
        for (const BilledTime& proof : bill->proof)
          ASSERT_TRUE(proof.attempt_open || proof.run_time == proof.billed_time);
        ASSERT_TRUE(region.queries->list_tasks({}, {}, 10).ok());
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    region.history.whole_task(acme, "t", Duration::seconds(1));
    region.store();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(ViewsTest, AnOperatorReadsTextIdsAndTimes) {
  Region region;
  region.history.everything();
  region.store();
  auto database = Database::open(region.journal->path(), OpenMode::read_only);
  ASSERT_TRUE(database.ok());
  for (const char* view : {"charges", "v_devices", "v_tasks", "v_leases", "v_usage", "v_bill",
                           "v_transactions", "v_invoices"}) {
    const auto rows = database->integer("SELECT count(*) FROM " + std::string(view));
    ASSERT_TRUE(rows.ok()) << to_text(rows.error());
    EXPECT_GT(*rows, 0) << view;
  }
  EXPECT_EQ(*database->text("SELECT task FROM v_tasks WHERE name='survivor'"), "t3");
  EXPECT_EQ(*database->text("SELECT submitted FROM v_tasks WHERE task='t1'"),
            "2026-03-02T00:00:00.000Z");
  EXPECT_EQ(*database->text("SELECT started FROM v_tasks WHERE task='t1'"),
            "2026-03-02T00:00:00.040Z");
  EXPECT_EQ(*database->text("SELECT run_s || ' ' || billed_s FROM v_bill WHERE task='t1'"),
            "9000.0 9000.0");
  EXPECT_EQ(*database->text("SELECT total FROM v_invoices LIMIT 1"),
            amount_text(region.queries->invoices(of(acme))->front().invoice.total));
}

}  // namespace
}  // namespace loam::store

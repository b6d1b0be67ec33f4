// The auditor sees every kind of fault that it is there for: each test breaks one event of a run
// that is right, and wants the rule named.
#include "sim/auditor.hpp"

#include "sim/broken_run.hpp"
#include "sim/workload.hpp"
#include "sim/world.hpp"

namespace loam::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void attach_device(World& world) {
  DeviceFacts facts;
  facts.uuid = "gpu-0";
  facts.type = "a100";
  facts.memory = Mebibytes{80 * 1024};
  facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
  world.ask(AttachNode{"n1", "here", {}, {}});
  world.ask(AttachDevice{"n1", facts});
}

// A run with everything in it: two tasks, a price change, a pause, a stop, an invoice.
std::vector<Record> good_run() {
  World world(run_start, 1);
  std::vector<Record> records;
  world.on_record([&](const Record& record) { records.push_back(record); });
  attach_device(world);
  RateCard card;
  card.on_demand = Money(Money::units_per_one, Currency("USD"));
  card.effective_from = run_start;
  world.ask(PublishRateCard{card});
  card.effective_from = run_start + Duration::minutes(30);
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  tenant.quota.tasks = 2;
  world.ask(CreateTenant{tenant});
  world.ask(TopUp{TenantId{1}, Money(Int128{Money::units_per_one} * 10'000, Currency("USD")), ""});
  for (int i = 0; i < 3; ++i) {
    Program program;
    program.run = Duration::minutes(40);
    TaskSpec spec;
    spec.command = command_of(program);
    spec.request.share = MilliDevice{400};
    world.ask(SubmitTask{TenantId{1}, spec}, {"acme", "k" + std::to_string(i), "f"});
  }
  world.ask(PauseTask{TaskId{2}});
  world.advance_to(run_start + Duration::hours(1));
  world.ask(ResumeTask{TaskId{2}});
  world.advance_to(run_start + Duration::hours(3));
  world.ask(IssueInvoice{TenantId{1}});
  return records;
}

template <class E>
std::string after(const std::function<void(E&)>& change, std::size_t skip = 0) {
  return verdict_after<E>(good_run(), change, skip);
}

TEST(Auditor, FindsNothingInARunThatIsRight) {
  Auditor auditor;
  for (const Record& record : good_run()) auditor.hear(record);
  auditor.check_drained();
  EXPECT_EQ(auditor.broken(), "");
  EXPECT_EQ(auditor.tasks_accepted(), 3u);
}

TEST(Auditor, Rule1ADeviceOverfull) {
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.slices[0].share = MilliDevice{700}; }, 1),
              StartsWith("rule 1"));
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.slices[0].memory = Mebibytes{81 * 1024}; }),
              StartsWith("rule 1"));
}

TEST(Auditor, Rule1AStrictLeaseThatIsNotPromisedAll) {
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.slices[0].unpromised = MilliDevice{1}; }),
              HasSubstr("is not promised all that it has"));
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.slices[0].memory_unpromised = Mebibytes{1}; }),
              HasSubstr("is not promised all that it has"));
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.slices[0].unpromised = MilliDevice{-1}; }),
              HasSubstr("is promised more than it has"));
}

TEST(Auditor, Rule1ADeviceLentBeyondTheFactor) {
  const auto burst = [](std::vector<Record> records, MilliDevice unpromised) {
    for (Record& record : records) {
      if (auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
        auto spec = std::make_shared<TaskSpec>(*accepted->spec);
        spec->request.mode = ShareMode::burstable;
        accepted->spec = spec;
      }
      if (auto* granted = std::get_if<LeaseGranted>(&record.event))
        granted->slices[0].unpromised = unpromised;
    }
    return verdict_on(records);
  };
  // Lent once: a part that is not promised is too much.
  EXPECT_THAT(burst(good_run(), MilliDevice{1}), HasSubstr("less than its part by the factor"));
  EXPECT_EQ(burst(good_run(), MilliDevice{0}), "");
}

TEST(Auditor, Rule3ATaskThatEndsTwice) {
  std::vector<Record> records = good_run();
  Record again;
  for (const Record& record : records) {
    if (std::holds_alternative<TaskFinished>(record.event)) again = record;
  }
  again.sequence = records.back().sequence + 1;
  again.at = records.back().at;
  records.push_back(again);
  EXPECT_THAT(verdict_on(records), StartsWith("rule 3"));
}

TEST(Auditor, Rule4ASecondLiveAttempt) {
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.task = TaskId{1}; }, 1), StartsWith("rule 4"));
  EXPECT_THAT(after<LeaseGranted>([](auto& e) { e.epoch = Epoch{7}; }), StartsWith("rule 4"));
}

TEST(Auditor, Rule7AQuotaPassed) {
  EXPECT_THAT(after<TenantCreated>([](auto& e) { e.spec.quota.tasks = 1; }), StartsWith("rule 7"));
  EXPECT_THAT(after<TenantCreated>([](auto& e) { e.spec.quota.ce = MilliCe{50'000}; }),
              StartsWith("rule 7"));
}

TEST(Auditor, Rule8AGapAnOverlapAWrongPriceAWrongAmount) {
  const Duration second = Duration::seconds(1);
  EXPECT_THAT(after<UsageRated>([&](auto& e) { e.record.from = e.record.from + second; }),
              StartsWith("rule 8"));
  EXPECT_THAT(after<UsageRated>([&](auto& e) { e.record.from = e.record.from - second; }, 1),
              StartsWith("rule 8"));
  EXPECT_THAT(after<UsageRated>([&](auto& e) { e.record.to = e.record.to - second; }),
              StartsWith("rule 8"));
  EXPECT_THAT(after<UsageRated>([&](auto& e) { e.record.card = RateCardId{2}; }),
              StartsWith("rule 8"));
  EXPECT_THAT(after<UsageRated>([&](auto& e) { e.record.net += Money(2, Currency("USD")); }),
              StartsWith("rule 8"));
  // The first lease never started; the second ran.
  EXPECT_THAT(after<LeaseEnded>([&](auto& e) { e.ended_at = e.ended_at - second; }, 1),
              StartsWith("rule 8"));
}

// 40 CE for 40 minutes, twice: the second run begins in the tier above 30 CE-hours.
TEST(Auditor, Rule8AWrongAmountInTiers) {
  World world(run_start, 1);
  std::vector<Record> records;
  world.on_record([&](const Record& record) { records.push_back(record); });
  attach_device(world);
  RateCard card;
  card.on_demand = Money(Money::units_per_one, Currency("USD"));
  Price price;
  price.tiers = {{0, card.on_demand},
                 {30'000, Money(Money::units_per_one / 3, Currency("USD"))},
                 {50'000, Money(Money::units_per_one / 7, Currency("USD"))}};
  card.terms.prices = {price};
  card.effective_from = run_start;
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  world.ask(CreateTenant{tenant});
  world.ask(TopUp{TenantId{1}, Money(Int128{Money::units_per_one} * 10'000, Currency("USD")), ""});
  for (int i = 0; i < 2; ++i) {
    Program program;
    program.run = Duration::minutes(40);
    TaskSpec spec;
    spec.command = command_of(program);
    spec.request.share = MilliDevice{400};
    world.ask(SubmitTask{TenantId{1}, spec});
    world.advance_to(run_start + Duration::hours(i + 1));
  }
  EXPECT_EQ(verdict_on(records), "");
  for (const std::size_t record : {0U, 1U}) {
    EXPECT_THAT(verdict_after<UsageRated>(
                    records, [](auto& e) { e.record.net += Money(2, Currency("USD")); }, record),
                StartsWith("rule 8"))
        << record;
  }
}

TEST(Auditor, Rule8WhatANodeSaysItRan) {
  Auditor auditor;
  for (const Record& record : good_run()) auditor.hear(record);
  auditor.check_ran(LeaseId{1}, Duration::minutes(40));
  EXPECT_EQ(auditor.broken(), "");
  auditor.check_ran(LeaseId{1}, Duration::minutes(39));
  EXPECT_THAT(auditor.broken(), StartsWith("rule 8"));
}

TEST(Auditor, Rule9MoneyFromNowhere) {
  const Money cent(Money::units_per_one / 100, Currency("USD"));
  for (std::size_t n = 0; n < 8; ++n) {
    EXPECT_THAT(
        after<TransactionPosted>([&](auto& e) { e.transaction.postings[0].amount += cent; }, n),
        StartsWith("rule 9"))
        << n;
  }
}

TEST(Auditor, Rule9AChargeThatIsNotWhatWasUsed) {
  const Money cent(Money::units_per_one / 100, Currency("USD"));
  std::vector<Record> records = good_run();
  for (Record& record : records) {
    auto* posted = std::get_if<TransactionPosted>(&record.event);
    if (posted == nullptr || posted->transaction.kind != TransactionKind::charge) continue;
    posted->transaction.postings[0].amount += cent;  // balanced, and still wrong
    posted->transaction.postings[1].amount -= cent;
    break;
  }
  EXPECT_THAT(verdict_on(records), StartsWith("rule 9"));
}

TEST(Auditor, Rule9AnInvoiceThatDoesNotAddUp) {
  const Money cent(Money::units_per_one / 100, Currency("USD"));
  EXPECT_THAT(after<InvoiceIssued>([&](auto& e) { e.invoice.total += cent; }),
              StartsWith("rule 9"));
  EXPECT_THAT(after<InvoiceIssued>([&](auto& e) { e.invoice.lines.pop_back(); }),
              StartsWith("rule 9"));
}

TEST(Auditor, Rule9UsageOfAnotherMonth) {
  EXPECT_THAT(after<UsageRated>([](auto& e) { e.record.month_end = e.record.to - Duration{1}; }),
              StartsWith("rule 9"));
  EXPECT_THAT(after<UsageRated>(
                  [](auto& e) { e.record.month_end = e.record.month_end + Duration::hours(800); }),
              StartsWith("rule 9"));
  EXPECT_THAT(after<InvoiceIssued>([](auto& e) { e.invoice.months_to = e.invoice.from; }),
              StartsWith("rule 9"));
}

TEST(Auditor, Rule10AnInvoiceNumberLeftOut) {
  EXPECT_THAT(after<InvoiceIssued>([&](auto& e) { e.invoice.id = InvoiceId{2}; }),
              StartsWith("rule 10"));
}

TEST(Auditor, Rule11OneKeyTwoEffects) {
  EXPECT_THAT(after<RequestRecorded>([&](auto& e) { e.key = "k0"; }, 1), StartsWith("rule 11"));
}

TEST(Auditor, Rule12AGapInTheJournalOrAClockThatFalls) {
  std::vector<Record> records = good_run();
  records.erase(records.begin() + 5);
  EXPECT_THAT(verdict_on(records), StartsWith("rule 12"));
  records = good_run();
  records.back().at = run_start;
  EXPECT_THAT(verdict_on(records), StartsWith("rule 12"));
}

TEST(Auditor, Rule13ATaskThatWaitsBesideRoom) {
  std::vector<Record> records = good_run();
  Auditor auditor;
  for (const Record& record : records) {
    if (std::holds_alternative<LeaseGranted>(record.event)) break;
    auditor.hear(record);
  }
  auditor.check_nothing_idles();
  EXPECT_THAT(auditor.broken(), HasSubstr("rule 13: t1 waits although there is room for it"));
}

// A promise that another task's start makes impossible, and a victim that is no lower.
TEST(Auditor, Rule5And6PromisesAndVictims) {
  World world(run_start, 1);
  std::vector<Record> records;
  world.on_record([&](const Record& record) { records.push_back(record); });
  DeviceFacts facts;
  facts.type = "a100";
  facts.memory = Mebibytes{80 * 1024};
  facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
  world.ask(AttachNode{"n1", "here", {}, {}});
  for (const char* uuid : {"gpu-0", "gpu-1"}) {
    facts.uuid = uuid;
    world.ask(AttachDevice{"n1", facts});
  }
  SchedulingSettings settings;
  settings.queues.front().safe = Duration{0};
  settings.classes.push_back({"premium", 10, std::nullopt, {}});
  world.ask(SetScheduling{settings});
  RateCard card;
  card.on_demand = Money(Money::units_per_one, Currency("USD"));
  sell_classes(card);
  card.effective_from = run_start;
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  world.ask(CreateTenant{tenant});
  world.ask(TopUp{TenantId{1}, Money(Int128{Money::units_per_one} * 100'000, Currency("USD")), ""});
  const auto submit = [&](MilliDevice share, Duration limit, const char* service_class) {
    Program program;
    program.run = limit;
    TaskSpec spec;
    spec.command = command_of(program);
    spec.request.share = share;
    spec.limit = limit;
    spec.service_class = service_class;
    world.ask(SubmitTask{TenantId{1}, spec});
  };
  submit(MilliDevice{1000}, Duration::minutes(10), "standard");  // t1, on the first device
  submit(MilliDevice{600}, Duration::hours(5), "standard");      // t2, on the second
  submit(MilliDevice{1000}, Duration::minutes(10), "standard");  // t3, promised the first
  submit(MilliDevice{300}, Duration::minutes(5), "standard");    // t4, beside t2
  const auto heard = [](const std::vector<Record>& all) {
    Auditor auditor;
    for (const Record& record : all) auditor.hear(record);
    return auditor.broken();
  };
  EXPECT_EQ(heard(records), "");
  // t4 on the promised device, and for longer than until then.
  std::vector<Record> broken = records;
  for (Record& record : broken) {
    if (auto* accepted = std::get_if<TaskAccepted>(&record.event);
        accepted != nullptr && accepted->task == TaskId{4}) {
      TaskSpec spec = *accepted->spec;
      spec.limit = Duration::hours(2);
      accepted->spec = std::make_shared<const TaskSpec>(std::move(spec));
    }
    if (auto* granted = std::get_if<LeaseGranted>(&record.event);
        granted != nullptr && granted->task == TaskId{4}) {
      granted->slices.front().device = DeviceId{1};
    }
    if (auto* granted = std::get_if<LeaseGranted>(&record.event);
        granted != nullptr && granted->task == TaskId{1}) {
      granted->slices.front().share = MilliDevice{100};
      granted->slices.front().memory = Mebibytes{8};
    }
  }
  EXPECT_THAT(heard(broken), StartsWith("rule 5: t4 delays t3"));
  // A higher class takes a place; the auditor is told that it is no higher.
  submit(MilliDevice{1000}, Duration::minutes(10), "premium");  // t5
  EXPECT_EQ(heard(records), "");
  for (Record& record : records) {
    if (auto* accepted = std::get_if<TaskAccepted>(&record.event);
        accepted != nullptr && accepted->task == TaskId{5}) {
      TaskSpec spec = *accepted->spec;
      spec.service_class = "standard";
      accepted->spec = std::make_shared<const TaskSpec>(std::move(spec));
    }
  }
  EXPECT_THAT(heard(records), StartsWith("rule 6"));
}

// One task under a commitment, which got less than it was promised for a minute.
std::vector<Record> committed_run() {
  World world(run_start, 1);
  std::vector<Record> records;
  world.on_record([&](const Record& record) { records.push_back(record); });
  attach_device(world);
  const Money one(Money::units_per_one, Currency("USD"));
  RateCard card;
  card.on_demand = one;
  card.effective_from = run_start;
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, one.times_ratio(1, 100, Rounding::down)}};
  card.terms.prices = {commitment};
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  world.ask(CreateTenant{tenant});
  world.ask(TopUp{TenantId{1}, one.times_ratio(10'000, 1, Rounding::down), ""});
  BuyCommitment order;
  order.tenant = TenantId{1};
  order.ce = MilliCe{10'000};
  world.ask(order);
  Program program;
  program.run = Duration::minutes(40);
  TaskSpec spec;
  spec.command = command_of(program);
  spec.request.share = MilliDevice{400};
  world.ask(SubmitTask{TenantId{1}, spec});
  world.advance_to(run_start + Duration::minutes(20));
  ReportShortfall shortfall;
  shortfall.lease = LeaseId{1};
  shortfall.epoch = Epoch{1};
  shortfall.from = run_start + Duration::minutes(18);
  shortfall.to = run_start + Duration::minutes(19);
  shortfall.promised = BasisPoints{4000};
  shortfall.delivered = BasisPoints{1000};
  world.ask(shortfall);
  world.advance_to(run_start + Duration::hours(3));
  world.ask(IssueInvoice{TenantId{1}});
  return records;
}

template <class E>
std::string after_commitment(const std::function<void(E&)>& change) {
  std::vector<Record> records = committed_run();
  for (Record& record : records) {
    auto* event = std::get_if<E>(&record.event);
    if (event == nullptr) continue;
    change(*event);
    return verdict_on(records);
  }
  return "no such event in the run";
}

TEST(Auditor, Rule9WhatIsGivenBackWithoutReason) {
  EXPECT_EQ(verdict_on(committed_run()), "");
  EXPECT_THAT(after_commitment<CommitmentBought>([](auto& e) {
                e.commitment.terms.fees[0].to = e.commitment.terms.to - Duration::hours(1);
              }),
              HasSubstr("is not paid to its end"));
  EXPECT_THAT(after_commitment<CommitmentCharged>([](auto& e) { e.line.net = -e.line.net; }),
              HasSubstr("another fee than agreed"));
  EXPECT_THAT(after_commitment<UseCovered>([](auto& e) { e.lines[0].milli_ce_ms *= 3; }),
              HasSubstr("more was covered"));
  EXPECT_THAT(after_commitment<UseCovered>([](auto& e) { e.hour = e.hour + Duration::hours(9); }),
              HasSubstr("before it was over"));
  // What is given back beyond the charge shows at the end, and on the invoice.
  EXPECT_THAT(after_commitment<UseCovered>([](auto& e) { e.lines[0].net += e.lines[0].net; }),
              StartsWith("rule 9"));
  EXPECT_THAT(
      after_commitment<ShortfallCredited>([](auto& e) { e.to = e.to + Duration::hours(1); }),
      HasSubstr("did not run"));
  EXPECT_THAT(after_commitment<ShortfallCredited>([](auto& e) { e.delivered = e.promised; }),
              HasSubstr("for what it got"));
}

// Paid in twice, turned round once, some of it paid out; a lost device whose run is given back.
std::vector<Record> paid_run() {
  std::vector<Record> records;
  World world(run_start, 1);
  world.on_record([&](const Record& record) { records.push_back(record); });
  attach_device(world);
  const Money one(Money::units_per_one, Currency("USD"));
  RateCard card;
  card.on_demand = one;
  card.effective_from = run_start;
  card.terms.lost_work.device_lost = InterruptionRule::free;
  card.terms.taxes = {{"VAT", 190'000}};
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  world.ask(CreateTenant{tenant});
  world.ask(TopUp{TenantId{1}, one.times_ratio(10'000, 1, Rounding::down), ""});
  world.ask(TopUp{TenantId{1}, one.times_ratio(10'000, 1, Rounding::down), ""});
  world.ask(ReverseTransaction{TransactionId{2}, "typed twice"});
  world.ask(PayOut{TenantId{1}, one, "back"});
  Program program;
  program.run = Duration::minutes(40);
  TaskSpec spec;
  spec.command = command_of(program);
  spec.request.share = MilliDevice{333};
  spec.limit = Duration::hours(1);
  world.ask(SubmitTask{TenantId{1}, spec});
  world.advance_to(run_start + Duration::minutes(20) + Duration{7});
  world.report_health(DeviceId{1}, DeviceHealth::lost, world.clock().now(), "gone");
  world.advance_to(run_start + Duration::hours(1));
  world.report_health(DeviceId{1}, DeviceHealth::healthy, world.clock().now(), "back");
  world.ask(SubmitTask{TenantId{1}, spec});
  world.advance_to(run_start + Duration::hours(3));
  world.ask(IssueInvoice{TenantId{1}});
  return records;
}

template <class E>
std::string after_payment(const std::function<bool(E&)>& change) {
  std::vector<Record> records = paid_run();
  for (Record& record : records) {
    auto* event = std::get_if<E>(&record.event);
    if (event != nullptr && change(*event)) return verdict_on(records);
  }
  return "no such event in the run";
}

TEST(Auditor, Rule9PaymentsAndRoundingThatAreNotWhatTheySay) {
  EXPECT_EQ(verdict_on(paid_run()), "");
  const auto of = [](TransactionKind kind, const std::function<void(Transaction&)>& change) {
    return after_payment<TransactionPosted>([&](TransactionPosted& e) {
      if (e.transaction.kind == kind) change(e.transaction);
      return e.transaction.kind == kind;
    });
  };
  EXPECT_THAT(of(TransactionKind::reversal, [](auto& t) { t.reverses = TransactionId{77}; }),
              HasSubstr("reverses what was not paid"));
  EXPECT_THAT(of(TransactionKind::reversal,
                 [](auto& t) {
                   for (Posting& posting : t.postings) posting.amount += posting.amount;
                 }),
              HasSubstr("or not like this"));
  EXPECT_THAT(of(TransactionKind::payout,
                 [](auto& t) {
                   for (Posting& posting : t.postings)
                     posting.amount = posting.amount.times_ratio(20'000, 1, Rounding::down);
                 }),
              HasSubstr("more than was in the wallet"));
  EXPECT_THAT(of(TransactionKind::rounding,
                 [](auto& t) {
                   for (Posting& posting : t.postings) posting.amount = -posting.amount;
                 }),
              HasSubstr("where the ledger moved by"));
}

TEST(Auditor, Rule9LostWorkGivenBackBeyondWhatItCost) {
  EXPECT_THAT(after_payment<LostWorkCredited>([](LostWorkCredited& e) {
                e.line.net += e.line.net;
                return true;
              }),
              HasSubstr("more than it was charged"));
  EXPECT_THAT(after_payment<LostWorkCredited>([](LostWorkCredited& e) {
                e.to = e.to + Duration::hours(1);
                return true;
              }),
              HasSubstr("another time than it ran"));
}

TEST(Auditor, SaysWhatIsNotDrained) {
  Auditor auditor;
  for (const Record& record : good_run()) {
    auditor.hear(record);
    if (std::holds_alternative<LeaseGranted>(record.event)) break;
  }
  auditor.check_drained();
  EXPECT_THAT(auditor.broken(), StartsWith("rule 3: 1 tasks never ended, the first is t1"));
}

}  // namespace
}  // namespace loam::sim

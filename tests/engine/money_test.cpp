// Money in the engine beyond prices: budgets that remind, limit and ask; credit notes; the price of
// spot and what an interruption costs; a new card that asks more of what runs.
#include <algorithm>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

TaskSpec quarter(Duration limit) {
  TaskSpec spec = Region::spec();
  spec.request.share = MilliDevice{250};
  spec.limit = limit;
  spec.grace = Duration{0};
  return spec;
}

class MoneyTest : public ::testing::Test {
 protected:
  // At 4 an hour a CE-quarter of the device, 25 CE, costs 100 an hour, less 5 % discount.
  void SetUp() override { ASSERT_FALSE(region.publish({}, "4").reject); }

  std::optional<Reject> submit(const TaskSpec& spec) {
    const auto reject = region.act(SubmitTask{acme, spec}).reject;
    region.settle();
    return reject;
  }
  void start(std::uint64_t lease) {
    const Lease& begun = region.state.leases.at(LeaseId{lease});
    region.act(ReportStarted{begun.id, begun.epoch, region.now});
  }
  void end(std::uint64_t lease) {
    const Lease& ending = region.state.leases.at(LeaseId{lease});
    ReportEnded ended;
    ended.lease = ending.id;
    ended.epoch = ending.epoch;
    ended.started_at = ending.started_at;
    ended.ended_at = region.now;
    region.act(ended);
    region.settle();
  }
  Budget budget(const char* monthly) {
    Budget made;
    made.name = "b";
    made.scope.tenant = acme;
    made.monthly = money(monthly);
    return made;
  }
  std::vector<BudgetNoticeKind> told() const { return kinds; }

  // Lets time pass and keeps what budgets told.
  void pass(Duration length) {
    const Instant to = region.now + length;
    const auto look = [&](const Decision& decision) {
      for (const Event& event : decision.events) {
        if (const auto* notice = std::get_if<BudgetNoticed>(&event))
          kinds.push_back(notice->notice.kind);
      }
      return !decision.events.empty();
    };
    const auto settle = [&] {
      while (look(region.act(TimePassed{}))) {
      }
      while (look(region.act(SchedulePass{}))) {
      }
    };
    while (next_due(region.state, region.now) <= to) {
      region.now = std::max(region.now, next_due(region.state, region.now));
      settle();
    }
    region.now = to;
    settle();
  }

  Region region;
  std::vector<BudgetNoticeKind> kinds;
};

using Kinds = std::vector<BudgetNoticeKind>;

TEST_F(MoneyTest, a_budget_admits_what_fits_with_all_that_is_reserved) {
  ASSERT_FALSE(region.act(SetBudget{budget("250")}).reject);
  EXPECT_FALSE(submit(quarter(Duration::hours(1))));  // about 95.3 each
  EXPECT_FALSE(submit(quarter(Duration::hours(1))));
  const auto reject = submit(quarter(Duration::hours(1)));
  ASSERT_TRUE(reject);
  EXPECT_EQ(reject->code, RejectCode::budget_exceeded);
  EXPECT_NE(reject->message.find("budget 'b'"), std::string::npos);
  EXPECT_TRUE(quote(region.state, region.now, acme, quarter(Duration::hours(1))).reject);
  // What is not used comes back to the budget too.
  start(1);
  pass(Duration::minutes(6));
  end(1);
  EXPECT_EQ(region.state.budgets.standing("b", region.now).spent, money("9.5"));
  EXPECT_FALSE(submit(quarter(Duration::hours(1))));
  EXPECT_EQ(region.state.budgets.standing("b", region.now).reserved, region.held());
}

TEST_F(MoneyTest, a_budget_reminds_limits_asks_and_ends_what_nobody_approves) {
  ASSERT_FALSE(submit(quarter(Duration::hours(10))));
  start(1);
  ASSERT_FALSE(region.act(SetBudget{budget("100")}).reject);  // made while a task runs
  pass(Duration::minutes(61));                                // 95 are spent
  EXPECT_EQ(told(), Kinds{BudgetNoticeKind::reminder});
  pass(Duration::hours(1));  // 190: the limit and the request in one
  EXPECT_EQ(told(), (Kinds{BudgetNoticeKind::reminder, BudgetNoticeKind::limited,
                           BudgetNoticeKind::approval_requested}));
  EXPECT_EQ(submit(quarter(Duration::minutes(1)))->code, RejectCode::budget_exceeded);
  EXPECT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::none);
  const Decision refused = region.act(AnswerBudget{"b", false, {"ann", {}, money("0")}});
  ASSERT_FALSE(refused.reject);
  region.settle();
  EXPECT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::budget);
  EXPECT_TRUE(region.act(AnswerBudget{"b", false, {"ann", {}, money("0")}}).reject);
}

TEST_F(MoneyTest, a_request_that_nobody_answers_expires_and_ends_the_tasks) {
  ASSERT_FALSE(submit(quarter(Duration::hours(30))));
  start(1);
  Budget quick = budget("100");
  quick.approval_wait = Duration::minutes(30);
  ASSERT_FALSE(region.act(SetBudget{quick}).reject);
  pass(Duration::minutes(121));
  ASSERT_EQ(told().back(), BudgetNoticeKind::approval_requested);
  pass(Duration::minutes(31));
  EXPECT_EQ(told().back(), BudgetNoticeKind::approval_expired);
  EXPECT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::budget);
}

TEST_F(MoneyTest, an_approval_lets_tasks_go_on_up_to_its_limit_and_time) {
  ASSERT_FALSE(submit(quarter(Duration::hours(30))));
  start(1);
  ASSERT_FALSE(region.act(SetBudget{budget("100")}).reject);
  pass(Duration::minutes(121));
  ASSERT_TRUE(region.state.budgets.standing("b", region.now).request_open);
  const Approval approval{"ann", region.now + Duration::hours(3), money("20000")};
  EXPECT_TRUE(region.act(AnswerBudget{"b", true, {"", approval.until, approval.new_limit}}).reject);
  ASSERT_FALSE(region.act(AnswerBudget{"b", true, approval}).reject);
  EXPECT_FALSE(submit(quarter(Duration::minutes(10))));
  EXPECT_EQ(region.state.budgets.standing("b", region.now).limit, money("20000"));
  EXPECT_EQ(digest(state_of(image_of(region.state))), digest(region.state));
  pass(Duration::hours(3));
  EXPECT_EQ(told().back(), BudgetNoticeKind::approval_requested);  // over, so it asks again
  EXPECT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::none);
}

TEST_F(MoneyTest, by_policy_running_tasks_end_at_the_limit_and_waiting_ones_do_not_start) {
  ASSERT_FALSE(submit(quarter(Duration::hours(30))));
  start(1);
  TaskSpec whole = Region::spec();
  whole.request.share = whole_device;
  whole.request.memory.reset();
  whole.limit = Duration::minutes(1);
  ASSERT_FALSE(submit(whole));  // waits for the whole device
  Budget strict = budget("100");
  strict.running = RunningPolicy::stop;
  ASSERT_FALSE(region.act(SetBudget{strict}).reject);
  pass(Duration::minutes(121));
  ASSERT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::budget);
  end(1);
  ASSERT_EQ(region.state.tasks.size(), 1u);
  const Task& waits = region.state.tasks.begin()->second;
  EXPECT_EQ(waits.state, TaskState::waiting);
  EXPECT_EQ(why_waits(region.state, waits).code, "budget");
  // A new month begins with nothing spent.
  pass(Duration::hours(24 * 31));
  EXPECT_EQ(region.state.tasks.begin()->second.state, TaskState::starting);
}

TEST_F(MoneyTest, budgets_that_cannot_work_are_refused) {
  const auto refused = [&](const Budget& made) {
    return region.act(SetBudget{made}).reject.has_value();
  };
  Budget made = budget("100");
  made.monthly = Money(1, Currency("EUR"));
  EXPECT_TRUE(refused(made));
  EXPECT_TRUE(refused(budget("0")));
  made = budget("100");
  made.remind_at = BasisPoints{11'000};
  EXPECT_TRUE(refused(made));
  made = budget("100");
  made.zone = "Mars/Olympus";
  EXPECT_TRUE(refused(made));
  made = budget("100");
  made.name = "No Name";
  EXPECT_TRUE(refused(made));
  made = budget("100");
  made.scope.tenant = TenantId{9};
  EXPECT_TRUE(refused(made));
  EXPECT_TRUE(region.act(RemoveBudget{"b"}).reject);
  ASSERT_FALSE(refused(budget("100")));
  made = budget("100");
  made.scope.project = "other";
  EXPECT_TRUE(refused(made));  // it keeps what it counts
  EXPECT_FALSE(refused(budget("200")));
  EXPECT_FALSE(region.act(RemoveBudget{"b"}).reject);
  EXPECT_TRUE(region.state.budgets.empty());
}

TEST_F(MoneyTest, a_credit_note_gives_back_at_most_what_is_left_with_its_tax) {
  PriceTerms taxed;
  taxed.taxes = {{"VAT", 190'000}};
  ASSERT_FALSE(region.publish(taxed, "4", region.now + Duration::hours(1)).reject);
  region.go(region.now + Duration::hours(1));
  const Money before = region.wallet();
  ASSERT_FALSE(submit(quarter(Duration::hours(1))));
  start(1);
  pass(Duration::minutes(6));
  end(1);
  const std::string id = region.act(IssueInvoice{acme}).subject;
  const InvoiceId invoice = *InvoiceId::parse(id);
  const auto credit = [&](std::optional<Money> net) {
    return region.act(CreditInvoice{invoice, net, "because"});
  };
  EXPECT_TRUE(credit(money("9.51")).reject);
  EXPECT_TRUE(credit(money("0")).reject);
  EXPECT_TRUE(credit(money("-1")).reject);
  EXPECT_TRUE(credit(money("0.001")).reject);
  EXPECT_TRUE(region.act(CreditInvoice{InvoiceId{77}, std::nullopt, ""}).reject);
  const Decision first = credit(money("2"));
  ASSERT_FALSE(first.reject);
  EXPECT_EQ(first.subject, "cn-1");
  const CreditNote& note = std::get<CreditNoteIssued>(first.events.front()).note;
  EXPECT_EQ(note.total, money("2.38"));
  const Decision rest = credit(std::nullopt);
  ASSERT_FALSE(rest.reject);
  const CreditNote& last = std::get<CreditNoteIssued>(rest.events.front()).note;
  EXPECT_EQ(last.net, money("7.5"));
  // 9.50 with 19 % are 11.30 in all (1.805 to the even cent); both notes give back that.
  EXPECT_EQ(note.total + last.total, money("11.30"));
  EXPECT_TRUE(credit(std::nullopt).reject);
  // The wallet was charged 11.305 exactly, got 0.005 back with the invoice of 11.30, and 11.30 now.
  EXPECT_EQ(before - region.wallet(), money("0"));
}

// Whatever is invoiced, when and of what, the ledger moves by the invoice's total, and all of it
// can be given back: also where the wallet cannot bear what is rounded up.
TEST_F(MoneyTest, invoices_of_any_amounts_move_the_ledger_by_their_totals) {
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    PriceTerms terms;
    terms.taxes = {{"VAT", random.between(0, 250'000)}, {"levy", random.between(0, 9'999)}};
    const std::string price = "0." + std::to_string(random.between(1, 999'999));
    region.now = region.now + Duration{1};
    ASSERT_FALSE(region.publish(terms, price.c_str()).reject);
    const Money before = region.wallet();
    const Money taxes_before = region.state.accounts.balance(billing::tax_in(usd));
    for (std::int64_t tasks = random.between(1, 3); tasks > 0; --tasks) {
      ASSERT_FALSE(submit(quarter(Duration::minutes(20))));
      const std::uint64_t lease = region.state.next.lease - 1;
      start(lease);
      pass(Duration{random.between(1, 600'000)});
      end(lease);
    }
    // Every other time the wallet is left with less than half a cent.
    const Money left = region.wallet();
    const bool bare = random.chance(500);
    if (bare) {
      const Money keep(random.between(0, 4'000'000'000), usd);
      ASSERT_FALSE(region.act(PayOut{acme, left - keep, ""}).reject);
    }
    const Money paid_out = left - region.wallet();
    const Decision issued = region.act(IssueInvoice{acme});
    ASSERT_FALSE(issued.reject) << issued.reject->message;
    const Invoice invoice = std::get<InvoiceIssued>(issued.events.back()).invoice;
    EXPECT_EQ(before - paid_out - region.wallet(), invoice.total) << round;
    EXPECT_EQ(region.state.accounts.balance(billing::tax_in(usd)) - taxes_before,
              invoice.total - invoice.subtotal);
    EXPECT_FALSE(region.wallet().is_negative()) << round;
    if (bare) {
      ASSERT_FALSE(region.act(TopUp{acme, money("100"), ""}).reject);
    }
    const Money owed = region.wallet() + invoice.total;
    if (invoice.subtotal.is_zero()) continue;
    ASSERT_FALSE(region.act(CreditInvoice{invoice.id, std::nullopt, "all"}).reject);
    EXPECT_EQ(region.wallet(), owed) << round;
  }
}

TEST_F(MoneyTest, a_budget_made_in_the_middle_of_a_month_begins_with_what_was_spent_of_it) {
  ASSERT_FALSE(submit(quarter(Duration::hours(1))));
  start(1);
  pass(Duration::minutes(6));
  end(1);  // 9.50 on 1 March
  const auto made = [&](const char* name, const char* zone) {
    Budget each = budget("100");
    each.name = name;
    each.zone = zone;
    EXPECT_FALSE(region.act(SetBudget{each}).reject);
    return region.state.budgets.standing(name, region.now).spent;
  };
  EXPECT_EQ(made("b1", "UTC"), money("9.5"));
  EXPECT_EQ(made("b2", "America/New_York"), money("9.5"));  // February there still
  pass(Duration::hours(12));
  EXPECT_EQ(made("b3", "America/New_York"), money("0"));  // March now, and that was before it
  EXPECT_EQ(made("b4", "Asia/Kolkata"), money("9.5"));
  Budget other = budget("100");
  other.name = "b5";
  other.scope.project = "other";
  ASSERT_FALSE(region.act(SetBudget{other}).reject);
  EXPECT_TRUE(region.state.budgets.standing("b5", region.now).spent.is_zero());
  EXPECT_EQ(digest(state_of(image_of(region.state))), digest(region.state));
  // Another month, and nothing of the last one.
  pass(Duration::hours(24 * 32));
  EXPECT_EQ(made("b6", "UTC"), money("0"));
  EXPECT_EQ(digest(state_of(image_of(region.state))), digest(region.state));
}

PriceTerms with_spot(InterruptionRule rule) {
  PriceTerms terms;
  terms.spot.sold = true;
  terms.spot.interrupted = rule;
  return terms;
}

TEST_F(MoneyTest, spot_is_sold_where_the_card_does_and_its_price_follows_the_pool) {
  TaskSpec spot = quarter(Duration::hours(4));
  spot.purchase_model = PurchaseModel::spot;
  EXPECT_EQ(submit(spot)->code, RejectCode::not_sold);
  ASSERT_FALSE(
      region.publish(with_spot(InterruptionRule::ran), "4", region.now + Duration{1}).reject);
  pass(Duration::minutes(1));
  const auto price = [&] { return region.state.rates.spot(usd)->moves().back().price; };
  EXPECT_EQ(price(), money("0.6"));  // nobody wants it: 15 %
  const auto quoted = quote(region.state, region.now, acme, spot);
  ASSERT_TRUE(quoted.quote) << quoted.reject->message;
  EXPECT_EQ(quoted.quote->unit_price, money("0.6"));
  EXPECT_NE(quoted.quote->rule.find("what it ran is billed"), std::string::npos);
  ASSERT_FALSE(submit(spot));
  start(1);
  pass(Duration::minutes(2));
  EXPECT_EQ(price(), money("1.45"));  // a quarter is wanted: 15 % + 85 % / 4
  const std::size_t moves = region.state.rates.spot(usd)->moves().size();
  pass(Duration::hours(2));
  EXPECT_EQ(region.state.rates.spot(usd)->moves().size(), moves);  // no move without a reason
  end(1);
  EXPECT_GT(region.revenue(), money("0"));
  EXPECT_LT(region.revenue(), money("80"));
  EXPECT_EQ(digest(state_of(image_of(region.state))), digest(region.state));
}

TEST_F(MoneyTest, what_an_interrupted_piece_costs_is_the_rule_of_the_card) {
  for (const InterruptionRule rule :
       {InterruptionRule::ran, InterruptionRule::free, InterruptionRule::first_hour_free}) {
    for (const std::int64_t minutes : {30, 90}) {
      Region other;
      ASSERT_FALSE(other.publish(with_spot(rule), "4").reject);
      other.settle();
      TaskSpec spot = quarter(Duration::hours(4));
      spot.purchase_model = PurchaseModel::spot;
      ASSERT_FALSE(other.act(SubmitTask{acme, spot}).reject);
      other.settle();
      other.act(ReportStarted{LeaseId{1}, Epoch{1}, other.now});
      other.go(other.now + Duration::minutes(minutes));
      evolve(other.state, Record{other.state.sequence + 1,
                                 other.now,
                                 {"test", "me"},
                                 StopRequested{LeaseId{1}, StopReason::preempted}});
      ReportEnded ended;
      ended.lease = LeaseId{1};
      ended.epoch = Epoch{1};
      ended.started_at = other.state.leases.at(LeaseId{1}).started_at;
      ended.ended_at = other.now;
      other.act(ended);
      const bool billed = rule == InterruptionRule::ran ||
                          (rule == InterruptionRule::first_hour_free && minutes >= 60);
      EXPECT_EQ(other.revenue() > money("0"), billed)
          << static_cast<int>(rule) << " " << minutes << " " << to_text(other.revenue());
      EXPECT_FALSE(other.revenue().is_negative());
      // Its task goes back to the queue and starts again.
      other.settle();
      EXPECT_EQ(other.state.tasks.at(TaskId{1}).state, TaskState::starting);
    }
  }
}

TEST_F(MoneyTest, a_hybrid_task_takes_spot_while_there_is_some_and_on_demand_else) {
  ASSERT_FALSE(
      region.publish(with_spot(InterruptionRule::ran), "4", region.now + Duration{1}).reject);
  pass(Duration::minutes(1));
  TaskSpec hybrid = quarter(Duration::hours(1));
  hybrid.purchase_model = PurchaseModel::hybrid;
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(submit(hybrid)) << i;
    start(static_cast<std::uint64_t>(i) + 1);
    pass(Duration::minutes(2));  // the price follows
  }
  std::vector<PurchaseModel> models;
  for (const auto& [id, lease] : region.state.leases) models.push_back(lease.purchase_model);
  ASSERT_EQ(models.size(), 4u);
  EXPECT_EQ(models.front(), PurchaseModel::spot);
  EXPECT_EQ(std::count(models.begin(), models.end(), PurchaseModel::hybrid), 0);
}

TEST_F(MoneyTest, a_dearer_card_at_once_is_covered_at_once_or_the_task_is_stopped) {
  TenantSpec poor;
  poor.name = "poor";
  poor.currency = usd;
  poor.credit_limit = Money::zero(usd);
  ASSERT_FALSE(region.act(CreateTenant{poor}).reject);
  ASSERT_FALSE(region.act(TopUp{TenantId{2}, money("202"), ""}).reject);
  ASSERT_FALSE(region.act(SubmitTask{TenantId{2}, quarter(Duration::hours(2))}).reject);
  ASSERT_FALSE(submit(quarter(Duration::hours(2))));
  start(1);
  start(2);
  pass(Duration::minutes(10));
  const Money held = region.held();
  ASSERT_FALSE(region.publish({}, "8").reject);
  region.settle();
  EXPECT_TRUE(region.state.reviews.empty());
  // The one has money for it: its hold grew at once. The other is stopped at once.
  EXPECT_GT(region.held(), held);
  EXPECT_EQ(region.state.leases.at(LeaseId{2}).stopping, StopReason::none);
  EXPECT_EQ(region.state.leases.at(LeaseId{1}).stopping, StopReason::funds);
  end(1);
  EXPECT_FALSE(region.state.accounts.balance(billing::wallet_of(TenantId{2}, usd)).is_negative());
}

}  // namespace
}  // namespace loam::engine

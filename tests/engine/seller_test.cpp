// Who sells and what is due, as an invoice says it; tasks that go on by another purchase model;
// what they say they made.
#include <algorithm>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

const Seller lab{"Loam Lab GmbH", "Beispielweg 1", "DE123", "net", 14};

Invoice invoice_in(const Decision& decision) {
  EXPECT_FALSE(decision.reject) << decision.reject->message;
  for (const Event& event : decision.events) {
    if (const auto* issued = std::get_if<InvoiceIssued>(&event)) return issued->invoice;
  }
  ADD_FAILURE() << "no invoice";
  return {};
}

void run_an_hour(Region& region, TenantId tenant) {
  TaskSpec spec = Region::spec();
  spec.grace = Duration{0};
  ASSERT_FALSE(region.act(SubmitTask{tenant, spec}).reject);
  region.settle();
  const LeaseId id{region.state.next.lease - 1};
  const Epoch epoch = region.state.leases.at(id).epoch;
  region.act(ReportStarted{id, epoch, region.now});
  const Instant began = region.now;
  region.go(region.now + Duration::hours(1));
  ReportEnded ended;
  ended.lease = id;
  ended.epoch = epoch;
  ended.started_at = began;
  ended.ended_at = region.now;
  ASSERT_FALSE(region.act(ended).reject);
  region.settle();
}

TEST(Seller, is_on_the_invoices_issued_from_then_on) {
  Region region;
  region.publish({});
  run_an_hour(region, TenantId{1});
  EXPECT_EQ(invoice_in(region.act(IssueInvoice{TenantId{1}, {}})).seller, Seller{});
  EXPECT_EQ(region.act(SetSeller{lab}).events.size(), 1U);
  EXPECT_TRUE(region.act(SetSeller{lab}).events.empty()) << "said again";
  run_an_hour(region, TenantId{1});
  EXPECT_EQ(invoice_in(region.act(IssueInvoice{TenantId{1}, {}})).seller, lab);
  // After a restart from a snapshot too.
  const auto image = decode_image(encode(image_of(region.state)), snapshot_version);
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(state_of(*image).seller, lab);
}

TEST(Seller, is_refused_where_an_invoice_could_not_show_it) {
  Region region;
  Seller seller = lab;
  seller.address = std::string(1001, 'x');
  EXPECT_TRUE(region.act(SetSeller{seller}).reject);
  seller = lab;
  seller.due_after_days = -1;
  EXPECT_TRUE(region.act(SetSeller{seller}).reject);
  seller.due_after_days = 3651;
  EXPECT_TRUE(region.act(SetSeller{seller}).reject);
}

TEST(Due, is_nothing_of_a_tenant_that_pays_in_advance) {
  Region region;
  region.publish({});
  region.act(SetSeller{lab});
  run_an_hour(region, TenantId{1});
  const Invoice invoice = invoice_in(region.act(IssueInvoice{TenantId{1}, {}}));
  EXPECT_FALSE(invoice.total.is_zero());
  EXPECT_EQ(invoice.due, money("0"));
  EXPECT_FALSE(invoice.due_at.has_value());
}

class PostpaidDue : public ::testing::Test {
 protected:
  PostpaidDue() {
    PriceTerms terms;
    terms.taxes = {{"VAT", 190'000}};
    region.publish(terms, "2.0033");
    region.act(SetSeller{lab});
    TenantSpec spec;
    spec.name = "later";
    spec.payment = PaymentMode::postpaid;
    spec.currency = usd;
    spec.credit_limit = money("100000");
    region.act(CreateTenant{spec});
  }
  Region region;
  const TenantId later{2};
};

TEST_F(PostpaidDue, is_the_total_fourteen_days_on) {
  run_an_hour(region, later);
  const Invoice first = invoice_in(region.act(IssueInvoice{later, {}}));
  EXPECT_EQ(first.due, first.total);
  EXPECT_EQ(first.due_at, region.now + Duration::hours(24 * 14));
  // What is still owed of the first is no part of the second.
  run_an_hour(region, later);
  const Invoice second = invoice_in(region.act(IssueInvoice{later, {}}));
  EXPECT_EQ(second.due, second.total);
}

TEST_F(PostpaidDue, is_less_by_what_was_paid_in_before) {
  region.act(TopUp{later, money("10"), "in advance"});
  run_an_hour(region, later);
  const Invoice invoice = invoice_in(region.act(IssueInvoice{later, {}}));
  EXPECT_EQ(invoice.due, invoice.total - money("10"));
  region.act(TopUp{later, money("1000"), "much"});
  run_an_hour(region, later);
  const Invoice covered = invoice_in(region.act(IssueInvoice{later, {}}));
  EXPECT_EQ(covered.due, money("0"));
}

TEST(ResumeOtherwise, replaces_what_the_task_was_bought_as) {
  Region region;
  PriceTerms terms;
  terms.spot.sold = true;
  region.publish(terms);
  region.go(region.now + Duration::minutes(2));
  TaskSpec spec = Region::spec();
  spec.purchase_model = PurchaseModel::hybrid;
  spec.role = GroupRole::critical;
  const TaskId id = *TaskId::parse(region.act(SubmitTask{TenantId{1}, spec}).subject);
  region.act(PauseTask{id});
  const auto as = [&](std::optional<PurchaseModel> model) {
    return region.act(ResumeTask{id, model});
  };
  EXPECT_EQ(as(PurchaseModel::commitment).reject->code, RejectCode::not_sold);
  ASSERT_FALSE(as(PurchaseModel::spot).reject);
  const TaskSpec& now = *region.state.tasks.at(id).spec;
  EXPECT_EQ(now.purchase_model, PurchaseModel::spot);
  EXPECT_EQ(now.role, GroupRole::auxiliary) << "spot has no role";
  EXPECT_TRUE(region.state.scheduler.standing(id).job.preemptible);
  EXPECT_EQ(region.state.spot_waiting.count(id), 1U);
}

TEST(Output, is_told_with_the_end_of_a_lease) {
  Region region;
  region.publish({});
  ASSERT_FALSE(region.act(SubmitTask{TenantId{1}, Region::spec()}).reject);
  region.settle();
  const LeaseId id{region.state.next.lease - 1};
  ReportEnded ended;
  ended.lease = id;
  ended.epoch = region.state.leases.at(id).epoch;
  ended.started_at = ended.ended_at = region.now;
  ended.output = 2'500;
  const Decision decision = region.act(ended);
  const auto told =
      std::find_if(decision.events.begin(), decision.events.end(),
                   [](const Event& event) { return std::holds_alternative<LeaseEnded>(event); });
  ASSERT_TRUE(told != decision.events.end());
  EXPECT_EQ(std::get<LeaseEnded>(*told).output, 2'500);
}

}  // namespace
}  // namespace loam::engine

// The command line on reservations: quoted, made, run on, on the bill, in FOCUS, cancelled.
#include "billing/focus.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

using Words = std::vector<std::string>;

// At 00:01; a reserved CE-hour is 0.03, and half of it where it is not used.
class ReservationsTest : public DaemonTest {
 protected:
  ReservationsTest() {
    daemon.clock.advance(Duration::minutes(1));
    RateCard card;
    card.on_demand = *Money::parse("0.02", card.currency);
    Price price;
    price.purchase_model = PurchaseModel::reservation;
    price.tiers = {{0, *Money::parse("0.03", card.currency)}};
    card.terms.prices = {price};
    card.terms.reservation_unused = BasisPoints{5000};
    const auto answer = daemon.run(PublishRateCard{card});
    EXPECT_FALSE(answer.reject) << answer.reject->message;
  }
  Ran reservation(const std::string& verb, Words more) {
    Words words{"reservation", verb, "--tenant", "acme", "--ce", "40"};
    words.insert(words.end(), more.begin(), more.end());
    return loam(words);
  }
  void pass(Duration length) {
    daemon.clock.advance(length);
    daemon.run(StopTask{TaskId{99}});  // anything, so that time is looked at
  }
  static bool says(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  }
};

TEST_F(ReservationsTest, one_is_quoted_made_and_listed) {
  const Ran quote = reservation("quote", {"--from", "2026-03-02T01:00Z", "--for", "2h"});
  EXPECT_EQ(quote.status, 0) << quote.err;
  for (const char* words : {"40 CE: n1/0 0.4", "2026-03-02 03:00:00", "1.20 USD: 40 CE × 0.03 USD",
                            "2.40 USD", "at 50 % of the price"})
    EXPECT_TRUE(says(quote.out, words)) << words << "\n" << quote.out;
  const Ran made = reservation(
      "make", {"--from", "2026-03-02T01:00Z", "--to", "2026-03-02T03:00Z", "--project", "vision"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(says(made.out, "rsv-1")) << made.out;
  EXPECT_TRUE(says(made.out, "coming")) << made.out;
  EXPECT_TRUE(says(made.err, "loam run --reservation rsv-1 -- CMD")) << made.err;
  EXPECT_TRUE(says(loam({"reservation", "list"}).out, "vision"));
  EXPECT_TRUE(says(loam({"reservation", "list", "--json"}).out, "\"state\":\"coming\""));
}

TEST_F(ReservationsTest, what_says_no_time_or_two_ends_is_refused) {
  EXPECT_TRUE(says(reservation("make", {}).err, "its end is missing"));
  EXPECT_TRUE(says(reservation("make", {"--for", "1h", "--to", "2026-03-02T03:00Z"}).err,
                   "both --to and --for are given"));
  EXPECT_TRUE(says(reservation("make", {"--for", "long"}).err, "--for"));
  EXPECT_TRUE(says(reservation("make", {"--to", "2026-02-30T03:00Z"}).err, "--to"));
  EXPECT_TRUE(says(reservation("make", {"--share", "1", "--for", "1h"}).err, "both --ce"));
  EXPECT_TRUE(says(loam({"reservation", "list"}).err, "no reservations now or to come"));
}

TEST_F(ReservationsTest, what_runs_on_it_and_what_is_not_used_are_on_bill_invoice_and_export) {
  ASSERT_EQ(reservation("make", {"--from", "2026-03-02T01:00Z", "--for", "2h"}).status, 0);
  pass(Duration::minutes(59));
  const Ran submitted =
      loam({"submit", "--tenant", "acme", "--ce", "25", "--reservation", "rsv-1", "--", "x"});
  ASSERT_EQ(submitted.status, 0) << submitted.err;
  EXPECT_TRUE(says(loam({"show", "t1"}).out, "reservation rsv-1, flat")) << submitted.out;
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::hours(1));
  daemon.end(TaskId{1});
  pass(Duration::minutes(3));
  pass(Duration::hours(1));
  // 25 CE-hours at 0.03 are 0.75; 15 and 40 were not used, at 0.015: 0.225 and 0.60.
  const Ran bill = loam({"bill", "acme"});
  for (const char* words : {"reserved, not used", "rsv-1", "0.225", "1.575"})
    EXPECT_TRUE(says(bill.out, words)) << words << "\n" << bill.out;
  const Ran meters = loam({"cost", "acme", "--by", "meter"});
  EXPECT_TRUE(says(meters.out, "reservation_unused")) << meters.out;
  EXPECT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
  EXPECT_TRUE(says(loam({"invoice", "show", "inv-1"}).out, "reserved, not used"));
  const Ran paper = loam({"invoice", "show", "inv-1", "--format", "text"});
  EXPECT_TRUE(says(paper.out, " reserved, not used, at 50 % of the price")) << paper.out;

  const Ran focus = loam({"cost", "export", "acme"});
  ASSERT_EQ(focus.status, 0) << focus.err;
  EXPECT_TRUE(says(focus.out, "rsv-1,Used")) << focus.out;
  EXPECT_TRUE(says(focus.out, "rsv-1,Unused")) << focus.out;
  const auto report = *billing::validate_focus(focus.out);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0].column << " " << report.faults[0].what;
  EXPECT_TRUE(says(loam({"reservation", "list", "--all"}).out, "over"));
}

TEST_F(ReservationsTest, one_is_cancelled_before_it_begins) {
  ASSERT_EQ(reservation("make", {"--from", "2026-03-03", "--for", "1h"}).status, 0);
  const Ran cancelled = loam({"reservation", "cancel", "rsv-1", "--reason", "not needed"});
  EXPECT_EQ(cancelled.status, 0) << cancelled.err;
  EXPECT_TRUE(says(cancelled.out, "cancelled")) << cancelled.out;
  EXPECT_NE(loam({"reservation", "cancel", "rsv-1"}).status, 0);
  EXPECT_NE(loam({"reservation", "cancel", "rsv-9"}).status, 0);
}

}  // namespace
}  // namespace loam::cli

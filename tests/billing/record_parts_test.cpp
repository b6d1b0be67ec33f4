// Parts of charges: any cutting adds up to the whole, forwards and backwards.
#include "billing/record_parts.hpp"

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

UsageRecord record_of(Instant from, Instant to) {
  UsageRecord record;
  record.from = from;
  record.to = to;
  record.billable_ce = MilliCe{25'000};
  record.billed = to - from;
  record.list = money("0.100000000001");
  record.net = money("0.033333333333");
  return record;
}

void adds_up(const UsageRecord& record, const std::vector<Instant>& cuts) {
  Money list = money("0"), net = money("0");
  Duration length, billed;
  Instant at{};
  for (const Instant until : cuts) {
    if (const auto part = part_in(record, {at, until})) {
      list += part->list;
      net += part->net;
      length += part->length();
      billed += part->billed;
      EXPECT_EQ(part->to < part->from, record.to < record.from);
    }
    at = until;
  }
  EXPECT_EQ(list, record.list);
  EXPECT_EQ(net, record.net);
  EXPECT_EQ(length, record.length());
  EXPECT_EQ(billed, record.billed);
}

TEST(RecordParts, any_cutting_adds_up_also_backwards) {
  const Instant nine = at("2026-03-01T09:00:00Z"), ten = at("2026-03-01T10:00:00Z");
  const std::vector<Instant> cuts{nine + Duration{1}, at("2026-03-01T09:30:00Z"),
                                  at("2026-03-01T09:31:07.007Z"), at("2026-03-02T00:00:00Z")};
  adds_up(record_of(nine, ten), cuts);
  adds_up(record_of(ten, nine), cuts);
  const auto half = part_in(record_of(nine, ten), {at("2026-03-01T09:30:00Z"), ten});
  ASSERT_TRUE(half);
  EXPECT_EQ(half->length(), Duration::minutes(30));
  EXPECT_EQ(half->from, at("2026-03-01T09:30:00Z"));
  EXPECT_FALSE(part_in(record_of(nine, ten), {ten, ten + Duration{1}}));
}

TEST(RecordParts, what_has_no_length_or_a_price_per_task_lies_whole_where_it_begins) {
  const Instant nine = at("2026-03-01T09:00:00Z"), ten = at("2026-03-01T10:00:00Z");
  const UsageRecord moment = record_of(nine, nine);
  EXPECT_FALSE(part_in(moment, {Instant{}, nine}));
  EXPECT_EQ(part_in(moment, {nine, ten})->net, moment.net);
  UsageRecord task = record_of(nine, ten);
  task.tasks = 1;
  EXPECT_EQ(part_in(task, {nine, nine + Duration{1}})->net, task.net);
  EXPECT_FALSE(part_in(task, {nine + Duration{1}, ten}));
}

TEST(RecordParts, what_is_covered_is_cut_and_fees_and_tokens_are_not) {
  const Period hour{at("2026-03-01T09:00:00Z"), at("2026-03-01T10:00:00Z")};
  const Period first{hour.from, hour.from + Duration::minutes(20)};
  const Period rest{first.to, hour.to};
  AdjustmentLine line;
  line.key.kind = InvoiceLineKind::covered;
  line.milli_ce_ms = -1'000'001;
  line.list = line.net = money("-1.000000000001");
  const auto a = part_in(line, hour, first), b = part_in(line, hour, rest);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->net + b->net, line.net);
  EXPECT_EQ(a->milli_ce_ms + b->milli_ce_ms, line.milli_ce_ms);
  EXPECT_EQ(a->net, money("-0.333333333334"));
  for (const auto kind : {InvoiceLineKind::fee, InvoiceLineKind::prompt_tokens}) {
    line.key.kind = kind;
    EXPECT_EQ(part_in(line, hour, first)->net, line.net);
    EXPECT_FALSE(part_in(line, hour, rest));
  }
}

TEST(RecordParts, a_discount_is_told_from_its_amounts_where_they_are_large_enough) {
  EXPECT_EQ(discount_of(money("0.017444444444"), money("0.016572222222")), BasisPoints{500});
  EXPECT_EQ(discount_of(money("-0.5"), money("-0.45")), BasisPoints{1000});
  EXPECT_EQ(discount_of(money("3"), money("3")), BasisPoints{0});
  EXPECT_EQ(discount_of(money("3"), money("0")), BasisPoints{10'000});
  EXPECT_FALSE(discount_of(money("0.000000000003"), money("0.000000000002")));
  EXPECT_FALSE(discount_of(money("0"), money("0")));
}

}  // namespace
}  // namespace loam::billing

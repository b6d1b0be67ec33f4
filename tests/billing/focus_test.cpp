// FOCUS: what is written passes the check, and every kind of fault is found by name.
#include "billing/focus.hpp"

#include "billing/csv.hpp"
#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

const Period month{parse_instant("2025-03-01T00:00:00Z").value(),
                   parse_instant("2025-04-01T00:00:00Z").value()};
constexpr Int128 one = Money::units_per_one;

FocusRow completed(FocusRow row) {
  row.issuer = "Lab, Inc.";
  row.billing_account_id = "tenant-1";
  row.billing_account_name = "acme";
  row.billing_period = month;
  row.invoice_id = "inv-1";
  return row;
}

FocusRow usage_row() {
  const Tables tables = tables_of(card("0.0237"));
  Usage ran = usage("u", at("2025-03-01T00:00:00.250Z"), at("2025-03-01T07:11:13Z"), 12'345);
  ran.task = TaskId{17};
  ran.who.model = "llama";
  ran.who.tags = {{"team", "vision \"a\", b"}};
  std::vector<Charge> charges;
  EXPECT_TRUE(Rater(tables, {usd, {500}}).rate(ran, charges).ok());
  return completed(focus_usage(charges[0], ran, Granularity::exact));
}

// 1.00 an hour at 1.00 a committed CE-hour, of which 0.75 are used.
std::vector<FocusRow> commitment_rows() {
  const Period hour{month.from, month.from + hm(1)};
  const FocusCommitment commitment{"c-1", "Subscription", "USD", money("1.00")};
  return {completed(focus_purchase(commitment, money("1.00"), {one, one}, hour)),
          completed(focus_covered(commitment, money("0.75"), {one * 3 / 4, one * 3 / 4}, hour)),
          completed(focus_unused(commitment, money("0.25"), {one / 4, one / 4}, hour))};
}

std::string csv_of(const std::vector<FocusRow>& rows) {
  std::string text = focus_csv_head();
  for (const FocusRow& row : rows) text += to_focus_csv(row);
  return text;
}

std::string faults_of(std::string_view text) {
  const auto report = validate_focus(text);
  if (!report.ok()) return to_text(report.error());
  std::string all;
  for (const FocusFault& fault : report->faults)
    all += std::to_string(fault.row) + " " + fault.column + " " + fault.what + "\n";
  return all;
}

// The one CSV row with one cell put in place of another.
std::string with(const FocusRow& row, const char* column, const char* value) {
  auto rows = *read_csv(csv_of({row}));
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    if (rows[0][i] == column) rows[1][i] = value;
  return csv_row(rows[0]) + csv_row(rows[1]);
}

TEST(Focus, what_is_written_passes_the_check) {
  std::vector<FocusRow> rows = commitment_rows();
  rows.push_back(usage_row());
  EXPECT_EQ(faults_of(csv_of(rows)), "");
  std::string lines;
  for (const FocusRow& row : rows) lines += to_focus_json(row);
  EXPECT_EQ(faults_of(lines), "");
  EXPECT_EQ(validate_focus(lines)->rows, 4u);
}

TEST(Focus, a_commitment_is_three_rows_that_add_up) {
  const auto rows = commitment_rows();
  const auto cell = [&](std::size_t row, const char* column) {
    const auto table = *read_csv(csv_of({rows[row]}));
    for (std::size_t i = 0; i < table[0].size(); ++i)
      if (table[0][i] == column) return table[1][i];
    return std::string("?");
  };
  EXPECT_EQ(cell(0, "CommitmentDiscountQuantity"), "1");
  EXPECT_EQ(cell(0, "PricingCategory"), "Standard");
  EXPECT_EQ(cell(1, "PricingCategory"), "Committed");
  EXPECT_EQ(cell(1, "SkuPriceId"), "commitment/1");
  EXPECT_EQ(cell(0, "BilledCost"), "1");
  EXPECT_EQ(cell(0, "EffectiveCost"), "0");
  EXPECT_EQ(cell(1, "BilledCost"), "0");
  EXPECT_EQ(cell(1, "EffectiveCost"), "0.75");
  EXPECT_EQ(cell(1, "CommitmentDiscountQuantity"), "0.75");
  EXPECT_EQ(cell(2, "BilledCost"), "0");
  EXPECT_EQ(cell(2, "EffectiveCost"), "0.25");
  EXPECT_EQ(cell(2, "ConsumedQuantity"), "NULL");
  EXPECT_NE(faults_of(csv_of({rows[0], rows[1]})).find("what its purchases billed"),
            std::string::npos);
}

TEST(Focus, costs_are_the_exact_product_of_price_and_quantity) {
  const FocusRow row = usage_row();
  EXPECT_EQ(faults_of(csv_of({row})), "");
  EXPECT_NE(faults_of(with(row, "ListCost", "2.1")).find("ListUnitPrice x PricingQuantity"),
            std::string::npos);
  EXPECT_NE(faults_of(with(row, "ContractedUnitPrice", "0.03")).find("ContractedCost"),
            std::string::npos);
}

TEST(Focus, prices_are_exact_and_their_product_rounds_to_the_bill) {
  const FocusRow row = usage_row();
  const auto table = *read_csv(csv_of({row}));
  const auto cell = [&](const char* column) {
    for (std::size_t i = 0; i < table[0].size(); ++i)
      if (table[0][i] == column) return table[1][i];
    return std::string("?");
  };
  EXPECT_EQ(cell("ListUnitPrice"), "0.0237");
  EXPECT_EQ(cell("ContractedUnitPrice"), "0.022515");  // less 5 %
  // 12.345 CE for 25,872.75 s, to 24 decimals.
  EXPECT_EQ(cell("PricingQuantity"), "88.721971875");
  // The product has more decimals than money has, and no others.
  const std::string contracted = cell("ContractedCost");
  EXPECT_EQ(Money::parse(contracted.substr(0, contracted.find('.') + 13), Currency("USD"))
                ->rounded(Rounding::half_even),
            row.billed.rounded(Rounding::half_even));
  FocusRow third = row;
  third.pricing_quantity = FocusQuantity::of(1, 3);
  third.list_unit_price = money("95");
  third.discount = {500};
  EXPECT_NE(to_focus_csv(third).find(",31.666666666666666666666635,"), std::string::npos)
      << to_focus_csv(third);
  EXPECT_NE(to_focus_csv(third).find(",90.25,"), std::string::npos);
}

TEST(Focus, an_invoices_rows_add_up_to_its_total_and_its_credits_stay_within) {
  FocusRow use = usage_row();
  const Money total = money("2.38");
  const Money net = use.billed;
  std::vector<FocusRow> rows{use, completed(focus_tax("VAT", "19", money("0.38"), "inv-1", month)),
                             completed(focus_rounding(money("2") - net, "inv-1", month))};
  rows[2].invoice_total = total;
  EXPECT_EQ(faults_of(csv_of(rows)), "");
  const Period moment{month.to, month.to};
  rows.push_back(completed(focus_credit_note("cn-1", "broken", money("-1"), "inv-1", moment)));
  rows.push_back(completed(focus_tax("VAT", "19", money("-0.19"), "inv-1", moment)));
  rows.back().correction = true;
  EXPECT_EQ(faults_of(csv_of(rows)), "");
  std::string lines;
  for (const FocusRow& row : rows) lines += to_focus_json(row);
  EXPECT_EQ(faults_of(lines), "");
  // More given back than there was.
  auto greedy = rows;
  greedy.push_back(completed(focus_credit_note("cn-2", "again", money("-1.20"), "inv-1", moment)));
  EXPECT_NE(faults_of(csv_of(greedy)).find("give back more"), std::string::npos);
  // A row is missing: told only where the file says that it has all.
  auto fewer = rows;
  fewer.erase(fewer.begin());
  EXPECT_NE(faults_of(csv_of(fewer)).find("do not add up to its total"), std::string::npos);
  fewer[1].invoice_total.reset();
  EXPECT_EQ(faults_of(csv_of(fewer)), "");
  // Two currencies on one invoice.
  auto mixed = rows;
  mixed[1].billed = mixed[1].effective = Money(380'000'000'000, Currency("EUR"));
  EXPECT_NE(faults_of(csv_of(mixed)).find("is USD in another row"), std::string::npos);
}

TEST(Focus, every_kind_of_fault_is_found_by_name) {
  const FocusRow row = usage_row();
  const struct {
    const char* column;
    const char* value;
    const char* told;
  } faults[] = {
      {"BilledCost", "NULL", "BilledCost is null and must not be"},
      {"BilledCost", "1,5", "'1,5' is not a decimal"},
      {"BilledCost", "+1", "'+1' is not a decimal"},
      {"BilledCost", "$1", "is not a decimal"},
      {"BilledCost", "", "is an empty string"},
      {"ChargeCategory", "usage", "'usage' is none of the allowed"},
      {"ChargeClass", "Fix", "'Fix' is none of the allowed"},
      {"ChargePeriodStart", "2025-03-01", "is not an instant"},
      {"ChargePeriodStart", "2025-02-30T00:00:00Z", "is not an instant"},
      {"ChargePeriodEnd", "2025-03-01T00:00:00Z", "is not after"},
      {"BillingCurrency", "usd", "is not an ISO 4217 code"},
      {"Tags", "team=vision", "is not a flat JSON object"},
      {"Tags", "{\"a\":[1]}", "is not a flat JSON object"},
      {"ConsumedUnit", "NULL", "ConsumedUnit is null where ConsumedQuantity is not"},
      {"PricingUnit", "NULL", "PricingUnit is null where"},
      {"CommitmentDiscountStatus", "Used", "is set without CommitmentDiscountId"},
      {"ServiceCategory", "Compute and more", "none of the allowed"},
      {"ConsumedQuantity", "NULL", "ConsumedQuantity is null on usage that took place"},
      {"PricingCategory", "Committed", "'Committed' is only for usage under a commitment"},
      {"PricingCategory", "NULL", "PricingCategory is null on usage or a purchase"},
      {"SkuId", "NULL", "SkuMeter is set without SkuId"},
      {"SkuId", "NULL", "SkuId is null on usage or a purchase"},
      {"SkuPriceId", "NULL", "SkuPriceDetails is set without SkuPriceId"},
      {"SkuPriceDetails", "{\"Window\":\"day\"}", "'Window' is no property of FOCUS"},
      {"ListUnitPrice", "NULL", "ListUnitPrice is null on"},
      {"ListUnitPrice", "-1", "'-1' is below 0"},
      {"ResourceType", "NULL", "ResourceType is null where ResourceId is not"},
      {"ResourceId", "NULL", "ResourceType is set without ResourceId"},
      {"RegionId", "here", "RegionName is null where RegionId is not"},
      {"RegionName", "Here", "RegionName is set without RegionId"},
      {"SubAccountId", "NULL", "SubAccountName is set without SubAccountId"},
      {"SubAccountName", "NULL", "SubAccountName is null where SubAccountId is not"},
      {"CommitmentDiscountQuantity", "1", "is set without CommitmentDiscountId"},
      {"CommitmentDiscountName", "c", "is set without CommitmentDiscountId"},
      {"CommitmentDiscountType", "Reserved", "is set without CommitmentDiscountId"},
      {"CapacityReservationStatus", "Used", "is set without CapacityReservationId"},
      {"CapacityReservationId", "rsv-1", "CapacityReservationStatus is null on usage under"},
      {"AllocatedResourceId", "t1", "AllocatedResourceId is set without AllocatedMethodId"},
      {"AllocatedResourceName", "x", "AllocatedResourceName is set without AllocatedResourceId"},
      {"AllocatedTags", "{\"a\":\"b\"}", "AllocatedTags is set without AllocatedMethodId"},
      {"AllocatedMethodDetails", "{\"Elements\":[]}", "is set without AllocatedMethodId"},
      {"AllocatedMethodDetails", "half", "is not a JSON object"},
  };
  for (const auto& fault : faults) {
    EXPECT_NE(faults_of(with(row, fault.column, fault.value)).find(fault.told), std::string::npos)
        << fault.column << "=" << fault.value << "\n"
        << faults_of(with(row, fault.column, fault.value));
  }
}

TEST(Focus, rows_under_a_commitment_are_checked_together) {
  const auto rows = commitment_rows();
  EXPECT_NE(faults_of(with(rows[0], "EffectiveCost", "1")).find("purchase is not 0"),
            std::string::npos);
  EXPECT_NE(faults_of(with(rows[1], "BilledCost", "0.75")).find("is not 0"), std::string::npos);
  EXPECT_NE(faults_of(with(rows[2], "ConsumedQuantity", "0.25")).find("usage that took place"),
            std::string::npos);
  EXPECT_NE(faults_of(with(rows[1], "CommitmentDiscountStatus", "NULL")).find("is null on usage"),
            std::string::npos);
  const struct {
    std::size_t row;
    const char* column;
    const char* value;
    const char* told;
  } faults[] = {
      {0, "PricingCategory", "Committed", "'Committed' is only for usage under a commitment"},
      {0, "ChargeFrequency", "Usage-Based", "of a purchase is not Usage-Based"},
      {0, "CommitmentDiscountStatus", "Used", "a purchase is neither used nor unused"},
      {0, "CommitmentDiscountQuantity", "NULL", "is null on a commitment's usage or purchase"},
      {1, "PricingCategory", "Standard", "of usage under a commitment is not Committed"},
      {1, "ConsumedQuantity", "NULL", "is null on usage that took place"},
      {1, "CommitmentDiscountType", "NULL", "is null where CommitmentDiscountId is not"},
      {2, "CommitmentDiscountCategory", "NULL", "is null where CommitmentDiscountId is not"},
      {2, "CommitmentDiscountUnit", "NULL", "is null where CommitmentDiscountQuantity is not"},
      {2, "SkuPriceId", "NULL", "SkuPriceId is null on usage or a purchase"},
  };
  for (const auto& fault : faults) {
    const std::string told = faults_of(with(rows[fault.row], fault.column, fault.value));
    EXPECT_NE(told.find(fault.told), std::string::npos) << fault.column << "\n" << told;
  }
  // More was bought than is told of.
  auto less = rows;
  less[2].commitment_quantity = one / 8;
  EXPECT_NE(faults_of(csv_of(less)).find("of 'c-1': what was bought is not"), std::string::npos);
  // Usage of what was bought before the file's first purchase: the sums are of two things.
  less = rows;
  less[1].charge_period.from = less[1].charge_period.from - Duration::hours(1);
  less[1].effective = money("0.5");
  EXPECT_EQ(faults_of(csv_of(less)), "");
}

TEST(Focus, taxes_and_credits_have_no_prices_of_their_own) {
  const FocusRow tax = completed(focus_tax("VAT", "19", money("0.38"), "inv-1", month));
  EXPECT_EQ(faults_of(csv_of({tax})), "");
  for (const char* column : {"SkuId", "SkuPriceId", "PricingCategory", "PricingQuantity"}) {
    const char* value = std::string_view(column) == "PricingCategory" ? "Standard" : "1";
    EXPECT_NE(faults_of(with(tax, column, value)).find(std::string(column) + " is set on a tax"),
              std::string::npos);
  }
  const FocusRow credit =
      completed(focus_credit_note("cn-1", "broken", money("-1"), "inv-1", month));
  EXPECT_EQ(faults_of(csv_of({credit})), "");
  for (const char* column : {"ListCost", "ContractedCost", "EffectiveCost"}) {
    EXPECT_NE(faults_of(with(credit, column, "-2")).find("of a credit is not its BilledCost"),
              std::string::npos)
        << column;
  }
}

TEST(Focus, what_belongs_to_one_of_another_is_the_same_in_every_row) {
  std::vector<FocusRow> rows{usage_row(), usage_row()};
  EXPECT_EQ(faults_of(csv_of(rows)), "");
  rows[1].sku_id = "other";
  EXPECT_NE(faults_of(csv_of(rows)).find("is 'compute' in another row"), std::string::npos);
  rows = commitment_rows();
  rows[1].commitment_unit = "CE-Hours";
  EXPECT_NE(faults_of(csv_of(rows)).find("of CommitmentDiscountId 'c-1' is 'USD' in another row"),
            std::string::npos);
}

// 0.25 unused, over those who used 10 and 20 CE-hours: 0.08333… and 0.16666….
TEST(Focus, idle_cost_is_split_and_conserved_to_the_last_unit) {
  const FocusRow unused = commitment_rows()[2];
  constexpr Int128 ce_hour = 3'600'000'000;  // milli-CE × ms
  const std::vector<FocusBearer> bearers{
      {"t1", "train", {{"environment", "test"}, {"team", "blue"}}, 10 * ce_hour},
      {"t2", "", {}, 20 * ce_hour}};
  const auto cell = [](const FocusRow& row, const char* column) {
    const auto table = *read_csv(csv_of({row}));
    for (std::size_t i = 0; i < table[0].size(); ++i)
      if (table[0][i] == column) return table[1][i];
    return std::string("?");
  };
  FocusRow tagged = unused;
  tagged.tags = {{"environment", "test"}};
  const auto weighted = focus_split(tagged, bearers, IdleMethod::weighted);
  ASSERT_EQ(weighted.size(), 2u);
  EXPECT_EQ(cell(weighted[0], "EffectiveCost"), "0.083333333333");
  EXPECT_EQ(cell(weighted[1], "EffectiveCost"), "0.166666666667");
  EXPECT_EQ(weighted[0].effective + weighted[1].effective, unused.effective);
  EXPECT_EQ(weighted[0].commitment_quantity->units + weighted[1].commitment_quantity->units,
            unused.commitment_quantity->units);
  EXPECT_EQ(cell(weighted[0], "AllocatedMethodId"), "weighted");
  EXPECT_EQ(cell(weighted[0], "AllocatedResourceId"), "t1");
  EXPECT_EQ(cell(weighted[0], "AllocatedResourceName"), "train");
  EXPECT_EQ(cell(weighted[1], "AllocatedResourceName"), "NULL");
  // What the charge's own tags say is not said again.
  EXPECT_EQ(cell(weighted[0], "AllocatedTags"), "{\"team\":\"blue\"}");
  EXPECT_EQ(cell(weighted[0], "AllocatedMethodDetails"),
            "{\"Elements\":[{\"AllocatedRatio\":0.333333333333,\"UsageUnit\":\"CE-Hours\","
            "\"UsageQuantity\":10}]}");
  const auto even = focus_split(unused, bearers, IdleMethod::even);
  EXPECT_EQ(cell(even[0], "EffectiveCost"), "0.125");
  EXPECT_EQ(focus_split(unused, bearers, IdleMethod::kept).size(), 1u);
  EXPECT_EQ(focus_split(unused, {}, IdleMethod::even).size(), 1u);

  auto rows = commitment_rows();
  rows.pop_back();
  rows.insert(rows.end(), weighted.begin(), weighted.end());
  EXPECT_EQ(faults_of(csv_of(rows)), "");
  std::string lines;
  for (const FocusRow& row : rows) lines += to_focus_json(row);
  EXPECT_EQ(faults_of(lines), "");
  rows.pop_back();
  EXPECT_NE(faults_of(csv_of(rows)).find("do not add up to 1"), std::string::npos);
}

TEST(Focus, the_details_of_a_split_are_checked) {
  const FocusRow part =
      focus_split(commitment_rows()[2], {{"t1", "train", {}, 1}}, IdleMethod::even)[0];
  EXPECT_EQ(faults_of(csv_of({part})), "");
  for (const char* details : {"{}", "{\"Elements\":[]}", "{\"Elements\":[{\"UsageUnit\":\"CPU\"}]}",
                              "{\"Elements\":[{\"AllocatedRatio\":-1}]}", "{\"Elements\":[1]}"}) {
    EXPECT_NE(faults_of(with(part, "AllocatedMethodDetails", details))
                  .find("has no Elements with an AllocatedRatio each"),
              std::string::npos)
        << details;
  }
  FocusRow tagged = part;
  tagged.tags = {{"team", "blue"}};
  EXPECT_NE(faults_of(with(tagged, "AllocatedTags", "{\"team\":\"blue\"}"))
                .find("'team' is in Tags already"),
            std::string::npos);
}

TEST(Focus, head_lines_are_checked) {
  std::string text = focus_csv_head();
  const auto head = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return faults_of(changed);
  };
  EXPECT_EQ(faults_of(text), "");
  EXPECT_NE(head("BilledCost", "x_BilledCost").find("BilledCost is mandatory and missing"),
            std::string::npos);
  EXPECT_NE(head("BilledCost", "x_BilledCost").find("comes after a custom column"),
            std::string::npos);
  EXPECT_NE(head("SkuId", "ProviderName").find("removed in FOCUS 1.4"), std::string::npos);
  EXPECT_NE(head("SkuId", "Sku").find("Sku is no column of FOCUS 1.4"), std::string::npos);
  EXPECT_NE(head("SkuId", "SkuMeter").find("appears twice"), std::string::npos);
  EXPECT_NE(head("SkuId", "PrincipalId").find("is no column"), std::string::npos);
}

TEST(Focus, files_that_are_none_are_refused) {
  for (const char* text : {"", "  \n", "{\"a\":1", "{\"a\":1}x\n", "{\"a\":1,\"a\":2}", "\"a"})
    EXPECT_FALSE(validate_focus(text).ok()) << text;
  EXPECT_NE(faults_of("SkuId,x_b\n1\n").find("has 1 fields and the head has 2"), std::string::npos);
  // A head of another kind of file is refused once, with little of it quoted.
  const std::string other = refusal(validate_focus(std::string(10'000, 'x') + ";time\n1\n"));
  EXPECT_NE(other.find("line 1 names no column of FOCUS 1.4"), std::string::npos) << other;
  EXPECT_LT(other.size(), 250u);
}

TEST(FlatJson, reads_lists) {
  const auto read = *read_json_list(R"( [1.50, "a", null, {"b":[2]} ] )");
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[0], "1.50");
  EXPECT_EQ(read[2], std::nullopt);
  EXPECT_EQ(read[3], R"({"b":[2]})");
  EXPECT_TRUE(read_json_list("[]")->empty());
  for (const char* text : {"", "[", "{}", "[1", "[1,]", "[1]x", "[1 2]"})
    EXPECT_FALSE(read_json_list(text).ok()) << text;
}

TEST(FlatJson, reads_values_as_they_are_written) {
  const FlatJson read =
      *read_flat_json(R"( {"a":"x\"\u00e9","b":1.50e3, "c":null,"d":{"e":["}"]},"f":true} )");
  ASSERT_EQ(read.size(), 5u);
  EXPECT_EQ(read[0].second, "x\"\xC3\xA9");
  EXPECT_EQ(read[1].second, "1.50e3");
  EXPECT_EQ(read[2].second, std::nullopt);
  EXPECT_EQ(read[3].second, R"({"e":["}"]})");
  for (const char* text : {"", "{", "[]", "{\"a\"}", "{\"a\":}", "{\"a\":nul}", "{\"a\":{]}",
                           "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":1,}", "{a:1}"})
    EXPECT_FALSE(read_flat_json(text).ok()) << text;
}

}  // namespace
}  // namespace loam::billing

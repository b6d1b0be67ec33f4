// The FOCUS export column by column: where it ran, who sells, what a price depends on, services.
#include "app/loam/bill.hpp"
#include "app/loam/spending.hpp"
#include "billing/focus.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

api::BillView bill_of_acme() {
  api::BillView bill;
  bill.tenant = "acme";
  bill.currency = "USD";
  return bill;
}
const Instant that_day = *parse_instant("2026-03-02T00:00:00Z");
std::vector<BucketBill> of_the_day(api::BillView bill) {
  return {{{that_day, that_day + Duration::hours(24)}, std::move(bill)}};
}

TEST_F(DaemonTest, the_export_says_where_it_ran_who_sells_and_what_the_price_depends_on) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", "25", "--name", "train", "--", "x"}).status,
            0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::hours(1));
  daemon.end(TaskId{1});
  ASSERT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
  const std::string before = loam({"cost", "export", "acme", "--json"}).out;
  const std::string usage = before.substr(0, before.find('\n'));
  for (const char* cell :
       {R"("RegionId":"here")", R"("RegionName":"here")", R"("AvailabilityZone":null)",
        R"("ResourceId":"t1")", R"("ResourceName":"train")", R"("SkuId":"compute")",
        R"("SkuPriceId":"compute/on_demand/flat/0.02")",
        R"("SkuPriceDetails":{"x_PurchaseModel":"on_demand","x_Tariff":"flat"})",
        R"("AllocatedMethodId":null)", R"("InvoiceIssuerName":"loam")"})
    EXPECT_TRUE(says(usage, cell)) << cell << "\n" << usage;
  // What an invoice was rounded by ran nowhere.
  const std::string rounding = before.substr(before.find('\n') + 1);
  EXPECT_TRUE(says(rounding, R"("RegionId":null)")) << rounding;

  daemon.run(SetSeller{{"Loam Lab GmbH", "Beispielweg 1", "DE123", "net", 14}});
  const std::string after = loam({"cost", "export", "acme", "--json"}).out;
  for (const char* column : {"InvoiceIssuerName", "ServiceProviderName", "HostProviderName"})
    EXPECT_TRUE(says(after, '"' + std::string(column) + R"(":"Loam Lab GmbH")")) << column;
  const std::string named = loam({"cost", "export", "acme", "--json", "--issuer", "Me"}).out;
  EXPECT_TRUE(says(named, R"("InvoiceIssuerName":"Me")")) << named;
}

TEST(CostExport, use_told_after_its_month_was_invoiced_is_a_correction) {
  api::BillLine line;
  line.task = "t1";
  line.ce = "1";
  line.used_from = "2026-03-02T00:00:00Z";
  line.used_to = "2026-03-02T01:00:00Z";
  line.units_ms = 3'600'000;
  line.unit_price = line.list = line.net = "0.02";
  line.discount_percent = "0";
  line.purchase_model = "on_demand";
  line.tariff = "time_of_day";
  line.window = "night";
  line.region = "attic";
  api::BillView bill = bill_of_acme();
  bill.lines = {line, line};
  bill.lines[1].correction = true;
  const auto rows = *focus_rows(of_the_day(bill), "Lab");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_FALSE(rows[0].correction);
  EXPECT_TRUE(rows[1].correction);
  EXPECT_EQ(rows[0].region_id, "attic");
  EXPECT_EQ(rows[0].sku_price_id, "compute/on_demand/time_of_day/night/0.02");
  EXPECT_EQ(rows[0].sku_price_details.back(),
            (std::pair<std::string, std::string>{"x_Window", "night"}));
}

TEST(BillText, names_regions_where_there_are_several) {
  api::BillLine line;
  line.task = "t1";
  line.ce = "1";
  line.unit_price = line.list = line.net = "0.02";
  line.discount = "0";
  line.purchase_model = "on_demand";
  line.tariff = "flat";
  line.region = "here";
  api::BillView bill = bill_of_acme();
  bill.list = bill.total = bill.total_with_tax = "0.04";
  bill.discount = "0";
  bill.lines = {line, line};
  EXPECT_FALSE(says(bill_text(bill, false, 120), "REGION"));
  bill.lines[1].region = "attic";
  const std::string text = bill_text(bill, false, 120);
  for (const char* words : {"REGION", "here", "attic"}) EXPECT_TRUE(says(text, words)) << text;
}

// 2 GiB-hours at 0.10.
TEST(CostExport, backups_are_exported_and_counted_as_storage_is) {
  api::AdjustmentView kept;
  kept.task = "t5";
  kept.name = "train";
  kept.project = kept.environment = "default";
  kept.purchase_model = "on_demand";
  kept.region = "attic";
  kept.from = "2026-03-02T00:00:00Z";
  kept.to = "2026-03-02T01:00:00Z";
  kept.unit_price = "0.1";
  kept.list = kept.net = "0.2";
  kept.gib = "2";
  api::BillView bill = bill_of_acme();
  for (const char* kind : {"storage", "backup"}) {
    kept.kind = kind;
    bill.adjustments.push_back(kept);
  }
  const auto rows = *focus_adjustments(of_the_day(bill), {}, "Lab");
  const auto costs = *cost_rows(of_the_day(bill));
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(costs.size(), 2U);
  std::string csv = billing::focus_csv_head();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string kind = bill.adjustments[i].kind;
    EXPECT_EQ(costs[i].meter, kind);
    EXPECT_EQ(rows[i].sku_id, kind);
    EXPECT_EQ(rows[i].sku_meter, kind + " in GiB-Hours");
    EXPECT_EQ(rows[i].sku_price_id, kind + "/0.1");
    EXPECT_EQ(rows[i].consumed_unit, "GiB-Hours");
    EXPECT_EQ(rows[i].resource_id, "t5");
    EXPECT_EQ(rows[i].resource_name, "train");
    EXPECT_EQ(rows[i].region_id, "attic");
    EXPECT_EQ(amount_text(rows[i].billed), "0.2");
    csv += billing::to_focus_csv(rows[i]);
  }
  const auto report = *billing::validate_focus(csv);
  for (const auto& fault : report.faults) ADD_FAILURE() << fault.column << " " << fault.what;
}

}  // namespace
}  // namespace loam::cli

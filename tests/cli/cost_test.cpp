// What to buy, FOCUS files, costs by group, and invoices to send.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "app/loam/invoice_pdf.hpp"
#include "app/loam/spending.hpp"
#include "billing/focus.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

constexpr const char* example =
    "time,amount\n"
    "0,2\n1,2\n2,2\n3,2\n4,2\n5,2\n6,2\n7,2\n"
    "8,6\n9,6\n10,6\n11,6\n12,6\n13,6\n14,6\n15,6\n"
    "16,8\n17,8\n18,8\n19,8\n20,10\n21,10\n22,10\n23,10\n";

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-cost-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name, std::string_view text) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string at(const char* name) const { return path_ + "/" + name; }
  static std::string text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

TEST(Advise, reproduces_the_worked_example) {
  const Folder folder;
  const std::string usage = folder.file("use.csv", example);
  const Ran plain =
      run({"advise", "--usage", usage, "--on-demand", "2.00", "--committed", "1.30", "--json"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_TRUE(
      plain.out.starts_with("{\"commitment\":6,\"cost_mixed\":235.20,\"cost_on_demand\":272.00,"
                            "\"cost_committed\":312.00,\"break_even\":0.65,"))
      << plain.out;
  const Ran hidden = run({"advise", "--usage", usage, "--on-demand", "2.00", "--committed", "1.30",
                          "--committed-hidden", "0.05", "--json"});
  EXPECT_TRUE(hidden.out.starts_with("{\"commitment\":2,\"cost_mixed\":240.80,")) << hidden.out;
}

TEST(Advise, shows_the_three_accounts_and_draws_them) {
  const Folder folder;
  const Ran advise = run({"advise", "--usage", folder.file("use.csv", example), "--on-demand",
                          "2.00", "--committed", "1.30", "--plot", folder.at("use.svg")});
  EXPECT_EQ(advise.status, 0) << advise.err;
  EXPECT_NE(advise.out.find("Commit to 6 and run the rest on demand."), std::string::npos);
  EXPECT_NE(advise.out.find("over 24h 00m 00s: base 2, average 5.667, valley 2, peak 10"),
            std::string::npos)
      << advise.out;
  EXPECT_NE(advise.out.find("all committed         10    312.00             +40.00"),
            std::string::npos)
      << advise.out;
  const std::string picture = Folder::text(folder.at("use.svg"));
  EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n")) << picture;
  EXPECT_NE(picture.find("committed (blue) 6"), std::string::npos);
}

TEST(Advise, hidden_costs_add_up_by_name_and_are_listed) {
  const Folder folder;
  const std::string usage = folder.file("use.csv", example);
  const std::vector<std::string> plain{
      "advise",  "--usage", usage,         "--on-demand", "2.00",         "--committed", "1.30",
      "--setup", "0.01",    "--operators", "0.03",        "--idle-waste", "0.01"};
  const Ran text = run(plain);
  EXPECT_NE(text.out.find("0.03 operators of a committed hour"), std::string::npos) << text.out;
  auto json = plain;
  json.push_back("--json");
  const Ran ran = run(json);
  EXPECT_TRUE(ran.out.starts_with("{\"commitment\":2,\"cost_mixed\":240.80,")) << ran.out;
  EXPECT_NE(ran.out.find("\"hidden\":{\"set-up time of a committed hour\":0.01"), std::string::npos)
      << ran.out;
  // An annual fee against a day: a 365th of it.
  const Ran fee = run({"advise", "--usage", usage, "--on-demand", "2.00", "--option",
                       "reserved=0,upfront=11388,term=1y", "--json"});
  EXPECT_TRUE(fee.out.starts_with("{\"commitment\":6,\"cost_mixed\":235.20,"))
      << fee.out << fee.err;
  EXPECT_NE(run({"advise", "--usage", usage, "--on-demand", "2", "--option", "a=1,term=soon"})
                .err.find("term=1y"),
            std::string::npos);
}

TEST(Advise, says_what_is_missing_or_wrong) {
  const Folder folder;
  const std::string usage = folder.file("use.csv", example);
  const auto fault = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "advise");
    const Ran ran = run(words);
    EXPECT_NE(ran.status, 0);
    return ran.err;
  };
  EXPECT_NE(fault({}).find("--usage"), std::string::npos);
  EXPECT_NE(fault({"--usage", usage}).find("--on-demand"), std::string::npos);
  EXPECT_NE(fault({"--usage", usage, "--on-demand", "2"}).find("--committed"), std::string::npos);
  EXPECT_NE(fault({"--usage", usage, "--on-demand", "dear", "--committed", "1"}).find("'dear'"),
            std::string::npos);
  EXPECT_NE(fault({"--usage", folder.at("none"), "--on-demand", "2", "--committed", "1"})
                .find("cannot be read"),
            std::string::npos);
  EXPECT_NE(fault({"--usage", folder.file("bad.csv", "time,amount\n0,1\n0,2\n"), "--on-demand", "2",
                   "--committed", "1"})
                .find("bad.csv:3: "),
            std::string::npos);
  EXPECT_NE(fault({"--usage", usage, "--on-demand", "2", "--option", "full"}).find("NAME=PRICE"),
            std::string::npos);
}

TEST(CostValidate, tells_a_good_file_from_a_bad_one) {
  const Folder folder;
  const std::string head = billing::focus_csv_head();
  const Ran good = run({"cost", "validate", folder.file("good.csv", head)});
  EXPECT_EQ(good.status, 0) << good.out;
  EXPECT_EQ(good.out, "0 rows, valid as FOCUS 1.4\n");
  const std::string bad = folder.file("bad.csv", "BilledCost\nmuch\n");
  const Ran text = run({"cost", "validate", bad});
  EXPECT_EQ(text.status, 1);
  EXPECT_NE(text.out.find("row 1: BilledCost 'much' is not a decimal number\n"), std::string::npos)
      << text.out;
  const Ran json = run({"cost", "validate", bad, "--json"});
  EXPECT_EQ(json.status, 1);
  EXPECT_TRUE(json.out.starts_with("{\"valid\":false,\"rows\":1,\"faults\":[{\"row\":0,"));
  EXPECT_NE(run({"cost", "validate", folder.at("none")}).status, 0);
}

TEST_F(DaemonTest, costs_are_grouped_exported_and_invoiced) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", "25", "--project", "vision", "--tag",
                  "team=a", "--", "x"})
                .status,
            0);
  ASSERT_EQ(
      loam({"submit", "--tenant", "acme", "--ce", "50", "--project", "speech", "--", "x"}).status,
      0);
  daemon.start(TaskId{1});
  daemon.start(TaskId{2});
  daemon.clock.advance(Duration::minutes(60));
  daemon.end(TaskId{1});
  daemon.end(TaskId{2});
  const Ran cost = loam({"cost", "acme", "--by", "project,tag:team", "--json"});
  EXPECT_EQ(cost.status, 0) << cost.err;
  EXPECT_EQ(cost.out,
            "{\"currency\":\"USD\",\"lines\":[{\"project\":\"speech\",\"tag:team\":\"(none)\","
            "\"cost\":\"1\"},{\"project\":\"vision\",\"tag:team\":\"a\",\"cost\":\"0.5\"}],"
            "\"total\":\"1.5\"}\n");
  const Ran only = loam({"cost", "acme", "--where", "tag:team=a", "--bucket", "hour"});
  EXPECT_NE(only.out.find("0.50"), std::string::npos) << only.out;
  EXPECT_NE(loam({"cost", "acme", "--by", "colour"}).err.find("'colour'"), std::string::npos);
  EXPECT_NE(loam({"cost", "acme", "--zone", "Mars/Olympus"}).err.find("no time zone"),
            std::string::npos);

  const Ran focus = loam({"cost", "export", "acme", "--format", "csv"});
  const auto report = billing::validate_focus(focus.out);
  ASSERT_TRUE(report.ok()) << focus.out << focus.err;
  EXPECT_GE(report->rows, 2U);
  EXPECT_TRUE(report->faults.empty()) << report->faults[0].column << report->faults[0].what;
  const auto lines = billing::validate_focus(loam({"cost", "export", "acme", "--json"}).out);
  EXPECT_TRUE(lines.ok() && lines->faults.empty() && lines->rows == report->rows);

  ASSERT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
  const Folder out;
  EXPECT_EQ(
      loam({"invoice", "show", "inv-1", "--format", "pdf", "--output", out.at("i.pdf")}).status, 0);
  EXPECT_TRUE(Folder::text(out.at("i.pdf")).starts_with("%PDF-1."));
  const Ran text = loam({"invoice", "show", "inv-1", "--format", "text", "--issuer", "Lab"});
  EXPECT_NE(text.out.find("Invoice inv-1\nfrom       Lab\nto         acme\n"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("1.50\n"), std::string::npos) << text.out;
  EXPECT_NE(loam({"invoice", "show", "inv-1", "--format", "csv"}).out.find("inv-1,,total"),
            std::string::npos);
}

TEST_F(DaemonTest, invoices_are_issued_by_the_month_and_of_all_tenants) {
  ASSERT_EQ(
      loam({"tenant", "set", "acme", "--billing-zone", "Asia/Kolkata", "--invoicing", "monthly"})
          .status,
      0);
  const Ran shown = loam({"tenant", "show", "acme"});
  EXPECT_NE(shown.out.find("by the month of Asia/Kolkata"), std::string::npos) << shown.out;
  EXPECT_NE(loam({"tenant", "set", "acme", "--billing-zone", "Nowhere"}).status, 0);
  // From 18:00 to 19:00 UTC: half an hour of March, and half of April.
  daemon.clock.advance(*parse_instant("2026-03-31T18:00:00Z") - daemon.clock.now());
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", "25", "--model", "llama@2", "--group",
                  "nightly", "--", "x"})
                .status,
            0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::minutes(60));
  daemon.end(TaskId{1});
  daemon.clock.advance(Duration::minutes(2));
  EXPECT_NE(loam({"invoice", "issue"}).err.find("no tenant is named"), std::string::npos);
  EXPECT_NE(loam({"invoice", "issue", "acme", "--all"}).err.find("do not go together"),
            std::string::npos);
  EXPECT_NE(loam({"invoice", "issue", "acme", "--month", "2026-3"}).err.find("is not a month"),
            std::string::npos);
  const Ran all = loam({"invoice", "issue", "--all", "--month", "2026-03"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_NE(all.out.find("inv-1"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("0.25"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("2026-03 of beta ends at"), std::string::npos) << all.out;
  const Ran invoice = loam({"invoice", "show", "inv-1"});
  EXPECT_NE(invoice.out.find("llama@2"), std::string::npos) << invoice.out;
  const Ran march = loam({"bill", "acme", "--month", "2026-03", "--json"});
  EXPECT_NE(march.out.find("\"to\":\"2026-03-31T18:30:00Z\""), std::string::npos) << march.out;
  EXPECT_NE(march.out.find("\"total\":\"0.25\""), std::string::npos) << march.out;
  EXPECT_NE(loam({"bill", "--all", "--month", "2026-03"}).err.find("each tenant's own"),
            std::string::npos);
  EXPECT_NE(loam({"bill", "acme", "--month", "2026-03", "--to", "2026-04-01"}).err.find("--month"),
            std::string::npos);
  const Ran bill = loam({"bill", "acme"});
  EXPECT_NE(bill.out.find("nightly"), std::string::npos) << bill.out;
  EXPECT_NE(bill.out.find("llama@2"), std::string::npos) << bill.out;
  const Ran cost = loam({"cost", "acme", "--by", "group,model_version", "--json"});
  EXPECT_NE(cost.out.find("{\"group\":\"nightly\",\"model_version\":\"llama@2\",\"cost\":\"0.5\"}"),
            std::string::npos)
      << cost.out;
  const Ran focus = loam({"cost", "export", "acme", "--format", "csv"});
  const auto report = billing::validate_focus(focus.out);
  ASSERT_TRUE(report.ok()) << focus.out << focus.err;
  EXPECT_TRUE(report->faults.empty()) << report->faults[0].column << report->faults[0].what;
  // The billing period is a month of Kolkata's.
  EXPECT_NE(focus.out.find("2026-03-31T18:30:00Z"), std::string::npos) << focus.out;
  EXPECT_NE(focus.out.find("model_version"), std::string::npos) << focus.out;
  EXPECT_NE(loam({"submit", "--tenant", "acme", "--ce", "1", "--model", "llama@", "--", "x"})
                .err.find("'llama@'"),
            std::string::npos);
}

TEST_F(DaemonTest, what_the_pool_cost_is_split_and_conserved) {
  for (const char* ce : {"30", "20"}) {
    ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", ce, "--project",
                    *ce == '3' ? "vision" : "speech", "--", "x"})
                  .status,
              0);
  }
  const std::string from = to_text(daemon.clock.now());
  daemon.start(TaskId{1});
  daemon.start(TaskId{2});
  daemon.clock.advance(Duration::minutes(60));
  daemon.end(TaskId{1});
  daemon.end(TaskId{2});
  const std::string to = to_text(daemon.clock.now());
  const auto split = [&](const char* method) {
    return loam({"cost", "split", "--cost", "10", "--by", "project", "--idle", method, "--from",
                 from, "--to", to, "--json"})
        .out;
  };
  const Ran kept =
      loam({"cost", "split", "--cost", "10", "--by", "project", "--from", from, "--to", to});
  EXPECT_EQ(kept.status, 0) << kept.err;
  EXPECT_NE(kept.out.find("idle"), std::string::npos) << kept.out;
  EXPECT_NE(kept.out.find("total"), std::string::npos) << kept.out;
  EXPECT_NE(split("weighted")
                .find("{\"project\":\"speech\",\"ce_hours\":\"20\",\"cost\":\"4\"},"
                      "{\"project\":\"vision\",\"ce_hours\":\"30\",\"cost\":\"6\"}"),
            std::string::npos)
      << split("weighted");
  EXPECT_NE(split("weighted").find("\"cost\":\"0\"},\"total\":\"10\""), std::string::npos);
  EXPECT_NE(loam({"cost", "split", "--cost", "10"}).err.find("--month"), std::string::npos);
  EXPECT_NE(loam({"cost", "split", "--month", "2026-03"}).err.find("--cost"), std::string::npos);
  EXPECT_NE(loam({"cost", "split", "--cost", "-1", "--month", "2026-03"}).status, 0);
  EXPECT_NE(loam({"cost", "split", "--cost", "1", "--month", "March"}).status, 0);
}

// Publishes the card again, by the second and with tax and a discount.
void publish_taxed(api::testing::FakeDaemon& daemon) {
  daemon.clock.advance(Duration{5});
  RateCard card;
  card.effective_from = daemon.clock.now();
  card.on_demand = *Money::parse("95", card.currency);
  card.terms.granularity = Granularity::second;
  card.terms.discounts = {{"spring", BasisPoints{500}, std::nullopt}};
  card.terms.taxes = {{"VAT", 190'000}};
  daemon.run(PublishRateCard{card});
}

TEST_F(DaemonTest, the_export_holds_every_charge_and_its_sums_are_checked) {
  publish_taxed(daemon);
  const auto run_one = [&](std::uint64_t id, std::int64_t ms) {
    ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", "1", "--", "x"}).status, 0);
    daemon.start(TaskId{id});
    daemon.clock.advance(Duration{ms});
    daemon.end(TaskId{id});
  };
  run_one(1, 3'006);
  run_one(2, 7'001);
  ASSERT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
  daemon.clock.advance(Duration::seconds(1));
  ASSERT_EQ(loam({"invoice", "credit", "inv-1", "--amount", "0.10", "--reason", "slow"}).status, 0);
  run_one(3, 1'500);
  const Ran csv = loam({"cost", "export", "acme"});
  const auto report = billing::validate_focus(csv.out);
  ASSERT_TRUE(report.ok()) << csv.out << csv.err;
  EXPECT_EQ(report->rows, 7U) << csv.out;  // 3 tasks, tax, rounding, a credit note and its tax
  for (const auto& fault : report->faults) ADD_FAILURE() << fault.column << " " << fault.what;
  EXPECT_NE(csv.out.find(",Tax,"), std::string::npos);
  EXPECT_NE(csv.out.find("cn-1: slow"), std::string::npos);
  EXPECT_NE(csv.out.find(",90.25,"), std::string::npos) << "the price less 5 %, exactly\n"
                                                        << csv.out;
  // Without its first task the invoice's rows do not add up, and the check says so.
  std::string fewer = csv.out;
  const std::size_t first = fewer.find('\n') + 1;
  fewer.erase(first, fewer.find('\n', first) + 1 - first);
  EXPECT_FALSE(billing::validate_focus(fewer)->faults.empty());

  const Ran cost = loam({"cost", "acme", "--by", "meter", "--json"});
  EXPECT_NE(cost.out.find("\"meter\":\"credit_note\",\"cost\":\"-0.1\""), std::string::npos)
      << cost.out;
  const Ran bill = loam({"bill", "acme"});
  EXPECT_NE(bill.out.find("VAT 19 %"), std::string::npos) << bill.out;
  EXPECT_NE(bill.out.find("total with tax"), std::string::npos) << bill.out;
  EXPECT_NE(bill.out.find("BILLED"), std::string::npos) << bill.out;
  EXPECT_NE(bill.out.find("run 11.507 s, priced as 14 s in the units begun: every finished"),
            std::string::npos)
      << bill.out;
  EXPECT_NE(bill.out.find("cn-1 of inv-1"), std::string::npos) << bill.out;
  const Ran show = loam({"show", "t1"});
  EXPECT_NE(show.out.find(" before tax, "), std::string::npos) << show.out;
}

TEST_F(DaemonTest, an_operator_who_names_nobody_sees_all_tenants) {
  for (const char* tenant : {"acme", "beta"})
    ASSERT_EQ(loam({"submit", "--tenant", tenant, "--ce", "25", "--", "x"}).status, 0);
  daemon.start(TaskId{1});
  daemon.start(TaskId{2});
  daemon.clock.advance(Duration::hours(1));
  daemon.end(TaskId{1});
  daemon.end(TaskId{2});
  EXPECT_EQ(loam({"cost", "--by", "tenant", "--json"}).out,
            "{\"currency\":\"USD\",\"lines\":[{\"tenant\":\"acme\",\"cost\":\"0.5\"},"
            "{\"tenant\":\"beta\",\"cost\":\"0.5\"}],\"total\":\"1\"}\n");
  const Ran all = loam({"bill"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_NE(all.out.find("acme        1  3,600.000 s"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("1.00  USD"), std::string::npos) << all.out;
  EXPECT_EQ(loam({"bill", "--all"}, {{"LOAM_TENANT", "acme"}}).out, all.out);
  EXPECT_NE(loam({"bill", "--all", "acme"}).err.find("give one of them"), std::string::npos);
  const auto rows = billing::validate_focus(loam({"cost", "export", "--all"}).out);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->rows, 2U);
}

TEST_F(DaemonTest, a_credit_note_is_shown_and_printed) {
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", "25", "--", "x"}).status, 0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::hours(1));
  daemon.end(TaskId{1});
  ASSERT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
  ASSERT_EQ(loam({"invoice", "credit", "inv-1", "--amount", "0.2", "--reason", "slow"}).status, 0);
  const Ran show = loam({"invoice", "show", "cn-1"});
  EXPECT_NE(show.out.find("Credit note cn-1 to acme"), std::string::npos) << show.out;
  const Ran text = loam({"invoice", "show", "cn-1", "--format", "text"});
  EXPECT_NE(text.out.find("corrects   inv-1"), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find("-0.20"), std::string::npos) << text.out;
  EXPECT_NE(
      loam({"invoice", "show", "cn-1", "--format", "json"}).out.find("\"corrects\":\"inv-1\""),
      std::string::npos);
  EXPECT_TRUE(loam({"invoice", "show", "cn-1", "--format", "pdf"}).out.starts_with("%PDF-"));
  EXPECT_NE(loam({"invoice", "list", "acme"}).out.find("0.20"), std::string::npos);
  EXPECT_NE(loam({"invoice", "show", "cn-9"}).err.find("no credit note cn-9"), std::string::npos);
}

TEST_F(DaemonTest, history_gives_advice_at_the_cards_prices) {
  daemon.clock.advance(Duration{5});
  RateCard card;
  card.effective_from = daemon.clock.now();
  card.on_demand = *Money::parse("2", card.currency);
  Price committed;
  committed.purchase_model = PurchaseModel::commitment;
  committed.tiers = {{0, *Money::parse("1.3", card.currency)}};
  card.terms.prices = {committed};
  daemon.run(PublishRateCard{card});
  EXPECT_NE(loam({"advise", "--tenant", "acme", "--history", "2h"}).err.find("no use on demand"),
            std::string::npos);
  daemon.clock.advance(Duration::hours(1) - Duration{5});
  ASSERT_EQ(loam({"submit", "--tenant", "acme", "--ce", "25", "--", "x"}).status, 0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::hours(1));
  daemon.end(TaskId{1});
  const Ran ran = loam({"advise", "--tenant", "acme", "--history", "2h", "--json"});
  EXPECT_TRUE(
      ran.out.starts_with("{\"commitment\":0,\"cost_mixed\":50.00,\"cost_on_demand\":50.00,"
                          "\"cost_committed\":65.00,\"break_even\":0.65,"))
      << ran.out << ran.err;
  EXPECT_NE(ran.err.find("prices of the rate card r2"), std::string::npos) << ran.err;
}

TEST_F(DaemonTest, a_trial_compares_sizes) {
  auto trial = std::async(std::launch::async, [this] {
    return loam({"trial", "--tenant", "acme", "--sizes", "10,40", "--units", "500", "--json", "--",
                 "./train"});
  });
  // 10 CE take an hour, 40 CE a quarter of an hour and a little: dearer and faster.
  for (const auto& [task, run_time] :
       {std::pair{TaskId{1}, Duration::minutes(60)}, std::pair{TaskId{2}, Duration::minutes(18)}}) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (bool placed = false; !placed && std::chrono::steady_clock::now() < end;) {
      daemon.read([&, id = task](const engine::State& state, Instant) {
        placed = state.tasks.count(id) != 0 && !state.tasks.at(id).leases.empty();
      });
      if (!placed) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    daemon.start(task);
    daemon.clock.advance(run_time);
    daemon.end(task);
  }
  const Ran ran = trial.get();
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "{\"trials\":[{\"ce\":\"10\",\"task\":\"t1\",\"outcome\":\"succeeded\","
            "\"run_ms\":3600000,\"cost\":\"0.2\",\"cost_per_unit\":\"0.0004\"},"
            "{\"ce\":\"40\",\"task\":\"t2\",\"outcome\":\"succeeded\",\"run_ms\":1080000,"
            "\"cost\":\"0.24\",\"cost_per_unit\":\"0.00048\"}],"
            "\"cheapest\":\"10\",\"fastest\":\"40\"}\n");
}

TEST_F(DaemonTest, a_trial_says_what_is_wrong_before_anything_runs) {
  const auto fault = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"trial", "--tenant", "acme"});
    words.insert(words.end(), {"--", "x"});
    return loam(words).err;
  };
  EXPECT_NE(fault({}).find("--sizes 10,20,40"), std::string::npos);
  EXPECT_NE(fault({"--sizes", "10,10"}).find("given twice"), std::string::npos);
  EXPECT_NE(fault({"--sizes", "10,much"}).find("'much'"), std::string::npos);
  EXPECT_NE(fault({"--sizes", "10", "--units", "0"}).find("0 units"), std::string::npos);
  EXPECT_NE(loam({"trial", "--tenant", "acme", "--sizes", "10"}).err.find("program"),
            std::string::npos);
  daemon.read([](const engine::State& state, Instant) { EXPECT_TRUE(state.tasks.empty()); });
}

}  // namespace
}  // namespace loam::cli

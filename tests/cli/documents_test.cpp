// Invoices as documents, and commitments as FOCUS rows: from the API's views, without a daemon.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/loam/invoice_pdf.hpp"
#include "app/loam/spending.hpp"
#include "billing/focus.hpp"

namespace loam::cli {
namespace {

TEST(InvoicePdf, is_a_pdf_the_same_each_time_also_over_many_pages) {
  billing::Document document;
  document.number = 7;
  document.tenant_name = "Müller & Söhne";
  document.period = {Instant{0}, Instant{86'400'000}};
  document.issued_at = Instant{86'400'000};
  const Money zero = Money::zero(Currency("USD"));
  for (int i = 0; i < 200; ++i) {
    billing::DocumentLine line;
    line.project = "project-" + std::to_string(i) + std::string(40, 'x');
    line.unit = "CE-Hours";
    line.quantity = Money::units_per_one * 1'234'567 + i;
    line.unit_price = line.list = line.net = Money(20'000'000'001, Currency("USD"));
    line.payable = zero;
    document.lines.push_back(line);
  }
  document.subtotal = document.total = zero;
  document.taxes = {{"VAT", 190'000, zero, zero}};
  const auto pdf = invoice_pdf(document);
  ASSERT_TRUE(pdf.ok()) << to_text(pdf.error());
  EXPECT_TRUE(pdf->bytes.starts_with("%PDF-1."));
  EXPECT_NE(pdf->bytes.find("%%EOF"), std::string::npos);
  EXPECT_NE(pdf->bytes.find("/Count 5"), std::string::npos);
  EXPECT_EQ(pdf->letters_missing, 0);
  EXPECT_EQ(invoice_pdf(document)->bytes, pdf->bytes);
  // What the standard fonts know is the same whatever others a machine has.
  EXPECT_EQ(invoice_pdf(document, {"/no/such/font.ttf", {}})->bytes, pdf->bytes);
}

billing::Document over_latin1() {
  billing::Document document;
  document.number = 8;
  document.tenant_name = "acme";
  document.buyer = {"Łódź Сервис 東京", "ul. Piotrkowska 1\nΑθήνα", "PL1"};
  document.seller = {"Loam Lab GmbH", "Beispielweg 1\nBerlin", "DE123"};
  document.period = {Instant{0}, Instant{86'400'000}};
  document.issued_at = Instant{86'400'000};
  document.currency = Currency("EUR");
  document.subtotal = document.total = Money::zero(document.currency);
  return document;
}

TEST(InvoicePdf, without_a_font_that_has_them_letters_are_question_marks_and_counted) {
  const auto pdf = invoice_pdf(over_latin1());
  ASSERT_TRUE(pdf.ok()) << to_text(pdf.error());
  EXPECT_EQ(pdf->letters_missing, 15);  // Łź, six of Сервис, two of 東京, five of Αθήνα
  EXPECT_EQ(pdf->bytes.find("FontFile2"), std::string::npos);
}

TEST(InvoicePdf, a_truetype_font_that_is_there_is_embedded_and_shows_them) {
  const PdfFonts fonts = pdf_fonts("");
  if (fonts.regular.empty()) GTEST_SKIP() << "needs Debian's fonts-dejavu-core";
  const auto pdf = invoice_pdf(over_latin1(), fonts);
  ASSERT_TRUE(pdf.ok()) << to_text(pdf.error());
  EXPECT_EQ(pdf->letters_missing, 0);
  EXPECT_NE(pdf->bytes.find("FontFile2"), std::string::npos);
  EXPECT_NE(pdf->bytes.find("DejaVuSans"), std::string::npos);
  // The letters that are used, not the whole of both fonts.
  EXPECT_LT(pdf->bytes.size(), 300'000U);
  EXPECT_EQ(invoice_pdf(over_latin1(), fonts)->bytes, pdf->bytes);
}

TEST(InvoicePdf, a_font_that_is_none_is_named) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("loam-font-" + std::to_string(::getpid())))
          .string();
  std::ofstream(path) << "this is no font";
  for (const std::string& each : {path, std::string("/no/such/font.ttf")}) {
    const auto pdf = invoice_pdf(over_latin1(), {each, {}});
    ASSERT_FALSE(pdf.ok());
    EXPECT_NE(pdf.error().message.find(each), std::string::npos) << pdf.error().message;
  }
  std::filesystem::remove(path);
}

TEST(InvoiceText, says_who_sells_who_pays_and_what_is_due) {
  billing::Document document = over_latin1();
  document.terms = "net\nby transfer";
  document.due = Money::zero(document.currency);
  const std::string wallet = billing::to_plain_text(document);
  EXPECT_NE(wallet.find("from       Loam Lab GmbH\n           Beispielweg 1\n           Berlin\n"
                        "           Tax ID DE123\n"
                        "to         Łódź Сервис 東京 (acme)\n"),
            std::string::npos)
      << wallet;
  EXPECT_NE(wallet.find("due        0.00, paid from the wallet\n"), std::string::npos) << wallet;
  EXPECT_NE(wallet.find("terms      net\n           by transfer\n"), std::string::npos) << wallet;
  document.due = *Money::parse("12.3", document.currency);
  document.due_at = *parse_instant("2026-04-15T08:00:00Z");
  EXPECT_NE(billing::to_plain_text(document).find("due        12.30 by 2026-04-15\n"),
            std::string::npos);
  document.due.reset();
  EXPECT_EQ(billing::to_plain_text(document).find("due "), std::string::npos);
}

// A month of 10 CE for 9490, of which 4 CE-hours were covered on its third day.
std::vector<BucketBill> days_of_a_commitment(int days) {
  const Instant start = *parse_instant("2026-03-01T00:00:00Z");
  std::vector<BucketBill> bills;
  for (int day = 0; day < days; ++day) {
    const Instant from = start + Duration::hours(24 * day);
    api::BillView bill;
    bill.tenant = "acme";
    bill.currency = "USD";
    api::AdjustmentView adjustment;
    adjustment.project = adjustment.environment = "default";
    adjustment.from = to_text(from);
    if (day == 0) {
      adjustment.kind = "fee";
      adjustment.commitment = "com-1";
      adjustment.to = "2026-04-01T00:00:00Z";
      adjustment.unit_price = "1.3";
      adjustment.list = adjustment.net = "9490";
      bill.adjustments.push_back(adjustment);
    } else if (day == 2) {
      adjustment.kind = "covered";
      adjustment.to = to_text(from + Duration::hours(1));
      adjustment.ce_hours = "-4";
      adjustment.net = "-8";
      bill.adjustments.push_back(adjustment);
      adjustment.kind = "credit";
      adjustment.lease = "l7";
      adjustment.ce_hours = "0";
      adjustment.net = "-0.5";
      bill.adjustments.push_back(adjustment);
    }
    bills.push_back({{from, from + Duration::hours(24)}, bill});
  }
  return bills;
}

TEST(CostExport, a_commitments_fee_is_spread_over_its_days_as_used_and_unused) {
  api::CommitmentView commitment;
  commitment.id = "com-1";
  commitment.tenant = "acme";
  commitment.currency = "USD";
  commitment.ce = "10";
  commitment.unit_price = "1.3";
  commitment.period = "month";
  commitment.project = "default";
  commitment.fees = {
      {"2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", 31, 31, "9490", true, "9490"},
      {"2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z", 30, 30, "9490", false, "9490"}};
  for (const int days : {31, 5}) {
    const auto rows = *focus_adjustments(days_of_a_commitment(days), {commitment}, "Lab");
    Money billed = Money::zero(Currency("USD")), effective = billed, used = billed;
    std::string csv = billing::focus_csv_head();
    for (const billing::FocusRow& row : rows) {
      billed += row.billed;
      effective += row.effective;
      if (row.commitment_status == "Used") used += row.effective;
      csv += billing::to_focus_csv(row);
    }
    EXPECT_EQ(amount_text(billed), "9481.5");
    // A 1860th of the fee: 4 of the 10 x 744 CE-hours.
    EXPECT_EQ(amount_text(used.rounded(Rounding::half_even)), "5.1");
    if (days == 31) {
      EXPECT_EQ(amount_text(effective), "9481.5");
    }
    const auto report = *billing::validate_focus(csv);
    EXPECT_TRUE(report.faults.empty()) << report.faults[0].column << " " << report.faults[0].what;
  }
}

// 0.40 an hour at 0.10 a CE-hour are 4 CE-hours: on the third day 0.40 of 9.60 are used.
TEST(CostExport, money_committed_is_used_and_unused_in_money) {
  api::CommitmentView commitment;
  commitment.id = "com-1";
  commitment.tenant = "acme";
  commitment.currency = "USD";
  commitment.ce = "0";
  commitment.spend = "0.4";
  commitment.unit_price = "0.1";
  commitment.period = "month";
  commitment.project = "default";
  commitment.fees = {
      {"2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", 31, 31, "9490", true, "9490"}};
  const auto rows = *focus_adjustments(days_of_a_commitment(31), {commitment}, "Lab");
  std::string csv = billing::focus_csv_head();
  Money effective = Money::zero(Currency("USD"));
  std::size_t used = 0;
  for (const billing::FocusRow& row : rows) {
    csv += billing::to_focus_csv(row);
    if (!row.commitment_id) continue;
    EXPECT_EQ(row.commitment_category, "Spend");
    effective += row.effective;
    if (row.commitment_status != "Used") continue;
    ++used;
    EXPECT_EQ(row.commitment_unit, "USD");
    EXPECT_EQ(row.consumed_unit, "CE-Hours");
    EXPECT_NE(billing::to_focus_csv(row).find(",0.4,"), std::string::npos);
    EXPECT_EQ(amount_text(row.effective.rounded(Rounding::half_even)), "12.76");  // of 306.13
  }
  EXPECT_EQ(used, 1U);
  EXPECT_EQ(amount_text(effective), "9490");
  const auto report = *billing::validate_focus(csv);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0].column << " " << report.faults[0].what;
}

TEST(CostExport, days_without_use_have_their_share_of_a_fee_too) {
  api::CommitmentView commitment;
  commitment.id = "com-1";
  commitment.tenant = "acme";
  commitment.currency = "USD";
  commitment.ce = "10";
  commitment.unit_price = "1.3";
  commitment.period = "month";
  commitment.project = "default";
  commitment.fees = {
      {"2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", 31, 31, "9490", true, "9490"}};
  std::vector<BucketBill> bills = days_of_a_commitment(31);
  std::vector<billing::Period> days;
  for (const BucketBill& each : bills) days.push_back(each.period);
  // As the API lists them: without those that have nothing on them.
  std::erase_if(bills, [](const BucketBill& each) { return each.bill.adjustments.empty(); });
  ASSERT_EQ(bills.size(), 2u);
  add_empty_bills({commitment}, days, bills);
  ASSERT_EQ(bills.size(), 31u);
  std::string csv = billing::focus_csv_head();
  const auto rows = *focus_adjustments(bills, {commitment}, "Lab");
  for (const billing::FocusRow& row : rows) csv += billing::to_focus_csv(row);
  const auto report = *billing::validate_focus(csv);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0].column << " " << report.faults[0].what;
}

}  // namespace
}  // namespace loam::cli

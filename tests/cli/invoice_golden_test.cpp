// Golden invoices: one document with every kind of line, and a credit note over it, as text, CSV,
// JSON and PDF, byte by byte. LOAM_UPDATE_GOLDEN=1 writes the files anew, for review.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "app/loam/invoice_pdf.hpp"
#include "app/loam/spending.hpp"

namespace loam::cli {
namespace {

const std::string golden = std::string(LOAM_SOURCE_DIR) + "/tests/golden/invoices/";

void compare(const std::string& name, const std::string& bytes) {
  const std::string path = golden + name;
  if (std::getenv("LOAM_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << bytes;
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path;
  const std::string expected((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(bytes == expected) << path << " is not what is written now:\n"
                                 << (name.ends_with("pdf") ? "" : bytes);
}

void compare_all(const std::string& name, const billing::Document& document) {
  compare(name + ".txt", billing::to_plain_text(document));
  compare(name + ".csv", billing::to_csv(document));
  compare(name + ".json", billing::to_json(document) + "\n");
  const auto pdf = invoice_pdf(document);
  ASSERT_TRUE(pdf.ok());
  compare(name + ".pdf", pdf->bytes);
}

api::InvoiceLineView line(const char* kind, const char* terms, const char* price, const char* hours,
                          const char* list, const char* net, const char* payable) {
  api::InvoiceLineView made;
  made.kind = kind;
  made.project = "vision";
  made.environment = "production";
  made.purchase_model = terms;
  made.tariff = "flat";
  made.unit_price = price;
  made.ce_hours = hours;
  made.list = list;
  made.net = net;
  made.payable = payable;
  return made;
}

api::InvoiceView an_invoice() {
  api::InvoiceView invoice;
  invoice.id = "inv-7";
  invoice.tenant = "acme";
  invoice.tenant_id = "tenant-1";
  invoice.currency = "EUR";
  invoice.from = "2026-03-01T00:00:00Z";
  invoice.to = "2026-04-01T00:00:00Z";
  invoice.issued_at = "2026-04-01T00:00:05Z";
  invoice.lines = {
      line("usage", "on_demand", "2", "100.125", "200.25", "190.2375", "190.24"),
      line("usage", "spot", "0.62", "40", "24.8", "24.8", "24.80"),
      line("correction", "on_demand", "1.9", "1.5", "2.85", "2.85", "2.85"),
      line("fee", "commitment", "1.3", "7300", "9490", "9490", "9490"),
      line("covered", "on_demand", "2", "-80", "-160", "-152", "-152"),
      line("credit", "on_demand", "2", "0", "-0.833333333333", "-0.833333333333", "-0.83")};
  invoice.lines[0].tariff = "time_of_day";
  invoice.lines[0].window = "day";
  invoice.lines[1].model = "llama, 8B \"chat\"";
  auto tasks = line("usage", "on_demand", "0.05", "0", "0.6", "0.6", "0.60");
  tasks.tasks = 12;
  auto prompts = line("prompt_tokens", "on_demand", "0.15", "0", "0.18", "0.18", "0.18");
  prompts.model = "tiny-1";
  prompts.tokens = 1'200'000;
  auto income = line("token_income", "on_demand", "0.15", "0", "-0.0003", "-0.0003", "0.00");
  income.model = "tiny-2";
  income.tokens = -2'000;
  invoice.lines.insert(invoice.lines.end(), {tasks, prompts, income});
  invoice.subtotal = "9555.84";
  invoice.taxes = {{"VAT", "19", "9555.84", "1815.61"}};
  invoice.total = "11371.45";
  return invoice;
}

TEST(GoldenInvoices, an_invoice_is_written_as_it_always_was) {
  auto document = *document_of(an_invoice());
  document.issuer = "Loam Lab GmbH";
  Money sum = Money::zero(document.currency);
  for (const billing::DocumentLine& each : document.lines) sum += each.payable;
  EXPECT_EQ(sum, document.subtotal);
  compare_all("inv-7", document);
}

TEST(GoldenInvoices, one_with_seller_buyer_and_terms_is_written_as_it_always_was) {
  api::InvoiceView invoice = an_invoice();
  invoice.id = "inv-8";
  invoice.seller = {"Loam Lab GmbH", "Beispielweg 1\n10115 Berlin", "DE 123 456 789"};
  invoice.buyer = {"ACME Söhne & Co", "1 High Street\nOxford", "GB 987"};
  invoice.terms = "by transfer to DE00 1234, without deduction";
  invoice.due = "371.45";
  invoice.due_at = "2026-04-15T00:00:05Z";
  compare_all("inv-8", *document_of(invoice));
}

TEST(GoldenInvoices, a_credit_note_is_written_as_it_always_was) {
  const api::CreditNoteView note{"cn-3",
                                 "inv-7",
                                 "acme",
                                 "tenant-1",
                                 "EUR",
                                 "2026-04-02T08:15:00Z",
                                 "2",
                                 "0.38",
                                 "2.38",
                                 "delivered 75 % of 8.00",
                                 {{"VAT", "19", "2", "0.38"}}};
  auto document = *document_of(note, an_invoice());
  document.issuer = "Loam Lab GmbH";
  compare_all("cn-3", document);
}

}  // namespace
}  // namespace loam::cli

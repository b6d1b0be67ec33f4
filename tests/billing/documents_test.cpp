// Documents as people and programs read them. That numbers have no gaps, that issued ones never
// change and what credit notes give back is shown on the engine.
#include "billing/documents.hpp"

#include "billing/apportion.hpp"
#include "billing/csv.hpp"
#include "billing/fixture.hpp"
#include "billing/invoicing.hpp"

namespace loam::billing {
namespace {

DocumentLine line(const char* project, const char* what, const char* quantity, const char* price,
                  const char* net) {
  DocumentLine made;
  made.project = project;
  made.environment = "production";
  made.model = "llama";
  made.description = what;
  made.unit = "CE-Hours";
  made.quantity = money(quantity).units();
  made.unit_price = money(price);
  made.list = made.net = money(net);
  return made;
}

Document draft(std::vector<DocumentLine> lines) {
  Document made;
  made.tenant = TenantId{7};
  made.tenant_name = "acme";
  made.issuer = "Lab, Inc.";
  made.period = {at("2025-03-01T00:00:00Z"), at("2025-04-01T00:00:00Z")};
  made.issued_at = at("2025-04-01T00:05:00Z");
  made.lines = std::move(lines);
  return made;
}

Document two_lines() {
  DocumentLine late = line("vision", "on_demand compute", "2.5", "0.02", "0.05");
  late.kind = LineKind::correction;
  return draft(
      {line("vision", "on_demand compute", "100.123456789012", "0.02", "2.00246913578"), late});
}

// The first of its kind, added up.
Document issued(Document document, const Tax& tax) {
  std::vector<Money> exact;
  for (const DocumentLine& each : document.lines) exact.push_back(each.net);
  const Settled settled = settle(exact, document.currency);
  for (std::size_t i = 0; i < exact.size(); ++i) document.lines[i].payable = settled.payable[i];
  document.number = 1;
  document.subtotal = settled.total;
  document.taxes = {tax_line(tax.name, tax.parts_per_million, settled.total)};
  document.total = document.subtotal + document.taxes.front().amount;
  return document;
}

TEST(Documents, text_is_as_people_read_it) {
  EXPECT_EQ(to_plain_text(issued(two_lines(), {"VAT", 190'000})),
            "Invoice inv-1\n"
            "from       Lab, Inc.\n"
            "to         acme\n"
            "usage      2025-03-01T00:00:00Z to 2025-04-01T00:00:00Z (not included)\n"
            "issued     2025-04-01T00:05:00Z\n"
            "amounts in USD\n"
            "\n"
            "PROJECT   ENVIRONMENT  MODEL  WHAT                           UNIT           "
            "   QUANTITY  UNIT PRICE           LIST            NET  PAYABLE\n"
            "vision    production   llama  on_demand compute              CE-Hours  100.1"
            "23456789012        0.02  2.00246913578  2.00246913578     2.00\n"
            "vision    production   llama  correction: on_demand compute  CE-Hours       "
            "        2.5        0.02           0.05           0.05     0.05\n"
            "subtotal                                                                    "
            "                                                          2.05\n"
            "VAT 19 %                                                                    "
            "                                                          0.39\n"
            "total                                                                       "
            "                                                          2.44\n");
}

TEST(Documents, csv_and_json_hold_every_line_and_the_total) {
  Document tricky = two_lines();
  tricky.lines[0].project = "a \"b\", c";
  const Document document = issued(tricky, {"VAT", 190'000});
  const std::string csv = to_csv(document);
  EXPECT_NE(csv.find("inv-1,1,usage,\"a \"\"b\"\", c\",production,llama,on_demand compute,CE-Hours,"
                     "100.123456789012,0.02,"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find("inv-1,3,tax,,,,VAT,,,,,,0.39,USD\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("inv-1,,total,,,,,,,,,,2.44,USD\n"), std::string::npos) << csv;
  const std::string json = to_json(document);
  EXPECT_NE(json.find("\"project\":\"a \\\"b\\\", c\""), std::string::npos) << json;
  EXPECT_TRUE(json.ends_with("\"total\":\"2.44\"}")) << json;
}

// What row by row and string by string gives: the long way that a long invoice does not take.
std::string slow_csv(const Document& document) {
  const auto payable = [&](Money amount) {
    return display_text(amount, document.currency.exponent());
  };
  const std::string number = number_text(document), code(document.currency.code());
  std::string text =
      csv_row({"document", "line", "kind", "project", "environment", "model", "description", "unit",
               "quantity", "unit_price", "list", "net", "payable", "currency"});
  std::size_t index = 0;
  for (const DocumentLine& line : document.lines) {
    text +=
        csv_row({number, std::to_string(++index), name_of(line.kind), line.project,
                 line.environment, line.model, line.description, line.unit,
                 amount_text(Money(line.quantity, document.currency)), amount_text(line.unit_price),
                 amount_text(line.list), amount_text(line.net), payable(line.payable), code});
  }
  for (const TaxLine& tax : document.taxes) {
    text += csv_row({number, std::to_string(++index), "tax", "", "", "", tax.name, "", "", "", "",
                     "", payable(tax.amount), code});
  }
  return text + csv_row({number, "", "total", "", "", "", "", "", "", "", "", "",
                         payable(document.total), code});
}

TEST(Documents, a_long_invoice_is_written_byte_for_byte_as_its_rows_are) {
  const char* const words[] = {"", "vision", "a,b", "say \"no\"", "two\nlines", "cr\r", "größe"};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const auto word = [&] { return std::string(words[random.below(std::size(words))]); };
    const Currency currency = std::array{usd, Currency("JPY"), Currency("KWD")}[random.below(3)];
    const auto amount = [&] {
      return Money(Int128{random.between(-9'000'000'000'000, 9'000'000'000'000)} *
                       random.between(1, 1'000'000),
                   currency);
    };
    Document draft;
    draft.tenant = TenantId{1};
    draft.currency = currency;
    for (std::uint64_t i = 0; i < 1 + random.below(20); ++i) {
      DocumentLine line;
      line.kind = static_cast<LineKind>(random.below(5));
      line.project = word();
      line.environment = word();
      line.model = word();
      line.description = word();
      line.unit = word();
      line.quantity = amount().units();
      line.unit_price = amount();
      line.list = amount();
      line.net = amount();
      draft.lines.push_back(line);
    }
    const Document document = issued(draft, {word() + "tax", 190'000});
    EXPECT_EQ(to_csv(document), slow_csv(document)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::billing

// Invoices: lines that sum, numbers without gaps, immutability, credit notes; golden renderings.
#include "billing/documents.hpp"

#include "billing/csv.hpp"
#include "billing/fixture.hpp"

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

TEST(Documents, lines_sum_to_the_subtotal_and_taxes_are_rounded_once) {
  DocumentBook book;
  const auto issued =
      *book.issue(draft({line("a", "x", "1", "1", "0.005"), line("b", "x", "1", "1", "0.005"),
                         line("c", "x", "1", "1", "0.005")}),
                  {{"VAT", 190'000}, {"city", 5'000}});
  EXPECT_EQ(issued->subtotal, money("0.02"));
  EXPECT_EQ(issued->lines[2].payable, money("0.00"));
  EXPECT_EQ(issued->taxes[0].amount, money("0.00"));  // 0.0038
  const auto hundred = *book.issue(draft({line("a", "x", "1", "1", "100.10")}), {{"VAT", 190'000}});
  EXPECT_EQ(hundred->taxes[0].amount, money("19.02"));  // 19.019
  EXPECT_EQ(hundred->total, money("119.12"));
}

TEST(Documents, numbers_have_no_gaps_even_where_an_invoice_is_refused) {
  DocumentBook book;
  EXPECT_EQ((*book.issue(two_lines(), {}))->number, 1u);
  EXPECT_FALSE(book.issue(draft({}), {}).ok());
  Document mixed = two_lines();
  mixed.lines[1].net = money("1", Currency("EUR"));
  EXPECT_FALSE(book.issue(mixed, {}).ok());
  EXPECT_EQ((*book.issue(two_lines(), {}))->number, 2u);
  ASSERT_TRUE(book.credit(1, money("0.50"), "goodwill", at("2025-04-02T00:00:00Z"), {}).ok());
  EXPECT_EQ((*book.issue(two_lines(), {}))->number, 3u);
  EXPECT_EQ(book.credit_note(1)->number, 1u);
}

TEST(Documents, issued_ones_never_change) {
  DocumentBook book;
  const auto first = *book.issue(two_lines(), {{"VAT", 100'000}});
  const Document kept = *first;
  ASSERT_TRUE(book.credit(1, money("1.00"), "goodwill", at("2025-04-02T00:00:00Z"), {}).ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(book.issue(two_lines(), {}).ok());
  EXPECT_EQ(*book.invoice(1), kept);
}

TEST(Documents, credit_notes_give_back_no_more_than_the_invoice_and_a_void_gives_the_rest) {
  DocumentBook book;
  const Instant now = at("2025-04-02T00:00:00Z");
  ASSERT_TRUE(book.issue(draft({line("a", "x", "1", "10", "10")}), {{"VAT", 100'000}}).ok());
  EXPECT_FALSE(book.credit(1, money("10.01"), "r", now, {}).ok());
  EXPECT_FALSE(book.credit(1, money("0"), "r", now, {}).ok());
  EXPECT_FALSE(book.credit(1, money("-1"), "r", now, {}).ok());
  EXPECT_FALSE(book.credit(9, money("1"), "r", now, {}).ok());
  ASSERT_TRUE(book.credit(1, money("4"), "r", now, {}).ok());
  const auto rest = *book.void_invoice(1, "wrong tenant", now);
  EXPECT_EQ(rest->subtotal, money("-6"));
  EXPECT_EQ(rest->total, money("-6.60"));
  EXPECT_EQ(rest->corrects, 1u);
  EXPECT_NE(refusal(book.void_invoice(1, "again", now)).find("given back already"),
            std::string::npos);
  EXPECT_EQ(book.credited(1), money("10"));
}

TEST(Documents, a_service_credit_is_the_part_that_was_not_delivered) {
  EXPECT_EQ(service_credit({{10'000}}, {7'500}, money("8")), money("2"));
  EXPECT_EQ(service_credit({{9'900}}, {9'900}, money("8")), money("0"));
  EXPECT_EQ(service_credit({{9'900}}, {10'000}, money("8")), money("0"));
  EXPECT_EQ(service_credit({{9'900}}, {0}, money("8")), money("8"));
}

TEST(Documents, text_is_as_people_read_it) {
  DocumentBook book;
  const auto issued = *book.issue(two_lines(), {{"VAT", 190'000}});
  EXPECT_EQ(to_plain_text(*issued),
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
  DocumentBook book;
  Document tricky = two_lines();
  tricky.lines[0].project = "a \"b\", c";
  const auto issued = *book.issue(tricky, {{"VAT", 190'000}});
  const std::string csv = to_csv(*issued);
  EXPECT_NE(csv.find("inv-1,1,usage,\"a \"\"b\"\", c\",production,llama,on_demand compute,CE-Hours,"
                     "100.123456789012,0.02,"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find("inv-1,3,tax,,,,VAT,,,,,,0.39,USD\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("inv-1,,total,,,,,,,,,,2.44,USD\n"), std::string::npos) << csv;
  const std::string json = to_json(*issued);
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
    DocumentBook book;
    const auto issued = *book.issue(draft, {{word() + "tax", 190'000}});
    EXPECT_EQ(to_csv(*issued), slow_csv(*issued)) << "seed " << seed;
  }
}

TEST(Documents, lines_of_any_currency_sum_to_their_total) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Currency currencies[] = {usd, Currency("JPY"), Currency("KWD")};
    const Currency currency = currencies[random.below(3)];
    std::vector<Money> exact;
    Money sum = Money::zero(currency);
    for (std::uint64_t i = 0; i < random.below(20); ++i) {
      exact.push_back(Money(random.between(-2'000'000'000'000, 9'000'000'000'000), currency));
      sum += exact.back();
    }
    const Settled settled = settle(exact, currency);
    Money payable = Money::zero(currency);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      payable += settled.payable[i];
      const Int128 off = exact[i].units() - settled.payable[i].units();
      EXPECT_TRUE(off < payable_unit(currency) && -off < payable_unit(currency)) << "seed " << seed;
    }
    EXPECT_EQ(payable, settled.total) << "seed " << seed;
    EXPECT_EQ(settled.total, sum.rounded(Rounding::half_even)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::billing

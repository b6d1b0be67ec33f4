// Who sells and who pays, on an invoice over HTTP: the seller as it was at issue, the buyer by
// tenant and time, and forgotten for good.
#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

class PartiesTest : public ApiTest {
 protected:
  std::string an_invoice() {
    const TaskId id = submit("acme");
    daemon.start(id);
    daemon.clock.advance(Duration::hours(1));
    daemon.end(id);
    const Caught issued = post("/v1/invoices", R"({"tenant":"acme"})");
    EXPECT_EQ(issued.status(), 201) << issued.response->body;
    return issued.as<InvoiceView>().id;
  }
  Caught put(const std::string& body, const As& who = root, const char* tenant = "acme") {
    return ask(http::Method::put, std::string("/v1/tenants/") + tenant + "/buyer", body, who);
  }
  InvoiceView invoice(const std::string& id) { return get("/v1/invoices/" + id).as<InvoiceView>(); }
};

TEST_F(PartiesTest, an_invoice_has_its_seller_and_what_is_due) {
  daemon.run(SetSeller{{"Loam Lab GmbH", "Beispielweg 1\nBerlin", "DE123", "net", 14}});
  const InvoiceView first = invoice(an_invoice());
  EXPECT_EQ(first.seller.name, "Loam Lab GmbH");
  EXPECT_EQ(first.seller.address, "Beispielweg 1\nBerlin");
  EXPECT_EQ(first.seller.tax_id, "DE123");
  EXPECT_EQ(first.terms, "net");
  EXPECT_EQ(first.due, "0");  // acme pays in advance
  EXPECT_FALSE(first.due_at);
  // Another seller is on later ones, not on this one.
  daemon.run(SetSeller{{"Loam Lab AG", "", "", "", 30}});
  const InvoiceView second = invoice(an_invoice());
  EXPECT_EQ(second.seller.name, "Loam Lab AG");
  EXPECT_EQ(invoice(first.id).seller.name, "Loam Lab GmbH");
}

TEST_F(PartiesTest, a_buyer_is_who_it_was_at_issue) {
  ASSERT_EQ(put(R"({"name":"ACME Ltd","address":"1 High Street","tax_id":"GB1"})").status(), 200);
  const std::string first = an_invoice();
  daemon.clock.advance(Duration::minutes(1));
  ASSERT_EQ(put(R"({"name":"ACME plc","address":"2 Broad Street"})").status(), 200);
  daemon.clock.advance(Duration::minutes(1));
  const std::string second = an_invoice();
  EXPECT_EQ(invoice(first).buyer.name, "ACME Ltd");
  EXPECT_EQ(invoice(first).buyer.tax_id, "GB1");
  EXPECT_EQ(invoice(second).buyer.name, "ACME plc");
  EXPECT_EQ(invoice(second).buyer.tax_id, "");
  const auto list = get("/v1/invoices?tenant=acme").as<InvoiceList>();
  ASSERT_EQ(list.invoices.size(), 2U);
  EXPECT_EQ(list.invoices[0].buyer.name, "ACME plc");
  EXPECT_EQ(list.invoices[1].buyer.name, "ACME Ltd");
  EXPECT_EQ(get("/v1/tenants/acme/buyer").as<PartyView>().name, "ACME plc");
  EXPECT_EQ(get("/v1/tenants/beta/buyer").as<PartyView>().name, "");
}

TEST_F(PartiesTest, a_buyer_that_is_forgotten_is_on_no_invoice_any_more) {
  put(R"({"name":"ACME Ltd","address":"1 High Street"})");
  const std::string id = an_invoice();
  ASSERT_EQ(put("{}").status(), 200);
  const Caught shown = get("/v1/invoices/" + id);
  EXPECT_EQ(shown.as<InvoiceView>().buyer.name, "");
  EXPECT_EQ(shown.response->body.find("High Street"), std::string::npos);
}

TEST_F(PartiesTest, who_a_tenant_is_only_those_say_who_may_change_it) {
  const char* body = R"({"name":"ACME Ltd"})";
  EXPECT_EQ(put(body, uid(1001)).status(), 403);  // a member of acme
  EXPECT_EQ(put(body, root, "nobody").status(), 404);
  EXPECT_EQ(get("/v1/tenants/acme/buyer", uid(1001)).status(), 200);
  EXPECT_EQ(get("/v1/tenants/acme/buyer", uid(1002)).status(), 404);  // of beta
  EXPECT_EQ(put("").status(), 400);
  EXPECT_EQ(put(R"({"nmae":"ACME Ltd"})").status(), 400);
  EXPECT_EQ(put("{\"name\":\"" + std::string(1001, 'x') + "\"}").status(), 400);
}

}  // namespace
}  // namespace loam::api::testing

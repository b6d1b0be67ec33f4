// The description is made from what it describes; these tests hold it against real answers.
#include <boost/json.hpp>
#include <set>

#include "api/fixture.hpp"
#include "api/routes.hpp"

namespace loam::api::testing {
namespace {

namespace bj = boost::json;

class OpenApiTest : public ApiTest {
 protected:
  bj::value document = bj::parse(openapi_document());

  const bj::object& schema_of(std::string_view reference) const {
    constexpr std::string_view prefix = "#/components/schemas/";
    EXPECT_TRUE(reference.starts_with(prefix));
    return document.at("components").at("schemas").at(reference.substr(prefix.size())).as_object();
  }

  // Whether `value` is what `schema` says, as far as this document's schemas go.
  void check(const bj::value& value, const bj::object& schema, const std::string& where) const {
    if (const auto* reference = schema.if_contains("$ref"))
      return check(value, schema_of(reference->as_string()), where);
    std::set<std::string> types;
    if (const auto* type = schema.if_contains("type")) {
      if (type->is_array()) {
        for (const bj::value& one : type->as_array()) types.insert(one.as_string().c_str());
      } else {
        types.insert(type->as_string().c_str());
      }
    }
    const char* kind = value.is_null()     ? "null"
                       : value.is_bool()   ? "boolean"
                       : value.is_int64()  ? "integer"
                       : value.is_double() ? "number"
                       : value.is_string() ? "string"
                       : value.is_array()  ? "array"
                                           : "object";
    // A whole number is a number too.
    if (types.count("number") > 0 && value.is_int64()) kind = "number";
    EXPECT_TRUE(types.count(kind) > 0) << where << " is " << kind;
    if (value.is_array()) {
      for (const bj::value& element : value.as_array())
        check(element, schema.at("items").as_object(), where + "[]");
    }
    if (!value.is_object() || !schema.contains("properties")) return;
    const bj::object& properties = schema.at("properties").as_object();
    for (const auto& entry : value.as_object()) {
      const auto* property = properties.if_contains(entry.key());
      ASSERT_NE(property, nullptr) << where << "." << entry.key() << " is not described";
      check(entry.value(), property->as_object(), where + "." + std::string(entry.key()));
    }
    // What requests and answers have in common (a rate card's terms) has defaults and requires
    // nothing.
    const auto* required = schema.if_contains("required");
    if (required == nullptr) return;
    for (const bj::value& name : required->as_array())
      EXPECT_TRUE(value.as_object().contains(name.as_string())) << where << " lacks " << name;
  }

  void check_answer(const Caught& answer, http::Method method, const std::string& pattern) const {
    std::string verb;
    for (const char* c = http::name_of(method); *c != '\0'; ++c)
      verb += static_cast<char>(std::tolower(*c));
    const bj::value& operation = document.at("paths").at(pattern).at(verb);
    const bj::object& responses = operation.at("responses").as_object();
    const auto* described = responses.if_contains(std::to_string(answer.status()));
    ASSERT_NE(described, nullptr) << pattern << " gave " << answer.response->body;
    const bj::object& content = described->at("content").as_object();
    check(bj::parse(answer.response->body), content.at("application/json").at("schema").as_object(),
          pattern);
  }
};

TEST_F(OpenApiTest, every_route_is_described_and_every_reference_resolves) {
  EXPECT_EQ(document.at("openapi").as_string(), "3.1.0");
  std::set<std::string> ids;
  std::size_t operations = 0;
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      ++operations;
      EXPECT_TRUE(ids.insert(operation.value().at("operationId").as_string().c_str()).second);
    }
  }
  EXPECT_EQ(operations, routes().size());
  const std::string text = openapi_document();
  constexpr std::string_view mark = "\"$ref\":\"";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    schema_of(std::string_view(text).substr(begin, text.find('"', begin) - begin));
  }
}

TEST_F(OpenApiTest, it_is_served_to_anybody) {
  const Caught answer = get("/v1/openapi.json", tcp());
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.response->body, openapi_document());
}

TEST_F(OpenApiTest, real_answers_are_as_described) {
  const TaskId id = submit();
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(1));
  daemon.end(id);
  submit();
  const auto get_method = http::Method::get;
  const auto post_method = http::Method::post;
  check_answer(post("/v1/quote", task_body()), post_method, "/v1/quote");
  check_answer(post("/v1/tasks", task_body()), post_method, "/v1/tasks");
  check_answer(get("/v1/tasks"), get_method, "/v1/tasks");
  check_answer(get("/v1/tasks/t1"), get_method, "/v1/tasks/{id}");
  check_answer(get("/v1/tasks/t1/logs"), get_method, "/v1/tasks/{id}/logs");
  check_answer(post("/v1/tasks/t2/stop"), post_method, "/v1/tasks/{id}/stop");
  check_answer(get("/v1/devices"), get_method, "/v1/devices");
  check_answer(post("/v1/devices/d1/drain"), post_method, "/v1/devices/{device}/drain");
  check_answer(get("/v1/top"), get_method, "/v1/top");
  check_answer(get("/v1/health"), get_method, "/v1/health");
  check_answer(get("/v1/whoami"), get_method, "/v1/whoami");
  check_answer(get("/v1/tenants"), get_method, "/v1/tenants");
  check_answer(post("/v1/tenants", R"({"name":"x"})"), post_method, "/v1/tenants");
  check_answer(get("/v1/rates"), get_method, "/v1/rates");
  check_answer(get("/v1/bill?tenant=acme"), get_method, "/v1/bill");
  check_answer(post("/v1/invoices", R"({"tenant":"acme"})"), post_method, "/v1/invoices");
  check_answer(get("/v1/invoices"), get_method, "/v1/invoices");
  check_answer(get("/v1/invoices/inv-1"), get_method, "/v1/invoices/{id}");
  check_answer(post("/v1/budgets", R"({"name":"b","tenant":"acme","monthly":"100"})"), post_method,
               "/v1/budgets");
  check_answer(get("/v1/budgets"), get_method, "/v1/budgets");
  check_answer(get("/v1/budgets/b"), get_method, "/v1/budgets/{name}");
  check_answer(get("/v1/ledger?tenant=acme"), get_method, "/v1/ledger");
  check_answer(post("/v1/tokens", R"({"name":"a","role":"admin"})"), post_method, "/v1/tokens");
  check_answer(get("/v1/tokens"), get_method, "/v1/tokens");
  check_answer(post("/v1/backup", R"({"path":"/b"})"), post_method, "/v1/backup");
  check_answer(post("/v1/reload"), post_method, "/v1/reload");
}

TEST_F(OpenApiTest, requests_are_described_with_their_defaults) {
  const bj::value& task = document.at("components").at("schemas").at("TaskRequest");
  EXPECT_EQ(task.at("additionalProperties"), bj::value(false));
  EXPECT_EQ(task.at("properties").at("tariff").at("default").as_string(), "flat");
  // It follows from whether a reservation is named.
  EXPECT_TRUE(task.at("properties").at("purchase_model").at("default").is_null());
  EXPECT_EQ(task.at("properties").at("gang").at("default"), bj::value(1));
  EXPECT_EQ(task.at("properties").at("mounts").at("items").at("$ref").as_string(),
            "#/components/schemas/MountRequest");
}

}  // namespace
}  // namespace loam::api::testing

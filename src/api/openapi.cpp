// The OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.0), made from the described types
// and the route table: there is no second place that could say something else.
#include <boost/json.hpp>
#include <set>

#include "api/routes.hpp"
#include "domain/json_codec.hpp"

namespace loam::api {
namespace {

namespace bj = boost::json;

bj::object reference(const std::string& name) {
  return {{"$ref", "#/components/schemas/" + name}};
}

// The schema of a member's type. Shapes of their own are referred to by name.
struct Schemas {
  bj::object all;

  template <class T>
  bj::object of() {
    if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      return {{"type", "integer"}, {"format", "int64"}};
    } else if constexpr (std::is_same_v<T, double>) {
      return {{"type", "number"}};
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Money>) {
      return {{"type", "string"}};
    } else if constexpr (std::is_same_v<T, Duration>) {
      return {{"type", "integer"}, {"format", "int64"}, {"description", "milliseconds"}};
    } else if constexpr (std::is_enum_v<T>) {
      bj::array names;
      boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
          [&](auto member) { names.push_back(bj::string_view(member.name)); });
      return {{"type", "string"}, {"enum", std::move(names)}};
    } else {
      return of_compound(static_cast<const T*>(nullptr));
    }
  }

  template <class T>
  bj::object of_compound(const std::optional<T>*) {
    bj::object schema = of<T>();
    schema["type"] = bj::array{schema.at("type"), "null"};
    if (bj::value* names = schema.if_contains("enum")) names->as_array().push_back(nullptr);
    return schema;
  }
  template <class Unit>
  bj::object of_compound(const Quantity<Unit>*) {
    return {{"type", "integer"}, {"format", "int64"}};
  }
  template <class T>
  bj::object of_compound(const std::vector<T>*) {
    return {{"type", "array"}, {"items", of<T>()}};
  }
  template <class T>
  bj::object of_compound(const std::map<std::string, T>*) {
    return {{"type", "object"}, {"additionalProperties", of<T>()}};
  }
  bj::object of_compound(const MountRequest*) {
    add<MountRequest>("MountRequest", false);
    return reference("MountRequest");
  }
// What a rate card says, the same in requests and answers: left out it has its default.
#define LOAM_CARD_SCHEMA(Type)          \
  bj::object of_compound(const Type*) { \
    add<Type>(#Type, false);            \
    return reference(#Type);            \
  }
  LOAM_CARD_SCHEMA(PriceTerms)
  LOAM_CARD_SCHEMA(Window)
  LOAM_CARD_SCHEMA(Tier)
  LOAM_CARD_SCHEMA(Price)
  LOAM_CARD_SCHEMA(Discount)
  LOAM_CARD_SCHEMA(Tax)
  LOAM_CARD_SCHEMA(SpotTerms)
  LOAM_CARD_SCHEMA(LostWork)
  LOAM_CARD_SCHEMA(ServiceRates)
  LOAM_CARD_SCHEMA(TokenPrice)
  LOAM_CARD_SCHEMA(TokenUseEntry)
#undef LOAM_CARD_SCHEMA
#define LOAM_API_SCHEMA(Type)           \
  bj::object of_compound(const Type*) { \
    add<Type>(#Type, true);             \
    return reference(#Type);            \
  }
  LOAM_API_VIEWS(LOAM_API_SCHEMA)
  LOAM_API_SCHEMA(LeaseView)
  LOAM_API_SCHEMA(LeaseSliceView)
  LOAM_API_SCHEMA(CapacityPieceView)
  LOAM_API_SCHEMA(BillLine)
  LOAM_API_SCHEMA(BilledInvoice)
  LOAM_API_SCHEMA(SpotPriceView)
  LOAM_API_SCHEMA(InvoiceLineView)
  LOAM_API_SCHEMA(TaxLineView)
  LOAM_API_SCHEMA(BudgetNoticeView)
  LOAM_API_SCHEMA(AdjustmentView)
  LOAM_API_SCHEMA(CommitmentFeeView)
  LOAM_API_SCHEMA(LedgerEntry)
  LOAM_API_SCHEMA(PostingView)
#undef LOAM_API_SCHEMA

  template <class T>
  void add(const char* name, bool answered) {
    if (all.contains(name)) return;
    all[name] = nullptr;  // its place, should it nest
    bj::object properties;
    bj::array required;
    const bj::value defaults = json::write(T{});
    boost::mp11::mp_for_each<json::MembersOf<T>>([&](auto member) {
      using Member = std::decay_t<decltype(std::declval<T>().*member.pointer)>;
      bj::object schema = of<Member>();
      // What a request leaves out gets its default; an answer leaves nothing out.
      if (answered) {
        required.push_back(bj::string_view(member.name));
      } else if (!schema.contains("$ref")) {
        schema["default"] = defaults.at(member.name);
      }
      properties[member.name] = std::move(schema);
    });
    bj::object schema{{"type", "object"}, {"properties", std::move(properties)}};
    if (answered) {
      schema["required"] = std::move(required);
    } else {
      schema["additionalProperties"] = false;
    }
    all[name] = std::move(schema);
  }
};

bj::object all_schemas() {
  Schemas schemas;
#define LOAM_API_SCHEMA(Type) schemas.add<Type>(#Type, false);
  LOAM_API_REQUESTS(LOAM_API_SCHEMA)
#undef LOAM_API_SCHEMA
#define LOAM_API_SCHEMA(Type) schemas.add<Type>(#Type, true);
  LOAM_API_VIEWS(LOAM_API_SCHEMA)
#undef LOAM_API_SCHEMA
  return std::move(schemas.all);
}

bj::object content(const std::string& media, bj::object schema) {
  return {{media, bj::object{{"schema", std::move(schema)}}}};
}

bj::array parameters_of(const Route& route) {
  bj::array parameters;
  std::string_view pattern = route.pattern;
  while (true) {
    const std::size_t open = pattern.find('{');
    if (open == std::string_view::npos) break;
    const std::size_t close = pattern.find('}', open);
    parameters.push_back(bj::object{{"name", pattern.substr(open + 1, close - open - 1)},
                                    {"in", "path"},
                                    {"required", true},
                                    {"schema", bj::object{{"type", "string"}}}});
    pattern.remove_prefix(close);
  }
  for (const QueryParameter& query : route.query) {
    parameters.push_back(bj::object{{"name", query.name},
                                    {"in", "query"},
                                    {"description", query.summary},
                                    {"schema", bj::object{{"type", query.type}}}});
  }
  if (route.keyed) {
    parameters.push_back(
        bj::object{{"name", "Idempotency-Key"},
                   {"in", "header"},
                   {"description", "The same key again gives the first answer, for a day."},
                   {"schema", bj::object{{"type", "string"}, {"maxLength", 255}}}});
  }
  return parameters;
}

bj::object operation_of(const Route& route) {
  bj::object answer{{"description", "It worked."}};
  const std::string response = route.response;
  bj::object shapes;
  if (response.find('/') != std::string::npos) {
    shapes = content(response, {});
  } else if (!response.empty()) {
    shapes = content("application/json", reference(response));
  }
  if (*route.events != '\0') {
    shapes["text/event-stream"] =
        bj::object{{"schema", bj::object{{"type", "string"},
                                         {"description", "Server-sent events of the types: " +
                                                             std::string(route.events)}}}};
  }
  answer["content"] = std::move(shapes);
  bj::object operation{
      {"operationId", route.id},
      {"summary", route.summary},
      {"responses",
       bj::object{{std::to_string(route.status), std::move(answer)},
                  {"default", bj::object{{"description", "A problem (RFC 9457)."},
                                         {"content", content("application/problem+json",
                                                             reference("Problem"))}}}}}};
  if (bj::array parameters = parameters_of(route); !parameters.empty())
    operation["parameters"] = std::move(parameters);
  if (*route.request != '\0') {
    operation["requestBody"] = bj::object{
        {"required", true}, {"content", content("application/json", reference(route.request))}};
  }
  if (route.open) operation["security"] = bj::array{};
  return operation;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return text;
}

}  // namespace

std::string openapi_document() {
  bj::object paths;
  for (const Route& route : routes()) {
    bj::object& path = paths.emplace(route.pattern, bj::object{}).first->value().as_object();
    path[lower(http::name_of(route.method))] = operation_of(route);
  }
  const bj::object document{
      {"openapi", "3.1.0"},
      {"info",
       bj::object{{"title", "loam"},
                  {"version", "1"},
                  {"description",
                   "Accelerators as a metered service. Over the Unix socket the kernel says who "
                   "calls; over TCP a bearer token does. Money is exact decimal text; every error "
                   "is a problem document with a stable code and a next step."},
                  {"license", bj::object{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"security", bj::array{bj::object{{"token", bj::array{}}}, bj::object{}}},
      {"paths", std::move(paths)},
      {"components",
       bj::object{{"schemas", all_schemas()},
                  {"securitySchemes",
                   bj::object{{"token", bj::object{{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return bj::serialize(document);
}

}  // namespace loam::api

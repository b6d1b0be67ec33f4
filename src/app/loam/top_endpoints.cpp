#include "app/loam/top_endpoints.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "app/loam/gateway_client.hpp"
#include "app/loam/human.hpp"
#include "app/loam/table.hpp"

namespace loam::cli {

namespace json = boost::json;

namespace {

Error no_endpoints() {
  return Error{ErrorKind::corrupt, "the gateway's answer has no endpoints", {}};
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

std::optional<double> number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

std::int64_t count_in(const json::object& object, std::string_view name) {
  return static_cast<std::int64_t>(number_of(object, name).value_or(0));
}

// "0.4ms", "12ms", "3.1s".
std::string time_text(const std::optional<double>& milliseconds) {
  if (!milliseconds) return "-";
  char text[32];
  if (*milliseconds >= 1000) {
    std::snprintf(text, sizeof text, "%.1fs", *milliseconds / 1000);
  } else {
    std::snprintf(text, sizeof text, *milliseconds < 10 ? "%.1fms" : "%.0fms", *milliseconds);
  }
  return text;
}

std::string part_text(const std::optional<double>& part) {
  return part ? percent(*part) : "-";
}

Style style_of(const std::string& state) {
  if (state == "serving") return Style::good;
  return state == "failing" ? Style::bad : state == "cold" ? Style::dim : Style::warn;
}

}  // namespace

Result<std::vector<EndpointLine>> parse_endpoints(std::string_view body) {
  boost::system::error_code fault;
  const json::value answer = json::parse(body, fault);
  const json::value* list =
      !fault && answer.is_object() ? answer.get_object().if_contains("endpoints") : nullptr;
  if (list == nullptr || !list->is_array()) return no_endpoints();
  constexpr std::int64_t bytes_per_mib = 1 << 20;
  std::vector<EndpointLine> lines;
  for (const json::value& entry : list->get_array()) {
    if (!entry.is_object()) return no_endpoints();
    const json::object& one = entry.get_object();
    EndpointLine line;
    line.model = text_of(one, "model");
    line.state = text_of(one, "state");
    line.instances = count_in(one, "instances");
    line.batch = count_in(one, "batch");
    line.queue = count_in(one, "queue");
    line.tokens_per_second = number_of(one, "tokens_per_second").value_or(0);
    line.first_token_p50 = number_of(one, "first_token_p50_ms");
    line.first_token_p99 = number_of(one, "first_token_p99_ms");
    line.gap_p50 = number_of(one, "gap_p50_ms");
    line.gap_p99 = number_of(one, "gap_p99_ms");
    line.cached = number_of(one, "cached");
    line.kv_used = number_of(one, "kv_used");
    // What its instances were given; of one that somebody else runs, what it says it holds.
    line.memory_mib = count_in(one, "memory_mib") * line.instances;
    if (line.memory_mib == 0)
      line.memory_mib =
          (count_in(one, "weights_bytes") + count_in(one, "kv_bytes")) / bytes_per_mib;
    line.why = text_of(one, "why");
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string endpoints_text(const std::vector<EndpointLine>& endpoints, bool colour,
                           std::size_t width) {
  Table table({{"ENDPOINT"},
               {"STATE"},
               {"INSTANCES", Align::right, false, 2},
               {"BATCH", Align::right},
               {"QUEUE", Align::right},
               {"TOKENS/S", Align::right},
               {"FIRST p50", Align::right},
               {"p99", Align::right},
               {"GAP p50", Align::right},
               {"p99", Align::right},
               {"CACHED", Align::right, false, 4},
               {"KV", Align::right, false, 3},
               {"MEMORY", Align::right, false, 1},
               {"", Align::left, true, 5}});
  for (const EndpointLine& one : endpoints) {
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.1f", one.tokens_per_second);
    table.add({one.model, Cell(one.state, style_of(one.state)), std::to_string(one.instances),
               std::to_string(one.batch), std::to_string(one.queue), rate,
               time_text(one.first_token_p50), time_text(one.first_token_p99),
               time_text(one.gap_p50), time_text(one.gap_p99), part_text(one.cached),
               part_text(one.kv_used), memory_text(one.memory_mib), one.why});
  }
  return table.empty() ? "" : table.text(colour, width);
}

std::string TopEndpoints::text(bool colour, std::size_t width) const {
  if (!trouble.empty()) return "\nendpoints: " + printable(trouble) + "\n";
  const std::string table = endpoints_text(endpoints, colour, width);
  return table.empty() ? "" : "\n" + table;
}

TopEndpoints top_endpoints(Session& session) {
  constexpr Duration patience = Duration::seconds(2);
  TopEndpoints out;
  http::ClientOptions options;
  options.connect_timeout = options.answer_timeout = patience;
  const auto told = [&]() -> Result<std::string> {
    LOAM_TRY(gateway, connect_gateway(gateway_address(session, ""), session.variable("LOAM_TOKEN"),
                                      options));
    LOAM_TRY(answer, gateway.call(gateway.request(http::Method::get, "/endpoints")));
    return json::serialize(answer);
  }();
  if (!told.ok()) {
    if (!session.variable("LOAM_GATEWAY").empty()) out.trouble = told.error().message;
    return out;
  }
  auto lines = parse_endpoints(*told);
  if (!lines.ok()) {
    out.trouble = lines.error().message;
    return out;
  }
  out.endpoints = std::move(*lines);
  out.json = json::serialize(json::parse(*told).at("endpoints"));
  return out;
}

}  // namespace loam::cli

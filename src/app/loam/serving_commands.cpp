// chat; endpoint list, show, create, remove: what speaks to loam-gateway.
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>

#include "app/loam/chat.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/gateway_client.hpp"
#include "app/loam/request.hpp"
#include "app/loam/session.hpp"
#include "base/quantity.hpp"
#include "http/client.hpp"

namespace loam::cli {
namespace {

namespace json = boost::json;
using Kind = Option::Kind;

Result<Gateway> connect(Session& session, const Arguments& arguments) {
  return connect_gateway(gateway_address(session, arguments.text("gateway")),
                         arguments.text("token", session.variable("LOAM_TOKEN")));
}

Result<std::int64_t> parse_count(const std::string& text) {
  constexpr std::int64_t count_max = 1'000'000'000;
  return parse_decimal(text, 0, count_max, "a whole number");
}

// --- chat
// ------------------------------------------------------------------------------------------

// Asks with `turns` and prints the answer as it comes; the whole text is the result.
Result<std::string> answer(Session& session, Gateway& gateway, const ChatOptions& options,
                           const std::vector<ChatTurn>& turns) {
  std::string text;
  std::optional<ChatPiece::Usage> usage;
  std::optional<Error> fault;
  const http::Request request =
      gateway.request(http::Method::post, "/v1/chat/completions", chat_body(options, turns));
  LOAM_TRY(end, gateway.client.stream(request, [&](const http::SseEvent& event) {
    auto piece = read_chat_piece(event.data);
    if (!piece.ok()) fault = piece.error();
    if (!piece.ok() || piece->is_done) return false;
    if (piece->usage) usage = piece->usage;
    text += piece->text;
    if (!session.json()) session.out() << piece->text << std::flush;
    return true;
  }));
  if (end.how == http::StreamEnd::How::refused)
    return chat_error(end.response.status, end.response.body);
  if (!session.json()) session.out() << "\n";
  if (fault) return *fault;
  if (session.json()) {
    json::object shown{{"model", options.model}, {"content", text}};
    if (usage) {
      shown["prompt_tokens"] = usage->prompt;
      shown["cached_tokens"] = usage->cached;
      shown["generated_tokens"] = usage->generated;
    }
    session.out() << json::serialize(shown) << "\n";
  } else if (usage) {
    session.say(std::to_string(usage->prompt) + " prompt tokens (" + std::to_string(usage->cached) +
                " cached), " + std::to_string(usage->generated) + " generated");
  }
  return text;
}

Result<int> run_chat(Session& session, const Arguments& arguments) {
  ChatOptions options;
  options.model = arguments.operand(0);
  if (arguments.has("max-tokens")) {
    LOAM_TRY(count, parse_count(arguments.text("max-tokens")));
    options.tokens_max = static_cast<std::uint32_t>(count);
  }
  options.temperature = arguments.text("temperature");
  if (!options.temperature.empty()) {
    boost::system::error_code fault;
    if (!json::parse(options.temperature, fault).is_number() || fault)
      return invalid("--temperature is " + options.temperature, "give a number such as 0.7");
  }
  std::vector<ChatTurn> turns;
  if (arguments.has("system")) turns.push_back({"system", arguments.text("system")});
  LOAM_TRY(gateway, connect(session, arguments));
  std::string words;
  for (std::size_t i = 1; i < arguments.operands.size(); ++i)
    words += (i > 1 ? " " : "") + arguments.operands[i];
  if (!words.empty()) {
    turns.push_back({"user", words});
    LOAM_CHECK(answer(session, gateway, options, turns));
    return exit_ok;
  }
  if (session.console().out_is_terminal) session.say("an empty line or Ctrl-D ends");
  for (std::string line;;) {
    if (session.console().out_is_terminal) session.out() << "> " << std::flush;
    if (!std::getline(std::cin, line) || line.empty()) return exit_ok;
    turns.push_back({"user", line});
    LOAM_TRY(text, answer(session, gateway, options, turns));
    turns.push_back({"assistant", std::move(text)});
  }
}

// --- endpoints
// ---------------------------------------------------------------------------------------

std::string cell(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

// The endpoints, or the one of that name.
Result<json::array> endpoints_of(Session& session, const Arguments& arguments,
                                 const std::string& only) {
  LOAM_TRY(gateway, connect(session, arguments));
  LOAM_TRY(answer, gateway.call(gateway.request(http::Method::get, "/endpoints")));
  json::value* list = answer.is_object() ? answer.get_object().if_contains("endpoints") : nullptr;
  if (list == nullptr || !list->is_array())
    return Error{ErrorKind::corrupt, "the gateway's answer has no endpoints", {}};
  json::array found;
  for (json::value& entry : list->get_array()) {
    if (entry.is_object() && (only.empty() || cell(entry.get_object(), "model") == only))
      found.push_back(std::move(entry));
  }
  if (found.empty() && !only.empty()) {
    return Error{ErrorKind::not_found, "there is no endpoint " + only,
                 "see them with: loam endpoint list"};
  }
  return found;
}

Result<int> run_endpoint_show(Session& session, const Arguments& arguments) {
  LOAM_TRY(found, endpoints_of(session, arguments, arguments.operand(0)));
  if (session.json()) {
    session.out() << json::serialize(found.front()) << "\n";
    return exit_ok;
  }
  for (const auto& [name, value] : found.front().get_object())
    session.out() << std::string(name) << "  " << cell(found.front().get_object(), name) << "\n";
  return exit_ok;
}

Result<int> run_endpoint_list(Session& session, const Arguments& arguments) {
  LOAM_TRY(endpoints, endpoints_of(session, arguments, ""));
  if (session.json()) {
    session.out() << json::serialize(json::object{{"endpoints", std::move(endpoints)}}) << "\n";
    return exit_ok;
  }
  Table table({{"MODEL"},
               {"STATE"},
               {"INSTANCES", Align::right},
               {"QUEUED", Align::right},
               {"RUNNING", Align::right},
               {"WAITING", Align::right},
               {"REQUESTS", Align::right},
               {"WHY"}});
  for (const json::value& entry : endpoints) {
    const json::object& one = entry.get_object();
    table.add({cell(one, "model"), cell(one, "state"), cell(one, "instances"), cell(one, "queued"),
               cell(one, "in_flight"), cell(one, "waiting"), cell(one, "requests"),
               cell(one, "why")});
  }
  session.out() << session.text_of(table);
  return exit_ok;
}

Result<int> run_endpoint_create(Session& session, const Arguments& arguments) {
  json::object body{{"model", arguments.operand(0)}, {"file", arguments.text("model")}};
  if (arguments.has("owner")) body["owner"] = arguments.text("owner");
  for (const char* name : {"min", "max", "slots"}) {
    if (!arguments.has(name)) continue;
    LOAM_TRY(count, parse_count(arguments.text(name)));
    body[name] = count;
  }
  for (const auto& [option, field] : {std::pair{"idle-after", "idle_after"}, {"time", "time"}}) {
    if (!arguments.has(option)) continue;
    LOAM_TRY(length, parse_duration(arguments.text(option)));
    body[field] = to_text(length);
  }
  if (arguments.has("memory")) {
    LOAM_TRY(memory, parse_memory(arguments.text("memory")));
    body["memory_mib"] = memory.value;
  }
  for (const auto& [option, field] : {std::pair{"ce", "ce"},
                                      {"share", "share"},
                                      {"project", "project"},
                                      {"environment", "environment"},
                                      {"purchase", "purchase_model"},
                                      {"tariff", "tariff"},
                                      {"class", "service_class"}}) {
    if (arguments.has(option)) body[field] = arguments.text(option);
  }
  std::map<std::string, std::string> tags;
  LOAM_CHECK(take_tags(arguments, tags));
  if (!tags.empty()) {
    json::object& texts = body["tags"].emplace_object();
    for (const auto& [key, value] : tags) texts[key] = value;
  }
  json::array callers;
  for (const std::string& caller : arguments.list("caller")) callers.emplace_back(caller);
  if (!callers.empty()) body["callers"] = std::move(callers);
  json::object tiers;
  for (const std::string& tier : arguments.list("tier")) {
    const std::size_t equals = tier.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == tier.size())
      return invalid("--tier is " + tier, "give flex=FILE.gguf or priority=FILE.gguf");
    tiers[tier.substr(0, equals)] = tier.substr(equals + 1);
  }
  if (!tiers.empty()) body["tiers"] = std::move(tiers);
  if (!arguments.has("model")) return invalid("no model file", "add --model FILE.gguf");
  LOAM_TRY(gateway, connect(session, arguments));
  LOAM_TRY(made,
           gateway.call(gateway.request(http::Method::post, "/endpoints", json::serialize(body))));
  if (session.json()) session.out() << json::serialize(made) << "\n";
  session.say(arguments.operand(0) + " is offered; try it with: loam chat " + arguments.operand(0));
  return exit_ok;
}

Result<int> run_endpoint_remove(Session& session, const Arguments& arguments) {
  LOAM_TRY(gateway, connect(session, arguments));
  LOAM_CHECK(
      gateway.call(gateway.request(http::Method::del, "/endpoints/" + arguments.operand(0))));
  session.say(arguments.operand(0) + " is no longer offered; its instances end");
  return exit_ok;
}

OptionGroup where() {
  return {"Which gateway",
          {{"--gateway", "ADDRESS",
            "where loam-gateway listens: a socket's path or host:port; else LOAM_GATEWAY"}}};
}

}  // namespace

std::vector<Command> serving_commands() {
  return {
      {"chat",
       "Talk to a model that the gateway serves",
       "Without words it reads lines from standard input, one message each, and keeps the "
       "conversation.",
       "loam chat tiny what is a lease\nloam chat tiny --system \"answer in one word\"",
       {{"MODEL", "as /v1/models lists it"}, {"WORDS", "one message", Operand::Kind::any}},
       {{"How",
         {{"--system", "TEXT", "the system message"},
          {"--max-tokens", "N", "of an answer"},
          {"--temperature", "X", "0 takes the likeliest token"}}},
        where()},
       run_chat},
      {"endpoint list",
       "The models that the gateway serves and how they stand",
       "",
       "loam endpoint list",
       {},
       {where()},
       run_endpoint_list},
      {"endpoint create",
       "Offer a model file; instances start and end with the load",
       "",
       "loam endpoint create tiny --model /models/tiny.gguf --min 0 --max 4",
       {{"NAME", "what clients call the model"}},
       {{"What",
         {{"--model", "FILE", "the GGUF file", Kind::value, "@path"},
          {"--tier", "TIER=FILE",
           "another file for requests of that tier (flex, priority), charged as NAME@TIER",
           Kind::list},
          {"--owner", "TENANT", "who pays for the instances", Kind::value, "@tenant"},
          {"--caller", "TENANT", "who may use it beside the owner; default: all", Kind::list,
           "@tenant"}}},
        {"How much",
         {{"--min", "N", "instances kept without load (default 0)"},
          {"--max", "N", "instances at most (default 1)"},
          {"--slots", "N", "requests that one computes at once (default 8)"},
          {"--idle-after", "TIME", "without a request, down to the minimum (default 5m)"}}},
        {"What an instance takes of the pool",
         {{"--share", "PART", "a part of one device"},
          {"--ce", "CE", "compute, instead of a share"},
          {"--memory", "SIZE", "of the device (default: the file's size and a quarter)"},
          {"--time", "TIME", "longest run of one instance (default 8h); another takes over"},
          {"--purchase", "MODEL", "on_demand (default), commitment, spot, hybrid"},
          {"--tariff", "TARIFF", "flat (default) or time_of_day"},
          {"--class", "NAME", "the service class of its tasks (default standard)"},
          {"--project", "NAME", "that its cost is attributed to"},
          {"--environment", "NAME", "likewise"},
          {"--tag", "KEY=VALUE", "a tag on the bill; may be given again", Kind::list}}},
        where()},
       run_endpoint_create},
      {"endpoint show",
       "One model that the gateway serves",
       "",
       "loam endpoint show tiny",
       {{"NAME", "as the list shows it", Operand::Kind::one, "@endpoint"}},
       {where()},
       run_endpoint_show},
      {"endpoint remove",
       "Offer a model no longer",
       "",
       "loam endpoint remove tiny",
       {{"NAME", "as the list shows it", Operand::Kind::one, "@endpoint"}},
       {where()},
       run_endpoint_remove},
  };
}

}  // namespace loam::cli

#include "gateway/request.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <charconv>
#include <limits>

#include "billing/attribution.hpp"
#include "gateway/fields.hpp"
#include "infer/json_grammar.hpp"

namespace loam::gateway {

namespace json = boost::json;
using infer::Grammar;
using infer::Prompt;
using infer::Token;

namespace {

constexpr std::int64_t tokens_asked_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t token_max = std::numeric_limits<Token>::max();

std::string_view text_of(const json::value& value) {
  return value.get_string();
}

// --- chat messages ---------------------------------------------------------------------------

// A content that is a list of parts, of which text is the only kind.
std::string read_parts(const json::array& parts, const std::string& path, Fault& fault) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    if (!parts[i].is_object()) {
      set_fault(fault, bad_request(at + " is " + std::string(type_name(parts[i])) +
                                       "; give an object with type and text.",
                                   at, "invalid_type"));
      return text;
    }
    Fields fields(parts[i].get_object(), at + ".", fault);
    std::string type;
    std::string piece;
    fields.read("type", type);
    if (type != "text" && !fault) {
      fields.fail("type", at + ".type is \"" + type + "\"; only text is understood here.",
                  "unsupported_value");
    }
    if (fields.take("text") == nullptr)
      fields.fail("text", at + ".text is missing.", "missing_required_parameter");
    fields.read("text", piece);
    fields.refuse_the_rest();
    text += piece;
  }
  return text;
}

infer::ChatMessage read_message(const json::object& object, const std::string& at, Fault& fault) {
  infer::ChatMessage message;
  Fields fields(object, at + ".", fault);
  fields.read("role", message.role);
  const std::string& role = message.role;
  if (role.empty() && !fault)
    fields.fail("role", at + ".role is missing.", "missing_required_parameter");
  const bool assistant = role == "assistant";
  if (role == "developer") {
    message.role = "system";  // the newer name of the same thing
  } else if (role != "system" && role != "user" && !assistant && !fault) {
    fields.fail(
        "role",
        at + ".role is \"" + role.substr(0, 40) + "\"; give system, developer, user or assistant.",
        role == "tool" || role == "function" ? "unsupported_value" : "invalid_value");
  }
  if (const json::value* content = fields.take("content")) {
    if (content->is_string()) {
      message.content = std::string(text_of(*content));
    } else if (content->is_array()) {
      message.content = read_parts(content->get_array(), at + ".content", fault);
    } else {
      fields.wrong_type("content", "a string or a list of text parts", *content);
    }
  } else {
    fields.fail("content", at + ".content is missing.", "missing_required_parameter");
  }
  fields.unsupported("name");
  if (assistant) {  // what an answer of this API has, so that it can be sent back as it came
    for (const char* name : {"refusal", "tool_calls", "function_call", "audio", "annotations"})
      fields.unsupported(name);
  }
  fields.refuse_the_rest();
  return message;
}

Prompt read_messages(Fields& fields, Fault& fault) {
  Prompt prompt;
  prompt.kind = Prompt::Kind::messages;
  const json::array* messages = fields.array("messages");
  if (messages == nullptr) {
    fields.fail("messages", "messages is missing.", "missing_required_parameter");
    return prompt;
  }
  if (messages->empty())
    fields.fail("messages", "messages is empty; send at least one message.", "empty_array");
  for (std::size_t i = 0; i < messages->size() && !fault; ++i) {
    const std::string at = "messages[" + std::to_string(i) + "]";
    const json::value& message = (*messages)[i];
    if (!message.is_object()) {
      set_fault(fault, bad_request(at + " is " + std::string(type_name(message)) +
                                       "; give an object with role and content.",
                                   at, "invalid_type"));
      break;
    }
    prompt.messages.push_back(read_message(message.get_object(), at, fault));
  }
  return prompt;
}

// --- prompts of completions and embeddings ---------------------------------------------------

Prompt text_prompt(const json::value& text, const std::string& at, Fault& fault) {
  Prompt prompt;
  prompt.text = std::string(text_of(text));
  if (prompt.text.empty())
    set_fault(fault, bad_request(at + " is an empty string; send some text.", at, "empty_string"));
  return prompt;
}

Prompt token_prompt(const json::array& tokens, const std::string& at, Fault& fault) {
  Prompt prompt;
  prompt.kind = Prompt::Kind::tokens;
  prompt.tokens.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    // There may be millions: the place is put into words only for a fault.
    const std::int64_t* plain = tokens[i].if_int64();
    if (plain != nullptr && *plain >= 0 && *plain <= token_max) {
      prompt.tokens.push_back(static_cast<Token>(*plain));
      continue;
    }
    const auto token =
        read_whole(tokens[i], at + "[" + std::to_string(i) + "]", 0, token_max, fault);
    if (!token) break;
    prompt.tokens.push_back(static_cast<Token>(*token));
  }
  if (tokens.empty())
    set_fault(fault, bad_request(at + " is an empty list of tokens.", at, "empty_array"));
  return prompt;
}

// A string, a list of tokens, or a list of either.
std::vector<Prompt> read_prompts(Fields& fields, std::string_view name, Fault& fault) {
  const std::string at(name);
  const json::value* value = fields.take(name);
  if (value == nullptr) {
    fields.fail(name, at + " is missing.", "missing_required_parameter");
    return {};
  }
  if (value->is_string()) return {text_prompt(*value, at, fault)};
  if (!value->is_array()) {
    fields.wrong_type(name, "a string, a list of tokens or a list of these", *value);
    return {};
  }
  const json::array& list = value->get_array();
  if (list.empty()) {
    fields.fail(name, at + " is an empty list.", "empty_array");
    return {};
  }
  if (list[0].is_number()) return {token_prompt(list, at, fault)};
  if (list.size() > prompts_max) {
    fields.fail(name,
                at + " has " + std::to_string(list.size()) + " entries; at most " +
                    std::to_string(prompts_max) + " are possible in one request.",
                "array_above_max_length");
    return {};
  }
  std::vector<Prompt> prompts;
  for (std::size_t i = 0; i < list.size() && !fault; ++i) {
    const std::string entry = at + "[" + std::to_string(i) + "]";
    if (list[i].is_string()) {
      prompts.push_back(text_prompt(list[i], entry, fault));
    } else if (list[i].is_array()) {
      prompts.push_back(token_prompt(list[i].get_array(), entry, fault));
    } else {
      set_fault(fault, bad_request(entry + " is " + std::string(type_name(list[i])) +
                                       "; give a string or a list of tokens.",
                                   entry, "invalid_type"));
    }
  }
  return prompts;
}

// --- how to generate -------------------------------------------------------------------------

void read_stop(Fields& fields, infer::Sampling& sampling) {
  const json::value* value = fields.take("stop");
  if (value == nullptr) return;
  if (value->is_string()) {
    sampling.stop.emplace_back(text_of(*value));
  } else if (value->is_array()) {
    const json::array& list = value->get_array();
    if (list.size() > infer::stop_strings_max) {
      return fields.fail("stop",
                         "stop has " + std::to_string(list.size()) + " entries; give at most " +
                             std::to_string(infer::stop_strings_max) + ".",
                         "array_above_max_length");
    }
    for (const json::value& entry : list) {
      if (!entry.is_string()) return fields.wrong_type("stop", "strings", entry);
      sampling.stop.emplace_back(text_of(entry));
    }
  } else {
    return fields.wrong_type("stop", "a string or a list of strings", *value);
  }
  for (const std::string& stop : sampling.stop) {
    if (stop.empty()) return fields.fail("stop", "a stop string is empty.", "empty_string");
    if (stop.size() > infer::stop_bytes_max) {
      return fields.fail("stop",
                         "a stop string has " + std::to_string(stop.size()) +
                             " bytes; give at most " + std::to_string(infer::stop_bytes_max) + ".",
                         "string_above_max_length");
    }
  }
}

void read_bias(Fields& fields, infer::Sampling& sampling, Fault& fault) {
  const json::object* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > infer::logit_bias_max) {
    return fields.fail("logit_bias",
                       "logit_bias has " + std::to_string(biases->size()) +
                           " entries; give at most " + std::to_string(infer::logit_bias_max) + ".",
                       "object_above_max_properties");
  }
  for (const auto& [key, value] : *biases) {
    const std::string_view name(key);
    Token token = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc{} || end != name.data() + name.size() || token < 0) {
      return fields.fail(
          "logit_bias",
          "logit_bias names \"" + std::string(name.substr(0, 40)) + "\", which is no token number.",
          "invalid_value");
    }
    const auto bias =
        read_number(value, "logit_bias." + std::string(name.substr(0, 40)), -100, 100, fault);
    if (!bias) return;
    sampling.logit_bias.emplace_back(token, static_cast<float>(*bias));
  }
}

void read_response_format(Fields& fields, infer::Sampling& sampling, Fault& fault) {
  const json::object* format = fields.object("response_format");
  if (format == nullptr) return;
  Fields inner(*format, "response_format.", fault);
  std::string type;
  inner.read("type", type);
  if (type == "json_object") {
    sampling.grammar.kind = Grammar::Kind::json_object;
  } else if (type == "json_schema") {
    const json::object* described = inner.object("json_schema");
    if (described == nullptr) {
      return inner.fail("json_schema", "response_format.json_schema is missing.",
                        "missing_required_parameter");
    }
    Fields schema(*described, "response_format.json_schema.", fault);
    std::string name;
    schema.read("name", name);
    if (name.empty() && !fault) {
      schema.fail("name", "response_format.json_schema.name is missing.",
                  "missing_required_parameter");
    }
    schema.accept("description");
    bool strict = true;  // a grammar is always strict
    schema.read("strict", strict);
    const json::object* body = schema.object("schema");
    sampling.grammar.kind =
        body == nullptr ? Grammar::Kind::json_object : Grammar::Kind::json_schema;
    if (body != nullptr) {
      sampling.grammar.text = json::serialize(*body);
      if (const auto grammar = infer::grammar_of_schema(sampling.grammar.text); !grammar.ok())
        schema.fail("schema", to_text(grammar.error()), "invalid_value");
    }
    schema.refuse_the_rest();
  } else if (type != "text") {
    inner.fail("type",
               "response_format.type is \"" + type.substr(0, 40) +
                   "\"; give text, json_object or json_schema.",
               "invalid_value");
  }
  inner.refuse_the_rest();
}

void read_tier(Fields& fields, InferenceRequest& request, Fault& fault) {
  std::string tier;
  fields.read("service_tier", tier);
  if (tier.empty() || tier == "auto" || fault) return;
  if (tier == "default") {
    request.service_class = infer::ServiceClass::standard;
  } else if (tier == "flex") {
    request.service_class = infer::ServiceClass::batch;
  } else if (tier == "priority") {
    request.service_class = infer::ServiceClass::interactive;
  } else {
    fields.fail(
        "service_tier",
        "service_tier is \"" + tier.substr(0, 40) + "\"; give auto, default, flex or priority.",
        "invalid_value");
  }
}

// Whose cost it is: tags as a task has them.
void read_tags(Fields& own, InferenceRequest& request) {
  const json::object* tags = own.object("tags");
  if (tags == nullptr) return;
  for (const auto& [key, value] : *tags) {
    if (!value.is_string()) return own.wrong_type("tags", "an object of strings", value);
    request.tags.emplace(std::string(key), std::string(text_of(value)));
  }
  if (const auto good = billing::check(request.tags); !good.ok())
    own.fail("tags", "loam.tags: " + good.error().message + "; " + good.error().next_step + ".",
             "invalid_value");
}

// Our own fields: what the engine can do and the API has no word for.
void read_own(Fields& fields, InferenceRequest& request, Fault& fault) {
  const json::object* own = fields.object("loam");
  if (own == nullptr) return;
  Fields inner(*own, "loam.", fault);
  infer::Sampling& sampling = request.sampling;
  inner.read("top_k", sampling.top_k, 0, tokens_asked_max);
  inner.read("min_p", sampling.min_p, 0, 1);
  inner.read("repeat_penalty", sampling.repeat_penalty, 0.1F, 10);
  inner.read("ignore_end", sampling.ignore_end);
  read_tags(inner, request);
  std::string grammar;
  inner.read("grammar", grammar);
  if (!grammar.empty()) {
    if (sampling.grammar.kind != Grammar::Kind::none)
      inner.fail("grammar", "loam.grammar and response_format exclude each other; give one.",
                 "invalid_parameter_combination");
    sampling.grammar = {Grammar::Kind::gbnf, std::move(grammar)};
  }
  std::uint32_t extent = 0;
  inner.read("public_extent", extent, 0, tokens_asked_max);
  for (Prompt& prompt : request.prompts) {
    prompt.public_extent = extent;
    if (const auto checked = infer::check_prompt(prompt); !checked.ok())
      inner.fail("public_extent", to_text(checked.error()), "invalid_value");
  }
  if (const json::array* adapters = inner.array("adapters")) {
    constexpr std::size_t adapters_max = 8;
    if (adapters->size() > adapters_max)
      inner.fail("adapters", "loam.adapters has more than 8 entries.", "array_above_max_length");
    for (std::size_t i = 0; i < adapters->size() && !fault; ++i) {
      const json::value& entry = (*adapters)[i];
      if (!entry.is_object()) return inner.wrong_type("adapters", "objects", entry);
      Fields fields_of_one(entry.get_object(), "loam.adapters[" + std::to_string(i) + "].", fault);
      infer::AdapterUse use;
      fields_of_one.read("name", use.name);
      fields_of_one.read("scale", use.scale, -100, 100);
      if (use.name.empty())
        fields_of_one.fail("name", "an adapter has no name.", "missing_required_parameter");
      fields_of_one.refuse_the_rest();
      request.adapters.push_back(std::move(use));
    }
  }
  inner.refuse_the_rest();
}

void read_stream(Fields& fields, InferenceRequest& request, Fault& fault) {
  fields.read("stream", request.stream);
  const json::object* options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!request.stream && !fault)
    fields.fail("stream_options", "stream_options needs stream: true.", "invalid_value");
  Fields inner(*options, "stream_options.", fault);
  inner.read("include_usage", request.include_usage);
  inner.unsupported("include_obfuscation");
  inner.refuse_the_rest();
}

// What chats and completions have in common.
void read_generation(Fields& fields, InferenceRequest& request, Fault& fault) {
  infer::Sampling& sampling = request.sampling;
  fields.read("temperature", sampling.temperature, 0, 2);
  fields.read("top_p", sampling.top_p, 0, 1);
  fields.read("frequency_penalty", sampling.frequency_penalty, -2, 2);
  fields.read("presence_penalty", sampling.presence_penalty, -2, 2);
  fields.read("n", request.choices, 1, infer::choices_max);
  if (const json::value* seed = fields.take("seed")) {
    constexpr auto low = std::numeric_limits<std::int64_t>::min();
    constexpr auto high = std::numeric_limits<std::int64_t>::max();
    if (const auto number = read_whole(*seed, "seed", low, high, fault))
      sampling.seed = static_cast<std::uint64_t>(*number);
  }
  fields.read("max_tokens", request.tokens_max, 1, tokens_asked_max);
  read_stop(fields, sampling);
  read_bias(fields, sampling, fault);
  read_stream(fields, request, fault);
  fields.accept("user");
}

void read_chat(Fields& fields, InferenceRequest& request, Fault& fault) {
  request.prompts.push_back(read_messages(fields, fault));
  read_generation(fields, request, fault);
  std::uint32_t completion_max = 0;
  fields.read("max_completion_tokens", completion_max, 1, tokens_asked_max);
  if (completion_max > 0) {
    if (request.tokens_max > 0)
      fields.fail("max_tokens",
                  "max_tokens and max_completion_tokens exclude each other; give one.",
                  "invalid_parameter_combination");
    request.tokens_max = completion_max;
  }
  fields.read("logprobs", request.sampling.logprobs);
  fields.read("top_logprobs", request.sampling.top_logprobs, 0, infer::top_logprobs_max);
  if (request.sampling.top_logprobs > 0 && !request.sampling.logprobs)
    fields.fail("top_logprobs", "top_logprobs needs logprobs: true.", "invalid_value");
  read_response_format(fields, request.sampling, fault);
  read_tier(fields, request, fault);
  fields.accept("safety_identifier");
  fields.accept("prompt_cache_key");  // routing looks at the prompt itself
  fields.accept("metadata");          // kept with stored answers, and none are stored
  fields.unsupported("store");
  fields.unsupported("tool_choice", "none");
  fields.unsupported("function_call", "none");
  fields.accept("parallel_tool_calls");  // of no effect without tools
  for (const char* name : {"tools", "functions", "audio", "prediction", "web_search_options",
                           "reasoning_effort", "verbosity", "moderation"})
    fields.unsupported(name);
  if (const json::array* modalities = fields.array("modalities")) {
    for (const json::value& modality : *modalities) {
      if (!modality.is_string() || text_of(modality) != "text")
        fields.fail("modalities", "only the modality text is offered.", "unsupported_value");
    }
  }
}

void read_completion(Fields& fields, InferenceRequest& request, Fault& fault) {
  request.prompts = read_prompts(fields, "prompt", fault);
  read_generation(fields, request, fault);
  if (fields.take("logprobs") != nullptr) {
    fields.read("logprobs", request.sampling.top_logprobs, 0, infer::top_logprobs_max);
    request.sampling.logprobs = true;
  }
  std::uint32_t best_of = request.choices;
  fields.read("best_of", best_of, 1, infer::choices_max);
  if (best_of != request.choices)
    fields.fail("best_of", "best_of is not offered; ask for n answers and choose.",
                "unsupported_parameter");
  fields.unsupported("echo");
  fields.unsupported("suffix");
  if (request.prompts.size() * request.choices > answers_max) {
    fields.fail("n",
                std::to_string(request.prompts.size()) + " prompts with n " +
                    std::to_string(request.choices) + " are more than " +
                    std::to_string(answers_max) + " answers; send several requests.",
                "invalid_value");
  }
}

void read_embedding(Fields& fields, InferenceRequest& request, Fault& fault) {
  request.prompts = read_prompts(fields, "input", fault);
  std::string format = "float";
  fields.read("encoding_format", format);
  request.base64 = format == "base64";
  if (!request.base64 && format != "float")
    fields.fail("encoding_format",
                "encoding_format is \"" + format.substr(0, 40) + "\"; give float or base64.",
                "invalid_value");
  fields.read("dimensions", request.dimensions, 1, tokens_asked_max);
  fields.accept("user");
}

}  // namespace

std::variant<InferenceRequest, ApiError> parse_request(Work work, std::string_view body) {
  boost::system::error_code failure;
  json::parse_options options;
  options.max_depth = 64;
  const json::value root = json::parse(body, failure, {}, options);
  if (failure) {
    return bad_request("The body is not valid JSON: " + failure.message() + ".", "",
                       "invalid_json");
  }
  if (!root.is_object()) {
    return bad_request("The body is " + std::string(type_name(root)) + "; send a JSON object.", "",
                       "invalid_type");
  }
  Fault fault;
  InferenceRequest request;
  request.work = work;
  Fields fields(root.get_object(), "", fault);
  fields.read("model", request.model);
  if (request.model.empty() && !fault)
    fields.fail("model", "model is missing; GET /v1/models lists them.",
                "missing_required_parameter");
  if (work == Work::chat) read_chat(fields, request, fault);
  if (work == Work::completion) read_completion(fields, request, fault);
  if (work == Work::embedding) read_embedding(fields, request, fault);
  if (!fault) read_own(fields, request, fault);
  fields.refuse_the_rest();
  if (fault) return std::move(*fault);
  return request;
}

}  // namespace loam::gateway

#include "infer/json_grammar.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <set>
#include <vector>

namespace loam::infer {

namespace {

namespace json = boost::json;

// Any value at all. Depth is bounded by nothing but tokens_max.
constexpr std::string_view base_rules =
    "ws ::= [ \\t\\n]{0,8}\n"
    "char ::= [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt/] | \"u\" [0-9a-fA-F]{4})\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "member ::= string ws \":\" ws any\n"
    "object ::= \"{\" ws (member ws (\",\" ws member ws)*)? \"}\"\n"
    "array ::= \"[\" ws (any ws (\",\" ws any ws)*)? \"]\"\n"
    "any ::= object | array | string | number | boolean | null\n";

constexpr int depth_max = 64;
constexpr std::size_t rules_max = 4096;
constexpr std::int64_t repeat_max = 4096;

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

class SchemaGrammar {
 public:
  explicit SchemaGrammar(const json::value& document) : document_(document) {}

  Result<std::string> run() {
    LOAM_TRY(root, rule_of(document_, 0));
    // Nothing after the value: white space there would be paid for and say nothing.
    std::string text = "root ::= ws " + root + "\n";
    for (const std::string& rule : rules_) text += rule;
    return text + std::string(base_rules);
  }

 private:
  Error refuse(const std::string& what, const std::string& next) {
    return Error{ErrorKind::unsupported, "the JSON schema " + what, next};
  }

  std::string add(const std::string& body) {
    std::string name = "r" + std::to_string(rules_.size());
    rules_.push_back(name + " ::= " + body + "\n");
    return name;
  }

  // Reserves a name before its body is known, for rules that refer to themselves.
  std::size_t reserve() {
    rules_.emplace_back();
    return rules_.size() - 1;
  }

  Result<void> check_keywords(const json::object& schema) {
    static const std::set<std::string_view> understood = {"type",
                                                          "properties",
                                                          "required",
                                                          "items",
                                                          "minItems",
                                                          "maxItems",
                                                          "enum",
                                                          "const",
                                                          "anyOf",
                                                          "oneOf",
                                                          "$ref",
                                                          "$defs",
                                                          "minLength",
                                                          "maxLength",
                                                          "title",
                                                          "description",
                                                          "definitions",
                                                          "default",
                                                          "examples",
                                                          "$schema",
                                                          "$id",
                                                          "$comment",
                                                          "additionalProperties"};
    for (const auto& member : schema) {
      if (understood.count(member.key()) == 0) {
        return refuse("uses '" + std::string(member.key()) + "'", "leave that keyword out");
      }
    }
    return {};
  }

  // The name of a rule, or an expression, that matches exactly what the schema allows.
  Result<std::string> rule_of(const json::value& schema, int depth) {
    if (depth > depth_max || rules_.size() > rules_max) {
      return refuse("is nested too deeply or too large", "make it simpler");
    }
    if (schema.is_bool() && schema.get_bool()) return std::string("any");
    if (!schema.is_object()) return refuse("has a part that is no object", "correct it");
    const json::object& object = schema.get_object();
    LOAM_CHECK(check_keywords(object));
    if (const auto* ref = object.if_contains("$ref")) return reference(*ref, depth);
    if (const auto* value = object.if_contains("const")) return literal(json::serialize(*value));
    if (const auto* values = object.if_contains("enum")) return enumeration(*values);
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (const auto* choices = object.if_contains(keyword)) return choice(*choices, depth);
    }
    const auto* type = object.if_contains("type");
    if (type == nullptr) {
      return object.contains("properties") ? object_rule(object, depth)
                                           : Result<std::string>(std::string("any"));
    }
    if (type->is_string()) return typed(std::string(type->get_string()), object, depth);
    if (!type->is_array() || type->get_array().empty())
      return refuse("has an odd 'type'", "name one type");
    std::string body;
    for (const json::value& one : type->get_array()) {
      if (!one.is_string()) return refuse("has an odd 'type'", "name types as text");
      LOAM_TRY(rule, typed(std::string(one.get_string()), object, depth));
      body += (body.empty() ? "" : " | ") + rule;
    }
    return add(body);
  }

  Result<std::string> typed(const std::string& type, const json::object& schema, int depth) {
    if (type == "object") return object_rule(schema, depth);
    if (type == "array") return array_rule(schema, depth);
    if (type == "string") return string_rule(schema);
    if (type == "number" || type == "integer" || type == "boolean" || type == "null") return type;
    return refuse("has the unknown type '" + type + "'", "use one of the seven JSON types");
  }

  Result<std::string> enumeration(const json::value& values) {
    if (!values.is_array() || values.get_array().empty())
      return refuse("has an empty 'enum'", "list its values");
    std::string body;
    for (const json::value& value : values.get_array()) {
      body += (body.empty() ? "" : " | ") + literal(json::serialize(value));
    }
    return add(body);
  }

  Result<std::string> choice(const json::value& choices, int depth) {
    if (!choices.is_array() || choices.get_array().empty())
      return refuse("has an empty choice", "list its schemas");
    std::string body;
    for (const json::value& one : choices.get_array()) {
      LOAM_TRY(rule, rule_of(one, depth + 1));
      body += (body.empty() ? "" : " | ") + rule;
    }
    return add(body);
  }

  Result<std::string> reference(const json::value& ref, int depth) {
    if (!ref.is_string()) return refuse("has a '$ref' that is no text", "write \"#/$defs/name\"");
    const std::string path(ref.get_string());
    if (const auto known = references_.find(path); known != references_.end()) return known->second;
    if (!path.starts_with("#"))
      return refuse("refers to '" + path + "'", "refer inside the document");
    boost::system::error_code fault;
    const json::value* target = document_.find_pointer(path.substr(1), fault);
    if (target == nullptr)
      return refuse("refers to '" + path + "', which is not there", "define it");
    const std::size_t place = reserve();
    const std::string name = "r" + std::to_string(place);
    references_.emplace(path, name);
    LOAM_TRY(rule, rule_of(*target, depth + 1));
    if (rule == name) return refuse("refers to '" + path + "' in a circle", "define it");
    rules_[place] = name + " ::= " + rule + "\n";
    return name;
  }

  // {least,most} of a keyword pair.
  struct Range {
    std::int64_t least = 0;
    std::int64_t most = -1;  // -1: no bound
  };
  Result<Range> range(const json::object& schema, const char* least, const char* most) {
    Range range;
    for (const auto& [keyword, target] :
         {std::pair{least, &range.least}, std::pair{most, &range.most}}) {
      const auto* value = schema.if_contains(keyword);
      if (value == nullptr) continue;
      if (!value->is_int64() || value->get_int64() < 0 || value->get_int64() > repeat_max) {
        return refuse(std::string("has an odd '") + keyword + "'",
                      "give a whole number from 0 to " + std::to_string(repeat_max));
      }
      *target = value->get_int64();
    }
    if (range.most >= 0 && range.most < range.least) {
      return refuse(std::string("has '") + least + "' above '" + most + "'", "swap them");
    }
    return range;
  }

  Result<std::string> string_rule(const json::object& schema) {
    LOAM_TRY(length, range(schema, "minLength", "maxLength"));
    if (length.least == 0 && length.most < 0) return std::string("string");
    return add("\"\\\"\" char{" + std::to_string(length.least) + "," +
               (length.most < 0 ? "" : std::to_string(length.most)) + "} \"\\\"\"");
  }

  Result<std::string> array_rule(const json::object& schema, int depth) {
    LOAM_TRY(count, range(schema, "minItems", "maxItems"));
    std::string item = "any";
    if (const auto* items = schema.if_contains("items")) {
      LOAM_TRY(rule, rule_of(*items, depth + 1));
      item = rule;
    }
    if (count.most == 0) return add("\"[\" ws \"]\"");
    const std::string more = "(\",\" ws " + item + " ws){" +
                             std::to_string(std::max<std::int64_t>(count.least - 1, 0)) + "," +
                             (count.most < 0 ? "" : std::to_string(count.most - 1)) + "}";
    const std::string some = item + " ws " + more;
    return add("\"[\" ws " + (count.least == 0 ? "(" + some + ")?" : some) + " \"]\"");
  }

  Result<std::string> object_rule(const json::object& schema, int depth) {
    const auto* properties = schema.if_contains("properties");
    if (properties == nullptr || (properties->is_object() && properties->get_object().empty())) {
      const auto* more = schema.if_contains("additionalProperties");
      const bool closed = more != nullptr && more->is_bool() && !more->get_bool();
      return closed ? add("\"{\" ws \"}\"") : std::string("object");
    }
    if (!properties->is_object()) return refuse("has odd 'properties'", "make them an object");
    LOAM_TRY(required, required_of(schema, properties->get_object()));
    std::vector<std::string> members;
    std::vector<bool> needed;
    for (const auto& property : properties->get_object()) {
      LOAM_TRY(rule, rule_of(property.value(), depth + 1));
      members.push_back(literal(json::serialize(json::value(property.key()))) + " ws \":\" ws " +
                        rule + " ws");
      needed.push_back(required.count(std::string(property.key())) == 1);
    }
    return add("\"{\" ws " + member_list(members, needed) + " \"}\"");
  }

  Result<std::set<std::string>> required_of(const json::object& schema,
                                            const json::object& properties) {
    std::set<std::string> names;
    const auto* required = schema.if_contains("required");
    if (required == nullptr) return names;
    if (!required->is_array()) return refuse("has an odd 'required'", "list names");
    for (const json::value& name : required->get_array()) {
      if (!name.is_string() || !properties.contains(name.get_string())) {
        return refuse("requires " + json::serialize(name) + ", which 'properties' lacks",
                      "describe it");
      }
      names.insert(std::string(name.get_string()));
    }
    return names;
  }

  // From the last member to the first: what may follow when something was written before
  // (`after`, which starts with a comma) and when nothing was (`first`).
  std::string member_list(const std::vector<std::string>& members,
                          const std::vector<bool>& needed) {
    std::string first;
    std::string after;
    for (std::size_t i = members.size(); i-- > 0;) {
      const std::string tail = after.empty() ? "" : " " + after;
      const std::string comma = "\",\" ws " + members[i] + tail;
      const std::string plain = members[i] + tail;
      const std::string next_after = needed[i]       ? add(comma)
                                     : after.empty() ? add("(" + comma + ")?")
                                                     : add(comma + " | " + after);
      const std::string next_first = needed[i]       ? add(plain)
                                     : first.empty() ? add("(" + plain + ")?")
                                                     : add(plain + " | " + first);
      after = next_after;
      first = next_first;
    }
    return first;
  }

  const json::value& document_;
  std::vector<std::string> rules_;
  std::map<std::string, std::string> references_;
};

}  // namespace

Result<std::string> grammar_of_schema(std::string_view schema) {
  boost::system::error_code fault;
  const json::value document = json::parse(schema, fault);
  if (fault) return invalid("the JSON schema cannot be read: " + fault.message(), "send JSON");
  return SchemaGrammar(document).run();
}

std::string grammar_of_any_object() {
  return "root ::= ws object\n" + std::string(base_rules);
}

}  // namespace loam::infer

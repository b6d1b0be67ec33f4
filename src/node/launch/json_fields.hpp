// Strict reading of one JSON object: every field is asked for by name and type, what was not
// asked for is an error. Heavy (Boost.JSON): include it in .cpp files only. Pure.
// house-allow-file heavy: a reader of JSON is what it is
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::node {

class JsonFields {
 public:
  // `what` names the object in errors: "order.json". Depth and size are bounded by the parser.
  static Result<JsonFields> parse(std::string_view text, std::string what);
  JsonFields(boost::json::object object, std::string what);

  // Each of these leaves `out` alone where the field is missing. The first fault is kept, later
  // ones are ignored; finish() tells it.
  void read(const char* name, std::string& out);
  void read(const char* name, bool& out);
  void read(const char* name, std::int64_t& out, std::int64_t min, std::int64_t max);
  void read(const char* name, std::uint64_t& out);
  void read(const char* name, std::uint32_t& out);
  void read(const char* name, std::vector<std::string>& out);
  void read(const char* name, std::optional<std::int64_t>& out);
  // The object below `name`, or nothing where it is missing.
  std::optional<JsonFields> object(const char* name);
  std::vector<JsonFields> objects(const char* name);
  // All fields as texts: a map from name to text.
  std::vector<std::pair<std::string, std::string>> texts();

  // `all` lists (value, name); a name that is not there is a fault.
  template <class Enum, std::size_t n>
  void read_enum(const char* name, Enum& out, const Enum (&all)[n],
                 const char* (*name_of)(Enum) noexcept) {
    std::string text;
    const boost::json::value* value = take(name);
    if (value == nullptr) return;
    if (value->is_string()) {
      for (const Enum candidate : all) {
        if (value->get_string() == name_of(candidate)) {
          out = candidate;
          return;
        }
      }
    }
    fault(name, "has an unknown value", *value);
  }

  void require(const char* name);
  void fault(const char* name, std::string_view trouble, const boost::json::value& value);
  // A fault found by another object, kept like one of this.
  void adopt(const Result<void>& other);

  // Success, or the first fault; a field that nobody asked for is a fault.
  Result<void> finish();

 private:
  const boost::json::value* take(const char* name);

  boost::json::object object_;
  std::string what_;
  std::set<std::string> taken_;
  std::optional<Error> fault_;
};

// Reads `version` and refuses what is newer than `newest`; the older ones are for the caller to
// lift.
Result<std::int64_t> read_version(JsonFields& fields, std::string_view what, std::int64_t newest);

}  // namespace loam::node

// Reads a JSON object's fields strictly and keeps the first fault. Pure. Internal to this folder,
// for the .cpp files that see Boost.JSON.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/api_error.hpp"

namespace loam::gateway {

using Fault = std::optional<ApiError>;  // the first one stays

inline void set_fault(Fault& fault, ApiError error) {
  if (!fault) fault = std::move(error);
}

// "a string", "null", ...
std::string_view type_name(const boost::json::value& value);

// A field that is null counts as absent, as the API has it.
class Fields {
 public:
  // `path` goes before the names in errors: "" or "stream_options.".
  Fields(const boost::json::object& object, std::string path, Fault& fault)
      : object_(object), path_(std::move(path)), fault_(fault) {}

  // Marks the field as known; null where it is absent.
  const boost::json::value* take(std::string_view name);

  // The rest leave `out` alone where the field is absent.
  void read(std::string_view name, bool& out);
  void read(std::string_view name, std::string& out);
  void read(std::string_view name, float& out, double low, double high);
  void read(std::string_view name, std::uint32_t& out, std::int64_t low, std::int64_t high);
  const boost::json::object* object(std::string_view name);
  const boost::json::array* array(std::string_view name);

  // A field that exists in the API and is not offered here, unless its value is one of those that
  // change nothing: false, an empty list or object, or `harmless`.
  void unsupported(std::string_view name, std::string_view harmless = {});
  // Taken and without effect here.
  void accept(std::string_view name) { take(name); }
  // What was not taken is unknown.
  void refuse_the_rest();

  std::string at(std::string_view name) const { return path_ + std::string(name); }
  void fail(std::string_view name, std::string message, std::string_view code);
  void wrong_type(std::string_view name, std::string_view expected, const boost::json::value& got);

 private:
  const boost::json::object& object_;
  const std::string path_;
  Fault& fault_;
  std::vector<std::string_view> known_;
};

// A finite number in [low, high]; else a fault for `param`.
std::optional<double> read_number(const boost::json::value& value, const std::string& param,
                                  double low, double high, Fault& fault);
// A whole number; 3.0 is one.
std::optional<std::int64_t> read_whole(const boost::json::value& value, const std::string& param,
                                       std::int64_t low, std::int64_t high, Fault& fault);

}  // namespace loam::gateway

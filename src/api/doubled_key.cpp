#include "api/doubled_key.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <set>
#include <vector>

namespace loam::api {
namespace {

namespace bj = boost::json;

// Keeps the keys of the objects that are open; stops the parser at the first that comes again.
struct KeyWatch {
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

  std::vector<std::set<std::string>> open;
  std::string key;
  bool doubled = false;

  bool on_object_begin(bj::error_code&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, bj::error_code&) {
    open.pop_back();
    return true;
  }
  bool on_key_part(bj::string_view part, std::size_t, bj::error_code&) {
    key.append(part.data(), part.size());
    return true;
  }
  bool on_key(bj::string_view part, std::size_t, bj::error_code& fault) {
    key.append(part.data(), part.size());
    if (!open.back().insert(key).second) {
      doubled = true;
      fault = bj::error::exception;
      return false;
    }
    key.clear();
    return true;
  }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_array_begin(bj::error_code&) { return true; }
  bool on_array_end(std::size_t, bj::error_code&) { return true; }
  bool on_string_part(bj::string_view, std::size_t, bj::error_code&) { return true; }
  bool on_string(bj::string_view, std::size_t, bj::error_code&) { return true; }
  bool on_number_part(bj::string_view, bj::error_code&) { return true; }
  bool on_int64(std::int64_t, bj::string_view, bj::error_code&) { return true; }
  bool on_uint64(std::uint64_t, bj::string_view, bj::error_code&) { return true; }
  bool on_double(double, bj::string_view, bj::error_code&) { return true; }
  bool on_bool(bool, bj::error_code&) { return true; }
  bool on_null(bj::error_code&) { return true; }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

}  // namespace

std::optional<std::string> doubled_key(std::string_view json) {
  bj::basic_parser<KeyWatch> parser{bj::parse_options{}};
  bj::error_code fault;
  parser.write_some(false, json.data(), json.size(), fault);
  if (!parser.handler().doubled) return std::nullopt;
  return parser.handler().key;
}

}  // namespace loam::api

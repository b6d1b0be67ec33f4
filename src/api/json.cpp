#include "api/json.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "api/doubled_key.hpp"
#include "domain/json_codec.hpp"

namespace loam::api {
namespace {

namespace bj = boost::json;

// As the library's own serializer, but fractions the way people write them: 0.3, not 3E-1.
void put(const bj::value& value, std::string& out) {
  if (value.is_double() && !std::isfinite(value.get_double())) {
    out += "null";  // JSON has no word for it
  } else if (value.is_double()) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value.get_double());
    out.append(digits.data(), end.ptr);
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const bj::value& element : value.get_array()) {
      if (!std::exchange(first, false)) out += ',';
      put(element, out);
    }
    out += ']';
  } else if (value.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& member : value.get_object()) {
      if (!std::exchange(first, false)) out += ',';
      out += bj::serialize(member.key());
      out += ':';
      put(member.value(), out);
    }
    out += '}';
  } else {
    out += bj::serialize(value);
  }
}

template <class T>
std::string text_of(const T& value) {
  std::string out;
  put(json::write(value), out);
  return out;
}

// A request is read by one meaning only.
Result<void> check_keys(std::string_view text) {
  const auto doubled = doubled_key(text);
  if (!doubled) return {};
  return invalid("'" + *doubled + "' is given twice", "give it once");
}

}  // namespace

#define LOAM_API_REQUEST(Type)                                           \
  std::string to_json(const Type& value) {                               \
    return text_of(value);                                               \
  }                                                                      \
  template <>                                                            \
  Result<Type> from_json<Type>(std::string_view text) {                  \
    LOAM_CHECK(check_keys(text));                                        \
    return json::from_document<Type>(text, json::Missing::uses_default); \
  }
LOAM_API_REQUESTS(LOAM_API_REQUEST)
#undef LOAM_API_REQUEST

#define LOAM_API_VIEW(Type)                                          \
  std::string to_json(const Type& value) {                           \
    return text_of(value);                                           \
  }                                                                  \
  template <>                                                        \
  Result<Type> from_json<Type>(std::string_view text) {              \
    return json::from_document<Type>(text, json::Missing::is_error); \
  }
LOAM_API_VIEWS(LOAM_API_VIEW)
#undef LOAM_API_VIEW

}  // namespace loam::api

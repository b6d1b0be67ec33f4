// Described types to JSON and back: the one codec for the journal, snapshots and the API.
// Reflection is Boost.Describe's, so that a new member can never be forgotten. Strict: an unknown
// member is an error, and so is a missing one unless the caller asks for the type's own defaults.
// Heavy to compile: include it in .cpp files only. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <boost/describe/bases.hpp>
#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
// house-allow heavy: this is the one codec, included in .cpp files only
#include <boost/json.hpp>
#include <boost/mp11.hpp>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/money.hpp"
#include "base/money_text.hpp"
#include "base/quantity.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"

namespace loam::json {

namespace bj = boost::json;

enum class Missing { is_error, uses_default };

// Reading stops at the first fault; `where` is the path of members down to it.
struct Reader {
  Missing missing = Missing::is_error;
  std::string where;
  std::string fault;
  std::string next_step;

  bool fail(std::string what, std::string step = {}) {
    if (fault.empty()) {
      fault =
          (where.empty() ? std::string("the document") : "'" + where + "'") + " " + std::move(what);
      next_step = std::move(step);
    }
    return false;
  }
};

// What was written there, short enough for an error.
std::string excerpt_of(const bj::value& json);
// A value of another type than `wanted`, such as "text".
bool fail_of_type(const bj::value& json, const char* wanted, const char* example, Reader& reader);

// ---- leaves -------------------------------------------------------------------------------

inline bj::value write(bool value) {
  return value;
}
inline bj::value write(std::int64_t value) {
  return value;
}
// Only for what people and dashboards look at (a share, a fraction): never a quantity that counts.
inline bj::value write(double value) {
  return value;
}
inline bj::value write(std::uint32_t value) {
  return static_cast<std::int64_t>(value);
}
inline bj::value write(const std::string& value) {
  return bj::value(bj::string_view(value));
}
inline bj::value write(Instant value) {
  return value.ms;
}
inline bj::value write(Duration value) {
  return value.ms;
}
inline bj::value write(Epoch value) {
  return static_cast<std::int64_t>(value.value);
}
inline bj::value write(Money value) {
  return bj::value(to_text(value));
}
inline bj::value write(Currency value) {
  return bj::value(bj::string_view(value.code().data(), value.code().size()));
}
template <class Unit>
bj::value write(Quantity<Unit> value) {
  return value.value;
}
template <class Tag>
bj::value write(Id<Tag> id) {
  return static_cast<std::int64_t>(id.value);
}

inline bool read(const bj::value& json, bool& out, Reader& reader) {
  if (!json.is_bool()) return fail_of_type(json, "true or false", "true", reader);
  out = json.get_bool();
  return true;
}
inline bool read(const bj::value& json, std::int64_t& out, Reader& reader) {
  if (json.is_int64()) {
    out = json.get_int64();
    return true;
  }
  return fail_of_type(json, "a whole number in range", "3", reader);
}
inline bool read(const bj::value& json, double& out, Reader& reader) {
  if (!json.is_number()) return fail_of_type(json, "a number", "0.5", reader);
  out = json.to_number<double>();
  return true;
}
inline bool read(const bj::value& json, std::uint32_t& out, Reader& reader) {
  std::int64_t wide = 0;
  if (!read(json, wide, reader)) return false;
  if (wide < 0 || wide > std::numeric_limits<std::uint32_t>::max())
    return reader.fail("is out of range");
  out = static_cast<std::uint32_t>(wide);
  return true;
}
inline bool read(const bj::value& json, std::string& out, Reader& reader) {
  if (!json.is_string()) return fail_of_type(json, "text", "\"...\"", reader);
  out.assign(json.get_string().data(), json.get_string().size());
  return true;
}
inline bool read(const bj::value& json, Instant& out, Reader& reader) {
  return read(json, out.ms, reader);
}
inline bool read(const bj::value& json, Duration& out, Reader& reader) {
  return read(json, out.ms, reader);
}
inline bool read(const bj::value& json, Epoch& out, Reader& reader) {
  return read(json, out.value, reader);
}
inline bool read(const bj::value& json, Money& out, Reader& reader) {
  std::string text;
  if (!read(json, text, reader)) return false;
  auto money = Money::parse_text(text);
  if (!money) return reader.fail(": " + money.error().message, money.error().next_step);
  out = *money;
  return true;
}
inline bool read(const bj::value& json, Currency& out, Reader& reader) {
  std::string text;
  if (!read(json, text, reader)) return false;
  auto currency = Currency::parse(text);
  if (!currency) return reader.fail(": " + currency.error().message, currency.error().next_step);
  out = *currency;
  return true;
}
template <class Unit>
bool read(const bj::value& json, Quantity<Unit>& out, Reader& reader) {
  return read(json, out.value, reader);
}
template <class Tag>
bool read(const bj::value& json, Id<Tag>& out, Reader& reader) {
  std::int64_t wide = 0;
  if (!read(json, wide, reader)) return false;
  if (wide < 0) return reader.fail("is negative");
  out.value = static_cast<std::uint64_t>(wide);
  return true;
}

// ---- compounds: declared first, so that they may nest -----------------------------------------

template <class T>
concept DescribedEnum = std::is_enum_v<T>;
template <class T>
concept DescribedStruct = boost::describe::has_describe_members<T>::value && !std::is_enum_v<T>;

template <DescribedEnum T>
bj::value write(T value);
template <DescribedStruct T>
bj::value write(const T& value);
template <class T>
bj::value write(const std::optional<T>& value);
template <class T>
bj::value write(const std::vector<T>& values);
template <class T, std::size_t count>
bj::value write(const std::array<T, count>& values);
template <class T>
bj::value write(const std::shared_ptr<const T>& value);
template <class T>
bj::value write(const std::map<std::string, T>& values);

template <DescribedEnum T>
bool read(const bj::value& json, T& out, Reader& reader);
template <DescribedStruct T>
bool read(const bj::value& json, T& out, Reader& reader);
template <class T>
bool read(const bj::value& json, std::optional<T>& out, Reader& reader);
template <class T>
bool read(const bj::value& json, std::vector<T>& out, Reader& reader);
template <class T, std::size_t count>
bool read(const bj::value& json, std::array<T, count>& out, Reader& reader);
template <class T>
bool read(const bj::value& json, std::shared_ptr<const T>& out, Reader& reader);
template <class T>
bool read(const bj::value& json, std::map<std::string, T>& out, Reader& reader);

template <DescribedEnum T>
bj::value write(T value) {
  return bj::value(boost::describe::enum_to_string(value, "?"));
}

template <DescribedEnum T>
bool read(const bj::value& json, T& out, Reader& reader) {
  std::string text;
  if (!read(json, text, reader)) return false;
  if (boost::describe::enum_from_string(text.c_str(), out)) return true;
  std::string names;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
      [&](auto member) { names += (names.empty() ? "" : ", ") + std::string(member.name); });
  return reader.fail("is '" + text + "'", "use one of " + names);
}

template <class T>
using MembersOf = boost::describe::describe_members<T, boost::describe::mod_public>;

template <DescribedStruct T>
bj::value write(const T& value) {
  bj::object object;
  boost::mp11::mp_for_each<MembersOf<T>>(
      [&](auto member) { object.emplace(member.name, write(value.*member.pointer)); });
  return object;
}

// Steps `reader.where` down into one member for the length of a scope.
class Descent {
 public:
  Descent(Reader& reader, std::string_view member) : reader_(reader), length_(reader.where.size()) {
    if (!reader.where.empty()) reader.where += '.';
    reader.where += member;
  }
  ~Descent() {
    if (reader_.fault.empty()) reader_.where.resize(length_);
  }
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;

 private:
  Reader& reader_;
  std::size_t length_;
};

template <DescribedStruct T>
bool read(const bj::value& json, T& out, Reader& reader) {
  if (!json.is_object()) return fail_of_type(json, "an object", "{}", reader);
  const bj::object& object = json.get_object();
  std::size_t known = 0;
  bool good = true;
  boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) {
    if (!good) return;
    const bj::value* found = object.if_contains(member.name);
    const Descent descent(reader, member.name);
    if (found != nullptr) {
      ++known;
      good = read(*found, out.*member.pointer, reader);
    } else if (reader.missing == Missing::is_error) {
      good = reader.fail("is missing", "add it");
    }
  });
  if (!good || known == object.size()) return good;
  for (const auto& entry : object) {
    bool found = false;
    boost::mp11::mp_for_each<MembersOf<T>>(
        [&](auto member) { found = found || entry.key() == member.name; });
    if (found) continue;
    const Descent descent(reader, std::string_view(entry.key().data(), entry.key().size()));
    return reader.fail("is not a known field", "check its spelling, or leave it out");
  }
  return true;
}

template <class T>
bj::value write(const std::optional<T>& value) {
  return value ? write(*value) : bj::value(nullptr);
}
template <class T>
bool read(const bj::value& json, std::optional<T>& out, Reader& reader) {
  if (json.is_null()) {
    out.reset();
    return true;
  }
  return read(json, out.emplace(), reader);
}

template <class T>
bj::value write(const std::vector<T>& values) {
  bj::array array;
  array.reserve(values.size());
  for (const T& value : values) array.push_back(write(value));
  return array;
}
template <class T>
bool read(const bj::value& json, std::vector<T>& out, Reader& reader) {
  if (!json.is_array()) return fail_of_type(json, "a list", "[]", reader);
  out.clear();
  for (const bj::value& element : json.get_array()) {
    const Descent descent(reader, std::to_string(out.size()));
    if (!read(element, out.emplace_back(), reader)) return false;
  }
  return true;
}

template <class T, std::size_t count>
bj::value write(const std::array<T, count>& values) {
  bj::array array;
  array.reserve(count);
  for (const T& value : values) array.push_back(write(value));
  return array;
}
template <class T, std::size_t count>
bool read(const bj::value& json, std::array<T, count>& out, Reader& reader) {
  if (!json.is_array() || json.get_array().size() != count)
    return reader.fail("is not a list of " + std::to_string(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Descent descent(reader, std::to_string(i));
    if (!read(json.get_array()[i], out[i], reader)) return false;
  }
  return true;
}

template <class T>
bj::value write(const std::shared_ptr<const T>& value) {
  return write(*value);
}
template <class T>
bool read(const bj::value& json, std::shared_ptr<const T>& out, Reader& reader) {
  auto fresh = std::make_shared<T>();
  if (!read(json, *fresh, reader)) return false;
  out = std::move(fresh);
  return true;
}

template <class T>
bj::value write(const std::map<std::string, T>& values) {
  bj::object object;
  for (const auto& [key, value] : values) object.emplace(key, write(value));
  return object;
}
template <class T>
bool read(const bj::value& json, std::map<std::string, T>& out, Reader& reader) {
  if (!json.is_object()) return fail_of_type(json, "an object", "{}", reader);
  out.clear();
  for (const auto& entry : json.get_object()) {
    const std::string key(entry.key().data(), entry.key().size());
    const Descent descent(reader, key);
    if (!read(entry.value(), out[key], reader)) return false;
  }
  return true;
}

// ---- as text ----------------------------------------------------------------------------------
// What serializing write(value) gives, byte for byte, without its document in memory: that of a
// long invoice is many times its text.

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T, std::size_t count>
inline constexpr bool is_list<std::array<T, count>> = true;
template <class T>
inline constexpr bool is_box = false;  // that holds a value or, some of them, none
template <class T>
inline constexpr bool is_box<std::optional<T>> = true;
template <class T>
inline constexpr bool is_box<std::shared_ptr<const T>> = true;
template <class T>
inline constexpr bool is_table = false;
template <class T>
inline constexpr bool is_table<std::map<std::string, T>> = true;

inline void append_quoted(std::string& out, std::string_view text) {
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == 0x7f;
  });
  if (plain) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += bj::serialize(bj::string_view(text.data(), text.size()));
  }
}

template <class T>
void append(std::string& out, const T& value);

template <class T>
void append_members(std::string& out, const T& value) {
  out += '{';
  std::size_t skip = 1;  // the comma before the first
  boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) {
    static const std::string head = std::string(",\"") + member.name + "\":";
    out.append(head, std::exchange(skip, 0), std::string::npos);
    append(out, value.*member.pointer);
  });
  out += '}';
}

template <class T>
void append(std::string& out, const T& value) {
  if constexpr (DescribedStruct<T>) {
    append_members(out, value);
  } else if constexpr (is_list<T>) {
    char before = '[';
    const std::size_t begin = out.size();
    for (const auto& element : value) {
      // A long list is about as long as its first element says: growing would take twice the
      // memory.
      if (before == ',' && &element == &value[1] && value.size() > 1000)
        out.reserve(begin + (out.size() - begin) * value.size() * 9 / 8);
      out += std::exchange(before, ',');
      append(out, element);
    }
    out += before == '[' ? "[]" : "]";
  } else if constexpr (is_table<T>) {
    char before = '{';
    for (const auto& [key, element] : value) {
      out += std::exchange(before, ',');
      append_quoted(out, key);
      out += ':';
      append(out, element);
    }
    out += before == '{' ? "{}" : "}";
  } else if constexpr (is_box<T>) {
    if (value) {
      append(out, *value);
    } else {
      out += "null";
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    append_quoted(out, value);
  } else if constexpr (std::is_same_v<T, Money>) {
    out += '"';
    append_display_text(out, value, 0);
    out += ' ';
    out += value.currency().code();
    out += '"';
  } else if constexpr (DescribedEnum<T>) {
    append_quoted(out, boost::describe::enum_to_string(value, "?"));
  } else {
    const bj::value leaf = write(value);
    if (leaf.is_int64()) {
      char digits[20];
      const auto end = std::to_chars(digits, digits + sizeof digits, leaf.get_int64());
      out.append(digits, end.ptr);
    } else {
      out += bj::serialize(leaf);
    }
  }
}

// ---- whole documents --------------------------------------------------------------------------

template <class T>
std::string to_document(const T& value) {
  std::string text;
  append(text, value);
  return text;
}

// Parses JSON text; the error names the place.
Result<bj::value> parse_document(std::string_view text);

template <class T>
Result<T> from_value(const bj::value& json, Missing missing,
                     ErrorKind kind = ErrorKind::invalid_argument) {
  T out{};
  Reader reader{missing, {}, {}, {}};
  if (!read(json, out, reader)) return Error{kind, reader.fault, reader.next_step};
  return out;
}

template <class T>
Result<T> from_document(std::string_view text, Missing missing,
                        ErrorKind kind = ErrorKind::invalid_argument) {
  LOAM_TRY(json, parse_document(text));
  return from_value<T>(json, missing, kind);
}

}  // namespace loam::json

// Described enumerations by their names, as people and files write them. Pure.
#pragma once

#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loam {

// "a, b, c": all names of a described enumeration, in its order.
template <class E>
std::string enumerator_names() {
  std::string names;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>(
      [&](auto described) { names += (names.empty() ? "" : ", ") + std::string(described.name); });
  return names;
}

// The value of that name; the error lists the names there are.
template <class E>
Result<E> parse_enumerator(std::string_view text) {
  E value{};
  if (boost::describe::enum_from_string(std::string(text).c_str(), value)) return value;
  return invalid("'" + std::string(text) + "' is not known", "use one of " + enumerator_names<E>());
}

}  // namespace loam

#include "domain/tenant.hpp"

#include <algorithm>

namespace loam {

bool is_name(std::string_view text) {
  constexpr std::size_t length_max = 63;  // as a DNS label, so that names fit into host names
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= length_max && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace loam

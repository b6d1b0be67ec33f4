// Id<Tag>: a typed number. Ids of different nouns do not mix; they are given out in order, so
// that ties broken by id are broken by age. Pure.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace loam {

// `Tag::prefix` is the letter that people see before the number: t17 is task 17.
template <class Tag>
struct Id {
  std::uint64_t value = 0;  // 0 names nothing

  constexpr bool valid() const noexcept { return value != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;

  std::string text() const { return Tag::prefix + std::to_string(value); }

  // The inverse of text(); nothing on any other input.
  static std::optional<Id> parse(std::string_view text) {
    const std::string_view prefix = Tag::prefix;
    if (!text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    Id id;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), id.value);
    if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (id.value == 0 || text.front() == '0') return std::nullopt;
    return id;
  }
};

}  // namespace loam

template <class Tag>
struct std::hash<loam::Id<Tag>> {
  std::size_t operator()(loam::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};

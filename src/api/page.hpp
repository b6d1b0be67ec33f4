// Lists a page at a time: how many of a page, after which, and what comes next. Shell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/call.hpp"

namespace loam::api {

inline constexpr std::int64_t page_default = 100;
inline constexpr std::int64_t page_max = 500;

// `of`: " tasks", for the error; or nothing.
inline Result<std::int64_t> page_limit(const Call& call, const std::string& of = {}) {
  LOAM_TRY(limit, call.number("limit", page_default, page_max));
  if (limit == 0) {
    return invalid("a page of 0" + of + " shows nothing", "use 1 to " + std::to_string(page_max));
  }
  return limit;
}

// The id after which a page begins; none where there is none.
template <class Id>
Result<Id> page_after(const Call& call) {
  const std::string after = call.query("after");
  if (after.empty()) return Id{};
  const auto id = Id::parse(after);
  if (!id) return invalid("'after' is '" + after + "'", "give the 'next' of the page before");
  return *id;
}

// Of records of which one more than a page was asked for: cuts them down to a page, and gives what
// `id_of` says of the last where there is a next one. Requires limit > 0.
template <class Record, class IdOf>
std::string cut_to_page(std::vector<Record>& records, std::int64_t limit, const IdOf& id_of) {
  if (records.size() <= static_cast<std::size_t>(limit)) return {};
  records.resize(static_cast<std::size_t>(limit));
  return id_of(records.back()).text();
}

}  // namespace loam::api

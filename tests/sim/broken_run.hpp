// For tests of the auditor: what it says of a run, and of the same run with one event broken.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/auditor.hpp"

namespace loam::sim {

inline constexpr Instant run_start{1'767'225'600'000};  // 2026-01-01T00:00:00Z

inline std::string verdict_on(const std::vector<Record>& records) {
  Auditor auditor;
  for (const Record& record : records) {
    auditor.hear(record);
    if (!auditor.broken().empty()) return auditor.broken();
  }
  auditor.check_drained();
  return auditor.broken();
}

// Applies `change` to the first event of type E, from the `skip`-th on.
template <class E>
std::string verdict_after(std::vector<Record> records, const std::function<void(E&)>& change,
                          std::size_t skip = 0) {
  for (Record& record : records) {
    auto* event = std::get_if<E>(&record.event);
    if (event == nullptr || skip-- > 0) continue;
    change(*event);
    return verdict_on(records);
  }
  return "no such event in the run";
}

}  // namespace loam::sim

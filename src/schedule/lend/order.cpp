#include "schedule/lend/order.hpp"

#include <algorithm>
#include <tuple>

namespace loam::schedule::lend {
namespace {

template <class Candidate>
std::vector<std::uint64_t> first(const std::vector<Candidate>& sorted, std::size_t count) {
  std::vector<std::uint64_t> devices;
  for (std::size_t i = 0; i < std::min(count, sorted.size()); ++i)
    devices.push_back(sorted[i].device);
  return devices;
}

}  // namespace

bool takes_before(const TakeCandidate& a, const TakeCandidate& b) {
  const auto key = [](const TakeCandidate& candidate) {
    const bool loses = candidate.taking == Taking::task;
    return std::make_tuple(candidate.taking,
                           loses ? candidate.gang * candidate.save_and_load.ms : 0,
                           loses ? -candidate.started.ms : 0, candidate.device);
  };
  return key(a) < key(b);
}

std::vector<std::uint64_t> take(std::vector<TakeCandidate> candidates, std::size_t count) {
  std::sort(candidates.begin(), candidates.end(), takes_before);
  return first(candidates, count);
}

std::vector<std::uint64_t> give(std::vector<GiveCandidate> candidates, std::size_t count) {
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(a.giving, ~a.device) < std::make_tuple(b.giving, ~b.device);
  });
  return first(candidates, count);
}

}  // namespace loam::schedule::lend

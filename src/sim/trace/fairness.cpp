#include "sim/trace/fairness.hpp"

#include <numeric>

namespace loam::sim {

double jain_index(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  if (squares == 0) return 1;
  return sum * sum / (static_cast<double>(values.size()) * squares);
}

void TenantShares::add(const std::string& tenant, std::int64_t asked, std::int64_t got) {
  Share& share = shares_[tenant];
  share.asked += asked;
  share.got += got;
}

double TenantShares::jain() const {
  std::vector<double> parts;
  for (const auto& [tenant, share] : shares_) {
    if (share.asked > 0)
      parts.push_back(static_cast<double>(share.got) / static_cast<double>(share.asked));
  }
  return jain_index(parts);
}

}  // namespace loam::sim

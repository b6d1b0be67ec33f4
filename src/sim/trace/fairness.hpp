// Fairness of a run as one figure. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace loam::sim {

// Jain's fairness index (Jain, Chiu & Hawe, 1984): 1 where all values are equal, 1/n where one has
// everything; 1 for none. Requires values of at least 0.
double jain_index(const std::vector<double>& values);

// What tenants asked for, and what they got of it. A trace that names no tenants has one, whose
// name is empty.
class TenantShares {
 public:
  void add(const std::string& tenant, std::int64_t asked, std::int64_t got);

  // Jain's index over the tenants of got/asked; tenants that asked for nothing do not count.
  double jain() const;

 private:
  struct Share {
    std::int64_t asked = 0;
    std::int64_t got = 0;
  };
  std::map<std::string, Share> shares_;
};

}  // namespace loam::sim

// The mix of requests a pool sees: its distinct demands and how often each comes. Known before, or
// estimated from the latest requests. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedule/demand.hpp"

namespace loam::schedule {

struct RequestType {
  Demand demand;
  std::int64_t count = 0;
};

// Types in the order of their keys, so that equal mixes are equal whatever the order of requests.
struct Mix {
  std::vector<RequestType> types;

  std::int64_t total() const;
};

// Text that is equal for equal demands only.
std::string key_of(const Demand& demand);

Mix mix_of(const std::vector<Demand>& demands);

// Half the sum of the differences of the types' shares: 0 for equal mixes, 1 where they have no
// type in common or one of them is empty. O(types).
double distance(const Mix& a, const Mix& b);

// Counts the latest requests and says when the mix is worth working out anew: when the number
// seen has doubled, later once a window.
class MixEstimator {
 public:
  // True where the mix should be taken up now. Amortised O(log types).
  bool note(const Demand& demand);
  Mix mix() const;
  std::int64_t seen() const { return seen_; }

 private:
  struct Type {
    Demand demand;
    std::int64_t recent = 0;
    std::int64_t before = 0;  // of the previous window
  };
  std::map<std::string, Type> types_;
  std::int64_t seen_ = 0;
  std::int64_t next_ = 8;
  std::int64_t in_window_ = 0;
};

}  // namespace loam::schedule

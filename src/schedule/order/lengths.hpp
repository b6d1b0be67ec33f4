// Lengths: how long tasks turn out to run, learned from those that ended and from those that have
// not ended yet (which are censored: Kaplan & Meier, "Nonparametric estimation from incomplete
// observations", 1958), in quarter-octave bins. From it: the median, quantiles, and the Gittins
// index (Gittins, "Bandit processes and dynamic allocation indices", 1979). Doubles are preferences
// here, never amounts. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace loam::schedule {

// What a hazard has learned, and its distribution as bits.
struct HazardImage {
  std::vector<std::int64_t> ended;
  std::vector<std::int64_t> reached;
  std::vector<std::int64_t> survival;
};
BOOST_DESCRIBE_STRUCT(HazardImage, (), (ended, reached, survival))

// A distribution over bins, learned as a hazard (the chance to end in a bin, given that it was
// reached) that starts from a prior worth `trust` tasks.
class Hazard {
 public:
  // `edges`: ascending, one more than there are bins. `prior`: each bin's share, summing to 1.
  // `from_zero`: the first bin also holds what is below edges[0].
  Hazard(std::vector<double> edges, std::vector<double> prior, double trust);

  // A task ended with `value`; it stays counted.
  void end(double value);
  // Computes the distribution anew; `alive` are the values that unfinished tasks have reached.
  void learn(const std::vector<double>& alive);

  // The value that a share `p` of the tasks does not pass, interpolated by logarithm.
  double quantile(double p) const;
  // max over d of P(rest <= d) / E[min(rest, d)] for one that has reached `age`, its values taken
  // at the bins' geometric midpoints times `scale`, `age` in scaled units. 0: no mass is left.
  double gittins(double age, double scale) const;

  void set_trust(double trust) { trust_ = trust; }
  HazardImage image() const;
  // Requires an image of a hazard with the same bins.
  void restore(const HazardImage& image);

 private:
  std::size_t bin_of(double value) const;

  std::vector<double> edges_;
  std::vector<double> middles_;  // the bins' geometric midpoints
  std::vector<double> prior_;
  double trust_;
  std::vector<double> ended_;     // tasks that ended in each bin
  std::vector<double> reached_;   // ended tasks that reached each bin's end, or ended in it
  std::vector<double> survival_;  // at each edge
};

// What is known of the lengths of a queue's tasks, for tasks without limits and with.
class Lengths {
 public:
  // Weights of the priors, in tasks.
  static constexpr double trust_blind = 16;
  static constexpr double trust_limited = 8;

  explicit Lengths(double trust);

  // A task ended after `served`; `limit` is what it had stated, 0: nothing.
  void end(Duration served, Duration limit);

  struct Alive {
    Duration served;
    Duration limit;  // 0: none stated
  };
  void learn(const std::vector<Alive>& alive);

  double median_s() const { return median_s_; }
  // Four in five tasks are no longer.
  double long_s() const { return long_s_; }
  // Per second; of a task that was served so long and stated `limit` (0: nothing).
  double gittins(Duration served, Duration limit) const;

  // The weight of the prior from the next learn() on.
  void set_trust(double trust);
  HazardImage lengths_image() const { return length_.image(); }
  HazardImage ratios_image() const { return ratio_.image(); }
  void restore(const HazardImage& lengths, const HazardImage& ratios);

 private:
  Hazard length_;  // seconds
  Hazard ratio_;   // of the stated limit
  double median_s_ = 0;
  double long_s_ = 0;
};

}  // namespace loam::schedule

#include "schedule/order/lengths.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

constexpr double shortest_s = 30;
constexpr double longest_s = 30.0 * 86'400;
constexpr double bins_per_octave = 4;
// What is left to go where the distribution has no mass beyond the age: at least a minute.
constexpr double rest_min_s = 60;

double seconds(Duration duration) {
  return static_cast<double>(duration.ms) / 1000;
}

std::vector<double> length_edges() {
  std::vector<double> edges;
  for (double k = 0;; ++k) {
    const double edge = shortest_s * std::exp2(k / bins_per_octave);
    if (edge >= longest_s) break;
    edges.push_back(edge);
  }
  edges.push_back(longest_s);
  return edges;
}

// Log-uniform: every bin alike.
std::vector<double> level_prior(std::size_t bins) {
  return std::vector<double>(bins, 1.0 / static_cast<double>(bins));
}

std::vector<double> ratio_edges() {
  std::vector<double> edges;
  for (double k = 0; k <= 24; ++k) edges.push_back(std::exp2(k / bins_per_octave - 6));
  return edges;
}

// Uniform over (0, 1]; the first bin holds what is below it too.
std::vector<double> uniform_prior(const std::vector<double>& edges) {
  std::vector<double> prior;
  for (std::size_t k = 0; k + 1 < edges.size(); ++k)
    prior.push_back(edges[k + 1] - (k == 0 ? 0 : edges[k]));
  return prior;
}

}  // namespace

Hazard::Hazard(std::vector<double> edges, std::vector<double> prior, double trust)
    : edges_(std::move(edges)), prior_(std::move(prior)), trust_(trust) {
  LOAM_ASSERT(prior_.size() >= 1 && edges_.size() == prior_.size() + 1);
  for (std::size_t k = 0; k < prior_.size(); ++k)
    middles_.push_back(std::sqrt(edges_[k] * edges_[k + 1]));
  ended_.assign(prior_.size(), 0);
  reached_.assign(prior_.size(), 0);
  learn({});
}

std::size_t Hazard::bin_of(double value) const {
  const auto above = std::upper_bound(edges_.begin(), edges_.end(), value);
  const auto bin = std::max<std::ptrdiff_t>(0, above - edges_.begin() - 1);
  return std::min(static_cast<std::size_t>(bin), prior_.size() - 1);
}

void Hazard::end(double value) {
  const std::size_t bin = bin_of(value);
  ended_[bin] += 1;
  for (std::size_t k = 0; k <= bin; ++k) reached_[k] += 1;
}

void Hazard::learn(const std::vector<double>& alive) {
  // Unfinished tasks are at risk in the bins whose end they have passed.
  std::vector<double> passed(prior_.size() + 1, 0);
  for (const double value : alive) {
    const auto ends = std::upper_bound(edges_.begin() + 1, edges_.end(), value);
    passed[static_cast<std::size_t>(ends - (edges_.begin() + 1))] += 1;
  }
  for (std::size_t k = prior_.size(); k-- > 0;) passed[k] += passed[k + 1];
  survival_.assign(1, 1.0);
  double prior_left = 1;
  for (std::size_t k = 0; k < prior_.size(); ++k) {
    const bool last = k + 1 == prior_.size();
    const double hazard = last ? 1
                               : (trust_ * prior_[k] + ended_[k]) /
                                     (trust_ * prior_left + reached_[k] + passed[k + 1]);
    survival_.push_back(survival_.back() * (1 - hazard));
    prior_left -= prior_[k];
  }
}

double Hazard::quantile(double p) const {
  const double left = 1 - p;
  for (std::size_t k = 0; k < prior_.size(); ++k) {
    if (survival_[k + 1] > left) continue;
    const double part = (survival_[k] - left) / (survival_[k] - survival_[k + 1]);
    return std::exp(std::log(edges_[k]) + part * (std::log(edges_[k + 1]) - std::log(edges_[k])));
  }
  return edges_.back();
}

double Hazard::gittins(double age, double scale) const {
  std::size_t first = 0;
  const auto value = [&](std::size_t k) { return scale * middles_[k]; };
  while (first < prior_.size() && value(first) <= age) ++first;
  if (first == prior_.size()) return 0;
  const double all = survival_[first];
  if (all <= 1e-12) return 0;
  double best = 0;
  double ended = 0;
  double time_of_ended = 0;
  for (std::size_t k = first; k < prior_.size(); ++k) {
    const double mass = survival_[k] - survival_[k + 1];
    const double rest = value(k) - age;
    ended += mass;
    time_of_ended += mass * rest;
    best = std::max(best, ended / (time_of_ended + (all - ended) * rest));
  }
  return best;
}

HazardImage Hazard::image() const {
  HazardImage image;
  for (const double count : ended_) image.ended.push_back(static_cast<std::int64_t>(count));
  for (const double count : reached_) image.reached.push_back(static_cast<std::int64_t>(count));
  for (const double left : survival_) image.survival.push_back(std::bit_cast<std::int64_t>(left));
  return image;
}

void Hazard::restore(const HazardImage& image) {
  LOAM_ASSERT(image.ended.size() == ended_.size() && image.reached.size() == reached_.size() &&
              image.survival.size() == survival_.size());
  std::copy(image.ended.begin(), image.ended.end(), ended_.begin());
  std::copy(image.reached.begin(), image.reached.end(), reached_.begin());
  std::transform(image.survival.begin(), image.survival.end(), survival_.begin(),
                 [](std::int64_t bits) { return std::bit_cast<double>(bits); });
}

void Lengths::set_trust(double trust) {
  length_.set_trust(trust);
  ratio_.set_trust(trust);
}

void Lengths::restore(const HazardImage& lengths, const HazardImage& ratios) {
  length_.restore(lengths);
  ratio_.restore(ratios);
  median_s_ = length_.quantile(0.5);
  long_s_ = length_.quantile(0.8);
}

Lengths::Lengths(double trust)
    : length_(length_edges(), level_prior(length_edges().size() - 1), trust),
      ratio_(ratio_edges(), uniform_prior(ratio_edges()), trust) {
  learn({});
}

void Lengths::end(Duration served, Duration limit) {
  length_.end(seconds(served));
  if (limit.ms > 0) ratio_.end(seconds(served) / seconds(limit));
}

void Lengths::learn(const std::vector<Alive>& alive) {
  std::vector<double> lengths;
  std::vector<double> ratios;
  for (const Alive& one : alive) {
    lengths.push_back(seconds(one.served));
    if (one.limit.ms > 0) ratios.push_back(seconds(one.served) / seconds(one.limit));
  }
  length_.learn(lengths);
  ratio_.learn(ratios);
  median_s_ = length_.quantile(0.5);
  long_s_ = length_.quantile(0.8);
}

double Lengths::gittins(Duration served, Duration limit) const {
  const double age = seconds(served);
  if (limit > served) {
    const double index = ratio_.gittins(age, seconds(limit));
    return index > 0 ? index : 1 / std::max(seconds(limit) - age, rest_min_s);
  }
  const double index = length_.gittins(age, 1);
  return index > 0 ? index : 1 / rest_min_s;
}

}  // namespace loam::schedule

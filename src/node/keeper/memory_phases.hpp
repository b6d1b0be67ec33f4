// MemoryPhases: how much memory a task will need soon, from how much it used. Training uses memory
// in iterations that are alike, so the period is found by autocorrelation (Box & Jenkins, "Time
// Series Analysis", 1970, chapter 2) and the next samples are expected to be as large as the
// largest at the same places of the periods seen. Without a period: as large as the largest ever
// kept. Pure; integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace loam::node {

class MemoryPhases {
 public:
  // One sample of the memory in use; samples are equally far apart. Keeps `samples_kept`.
  void note(std::uint64_t used_bytes);

  // Samples in one iteration; nothing while none is seen (at least three whole ones are needed).
  // Cost: samples_kept squared, so found anew only every refresh_samples.
  std::optional<std::size_t> period() const { return period_; }
  // The most that is expected within the next `ahead` samples; never below what is used now. 0
  // samples seen: all ones (nothing is known, so nothing is safe).
  std::uint64_t peak_within(std::size_t ahead) const;

  static constexpr std::size_t samples_kept = 240;
  static constexpr std::size_t refresh_samples = 8;

 private:
  void find_period();

  std::deque<std::uint64_t> samples_;
  std::optional<std::size_t> period_;
  std::size_t since_refresh_ = 0;
};

}  // namespace loam::node

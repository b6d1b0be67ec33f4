#include "gateway/recent.hpp"

#include <algorithm>
#include <bit>

namespace loam::gateway {

namespace {

constexpr Duration slice_length = Duration::seconds(10);
constexpr int fine_bits = 3;  // 8 steps to each doubling
constexpr std::uint64_t fine = 1U << fine_bits;

std::size_t bucket_of(std::uint64_t us, std::size_t buckets) {
  if (us < fine) return us;
  const auto octave = static_cast<std::size_t>(std::bit_width(us)) - fine_bits;
  const std::size_t bucket = octave * fine + (us >> (octave - 1)) % fine;
  return std::min(bucket, buckets - 1);
}

std::uint64_t upper_end(std::size_t bucket) {
  if (bucket < fine) return bucket;
  const std::size_t octave = bucket / fine;
  const std::uint64_t step = std::uint64_t{1} << (octave - 1);
  return (fine + bucket % fine + 1) * step - 1;
}

}  // namespace

void DurationCounts::observe(std::uint64_t microseconds) {
  ++counts_[bucket_of(microseconds, buckets)];
  ++total_;
}

void DurationCounts::add(const DurationCounts& other) {
  for (std::size_t i = 0; i < buckets; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
}

std::optional<std::uint64_t> DurationCounts::quantile_us(std::uint32_t permille) const {
  if (total_ == 0) return std::nullopt;
  const std::uint64_t wanted = std::max<std::uint64_t>((total_ * permille + 999) / 1000, 1);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets; ++i) {
    seen += counts_[i];
    if (seen >= wanted) return upper_end(i);
  }
  return upper_end(buckets - 1);
}

Recent::Slice& Recent::at(Instant now) {
  if (!since_) since_ = now;
  const std::int64_t number = now.ms / slice_length.ms;
  Slice& slice = slices_[static_cast<std::size_t>(number) % slices_.size()];
  if (slice.number != number) {
    slice = {};
    slice.number = number;
  }
  return slice;
}

void Recent::first_token(std::uint64_t microseconds, Instant now) {
  at(now).first_token.observe(microseconds);
}

void Recent::gap(std::uint64_t microseconds, Instant now) {
  at(now).gap.observe(microseconds);
}

void Recent::generated(std::uint64_t tokens, Instant now) {
  at(now).generated_tokens += tokens;
}

void Recent::prompt(std::uint64_t tokens, std::uint64_t cached, Instant now) {
  Slice& slice = at(now);
  slice.prompt_tokens += tokens;
  slice.cached_tokens += cached;
}

Recent::Summary Recent::summary(Instant now) const {
  Summary out;
  const std::int64_t last = now.ms / slice_length.ms;
  const std::int64_t first = last - static_cast<std::int64_t>(slices_.size()) + 1;
  DurationCounts first_token;
  DurationCounts gap;
  for (const Slice& slice : slices_) {
    if (slice.number < first || slice.number > last) continue;
    out.generated_tokens += slice.generated_tokens;
    out.prompt_tokens += slice.prompt_tokens;
    out.cached_tokens += slice.cached_tokens;
    first_token.add(slice.first_token);
    gap.add(slice.gap);
  }
  out.first_token_p50_us = first_token.quantile_us(500);
  out.first_token_p99_us = first_token.quantile_us(990);
  out.gap_p50_us = gap.quantile_us(500);
  out.gap_p99_us = gap.quantile_us(990);
  if (since_) out.over = now - std::max(*since_, Instant{first * slice_length.ms});
  return out;
}

}  // namespace loam::gateway

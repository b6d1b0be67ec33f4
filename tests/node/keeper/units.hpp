// What the keeper's tests count in.
#pragma once

#include <cstdint>

#include "schedule/quantum.hpp"

namespace loam::node {

inline constexpr std::uint64_t mib = 1u << 20;
inline constexpr schedule::Nanoseconds ms = 1'000'000;
inline constexpr schedule::Nanoseconds second = 1'000'000'000;

}  // namespace loam::node

// Amounts: what a task takes of the pool, in every dimension that is limited or shared. Pure.
#pragma once

#include <array>
#include <boost/describe/class.hpp>
#include <cstddef>
#include <cstdint>

namespace loam::schedule {

enum class Dimension : std::uint8_t {
  ce,           // milli-CE
  memory,       // MiB of device memory
  devices,      // milli-device
  tasks,        // tasks
  cpu,          // milli-CPU
  host_memory,  // MiB
};
inline constexpr std::size_t dimensions = 6;
// "CE", "GiB of device memory", ...: for people.
const char* name_of(Dimension dimension) noexcept;

struct Amounts {
  std::array<std::int64_t, dimensions> values{};

  std::int64_t& operator[](Dimension d) { return values[static_cast<std::size_t>(d)]; }
  std::int64_t operator[](Dimension d) const { return values[static_cast<std::size_t>(d)]; }
  Amounts& operator+=(const Amounts& other) {
    for (std::size_t d = 0; d < dimensions; ++d) values[d] += other.values[d];
    return *this;
  }
  Amounts& operator-=(const Amounts& other) {
    for (std::size_t d = 0; d < dimensions; ++d) values[d] -= other.values[d];
    return *this;
  }
  friend auto operator<=>(const Amounts&, const Amounts&) = default;
};
BOOST_DESCRIBE_STRUCT(Amounts, (), (values))

}  // namespace loam::schedule

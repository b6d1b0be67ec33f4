#include "node/launch/clock.hpp"

#include <ctime>
#include <sstream>

#include "node/launch/file.hpp"

namespace loam::node {

std::int64_t boottime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

const std::string& boot_id() {
  static const std::string id = [] {
    auto text = read_file("/proc/sys/kernel/random/boot_id", 128);
    if (!text) return std::string();
    while (!text->empty() && text->back() == '\n') text->pop_back();
    return *text;
  }();
  return id;
}

std::int64_t wall_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

std::optional<std::uint64_t> process_start_ticks(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return std::nullopt;
  // The second field is the command in parentheses and may hold anything, also parentheses.
  const auto end_of_command = text->rfind(')');
  if (end_of_command == std::string::npos) return std::nullopt;
  std::istringstream rest(text->substr(end_of_command + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) {
    if (!(rest >> field)) return std::nullopt;
  }
  std::uint64_t ticks = 0;
  if (!(rest >> ticks)) return std::nullopt;
  return ticks;
}

}  // namespace loam::node

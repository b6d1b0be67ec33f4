// Quantities as people read them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::cli {

// "1h 02m 03s", "4m 05s", "6s", below ten seconds "1.2s". Cut, never rounded up.
std::string human_duration(std::int64_t ms);
// "3,723.250 s": exact, for proofs.
std::string exact_seconds(std::int64_t ms);

// An amount as the API gives it ("0.020833333333") to at most four decimals and at least those
// that the currency is paid in,
// rounded half to even; "" stays. Text that is no amount is given back as it is.
std::string money_short(std::string_view amount, std::string_view currency);
// The same, rounded up: what is promised as a most is never less than it is.
std::string money_most(std::string_view amount, std::string_view currency);
// All decimals, at least those that the currency is paid in.
std::string money_exact(std::string_view amount, std::string_view currency);
// The same with as many decimals for each as the one with the most, so that points align.
std::vector<std::string> money_column(const std::vector<std::string>& amounts,
                                      std::string_view currency);

// 0.6 -> "60 %", 0.125 -> "12.5 %"; one decimal at most.
std::string percent(double fraction);
// "40 %"; "80 % of 120 % lent" where a device is lent more than once.
std::string promised_text(double promised, double lent);
std::string memory_text(std::int64_t mebibytes);  // "10GiB", "1536MiB"
// Whether a line of that kind counts what is held over time, by the GiB-hour.
inline bool is_held(std::string_view kind) {
  return kind == "storage" || kind == "backup";
}
// "2026-03-02T00:00:00Z" -> "2026-03-02 00:00:00"; UTC, without the milliseconds.
std::string instant_text(const std::optional<std::string>& instant);

// The command as one would type it, quoted where a shell needs it.
std::string command_text(const std::vector<std::string>& words);

// One thing or many: "1 task", "2 tasks".
std::string count_of(std::int64_t n, const std::string& noun);

}  // namespace loam::cli

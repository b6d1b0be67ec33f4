// Assertions that stay on in production: for programmer errors only, never for input or I/O.
#pragma once

namespace loam {

// Prints the condition and its place to standard error and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace loam

#define LOAM_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::loam::assertion_failed(#condition, __FILE__, __LINE__))

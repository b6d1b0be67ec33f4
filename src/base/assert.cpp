#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace loam {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "loam: assertion failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace loam

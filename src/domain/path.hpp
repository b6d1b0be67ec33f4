// Paths that a task may name: for where it starts and for what is mounted into it. Pure.
#pragma once

#include <string_view>

namespace loam {

// What is wrong with `path`, in words that follow its name ("is not an absolute path"), or nullptr:
// it is absolute, without a NUL byte and without "." or ".." as a part.
const char* path_fault(std::string_view path) noexcept;

// Whether a mount at `target` would hide what the sandbox itself puts in place. Requires a path
// without fault.
bool is_reserved_target(std::string_view target) noexcept;

}  // namespace loam

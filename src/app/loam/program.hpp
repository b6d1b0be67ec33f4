// The whole program as a function, so that tests run it without a process.
#pragma once

#include <string>
#include <vector>

#include "app/loam/session.hpp"

namespace loam::cli {

// `words` without the program's name. Gives the exit status; errors go to the console's error
// stream as "error: …" and "next: …".
int run_program(const std::vector<std::string>& words, Console& console,
                const Environment& environment);

}  // namespace loam::cli

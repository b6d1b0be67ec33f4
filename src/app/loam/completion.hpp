// Shell completions, made from the command table. Pure.
#pragma once

#include <string>

namespace loam::cli {

// `shell`: bash, zsh or fish.
std::string completion_text(const std::string& shell);

}  // namespace loam::cli

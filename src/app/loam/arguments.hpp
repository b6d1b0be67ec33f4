// From the words of a command line to one command and its arguments. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/loam/command.hpp"

namespace loam::cli {

struct Parsed {
  const Command* command = nullptr;  // none: help was asked for
  Arguments arguments;
  bool help = false;
  std::string topic;  // of the help: a command, a noun, or empty
};

// `words` without the program's name. Errors are invalid_argument, with the nearest that would do.
Result<Parsed> parse_words(const std::vector<std::string>& words);

// The candidate nearest to `word` in edits; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace loam::cli

// Help, made from the command table. Pure.
#pragma once

#include <string>

#include "app/loam/command.hpp"

namespace loam::cli {

std::string overview_text(bool colour);
std::string help_text(const Command& command, bool colour);
// Of a command, a noun, "exit-codes" or "" for the overview. Error: no such topic.
Result<std::string> topic_text(const std::string& topic, bool colour);
// "loam run [options] -- CMD…"
std::string usage_text(const Command& command);

}  // namespace loam::cli

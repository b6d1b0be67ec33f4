// `loam top`: devices and the tasks on them, live. Not pure: signals, the terminal.
#pragma once

#include "app/loam/session.hpp"

namespace loam::cli {

// One picture. Pure.
std::string top_text(const api::TopView& view, bool colour, std::size_t width);

// How a task's state looks.
Style style_of(const api::TaskView& task);

Result<int> run_top(Session& session, const Arguments& arguments);

}  // namespace loam::cli

// Follows one task to its end: its output to the right streams, a live line for people, Ctrl-C.
// Not pure: signals, a thread.
#pragma once

#include "app/loam/session.hpp"

namespace loam::cli {

// "0m 42s  running  60 % of n1/0 (measured 59.1 %)  0.0123 USD": one line about a live task.
std::string status_line(const api::TaskView& task);

// How a finished task ended, for people.
std::string ending_line(const api::TaskView& task);

// Streams the task's output until it ends. The first SIGINT or SIGTERM asks the daemon to stop it,
// the second detaches. Gives the exit status of `loam run`.
Result<int> follow(Session& session, const api::TaskView& task);

}  // namespace loam::cli

// What the last runs of a task say about what it asks for. Not pure: asks the daemon.
#pragma once

#include "app/loam/session.hpp"

namespace loam::cli {

// "note: its last 5 runs of this week used 9 of 40 CE at most: ask for 10.8", on the error stream;
// nothing where nothing is known of it, or it asks for what it used.
Result<void> say_hint(Session& session, api::Client& client, const api::TaskRequest& request);

}  // namespace loam::cli

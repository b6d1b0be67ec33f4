// The program loam-launch, without its main(): takes the attempt's lock, leaves its parent behind
// and runs the attempt. Shell.
#pragma once

namespace loam::node {

// Exit codes of loam-launch, as its starter sees them.
enum LaunchExit : int {
  launch_exit_started = 0,  // the attempt now runs (or is being refused) in a process of its own
  launch_exit_fault = 1,    // said on standard error
  launch_exit_usage = 2,
  launch_exit_running = 3,  // another launcher holds the attempt
  launch_exit_ended = 4,    // the attempt is over; it never runs twice
  launch_exit_lost = 5,     // an earlier launcher died on it; its leftovers are to be cleared first
};

// loam-launch [--foreground] ATTEMPT_DIR. In the background it prints its new pid on standard
// output and returns in the starter's process; with --foreground it returns when the attempt is
// over.
int launch_main(int argc, char** argv);

}  // namespace loam::node

// The keeper: arbitrates one node's devices among the leases that have a slice page. It grants
// turns (TurnBook decides), takes them back, notices dead holders and charges the time used; lends
// idle memory; and tells the daemon what it finds out (reports.hpp).
// Not pure: shared memory, futexes, inotify, CLOCK_MONOTONIC. It sleeps until a doorbell rings, a
// page appears or goes, or a time it set itself has come; with nothing waiting it wakes only to see
// who idles, ten times in the time that makes a lease idle.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "node/keeper/idleness.hpp"
#include "node/keeper/memory_loans.hpp"
#include "node/keeper/promise.hpp"
#include "node/keeper/residence.hpp"

namespace loam::node {

struct KeeperOptions {
  std::string root;  // pages live in ROOT/pages
  PromiseTerms promise;
  IdleTerms idle;
  LoanTerms loans;
  ResidenceTerms residence;
  // Called with one line about something an operator should know.
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

// Runs until SIGTERM or SIGINT (which it blocks in the calling thread; call it from the main thread
// before starting others). conflict if another keeper has ROOT/keeper.lock.
// Guests keep their pages when it ends: they wait, and the next keeper adopts them.
Result<void> run_keeper(const KeeperOptions& options);

}  // namespace loam::node

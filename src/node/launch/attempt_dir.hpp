// What the supervisor reads of an attempt's directory, and how it settles one whose launcher died.
// Shell.
#pragma once

#include <optional>
#include <string>

#include "node/launch/file.hpp"
#include "node/launch/status.hpp"

namespace loam::node {

// status.json; not_found where there is none yet.
Result<AttemptStatus> read_status(const std::string& attempt_path);
// Nothing where there is none, or where it belongs to another boot than the status.
std::optional<Heartbeat> read_heartbeat(const std::string& attempt_path,
                                        const AttemptStatus& status);

// What the program said that this attempt made, in thousandths of whatever it counts: a decimal
// number of at most three places, which it wrote to LOAM_OUTPUT_FILE. Nothing where it wrote none,
// an invalid_argument where that is something else; what it wrote is not repeated.
Result<std::optional<std::int64_t>> read_output(const std::string& attempt_path);

// Whether a launcher holds the attempt. Takes nothing, so it never stands in a launcher's way.
bool is_locked(const std::string& attempt_path);

// Takes the attempt's lock: a launcher holds it as long as it lives. Nothing where it is held.
std::optional<Fd> try_lock(const std::string& attempt_path);

// Requires that the caller holds the lock and the status is not final. Kills what the launcher left
// behind, removes its control groups, and writes the final status: lost, ended at the last
// heartbeat.
Result<AttemptStatus> settle_lost(const std::string& attempt_path, AttemptStatus status);

}  // namespace loam::node

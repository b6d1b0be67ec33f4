// Finding and ending processes of an attempt where no control group holds them. Shell: walks
// /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace loam::node {

// The control groups' name of the attempt in this directory: the attempt's own name, made unique
// among the directories of this machine.
std::string cgroup_name(const std::string& attempt_path);

// Kills every descendant of `ancestor` (not itself), again and again until none is left, for at
// most a second. Orphans that went to process 1 are missed; a subreaper above prevents that.
void kill_descendants(pid_t ancestor);

// Kills every process whose environment says that it belongs to the attempt in this directory
// (LOAM_NOTICE lies in it); for the leftovers of a lost launcher. A program that rewrote its
// environment is missed. Returns how many.
int kill_by_environment(const std::string& attempt_path);

// Threads of all processes of this process's user.
std::int64_t count_threads_of_user();

}  // namespace loam::node

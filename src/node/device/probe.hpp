// Looking at devices in a process of their own: drivers start threads, keep hundreds of MiB and
// sometimes crash, and a daemon that should rest at a few MiB must survive them. The child is any
// program that calls serve_probe() first; it speaks JSON lines on its standard output.
// Not pure: processes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "node/device/calibrate.hpp"
#include "node/device/discovery.hpp"

namespace loam::node {

// Runs `program probe find` and reads what it found. unavailable where it crashed or said nothing
// sensible.
Result<Finding> probe_find(const std::string& program);

// Runs `program probe calibrate UUID`. `progress` is called on this thread as lines arrive.
Result<Calibration> probe_calibrate(const std::string& program, const std::string& uuid,
                                    const CalibrationProgress& progress);

// The child's side: when argv asks for a probe, does it and gives the exit status; else nothing.
std::optional<int> serve_probe(int argc, char** argv);

}  // namespace loam::node

// The node's devices as the daemon knows them: found by the drivers, priced by measurement or
// catalogue, attached to the engine, or refused with the command that helps.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/backend.hpp"
#include "app/loamd/config.hpp"
#include "app/loamd/loop_thread.hpp"
#include "node/device/catalog.hpp"
#include "node/device/discovery.hpp"
#include "node/device/factors.hpp"

namespace loam::daemon {

// What the executor must know of a device to hand out a slice of it.
struct DeviceHandle {
  std::uint64_t slice_key = 0;  // by which the guard knows it
  bool is_cpu = false;
  std::string cuda_name;  // as CUDA_VISIBLE_DEVICES takes it; empty where it is no CUDA device
};

class NodeDevices {
 public:
  using Progress = std::function<void(double fraction, const std::string& step)>;

  // `program` is this daemon's own file: probes run in children of it.
  NodeDevices(const Config& config, std::string program, node::Catalog catalog, LoopThread& loop);

  // Looks, prices and attaches; returns when that is durable. Notes go to the log.
  Result<void> discover();
  std::vector<api::RefusedDevice> refused() const;
  // What an operator should know of an attached device's figures, by UUID.
  std::map<std::string, std::string> notes() const;
  // Looks again: tells the engine of devices that are gone or fail since the last look but one, and
  // attaches those that are back. True where one is missing that the next look may confirm: do it
  // soon.
  Result<bool> check();
  // Measures, remembers the result (calibrations/UUID.json) and attaches with it.
  Result<void> calibrate(const std::string& uuid, const Progress& progress);

  // Nothing for a device that no driver of this node shows now.
  std::optional<DeviceHandle> handle(const std::string& uuid) const;

 private:
  Result<void> attach(const node::FoundDevice& device);
  void keep(const node::Finding& finding);
  // Why this loamd does not sell a device that it finds; nothing: it does.
  std::optional<std::string> hindrance(const node::FoundDevice& device);
  void refuse(const node::FoundDevice& device, const std::string& why);
  void report_lost(DeviceId device, const std::string& uuid, const std::string& why, Instant now);
  // Whether tasks here run in a sandbox with the guard, as far as can be told before one starts.
  bool keeps_apart() const;
  // As the engine has it; nothing where it is not attached.
  std::optional<DeviceFacts> known_facts(const std::string& uuid) const;
  std::string calibration_path(const std::string& uuid) const;
  std::optional<node::Calibration> calibration_of(const std::string& uuid) const;

  const Config& config_;
  const std::string program_;
  const node::Catalog catalog_;
  LoopThread& loop_;
  std::mutex looking_;             // one look at a time
  std::set<std::string> missing_;  // at the last look; with looking_
  std::map<std::string, Instant> seen_at_;
  bool told_of_locks_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, DeviceHandle> handles_;
  std::map<std::string, node::FoundDevice> found_;
  std::map<std::string, api::RefusedDevice> refused_;
  std::map<std::string, std::string> notes_;
};

}  // namespace loam::daemon

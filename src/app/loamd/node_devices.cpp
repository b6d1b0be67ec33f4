#include "app/loamd/node_devices.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <sstream>
#include <tuple>
#include <utility>

#include "node/device/device_holder.hpp"
#include "node/device/probe.hpp"
#include "node/keeper/slice_page.hpp"
#include "node/launch/attempt_files.hpp"
#include "node/launch/file.hpp"
#include "node/launch/sandbox.hpp"

namespace loam::daemon {
namespace {

const Actor node_actor{"loam", "node"};

Backend domain_backend(node::Backend backend) {
  switch (backend) {
    case node::Backend::opencl:
      return Backend::opencl;
    case node::Backend::cuda:
      return Backend::cuda;
    case node::Backend::rocm:
      return Backend::rocm;
  }
  return Backend::opencl;
}

CeFactors domain_factors(const node::MeasuredFactors& factors) {
  return {factors.general, factors.train, factors.prefill, factors.decode};
}

// Posts a command and waits for its durable answer.
Result<std::string> ask(LoopThread& loop, Command command) {
  std::promise<engine::Answer> promise;
  auto future = promise.get_future();
  engine::Submission submission;
  submission.command = std::move(command);
  submission.actor = node_actor;
  submission.reply = [&promise](const engine::Answer& answer) { promise.set_value(answer); };
  loop.post(std::move(submission));
  engine::Answer answer = future.get();
  if (answer.error) return *answer.error;
  if (answer.reject)
    return Error{ErrorKind::conflict, answer.reject->message, answer.reject->next_step};
  return answer.subject;
}

MilliCpu lendable_cpu(const Config& config) {
  const std::int64_t cores = std::max<std::int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN));
  return MilliCpu{cores * 1000 * config.cpu_oversubscription};
}

Mebibytes host_memory() {
  const std::int64_t pages = std::max<std::int64_t>(0, ::sysconf(_SC_PHYS_PAGES));
  return Mebibytes{pages / ((std::int64_t{1} << 20) / ::sysconf(_SC_PAGESIZE))};
}

std::string joined(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

}  // namespace

NodeDevices::NodeDevices(const Config& config, std::string program, node::Catalog catalog,
                         LoopThread& loop)
    : config_(config), program_(std::move(program)), catalog_(std::move(catalog)), loop_(loop) {}

std::string NodeDevices::calibration_path(const std::string& uuid) const {
  return config_.data_dir + "/calibrations/" + uuid + ".json";
}

std::optional<node::Calibration> NodeDevices::calibration_of(const std::string& uuid) const {
  std::ifstream file(calibration_path(uuid));
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  auto calibration = node::parse_calibration(text.str());
  if (!calibration) {
    spdlog::warn("the calibration {} is passed over: {}", calibration_path(uuid),
                 to_text(calibration.error()));
    return std::nullopt;
  }
  return *calibration;
}

void NodeDevices::keep(const node::Finding& finding) {
  const std::lock_guard lock(mutex_);
  handles_.clear();
  found_.clear();
  refused_.clear();
  for (const node::FoundDevice& device : finding.devices) {
    found_[device.uuid] = device;
    if (device.backend == node::Backend::cuda) {
      // By its UUID, which NVML, the CUDA driver and NVIDIA's OpenCL driver say alike.
      handles_[device.uuid].slice_key = node::uuid_device_key(device.uuid);
      handles_[device.uuid].cuda_name = device.uuid;
      continue;
    }
    if (!device.opencl) continue;
    // By its place: the UUID may come from another library than the OpenCL driver that the guard
    // asks, and the guard tries both.
    handles_[device.uuid].slice_key =
        node::opencl_device_key(device.opencl->platform_name, device.name, device.opencl->device);
    handles_[device.uuid].is_cpu = device.is_cpu;
  }
}

std::optional<DeviceFacts> NodeDevices::known_facts(const std::string& uuid) const {
  std::optional<DeviceFacts> facts;
  loop_.read([&](const engine::State& state, Instant) {
    if (const Device* device = state.find_device(uuid)) facts = *device->facts;
  });
  return facts;
}

std::optional<std::string> NodeDevices::hindrance(const node::FoundDevice& device) {
  if (device.health == node::Health::failed)
    return "its driver reports a failure: " + device.health_note;
  const auto held = node::hold_device(config_.device_locks, device.uuid, config_.data_dir);
  if (held) return std::nullopt;
  if (held.error().kind == ErrorKind::conflict) return to_text(held.error());
  if (!std::exchange(told_of_locks_, true))
    spdlog::warn("other loamd of this machine cannot see which devices this one sells: {}",
                 to_text(held.error()));
  return std::nullopt;
}

// One that the engine knows is in its list already.
void NodeDevices::refuse(const node::FoundDevice& device, const std::string& why) {
  spdlog::info("device {} ({}) is not attached: {}", device.uuid, device.name, why);
  const bool known = known_facts(device.uuid).has_value();
  const std::lock_guard lock(mutex_);
  if (known) {
    notes_[device.uuid] = why;
    return;
  }
  refused_[device.uuid] = {device.uuid,
                           device.name,
                           node::device_type_of(device, catalog_),
                           domain_backend(device.backend),
                           device.driver_version,
                           device.memory,
                           why};
}

Result<void> NodeDevices::attach(const node::FoundDevice& device) {
  if (const auto why = hindrance(device)) {
    refuse(device, *why);
    return {};
  }
  const auto worth = node::worth_of(device, catalog_, calibration_of(device.uuid));
  if (!worth) {
    if (const auto known = known_facts(device.uuid)) {
      // After a restore, say: it sells on as it did.
      const std::string note = "sells by " + to_text(known->factors.general) +
                               " CE, as measured before; measure it anew with: loam device "
                               "calibrate " +
                               device.uuid;
      spdlog::warn("device {} ({}) {}", device.uuid, device.name, note);
      const std::lock_guard lock(mutex_);
      notes_[device.uuid] = note;
      return {};
    }
    refuse(device, to_text(worth.error()));
    return {};
  }
  if (!handle(device.uuid)) {
    refuse(device, "neither OpenCL nor CUDA shows it, and only through these are devices shared");
    return {};
  }
  AttachDevice command;
  command.node = config_.node_name;
  command.facts.uuid = device.uuid;
  command.facts.type = worth->device_type;
  command.facts.backend = domain_backend(device.backend);
  command.facts.driver_version = device.driver_version;
  command.facts.memory = device.memory;
  command.facts.factors = domain_factors(worth->factors);
  command.facts.factors_source = node::name_of(worth->origin);
  command.facts.link_group = device.link_group;
  command.facts.numa_node = device.numa_node;
  std::string note = joined(worth->notes);
  const std::optional<DeviceFacts> known = known_facts(device.uuid);
  // What a CPU's driver calls its memory is what the host has free just now: the first figure
  // stands.
  if (known && device.is_cpu) command.facts.memory = known->memory;
  const auto attached = ask(loop_, command);
  if (!attached && known) {
    // In use under its old facts: it stays attached with them.
    spdlog::warn("device {} keeps its old facts: {}", device.uuid, to_text(attached.error()));
    const std::lock_guard lock(mutex_);
    notes_[device.uuid] = "keeps its old facts: " + attached.error().message;
    return {};
  }
  if (!attached) {
    refuse(device, to_text(attached.error()));
    return {};
  }
  const std::lock_guard lock(mutex_);
  refused_.erase(device.uuid);
  notes_[device.uuid] = std::move(note);
  spdlog::info("device {} ({}) is attached, worth {} CE by {}", device.uuid, device.name,
               to_text(command.facts.factors.general), command.facts.factors_source);
  return {};
}

bool NodeDevices::keeps_apart() const {
  if (config_.guard.empty() || config_.sandbox == "none") return false;
  const std::string cache = config_.data_dir + "/attempts/" + node::attempt_files::sandbox_probe;
  return node::probe_sandbox(cache).works;
}

Result<void> NodeDevices::discover() {
  const std::lock_guard looking(looking_);
  LOAM_TRY(finding, node::probe_find(program_));
  for (const node::DiscoveryNote& note : finding.notes) {
    const bool warning = note.severity == node::DiscoveryNote::Severity::warning;
    spdlog::log(warning ? spdlog::level::warn : spdlog::level::debug, "{}: {}", note.source,
                note.text);
  }
  keep(finding);
  LOAM_CHECK(ask(loop_, AttachNode{config_.node_name, config_.region, lendable_cpu(config_),
                                   host_memory(), config_.labels, keeps_apart()}));
  for (const node::FoundDevice& device : finding.devices) LOAM_CHECK(attach(device));
  if (finding.devices.empty())
    spdlog::warn("no device was found; what was looked at shows: loam device discover");
  return {};
}

void NodeDevices::report_lost(DeviceId device, const std::string& uuid, const std::string& why,
                              Instant now) {
  spdlog::error("device {} is lost: {}", uuid, why);
  const auto seen = seen_at_.find(uuid);
  loop_.post_until_durable(ReportDeviceHealth{device, DeviceHealth::lost, why,
                                              seen == seen_at_.end() ? now : seen->second},
                           node_actor);
  const std::lock_guard lock(mutex_);
  notes_[uuid] = why;
}

// A driver that is slow for once has lost nothing: only what is missing twice is lost.
Result<bool> NodeDevices::check() {
  const std::lock_guard looking(looking_);
  LOAM_TRY(finding, node::probe_find(program_));
  std::map<std::string, const node::FoundDevice*> there;
  for (const node::FoundDevice& device : finding.devices) there[device.uuid] = &device;
  struct Known {
    DeviceId id;
    std::string uuid;
    bool lost = false;
  };
  std::vector<Known> known;
  Instant now;
  loop_.read([&](const engine::State& state, Instant at) {
    now = at;
    for (const Device& device : state.devices) {
      if (state.node(device.node).name == config_.node_name)
        known.push_back({device.id, device.facts->uuid, device.health == DeviceHealth::lost});
    }
  });
  std::set<std::string> missing;
  std::vector<const node::FoundDevice*> back;
  for (const Known& device : known) {
    const auto found = there.find(device.uuid);
    std::optional<std::string> why = "its driver does not show it any more";
    if (found != there.end()) why = hindrance(*found->second);
    if (!why) {
      seen_at_[device.uuid] = now;
      if (device.lost) back.push_back(found->second);
    } else if (!device.lost && missing_.count(device.uuid) != 0) {
      report_lost(device.id, device.uuid, *why, now);
    } else if (!device.lost) {
      missing.insert(device.uuid);
    }
  }
  missing_ = std::move(missing);
  if (!back.empty()) keep(finding);
  for (const node::FoundDevice* device : back) LOAM_CHECK(attach(*device));
  return !missing_.empty();
}

std::map<std::string, std::string> NodeDevices::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

std::vector<api::RefusedDevice> NodeDevices::refused() const {
  const std::lock_guard lock(mutex_);
  std::vector<api::RefusedDevice> list;
  for (const auto& [uuid, device] : refused_) list.push_back(device);
  return list;
}

Result<void> NodeDevices::calibrate(const std::string& uuid, const Progress& progress) {
  node::FoundDevice device;
  {
    const std::lock_guard lock(mutex_);
    const auto found = found_.find(uuid);
    if (found == found_.end()) {
      return Error{ErrorKind::not_found, "no device '" + uuid + "' on this node",
                   "look again with: loam device discover"};
    }
    device = found->second;
  }
  if (const auto why = hindrance(device)) return Error{ErrorKind::conflict, *why, {}};
  // A neighbour's work would be measured along.
  std::int64_t leases = 0;
  loop_.read([&](const engine::State& state, Instant) {
    if (const Device* attached = state.find_device(uuid)) leases = attached->leases;
  });
  if (leases > 0) {
    return Error{ErrorKind::conflict,
                 "the device " + uuid + " has " + std::to_string(leases) +
                     (leases == 1 ? " lease" : " leases") + " and cannot be measured",
                 "keep new ones away with: loam device drain, and wait for `loam device list` to "
                 "show no tasks"};
  }
  LOAM_TRY(calibration,
           node::probe_calibrate(
               program_, uuid, [&](std::string_view step, std::int32_t done, std::int32_t of) {
                 if (progress)
                   progress(of > 0 ? static_cast<double>(done) / of : 0, std::string(step));
               }));
  for (const std::string& warning : calibration.warnings)
    spdlog::warn("calibration of {}: {}", uuid, warning);
  const std::string folder = config_.data_dir + "/calibrations";
  LOAM_CHECK(node::make_directories(folder));
  LOAM_TRY(opened, node::open_directory(folder));
  LOAM_CHECK(node::write_atomically_at(opened.get(), (uuid + ".json").c_str(),
                                       node::to_json(calibration) + "\n", node::Durable::yes));
  LOAM_CHECK(attach(device));
  const std::lock_guard lock(mutex_);
  if (const auto refused = refused_.find(uuid); refused != refused_.end()) {
    return Error{ErrorKind::conflict, "measured, but not attached: " + refused->second.note, {}};
  }
  return {};
}

std::optional<DeviceHandle> NodeDevices::handle(const std::string& uuid) const {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(uuid);
  if (found == handles_.end()) return std::nullopt;
  return found->second;
}

}  // namespace loam::daemon

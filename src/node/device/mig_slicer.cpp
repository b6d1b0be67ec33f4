// NVIDIA's MIG through NVML. The declarations are ours, from NVIDIA's public NVML API reference
// ("Multi Instance GPU Management"). Talks to the driver. Tested against a fake library that keeps
// books of slots; no card with MIG was at hand.
#include <algorithm>
#include <array>

#include "node/device/hardware_slices.hpp"
#include "node/device/identity.hpp"
#include "node/device/library.hpp"

namespace loam::node {
namespace {

using NvmlReturn = int;
using NvmlDevice = struct NvmlDeviceOpaque*;
using NvmlGpuInstance = struct NvmlGpuInstanceOpaque*;
using NvmlComputeInstance = struct NvmlComputeInstanceOpaque*;
constexpr NvmlReturn nvml_success = 0;
constexpr NvmlReturn nvml_in_use = 19;
constexpr unsigned profiles_max = 32;  // numbers of profiles are below this
constexpr unsigned instances_max = 16;

struct Placement {
  unsigned start, size;
};
struct GpuProfile {
  unsigned id, peer_to_peer, slices, instances, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpegs, flows;
  unsigned long long memory_mb;
};
static_assert(sizeof(GpuProfile) == 48);
struct GpuInstanceInfo {
  NvmlDevice device;
  unsigned id, profile;
  Placement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24);
struct ComputeProfile {
  unsigned id, slices, instances, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpegs, flows;
};
static_assert(sizeof(ComputeProfile) == 36);

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*profile)(NvmlDevice, unsigned, GpuProfile*) = nullptr;
  NvmlReturn (*placements)(NvmlDevice, unsigned, Placement*, unsigned*) = nullptr;
  NvmlReturn (*create)(NvmlDevice, unsigned, const Placement*, NvmlGpuInstance*) = nullptr;
  NvmlReturn (*destroy)(NvmlGpuInstance) = nullptr;
  NvmlReturn (*instances)(NvmlDevice, unsigned, NvmlGpuInstance*, unsigned*) = nullptr;
  NvmlReturn (*info)(NvmlGpuInstance, GpuInstanceInfo*) = nullptr;
  NvmlReturn (*compute_profile)(NvmlGpuInstance, unsigned, unsigned, ComputeProfile*) = nullptr;
  NvmlReturn (*create_compute)(NvmlGpuInstance, unsigned, NvmlComputeInstance*) = nullptr;
  NvmlReturn (*destroy_compute)(NvmlComputeInstance) = nullptr;
  NvmlReturn (*compute_instances)(NvmlGpuInstance, unsigned, NvmlComputeInstance*,
                                  unsigned*) = nullptr;
  NvmlReturn (*max_devices)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*device_at)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
  NvmlReturn (*instance_of)(NvmlDevice, unsigned*) = nullptr;
  const char* (*error_text)(NvmlReturn) = nullptr;  // may be missing

  std::vector<std::string> bind(const Library& library) {
    std::vector<std::string> missing;
    library.require("nvmlInit_v2", init, missing);
    library.require("nvmlDeviceGetHandleByUUID", by_uuid, missing);
    library.require("nvmlDeviceGetUUID", uuid, missing);
    library.require("nvmlDeviceGetMigMode", mode, missing);
    library.require("nvmlDeviceGetGpuInstanceProfileInfo", profile, missing);
    library.require("nvmlDeviceGetGpuInstancePossiblePlacements_v2", placements, missing);
    library.require("nvmlDeviceCreateGpuInstanceWithPlacement", create, missing);
    library.require("nvmlGpuInstanceDestroy", destroy, missing);
    library.require("nvmlDeviceGetGpuInstances", instances, missing);
    library.require("nvmlGpuInstanceGetInfo", info, missing);
    library.require("nvmlGpuInstanceGetComputeInstanceProfileInfo", compute_profile, missing);
    library.require("nvmlGpuInstanceCreateComputeInstance", create_compute, missing);
    library.require("nvmlComputeInstanceDestroy", destroy_compute, missing);
    library.require("nvmlGpuInstanceGetComputeInstances", compute_instances, missing);
    library.require("nvmlDeviceGetMaxMigDeviceCount", max_devices, missing);
    library.require("nvmlDeviceGetMigDeviceHandleByIndex", device_at, missing);
    library.require("nvmlDeviceGetGpuInstanceId", instance_of, missing);
    library.find("nvmlErrorString", error_text);
    return missing;
  }
};

struct Known {
  unsigned number = 0;  // what asks for the profile
  GpuProfile facts{};
  std::string name;
  std::vector<Placement> places;
};

// "3g.40gb": drivers keep a little of each slice's memory for themselves, the name says all of it.
std::string profile_name(const GpuProfile& profile) {
  return std::to_string(profile.slices) + "g." + std::to_string((profile.memory_mb + 1023) / 1024) +
         "gb";
}

class MigSlicer final : public HardwareSlicer {
 public:
  explicit MigSlicer(const Nvml& nvml) : nvml_(nvml) {}

  std::string name() const override { return "nvidia_mig"; }
  bool verified() const override { return false; }

  Result<SlicedCard> read(const std::string& uuid) override {
    LOAM_TRY(device, find(uuid));
    SlicedCard card;
    card.uuid = uuid;
    unsigned now = 0, after_reset = 0;
    if (const NvmlReturn code = nvml_.mode(device, &now, &after_reset); code != nvml_success)
      return failure("asking for the MIG mode of " + uuid, code, ErrorKind::unsupported);
    card.enabled = now != 0;
    card.pending = now != after_reset;
    if (!card.enabled) return card;
    for (const Known& known : profiles_of(device)) {
      if (named(card.geometry, known.name)) continue;  // a variant: same size, other engines
      schedule::MigProfile profile;
      profile.name = known.name;
      profile.compute_slices = static_cast<std::int32_t>(known.facts.slices);
      profile.memory = Mebibytes{static_cast<std::int64_t>(known.facts.memory_mb)};
      for (const Placement& place : known.places) {
        profile.memory_slots = static_cast<std::int32_t>(place.size);
        profile.starts.push_back(static_cast<std::int32_t>(place.start));
      }
      card.geometry.compute_slices = std::max(card.geometry.compute_slices, profile.compute_slices);
      card.geometry.profiles.push_back(std::move(profile));
    }
    for (const Found& found : instances_of(device))
      (found.slice.uuid.empty() ? card.half_made : card.slices).push_back(found.slice);
    return card;
  }

  Result<HardwareSlice> create(const std::string& uuid, const std::string& profile,
                               std::int32_t start) override {
    LOAM_TRY(device, find(uuid));
    std::optional<Known> wanted;
    std::optional<Placement> place;
    for (Known& known : profiles_of(device)) {
      if (known.name != profile || wanted) continue;
      for (const Placement& possible : known.places)
        if (static_cast<std::int32_t>(possible.start) == start) place = possible;
      wanted = std::move(known);
    }
    if (!wanted)
      return Error{ErrorKind::not_found, "the card " + uuid + " has no profile '" + profile + "'",
                   "its driver's list is what counts: loam device show"};
    if (!place)
      return Error{ErrorKind::conflict,
                   "a slice '" + profile + "' cannot begin at slot " + std::to_string(start), ""};
    NvmlGpuInstance instance = nullptr;
    if (const NvmlReturn code = nvml_.create(device, wanted->facts.id, &*place, &instance);
        code != nvml_success)
      return failure("making a slice '" + profile + "' on " + uuid, code, ErrorKind::conflict);
    // From here whatever fails takes back what was made before.
    auto slice = complete(device, instance, *wanted);
    if (slice) return slice;
    if (const NvmlReturn code = nvml_.destroy(instance); code != nvml_success)
      return Error{ErrorKind::unavailable,
                   slice.error().message + "; and it could not be taken back: " + words(code),
                   "it is removed when the node starts again"};
    return slice.error();
  }

  Result<void> destroy(const std::string& uuid, const HardwareSlice& slice) override {
    LOAM_TRY(device, find(uuid));
    for (const Found& found : instances_of(device)) {
      if (found.slice.instance != slice.instance || found.slice.start != slice.start) continue;
      for (const NvmlComputeInstance compute : found.computes)
        if (const NvmlReturn code = nvml_.destroy_compute(compute); code != nvml_success)
          return failure("ending the slice " + slice.uuid, code,
                         code == nvml_in_use ? ErrorKind::conflict : ErrorKind::unavailable);
      if (const NvmlReturn code = nvml_.destroy(found.handle); code != nvml_success)
        return failure("giving back the memory of the slice " + slice.uuid, code,
                       code == nvml_in_use ? ErrorKind::conflict : ErrorKind::unavailable);
      return {};
    }
    return Error{ErrorKind::not_found, "the card " + uuid + " has no such slice", ""};
  }

 private:
  struct Found {
    NvmlGpuInstance handle = nullptr;
    std::vector<NvmlComputeInstance> computes;
    HardwareSlice slice;
  };

  static bool named(const schedule::MigGeometry& geometry, const std::string& name) {
    return std::any_of(geometry.profiles.begin(), geometry.profiles.end(),
                       [&](const schedule::MigProfile& profile) { return profile.name == name; });
  }

  std::string words(NvmlReturn code) const {
    const char* text = nvml_.error_text ? nvml_.error_text(code) : nullptr;
    return "code " + std::to_string(code) + (text ? std::string(": ") + text : "");
  }
  Error failure(const std::string& what, NvmlReturn code, ErrorKind kind) const {
    return Error{kind, what + " failed with " + words(code), ""};
  }

  Result<NvmlDevice> find(const std::string& uuid) {
    NvmlDevice device = nullptr;
    if (const NvmlReturn code = nvml_.by_uuid(uuid.c_str(), &device); code != nvml_success)
      return failure("finding the card " + uuid, code, ErrorKind::not_found);
    return device;
  }

  std::vector<Known> profiles_of(NvmlDevice device) const {
    std::vector<Known> found;
    for (unsigned number = 0; number < profiles_max; ++number) {
      Known known;
      known.number = number;
      if (nvml_.profile(device, number, &known.facts) != nvml_success) continue;
      std::array<Placement, instances_max> places{};
      unsigned count = places.size();
      if (nvml_.placements(device, known.facts.id, places.data(), &count) != nvml_success) continue;
      known.places.assign(places.begin(),
                          places.begin() + std::min<std::size_t>(count, places.size()));
      known.name = profile_name(known.facts);
      found.push_back(std::move(known));
    }
    return found;
  }

  // Every instance once, whatever number of profiles lists it.
  std::vector<Found> instances_of(NvmlDevice device) const {
    std::vector<Found> all;
    for (const Known& known : profiles_of(device)) {
      std::array<NvmlGpuInstance, instances_max> handles{};
      unsigned count = handles.size();
      if (nvml_.instances(device, known.facts.id, handles.data(), &count) != nvml_success) continue;
      for (unsigned i = 0; i < std::min<unsigned>(count, instances_max); ++i) {
        GpuInstanceInfo info{};
        if (nvml_.info(handles[i], &info) != nvml_success) continue;
        const bool seen = std::any_of(all.begin(), all.end(), [&](const Found& found) {
          return found.slice.instance == info.id;
        });
        if (seen) continue;
        Found found;
        found.handle = handles[i];
        found.computes = computes_of(handles[i]);
        found.slice.profile = known.name;
        found.slice.start = static_cast<std::int32_t>(info.placement.start);
        found.slice.instance = info.id;
        found.slice.memory = Mebibytes{static_cast<std::int64_t>(known.facts.memory_mb)};
        if (!found.computes.empty()) found.slice.uuid = uuid_of(device, info.id);
        all.push_back(std::move(found));
      }
    }
    return all;
  }

  std::vector<NvmlComputeInstance> computes_of(NvmlGpuInstance instance) const {
    std::vector<NvmlComputeInstance> all;
    for (unsigned number = 0; number < profiles_max; ++number) {
      ComputeProfile profile{};
      if (nvml_.compute_profile(instance, number, 0, &profile) != nvml_success) continue;
      std::array<NvmlComputeInstance, instances_max> handles{};
      unsigned count = handles.size();
      if (nvml_.compute_instances(instance, profile.id, handles.data(), &count) != nvml_success)
        continue;
      for (unsigned i = 0; i < std::min<unsigned>(count, instances_max); ++i)
        if (std::find(all.begin(), all.end(), handles[i]) == all.end()) all.push_back(handles[i]);
    }
    return all;
  }

  // The UUID of the MIG device that lies in the instance; empty where there is none.
  std::string uuid_of(NvmlDevice device, unsigned instance) const {
    unsigned count = 0;
    if (nvml_.max_devices(device, &count) != nvml_success) return {};
    for (unsigned i = 0; i < std::min(count, profiles_max); ++i) {
      NvmlDevice slice = nullptr;
      unsigned id = 0;
      std::array<char, 96> text{};
      if (nvml_.device_at(device, i, &slice) != nvml_success ||
          nvml_.instance_of(slice, &id) != nvml_success || id != instance ||
          nvml_.uuid(slice, text.data(), text.size()) != nvml_success)
        continue;
      text.back() = '\0';
      return accepted_uuid(text.data());
    }
    return {};
  }

  // The compute instance over all of a new instance, and its name.
  Result<HardwareSlice> complete(NvmlDevice device, NvmlGpuInstance instance, const Known& known) {
    std::optional<ComputeProfile> whole;
    for (unsigned number = 0; number < profiles_max; ++number) {
      ComputeProfile profile{};
      if (nvml_.compute_profile(instance, number, 0, &profile) == nvml_success &&
          profile.slices == known.facts.slices)
        whole = profile;
    }
    if (!whole)
      return Error{ErrorKind::unsupported,
                   "no compute instance covers a slice '" + known.name + "'", ""};
    NvmlComputeInstance compute = nullptr;
    if (const NvmlReturn code = nvml_.create_compute(instance, whole->id, &compute);
        code != nvml_success)
      return failure("making the compute instance of a slice '" + known.name + "'", code,
                     ErrorKind::unavailable);
    GpuInstanceInfo info{};
    HardwareSlice slice;
    NvmlReturn code = nvml_.info(instance, &info);
    if (code == nvml_success) {
      slice.profile = known.name;
      slice.start = static_cast<std::int32_t>(info.placement.start);
      slice.instance = info.id;
      slice.memory = Mebibytes{static_cast<std::int64_t>(known.facts.memory_mb)};
      slice.uuid = uuid_of(device, info.id);
      if (!slice.uuid.empty()) return slice;
    }
    nvml_.destroy_compute(compute);
    return Error{ErrorKind::unavailable, "a new slice '" + known.name + "' has no name", ""};
  }

  Nvml nvml_;
};

}  // namespace

Result<std::unique_ptr<HardwareSlicer>> make_mig_slicer(const DiscoveryPaths& paths) {
  LOAM_TRY(library, Library::open(paths.nvml));
  Nvml nvml;
  if (const auto missing = nvml.bind(library); !missing.empty())
    return Error{ErrorKind::unsupported, lacks_text(library, missing), ""};
  if (const NvmlReturn code = nvml.init(); code != nvml_success)
    return Error{ErrorKind::unavailable, "nvmlInit_v2 failed with code " + std::to_string(code),
                 "load the driver"};
  return std::unique_ptr<HardwareSlicer>(new MigSlicer(nvml));
}

}  // namespace loam::node

// AMD's compute partitions through ROCm SMI, and Ascend's vNPU templates through npu-smi, behind
// the interface that MIG has. UNVERIFIED: written from AMD's ROCm SMI API reference and Huawei's
// npu-smi command reference, tested against fakes; neither has ever run against a card.
#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "node/device/hardware_slices.hpp"
#include "node/device/library.hpp"

namespace loam::node {
namespace {

// ---- AMD ----

// rsmi_compute_partition_type_t and into how many equal parts it cuts a card of 8 dies.
struct Mode {
  const char* name;
  int number;
  std::int32_t parts;
};
constexpr Mode modes[] = {
    {"CPX", 1, 8}, {"SPX", 2, 1}, {"DPX", 3, 2}, {"TPX", 4, 3}, {"QPX", 5, 4}};

const Mode* mode_named(const std::string& name) {
  for (const Mode& mode : modes)
    if (name == mode.name) return &mode;
  return nullptr;
}

struct RocmSmi {
  int (*init)(std::uint64_t) = nullptr;
  int (*count)(std::uint32_t*) = nullptr;
  int (*unique_id)(std::uint32_t, std::uint64_t*) = nullptr;
  int (*memory)(std::uint32_t, int, std::uint64_t*) = nullptr;
  int (*partition)(std::uint32_t, char*, std::uint32_t) = nullptr;
  int (*set_partition)(std::uint32_t, int) = nullptr;
};

class AmdSlicer final : public HardwareSlicer {
 public:
  explicit AmdSlicer(const RocmSmi& smi) : smi_(smi) {}
  std::string name() const override { return "amd_partition"; }
  bool verified() const override { return false; }

  Result<SlicedCard> read(const std::string& uuid) override {
    LOAM_TRY(index, find(uuid));
    std::array<char, 32> text{};
    if (const int code = smi_.partition(index, text.data(), text.size()); code != 0)
      return Error{ErrorKind::unsupported,
                   "rsmi_dev_compute_partition_get failed with code " + std::to_string(code), ""};
    text.back() = '\0';
    const Mode* const mode = mode_named(text.data());
    if (!mode)
      return Error{ErrorKind::unsupported,
                   "the card " + uuid + " is in a mode that is unknown here: '" +
                       std::string(text.data()) + "'",
                   ""};
    std::uint64_t bytes = 0;
    smi_.memory(index, 0, &bytes);
    SlicedCard card;
    card.uuid = uuid;
    card.enabled = true;
    card.geometry.compute_slices = 8;
    card.geometry.memory_slots = 8;
    for (const Mode& possible : modes) {
      if (possible.parts == 1 || 8 % possible.parts != 0) continue;
      schedule::MigProfile profile;
      profile.name = possible.name;
      profile.compute_slices = profile.memory_slots = 8 / possible.parts;
      for (std::int32_t i = 0; i < possible.parts; ++i)
        profile.starts.push_back(i * profile.memory_slots);
      profile.memory = part_of(bytes, possible.parts);
      card.geometry.profiles.push_back(std::move(profile));
    }
    for (std::int32_t i = 0; mode->parts > 1 && i < mode->parts; ++i)
      card.slices.push_back({uuid + "/" + std::to_string(i), mode->name, i * 8 / mode->parts,
                             static_cast<std::uint32_t>(i), part_of(bytes, mode->parts)});
    return card;
  }

  // The whole card at once: every slice of it is there afterwards, the one asked for among them.
  Result<HardwareSlice> create(const std::string& uuid, const std::string& profile,
                               std::int32_t start) override {
    LOAM_TRY(before, read(uuid));
    const Mode* const mode = mode_named(profile);
    if (!mode || mode->parts == 1)
      return Error{ErrorKind::not_found, "the card has no partition mode '" + profile + "'", ""};
    if (!before.slices.empty() && before.slices.front().profile != profile)
      return Error{ErrorKind::conflict,
                   "the card " + uuid + " is cut as " + before.slices.front().profile,
                   "it is cut anew once nothing runs on it"};
    if (before.slices.empty()) LOAM_CHECK(set(uuid, *mode));
    LOAM_TRY(after, read(uuid));
    for (const HardwareSlice& slice : after.slices)
      if (slice.start == start) return slice;
    if (before.slices.empty()) LOAM_CHECK(set(uuid, modes[1]));
    return Error{ErrorKind::conflict,
                 "no slice '" + profile + "' begins at " + std::to_string(start), ""};
  }

  Result<void> destroy(const std::string& uuid, const HardwareSlice&) override {
    return set(uuid, modes[1]);
  }

 private:
  static Mebibytes part_of(std::uint64_t bytes, std::int32_t parts) {
    return Mebibytes{static_cast<std::int64_t>(bytes >> 20) / parts};
  }
  Result<std::uint32_t> find(const std::string& uuid) const {
    std::uint32_t count = 0;
    smi_.count(&count);
    for (std::uint32_t i = 0; i < std::min(count, 256u); ++i) {
      std::uint64_t id = 0;
      std::array<char, 32> text{};
      if (smi_.unique_id(i, &id) != 0) continue;
      std::snprintf(text.data(), text.size(), "GPU-%016llx", static_cast<unsigned long long>(id));
      if (uuid == text.data()) return i;
    }
    return Error{ErrorKind::not_found, "no AMD card '" + uuid + "'", ""};
  }
  Result<void> set(const std::string& uuid, const Mode& mode) const {
    LOAM_TRY(index, find(uuid));
    if (const int code = smi_.set_partition(index, mode.number); code != 0)
      return Error{ErrorKind::conflict,
                   "cutting the card " + uuid + " as " + mode.name + " failed with code " +
                       std::to_string(code),
                   "nothing may run on it"};
    return {};
  }

  RocmSmi smi_;
};

// ---- Ascend ----

// What the templates hold of a card of 8 AI cores and 32 GiB, by their names in Huawei's
// documentation.
struct Template {
  const char* name;
  std::int32_t cores;
  std::int64_t memory_mib;
};
constexpr Template templates[] = {
    {"vir01", 1, 4 << 10}, {"vir02", 2, 8 << 10}, {"vir04", 4, 16 << 10}};

class AscendSlicer final : public HardwareSlicer {
 public:
  explicit AscendSlicer(RunCommand run) : run_(std::move(run)) {}
  std::string name() const override { return "ascend_vnpu"; }
  bool verified() const override { return false; }

  Result<SlicedCard> read(const std::string& card) override {
    LOAM_TRY(text, run_({"npu-smi", "info", "-t", "info-vnpu", "-i", card, "-c", "0"}));
    SlicedCard found;
    found.uuid = card;
    found.enabled = true;
    found.geometry.compute_slices = found.geometry.memory_slots = 8;
    for (const Template& one : templates) {
      schedule::MigProfile profile;
      profile.name = one.name;
      profile.compute_slices = profile.memory_slots = one.cores;
      for (std::int32_t start = 0; start + one.cores <= 8; start += one.cores)
        profile.starts.push_back(start);
      profile.memory = Mebibytes{one.memory_mib};
      found.geometry.profiles.push_back(std::move(profile));
    }
    // One line a vNPU: its number, and its template somewhere behind.
    std::istringstream lines(text);
    std::int32_t start = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::optional<std::uint32_t> number;
      const Template* of = nullptr;
      for (std::string word; words >> word;) {
        std::uint32_t value = 0;
        const auto end = word.data() + word.size();
        if (!number && std::from_chars(word.data(), end, value).ptr == end) number = value;
        for (const Template& one : templates)
          if (word == one.name) of = &one;
      }
      if (!number || !of) continue;
      found.slices.push_back(
          {"vnpu-" + std::to_string(*number), of->name, start, *number, Mebibytes{of->memory_mib}});
      start += of->cores;
    }
    return found;
  }

  Result<HardwareSlice> create(const std::string& card, const std::string& profile,
                               std::int32_t) override {
    LOAM_TRY(before, read(card));
    LOAM_CHECK(run_({"npu-smi", "set", "-t", "create-vnpu", "-i", card, "-c", "0", "-f", profile}));
    LOAM_TRY(after, read(card));
    for (const HardwareSlice& slice : after.slices) {
      const bool was =
          std::any_of(before.slices.begin(), before.slices.end(),
                      [&](const HardwareSlice& old) { return old.instance == slice.instance; });
      if (!was && slice.profile == profile) return slice;
    }
    return Error{ErrorKind::unavailable, "npu-smi made no vNPU '" + profile + "'", ""};
  }

  Result<void> destroy(const std::string& card, const HardwareSlice& slice) override {
    LOAM_CHECK(run_({"npu-smi", "set", "-t", "destroy-vnpu", "-i", card, "-c", "0", "-v",
                     std::to_string(slice.instance)}));
    return {};
  }

 private:
  RunCommand run_;
};

}  // namespace

Result<std::unique_ptr<HardwareSlicer>> make_amd_slicer(const DiscoveryPaths& paths) {
  LOAM_TRY(library, Library::open(paths.rocm_smi));
  RocmSmi smi;
  std::vector<std::string> missing;
  library.require("rsmi_init", smi.init, missing);
  library.require("rsmi_num_monitor_devices", smi.count, missing);
  library.require("rsmi_dev_unique_id_get", smi.unique_id, missing);
  library.require("rsmi_dev_memory_total_get", smi.memory, missing);
  library.require("rsmi_dev_compute_partition_get", smi.partition, missing);
  library.require("rsmi_dev_compute_partition_set", smi.set_partition, missing);
  if (!missing.empty()) return Error{ErrorKind::unsupported, lacks_text(library, missing), ""};
  if (const int code = smi.init(0); code != 0)
    return Error{ErrorKind::unavailable, "rsmi_init failed with code " + std::to_string(code), ""};
  return std::unique_ptr<HardwareSlicer>(new AmdSlicer(smi));
}

std::unique_ptr<HardwareSlicer> make_ascend_slicer(RunCommand run) {
  return std::make_unique<AscendSlicer>(std::move(run));
}

}  // namespace loam::node

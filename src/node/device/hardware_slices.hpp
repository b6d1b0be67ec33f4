// Cutting a card in hardware: what can be cut, what is cut now, and cutting it at run time. One
// interface for NVIDIA's MIG, AMD's partitions and Ascend's vNPU templates. Not pure: drivers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "node/device/discovery.hpp"
#include "schedule/mig.hpp"

namespace loam::node {

// One slice that is there.
struct HardwareSlice {
  std::string uuid;  // as tasks name it: "MIG-…"; empty where it is half made
  std::string profile;
  std::int32_t start = 0;      // memory slot
  std::uint32_t instance = 0;  // the driver's number
  Mebibytes memory;

  friend bool operator==(const HardwareSlice&, const HardwareSlice&) = default;
};

struct SlicedCard {
  std::string uuid;
  bool enabled = false;                  // the card is in the mode in which it can be cut
  bool pending = false;                  // it will be, or cease to be, after a reset
  schedule::MigGeometry geometry;        // the driver's own list
  std::vector<HardwareSlice> slices;     // each once
  std::vector<HardwareSlice> half_made;  // memory is cut, nothing computes in it

  // The slices as the scheduler's pure functions take them. Slices of profiles that the driver does
  // not list are left out.
  schedule::MigLayout layout() const;
};

class HardwareSlicer {
 public:
  virtual ~HardwareSlicer() = default;
  virtual std::string name() const = 0;  // "nvidia_mig", "amd_partition", "ascend_vnpu"
  // Whether it has ever run against a card of its kind.
  virtual bool verified() const = 0;

  virtual Result<SlicedCard> read(const std::string& card) = 0;
  // Makes one whole slice, or leaves the card as it was. conflict where it does not fit.
  virtual Result<HardwareSlice> create(const std::string& card, const std::string& profile,
                                       std::int32_t start) = 0;
  // not_found where there is none; conflict while something runs in it.
  virtual Result<void> destroy(const std::string& card, const HardwareSlice& slice) = 0;
};

// NVML, opened at run time. Tested against a fake library; no card was at hand.
Result<std::unique_ptr<HardwareSlicer>> make_mig_slicer(const DiscoveryPaths& paths = {});
// ROCm SMI's compute partitions: the whole card at once, into equal parts. Unverified.
Result<std::unique_ptr<HardwareSlicer>> make_amd_slicer(const DiscoveryPaths& paths = {});
// Ascend's templates, through its own command. `run` gives a command's output. Unverified.
using RunCommand = std::function<Result<std::string>(const std::vector<std::string>&)>;
std::unique_ptr<HardwareSlicer> make_ascend_slicer(RunCommand run);

// The smallest slice that has this much memory and this share of the card's compute, where the card
// has room for it, and the place that leaves the most. Pure.
struct SliceChoice {
  std::string profile;
  std::int32_t start = 0;
};
std::optional<SliceChoice> choose_slice(const SlicedCard& card, Mebibytes memory,
                                        std::int32_t share_milli);

// What a node knows it made: `begun` is written before the driver is asked and `made` after, so
// that a slice left half made by a node that died can be told from somebody else's.
class SliceJournal {
 public:
  explicit SliceJournal(std::string folder) : folder_(std::move(folder)) {}
  Result<void> begun(const std::string& card, const std::string& profile, std::int32_t start);
  Result<void> made(const std::string& card, const HardwareSlice& slice);
  Result<void> ended(const std::string& card, const HardwareSlice& slice);
  // Lines "begun PROFILE START" and "made UUID PROFILE START".
  Result<std::vector<std::string>> lines(const std::string& card) const;

 private:
  Result<void> write(const std::string& card, const std::vector<std::string>& lines);
  std::string folder_;
};

// Creates through the slicer with the journal kept.
Result<HardwareSlice> create_recorded(HardwareSlicer& slicer, SliceJournal& journal,
                                      const std::string& card, const std::string& profile,
                                      std::int32_t start);

// After a restart: what the node made before is adopted; what it left half made is removed; what
// is neither is refused with a message that names it, or adopted where the operator says so.
struct SliceReview {
  std::vector<HardwareSlice> adopted;
  std::vector<std::string> messages;
};
Result<SliceReview> review_slices(HardwareSlicer& slicer, SliceJournal& journal,
                                  const std::string& card, bool adopt_unknown);

}  // namespace loam::node

// The catalogue of device types: what is published of each (share/catalog.toml; the format is in
// docs/formats/catalog.md). load() reads a file; the rest is pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "base/result.hpp"
#include "node/device/found_device.hpp"

namespace loam::node {

// How the hardware itself can be cut.
enum class HardwareSlicing { none, mig, vnpu };
const char* name_of(HardwareSlicing slicing) noexcept;

struct SliceProfile {
  std::string profile;             // the vendor's name: "1g.10gb"
  std::int32_t at_most = 0;        // how many fit on one device
  std::int32_t compute_parts = 0;  // of `of_parts` of the device's compute
  std::int32_t of_parts = 0;
  Mebibytes memory;  // by the profile's name; what is usable is a little less

  friend bool operator==(const SliceProfile&, const SliceProfile&) = default;
};

struct CatalogEntry {
  std::string name;  // the device type: "H100-SXM"
  std::string vendor;
  std::vector<std::string> match;              // names by which drivers call it, whole
  std::vector<Mebibytes> memory;               // sizes in which it is sold
  std::optional<double> bandwidth_gb_s;        // 10^9 bytes a second, published
  std::optional<double> dense_tflops;          // bf16 or fp16, dense, published peak
  std::optional<double> measured_gemm_tflops;  // what a large matrix product reaches
  std::string efficiency_of;  // whose measured share of peak stands in for its own; may be empty
  HardwareSlicing slicing = HardwareSlicing::none;
  std::vector<SliceProfile> slices;
  std::string source;
  bool doubtful = false;  // some figure was not verified; `note` says which
  std::string note;

  friend bool operator==(const CatalogEntry&, const CatalogEntry&) = default;
};

class Catalog {
 public:
  // Strict: a key that is unknown, missing, doubled or out of range is an error with line and
  // column. `origin` names the text in errors, usually its path.
  static Result<Catalog> parse(std::string_view text, std::string_view origin);
  static Result<Catalog> load(const std::string& path);

  // In the file's order.
  const std::vector<CatalogEntry>& entries() const { return entries_; }
  // Null where there is none.
  const CatalogEntry* named(std::string_view name) const;

  // The entry one of whose match names is the driver's name for the device, blanks and case aside,
  // and whose memory is within a tenth of the device's. Null where there is none.
  const CatalogEntry* match(const FoundDevice& device) const;
  // The names of entries that match but for their memory, for an explanation.
  std::vector<std::string> named_alike(const FoundDevice& device) const;

  // What a large dense matrix product is taken to reach on this type: measured, or peak times the
  // measured share of peak of `efficiency_of`. Nothing where the catalogue has no figures.
  std::optional<double> gemm_tflops(const CatalogEntry& entry) const;

 private:
  std::vector<CatalogEntry> entries_;
};

// The device type's name: the catalogue's, or the driver's with every run of characters other
// than letters, digits, '.' and '_' as one '-'.
std::string device_type_of(const FoundDevice& device, const Catalog& catalog);

}  // namespace loam::node

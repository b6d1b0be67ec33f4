#include "node/device/factors.hpp"

#include <cmath>

namespace loam::node {
namespace {

constexpr double ratio_max = 1e6;

// How far each class lives on compute.
constexpr double weight_general = 0.5;
constexpr double weight_train = 0.8;
constexpr double weight_prefill = 0.9;
constexpr double weight_decode = 0.1;

MilliCe milli_ce(double compute, double bandwidth, double weight) {
  constexpr double reference_milli_ce = 100'000;
  const double value =
      reference_milli_ce * std::pow(compute, weight) * std::pow(bandwidth, 1 - weight);
  return MilliCe{std::max<std::int64_t>(1, std::llround(value))};
}

Error unknown_device(const FoundDevice& device, const Catalog& catalog) {
  std::string why = "has no calibration and no entry in the catalogue";
  if (const CatalogEntry* entry = catalog.match(device)) {
    why = "has no calibration, and the catalogue's entry " + entry->name + " has no figures";
  } else if (const auto alike = catalog.named_alike(device); !alike.empty()) {
    why = "has no calibration, and with " + to_text(device.memory) +
          " of memory it is not the catalogue's " + alike.front();
  }
  return Error{ErrorKind::unsupported, "'" + device.name + "' (" + device.uuid + ") " + why,
               "measure it: loam device calibrate " + device.uuid};
}

// The calibration alone prices what the catalogue does not know, and every CPU.
bool compute_is_comparable(const Calibration& calibration) {
  return calibration.matrix_units || calibration.is_cpu;
}

void add_calibration_notes(const FoundDevice& device, const Calibration& calibration,
                           DeviceWorth& worth) {
  if (calibration.brief) {
    worth.notes.push_back("the calibration was a brief one; run it in full before selling");
  }
  if (calibration.driver_version != device.driver_version) {
    worth.notes.push_back("calibrated with driver " + calibration.driver_version + ", now " +
                          device.driver_version + ": calibrate again");
  }
  worth.notes.insert(worth.notes.end(), calibration.warnings.begin(), calibration.warnings.end());
}

}  // namespace

const char* name_of(DeviceWorth::Origin origin) noexcept {
  switch (origin) {
    case DeviceWorth::Origin::calibration:
      return "calibration";
    case DeviceWorth::Origin::catalogue:
      return "catalogue";
    case DeviceWorth::Origin::catalogue_and_measured:
      return "catalogue_and_measured";
  }
  return "catalogue";
}

Result<MeasuredFactors> factors_from(double gemm_tflops, double bandwidth_gb_s) {
  const double compute = gemm_tflops / reference_gemm_tflops;
  const double bandwidth = bandwidth_gb_s / reference_bandwidth_gb_s;
  // Written so that a NaN fails it.
  if (!(compute > 0 && compute <= ratio_max && bandwidth > 0 && bandwidth <= ratio_max)) {
    return invalid(std::to_string(gemm_tflops) + " TFLOPS and " + std::to_string(bandwidth_gb_s) +
                       " GB/s are no device's figures",
                   "measure again");
  }
  return MeasuredFactors{
      milli_ce(compute, bandwidth, weight_general), milli_ce(compute, bandwidth, weight_train),
      milli_ce(compute, bandwidth, weight_prefill), milli_ce(compute, bandwidth, weight_decode)};
}

Result<DeviceWorth> worth_of(const FoundDevice& device, const Catalog& catalog,
                             const std::optional<Calibration>& calibration) {
  const CatalogEntry* entry = catalog.match(device);
  const auto published = entry != nullptr ? catalog.gemm_tflops(*entry) : std::optional<double>();
  DeviceWorth worth;
  worth.device_type = device_type_of(device, catalog);
  if (calibration) {
    if (calibration->uuid != device.uuid) {
      return invalid("the calibration is of " + calibration->uuid + ", not of " + device.uuid,
                     "measure it: loam device calibrate " + device.uuid);
    }
    add_calibration_notes(device, *calibration, worth);
    if (compute_is_comparable(*calibration) || !published) {
      if (!compute_is_comparable(*calibration)) {
        worth.notes.push_back(
            "its matrix units, if it has any, were not measured: it is worth at least this");
      }
      worth.origin = DeviceWorth::Origin::calibration;
      worth.factors = calibration->factors;
      return worth;
    }
  }
  if (!published) return unknown_device(device, catalog);
  const double bandwidth =
      calibration ? calibration->bandwidth_gb_s.median : *entry->bandwidth_gb_s;
  LOAM_TRY(factors, factors_from(*published, bandwidth));
  worth.factors = factors;
  worth.origin =
      calibration ? DeviceWorth::Origin::catalogue_and_measured : DeviceWorth::Origin::catalogue;
  worth.doubtful = entry->doubtful;
  if (entry->doubtful) {
    worth.notes.push_back("the catalogue's figures for " + entry->name +
                          " are doubtful: " + entry->note);
  }
  return worth;
}

}  // namespace loam::node

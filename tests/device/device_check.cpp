// What discovery, the catalogue and calibration make of this machine's cards, as one JSON object
// on standard output, for a machine with a real GPU. Progress goes to standard error.
//
// Exit status: 0 where every card was found, priced and, if OpenCL shows it, measured; 1 where a
// source warned or a card failed; 2 where there is no card besides the processor.
#include <boost/json.hpp>
#include <cstdio>
#include <string>

#include "node/device/calibrate.hpp"
#include "node/device/discovery.hpp"
#include "node/device/factors.hpp"

namespace {

namespace json = boost::json;
using namespace loam::node;

json::object worth_object(const loam::Result<DeviceWorth>& worth) {
  if (!worth) return {{"refused", to_text(worth.error())}};
  json::array notes;
  for (const std::string& note : worth->notes) notes.emplace_back(note);
  return {{"device_type", worth->device_type},
          {"origin", name_of(worth->origin)},
          {"doubtful", worth->doubtful},
          {"milli_ce",
           {{"general", worth->factors.general.value},
            {"train", worth->factors.train.value},
            {"prefill", worth->factors.prefill.value},
            {"decode", worth->factors.decode.value}}},
          {"notes", notes}};
}

// One device's part of the answer; `failed` is set where something that should work did not.
json::object check_device(const FoundDevice& device, const Catalog& catalog, bool brief,
                          bool& failed) {
  json::object out = json::parse(to_json(device)).as_object();
  out["worth_by_catalogue"] = worth_object(worth_of(device, catalog, std::nullopt));
  if (!device.opencl) {
    out["calibration"] = nullptr;
    return out;
  }
  CalibrationOptions options;
  options.brief = brief;
  const auto calibration =
      calibrate(device, options, [](std::string_view step, std::int32_t done, std::int32_t of) {
        std::fprintf(stderr, "%d/%d %.*s\n", done, of, static_cast<int>(step.size()), step.data());
      });
  if (!calibration) {
    failed = true;
    out["calibration"] = json::object{{"failed", to_text(calibration.error())}};
    return out;
  }
  out["calibration"] = json::parse(to_json(*calibration));
  const auto worth = worth_of(device, catalog, *calibration);
  if (!worth) failed = true;
  out["worth"] = worth_object(worth);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: loam-device-check CATALOG.toml [--brief]\n");
    return 2;
  }
  const auto catalog = Catalog::load(argv[1]);
  if (!catalog) {
    std::fprintf(stderr, "%s\n", to_text(catalog.error()).c_str());
    return 1;
  }
  const bool brief = argc == 3 && std::string(argv[2]) == "--brief";
  const Finding finding = discover_apart(default_sources());
  bool failed = false;
  bool card = false;
  json::array notes;
  for (const DiscoveryNote& note : finding.notes) {
    const bool warning = note.severity == DiscoveryNote::Severity::warning;
    failed = failed || warning;
    notes.emplace_back(std::string(warning ? "warning: " : "") + note.source + ": " + note.text);
  }
  json::array devices;
  for (const FoundDevice& device : finding.devices) {
    card = card || !device.is_cpu;
    devices.push_back(check_device(device, *catalog, brief, failed));
  }
  std::printf("%s\n",
              json::serialize(json::object{{"devices", devices}, {"notes", notes}}).c_str());
  if (failed) return 1;
  return card ? 0 : 2;
}

// Looking things up in the catalogue; reading it is in catalog_reader.cpp.
#include "node/device/catalog.hpp"

#include <algorithm>
#include <cctype>

namespace loam::node {
namespace {

// Blanks and case aside: drivers differ in both between versions.
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte) == 0) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

bool called(const CatalogEntry& entry, const std::string& folded_name) {
  return std::any_of(entry.match.begin(), entry.match.end(),
                     [&](const std::string& name) { return folded(name) == folded_name; });
}

// A driver shows up to 7 % less than is sold: error correction and its own reserve.
bool sold_with(const CatalogEntry& entry, Mebibytes memory) {
  return std::any_of(entry.memory.begin(), entry.memory.end(), [&](Mebibytes sold) {
    return memory.value * 10 >= sold.value * 9 && memory.value * 10 <= sold.value * 11;
  });
}

}  // namespace

const char* name_of(HardwareSlicing slicing) noexcept {
  switch (slicing) {
    case HardwareSlicing::none:
      return "none";
    case HardwareSlicing::mig:
      return "mig";
    case HardwareSlicing::vnpu:
      return "vnpu";
  }
  return "none";
}

const CatalogEntry* Catalog::named(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const CatalogEntry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

const CatalogEntry* Catalog::match(const FoundDevice& device) const {
  if (device.is_cpu) return nullptr;
  const std::string name = folded(device.name);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const CatalogEntry& entry) {
    return called(entry, name) && sold_with(entry, device.memory);
  });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<std::string> Catalog::named_alike(const FoundDevice& device) const {
  std::vector<std::string> names;
  const std::string name = folded(device.name);
  for (const CatalogEntry& entry : entries_) {
    if (called(entry, name) && !sold_with(entry, device.memory)) names.push_back(entry.name);
  }
  return names;
}

std::optional<double> Catalog::gemm_tflops(const CatalogEntry& entry) const {
  if (entry.measured_gemm_tflops) return entry.measured_gemm_tflops;
  if (!entry.dense_tflops) return std::nullopt;
  const CatalogEntry* like = named(entry.efficiency_of);
  if (like == nullptr || !like->measured_gemm_tflops || !like->dense_tflops) return std::nullopt;
  return *entry.dense_tflops * *like->measured_gemm_tflops / *like->dense_tflops;
}

std::string device_type_of(const FoundDevice& device, const Catalog& catalog) {
  if (const CatalogEntry* entry = catalog.match(device)) return entry->name;
  std::string type;
  for (const char c : device.name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (plain) {
      type += c;
    } else if (!type.empty() && type.back() != '-') {
      type += '-';
    }
  }
  while (!type.empty() && type.back() == '-') type.pop_back();
  return type.empty() ? "unnamed" : type;
}

}  // namespace loam::node

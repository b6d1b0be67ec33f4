#include "node/device/identity.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <fstream>

namespace loam::node {
namespace {

bool parse_hex(std::string_view text, std::uint64_t& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return fault == std::errc{} && end == text.data() + text.size() && !text.empty();
}

std::uint64_t fnv1a(std::uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

// xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
std::string grouped_hex(std::span<const unsigned char, 16> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[bytes[i] >> 4U];
    text += digits[bytes[i] & 0xFU];
  }
  return text;
}

}  // namespace

std::string pci_address(std::uint64_t domain, std::uint64_t bus, std::uint64_t device,
                        std::uint64_t function) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x",
                static_cast<unsigned>(domain & 0xFFFFFFFFU), static_cast<unsigned>(bus & 0xFFU),
                static_cast<unsigned>(device & 0x1FU), static_cast<unsigned>(function & 0x7U));
  return text.data();
}

std::string normal_pci_address(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first == text.npos ? first : first + 1);
  const std::size_t point = text.find('.', second == text.npos ? second : second + 1);
  if (first == text.npos || second == text.npos || point == text.npos) return {};
  std::uint64_t domain = 0;
  std::uint64_t bus = 0;
  std::uint64_t device = 0;
  std::uint64_t function = 0;
  if (!parse_hex(text.substr(0, first), domain) ||
      !parse_hex(text.substr(first + 1, second - first - 1), bus) ||
      !parse_hex(text.substr(second + 1, point - second - 1), device) ||
      !parse_hex(text.substr(point + 1), function)) {
    return {};
  }
  if (domain > 0xFFFFFFFFU || bus > 0xFFU || device > 0x1FU || function > 7U) return {};
  return pci_address(domain, bus, device, function);
}

std::string gpu_uuid(std::span<const unsigned char, 16> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b == 0; })) return {};
  return "GPU-" + grouped_hex(bytes);
}

std::string accepted_uuid(std::string_view text) {
  constexpr std::size_t length_max = 80;  // NVML's longest, a MIG instance's, is under 60
  if (text.size() < 8 || text.size() > length_max) return {};
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
  return plain ? std::string(text) : std::string();
}

std::string derived_uuid(std::initializer_list<std::string_view> parts) {
  // Two FNV-1a streams from different starts make 128 bits; not a secret, only a name.
  std::array<std::uint64_t, 2> hashes{14695981039346656037ULL, 0x6C6F616D64657631ULL};
  for (std::uint64_t& hash : hashes) {
    for (const std::string_view part : parts) {
      hash = fnv1a(hash, part);
      hash = fnv1a(hash, std::string_view("\0", 1));  // "ab"+"c" is not "a"+"bc"
    }
  }
  std::array<unsigned char, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(hashes[i / 8] >> (8 * (i % 8)));
  }
  return "CL-" + grouped_hex(bytes);
}

std::string driver_text(std::span<const char> buffer) {
  std::string text(buffer.begin(), std::find(buffer.begin(), buffer.end(), '\0'));
  for (char& c : text) {
    if (c < 0x20 || c > 0x7E) c = '?';
  }
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.erase(0, begin);
  text.erase(text.find_last_not_of(' ') + 1);
  return text.empty() ? "unnamed" : text;
}

std::optional<std::int32_t> numa_node_of(const std::string& pci_devices, const std::string& bus) {
  if (bus.empty()) return std::nullopt;
  std::ifstream file(pci_devices + "/" + bus + "/numa_node");
  std::int32_t node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;  // -1: the kernel does not know
  return node;
}

std::string this_machine_id() {
  std::string id;
  if (std::ifstream file("/etc/machine-id"); file >> id) return id;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return {};
  return host.data();
}

}  // namespace loam::node

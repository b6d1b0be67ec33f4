// Names of devices: PCI addresses and UUIDs in one spelling, and text from drivers made safe.
// Pure, but for numa_node_of and this_machine_id.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loam::node {

// "0000:3b:00.0". Parts beyond their width are cut as the hardware cuts them.
std::string pci_address(std::uint64_t domain, std::uint64_t bus, std::uint64_t device,
                        std::uint64_t function);
// The same spelling from a driver's ("00000000:3B:00.0"); empty where it is none.
std::string normal_pci_address(std::string_view text);

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" from a driver's 16 bytes; empty where all are zero,
// which drivers give for "none".
std::string gpu_uuid(std::span<const unsigned char, 16> bytes);
// A driver's own UUID text, or empty where it is not one: 8 to 80 letters, digits and '-', so that
// it also serves as a file's name.
std::string accepted_uuid(std::string_view text);
// "CL-…" from facts that last; each part counts, also where it is empty.
std::string derived_uuid(std::initializer_list<std::string_view> parts);

// A driver's text up to its first zero byte or the end of the buffer, blanks trimmed, bytes that
// are not printable ASCII shown as '?', "unnamed" where nothing is left.
std::string driver_text(std::span<const char> buffer);

// What the kernel says of the card's NUMA node; nothing where it says none.
std::optional<std::int32_t> numa_node_of(const std::string& pci_devices, const std::string& bus);
// /etc/machine-id, or the host name where there is none.
std::string this_machine_id();

}  // namespace loam::node

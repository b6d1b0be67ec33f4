// A fake librocm_smi64.so: says what the control panel tells it to. FAKE_WITHOUT_COUNT lacks a
// required entry, FAKE_OLD the optional ones.
#include "fakes/fake_rocm_smi.hpp"

#include <cstdio>

namespace {
fakes::FakeAmd panel;
}

extern "C" {

fakes::FakeAmd* fake_amd() {
  return &panel;
}

int rsmi_init(std::uint64_t) {
  return panel.init_code;
}

int rsmi_shut_down() {
  return 0;
}

#ifndef FAKE_WITHOUT_COUNT
int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = panel.count;
  return panel.count_code;
}
#endif

int rsmi_dev_name_get(std::uint32_t index, char* to, std::size_t length) {
  std::snprintf(to, length, "%s", panel.cards.at(index).name);
  return 0;
}

int rsmi_dev_memory_total_get(std::uint32_t index, int type, std::uint64_t* bytes) {
  if (type != 0) return 1;
  *bytes = panel.cards.at(index).memory_bytes;
  return panel.cards.at(index).memory_code;
}

int rsmi_dev_pci_id_get(std::uint32_t index, std::uint64_t* bus_id) {
  *bus_id = panel.cards.at(index).bus_id;
  return panel.cards.at(index).bus_id_code;
}

#ifndef FAKE_OLD
int rsmi_dev_unique_id_get(std::uint32_t index, std::uint64_t* id) {
  *id = panel.cards.at(index).unique_id;
  return panel.cards.at(index).unique_id_code;
}

int rsmi_status_string(int code, const char** text) {
  *text = code == 8 ? "RSMI_STATUS_INIT_ERROR: initialisation failed" : "RSMI_STATUS_OTHER";
  return 0;
}

int rsmi_version_str_get(int, char* to, std::uint32_t length) {
  std::snprintf(to, length, "%s", "6.8.5");
  return 0;
}

int rsmi_topo_get_link_type(std::uint32_t from, std::uint32_t to, std::uint64_t* hops, int* type) {
  *hops = 1;
  *type = (panel.cards.at(from).links >> to & 1U) != 0 ? 2 : 1;
  return 0;
}
#endif

}  // extern "C"

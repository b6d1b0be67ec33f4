// A fake libnvidia-ml.so.1: says what the control panel tells it to. Built several times:
// FAKE_WITHOUT_COUNT lacks a required entry, FAKE_OLD the optional ones.
#include "fakes/fake_nvidia.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

fakes::FakeNvidia panel;

fakes::FakeNvidiaCard* card_of(void* handle) {
  return static_cast<fakes::FakeNvidiaCard*>(handle);
}

// Fills as NVML does: with its terminating zero, or code 7 where it does not fit.
int give(const char* text, char* to, unsigned length) {
  const std::size_t needed = std::strlen(text) + 1;
  if (needed > length) return 7;
  std::memcpy(to, text, needed);
  return 0;
}

}  // namespace

extern "C" {

fakes::FakeNvidia* fake_nvidia() {
  return &panel;
}

int nvmlInit_v2() {
  if (panel.crash_on_init) std::abort();
  if (panel.hang_on_init) {
    while (true) ::pause();
  }
  ++panel.inits;
  return panel.init_code;
}

int nvmlShutdown() {
  ++panel.shutdowns;
  return 0;
}

#ifndef FAKE_WITHOUT_COUNT
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = panel.count;
  return panel.count_code;
}
#endif

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= panel.count || index >= panel.cards.size()) return 2;
  *handle = &panel.cards[index];
  return panel.cards[index].handle_code;
}

int nvmlDeviceGetUUID(void* handle, char* to, unsigned length) {
  if (const int code = card_of(handle)->uuid_code; code != 0) return code;
  return give(card_of(handle)->uuid, to, length);
}

int nvmlDeviceGetName(void* handle, char* to, unsigned length) {
  return give(card_of(handle)->name, to, length);
}

struct FakeMemory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* handle, FakeMemory* memory) {
  if (const int code = card_of(handle)->memory_code; code != 0) return code;
  *memory = {card_of(handle)->memory_bytes, card_of(handle)->memory_bytes, 0};
  return 0;
}

struct FakePci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void* handle, FakePci* pci) {
  *pci = {};
  pci->domain = card_of(handle)->domain;
  pci->bus = card_of(handle)->bus;
  pci->device = card_of(handle)->device;
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain & 0xFFFFFFFFU,
                pci->bus & 0xFFU, pci->device & 0xFFU);
  return 0;
}

#ifndef FAKE_OLD
const char* nvmlErrorString(int code) {
  switch (code) {
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Some Other Error";
  }
}

int nvmlSystemGetDriverVersion(char* to, unsigned length) {
  return give(panel.driver_version, to, length);
}

int nvmlDeviceGetMigMode(void* handle, unsigned* now, unsigned* pending) {
  if (card_of(handle)->mig < 0) return 3;
  *now = *pending = static_cast<unsigned>(card_of(handle)->mig);
  return 0;
}

int nvmlDeviceGetTotalEccErrors(void* handle, unsigned type, unsigned counter,
                                unsigned long long* errors) {
  if (type != 1 || counter != 0) return 2;
  *errors = card_of(handle)->uncorrected_errors;
  return 0;
}

int nvmlDeviceGetRemappedRows(void* handle, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 0;
  *pending = card_of(handle)->remap_pending;
  *failed = card_of(handle)->remap_failed;
  return 0;
}

int nvmlDeviceGetP2PStatus(void* handle, void* other, int index, int* status) {
  if (const int code = card_of(handle)->p2p_code; code != 0) return code;
  // Only NVLink joins cards here; over PCIe all of them can talk.
  const auto place = card_of(other) - panel.cards.data();
  *status = index != 2 || (card_of(handle)->links >> place & 1U) != 0 ? 0 : 1;
  return 0;
}
#endif

}  // extern "C"

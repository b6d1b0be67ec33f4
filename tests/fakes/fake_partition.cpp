// A fake ROCm SMI with one card that can be cut into equal parts.
#include <cstdint>
#include <cstdio>

namespace {
int mode = 2;  // SPX
}

extern "C" {
int fake_partition_set_code = 0;

int rsmi_init(std::uint64_t) {
  return 0;
}
int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = 1;
  return 0;
}
int rsmi_dev_unique_id_get(std::uint32_t, std::uint64_t* id) {
  *id = 0x1234;
  return 0;
}
int rsmi_dev_memory_total_get(std::uint32_t, int, std::uint64_t* bytes) {
  *bytes = 192ull << 30;
  return 0;
}
int rsmi_dev_compute_partition_get(std::uint32_t, char* text, std::uint32_t bytes) {
  const char* const names[] = {"", "CPX", "SPX", "DPX", "TPX", "QPX"};
  return std::snprintf(text, bytes, "%s", names[mode]) < 0;
}
int rsmi_dev_compute_partition_set(std::uint32_t, int wanted) {
  if (fake_partition_set_code != 0) return fake_partition_set_code;
  mode = wanted;
  return 0;
}
}

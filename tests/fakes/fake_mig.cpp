// A fake libnvidia-ml.so.1 with one card that can be cut: 7 compute slices, 8 memory slots, the
// profiles of an 80 GB card. It keeps books of its slots and refuses what does not fit.
#include "fakes/fake_mig.hpp"

#include <cstdio>
#include <cstring>

namespace {

using namespace loam::fakes;
FakeMig panel;

struct Placement {
  unsigned start, size;
};
struct Profile {
  unsigned id, slices;
  unsigned long long memory_mb;
  unsigned count;
  Placement places[8];
};
const Profile profiles[] = {
    {19, 1, 9728, 7, {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}},
    {14, 2, 19968, 3, {{0, 2}, {2, 2}, {4, 2}}},
    {9, 3, 40448, 2, {{0, 4}, {4, 4}}},
    {5, 4, 40448, 1, {{0, 4}}},
    {0, 7, 81152, 1, {{0, 8}}},
};

const Profile* profile_with(unsigned id) {
  for (const Profile& profile : profiles)
    if (profile.id == id) return &profile;
  return nullptr;
}
FakeMigInstance* instance_of(void* handle) {
  return static_cast<FakeMigInstance*>(handle);
}

struct GpuProfile {
  unsigned id, peer, slices, instances, multiprocessors, copies, decoders, encoders, jpegs, flows;
  unsigned long long memory_mb;
};
struct GpuInstanceInfo {
  void* device;
  unsigned id, profile;
  Placement placement;
};
struct ComputeProfile {
  unsigned id, slices, instances, multiprocessors, copies, decoders, encoders, jpegs, flows;
};

char card;

}  // namespace

extern "C" {

FakeMig* fake_mig() {
  return &panel;
}
int nvmlInit_v2() {
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 6 ? "Not Found" : code == 19 ? "In use" : "Some Other Error";
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (std::strcmp(uuid, "GPU-card") != 0) return 6;
  *handle = &card;
  return 0;
}
int nvmlDeviceGetUUID(void* handle, char* text, unsigned bytes) {
  if (handle == &card) return std::snprintf(text, bytes, "GPU-card") < 0;
  return std::snprintf(text, bytes, "MIG-slice-%u", instance_of(handle)->id) < 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* pending) {
  *now = panel.mode;
  *pending = panel.mode_after_reset;
  return 0;
}
int nvmlDeviceGetGpuInstanceProfileInfo(void*, unsigned number, GpuProfile* facts) {
  if (number >= sizeof profiles / sizeof profiles[0]) return 3;
  const Profile& profile = profiles[number];
  *facts = {profile.id, 0, profile.slices,   profile.count, profile.slices * 16, 1, 0, 0,
            0,          0, profile.memory_mb};
  return 0;
}
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(void*, unsigned id, Placement* places,
                                                  unsigned* count) {
  const Profile* const profile = profile_with(id);
  if (!profile || *count < profile->count) return 2;
  for (unsigned i = 0; i < profile->count; ++i) places[i] = profile->places[i];
  *count = profile->count;
  return 0;
}
int nvmlDeviceCreateGpuInstanceWithPlacement(void*, unsigned id, const Placement* place,
                                             void** made) {
  if (panel.create_code != 0) return panel.create_code;
  const Profile* const profile = profile_with(id);
  if (!profile) return 2;
  unsigned slices = profile->slices;
  FakeMigInstance* empty = nullptr;
  for (FakeMigInstance& instance : panel.instances) {
    if (!instance.taken) {
      if (!empty) empty = &instance;
      continue;
    }
    slices += profile_with(instance.profile)->slices;
    if (place->start < instance.start + instance.size &&
        instance.start < place->start + place->size)
      return 23;  // insufficient resources
  }
  if (slices > 7 || !empty) return 23;
  *empty = FakeMigInstance{true, ++panel.last_id, id, place->start, place->size, false, false};
  ++panel.creations;
  *made = empty;
  return 0;
}
int nvmlGpuInstanceDestroy(void* handle) {
  if (panel.destroy_code != 0) return panel.destroy_code;
  if (instance_of(handle)->computes) return 19;
  *instance_of(handle) = FakeMigInstance{};
  ++panel.destructions;
  return 0;
}
int nvmlDeviceGetGpuInstances(void*, unsigned id, void** handles, unsigned* count) {
  *count = 0;
  for (FakeMigInstance& instance : panel.instances)
    if (instance.taken && instance.profile == id) handles[(*count)++] = &instance;
  return 0;
}
int nvmlGpuInstanceGetInfo(void* handle, GpuInstanceInfo* info) {
  const FakeMigInstance& instance = *instance_of(handle);
  *info = {&card, instance.id, instance.profile, {instance.start, instance.size}};
  return 0;
}
// Numbers 0 to 3 are 1 to 4 slices, 4 is 7.
int nvmlGpuInstanceGetComputeInstanceProfileInfo(void* handle, unsigned number, unsigned engine,
                                                 ComputeProfile* facts) {
  const unsigned slices = number < 4 ? number + 1 : number == 4 ? 7 : 0;
  if (engine != 0 || slices == 0 || slices > profile_with(instance_of(handle)->profile)->slices)
    return 3;
  *facts = {100 + number, slices, 1, slices * 16, 1, 0, 0, 0, 0};
  return 0;
}
int nvmlGpuInstanceCreateComputeInstance(void* handle, unsigned, void** made) {
  if (panel.create_compute_code != 0) return panel.create_compute_code;
  instance_of(handle)->computes = true;
  *made = handle;
  return 0;
}
int nvmlComputeInstanceDestroy(void* handle) {
  if (instance_of(handle)->busy) return 19;
  instance_of(handle)->computes = false;
  return 0;
}
int nvmlGpuInstanceGetComputeInstances(void* handle, unsigned id, void** handles, unsigned* count) {
  const unsigned slices = profile_with(instance_of(handle)->profile)->slices;
  const unsigned number = slices == 7 ? 4 : slices - 1;
  *count = instance_of(handle)->computes && id == 100 + number ? 1 : 0;
  if (*count) handles[0] = handle;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** handle) {
  if (panel.nameless) return 6;
  for (FakeMigInstance& instance : panel.instances) {
    if (!instance.taken || !instance.computes) continue;
    if (index-- > 0) continue;
    *handle = &instance;
    return 0;
  }
  return 6;
}
int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* id) {
  *id = instance_of(handle)->id;
  return 0;
}

}  // extern "C"

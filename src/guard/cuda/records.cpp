#include "guard/cuda/records.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "guard/page.hpp"
#include "guard/spin_lock.hpp"

namespace loam::guard::cuda {

namespace {

// Linear probing; a removed record's followers move up, so a look ends at the first empty place.
struct Place {
  std::uint64_t key;  // 0: empty
  Record record;
};
struct Shard {
  SpinLock lock;
  Place* places = nullptr;
  std::uint64_t size = 0;  // a power of two
  std::uint64_t used = 0;
};
constexpr std::uint64_t shard_count = 16;
constexpr std::uint64_t first_size = 256;
Shard shards[shard_count];

// Handles are addresses of less than 60 bits, or small numbers: the kind fits above them.
std::uint64_t key_of(Held held, std::uint64_t handle) {
  return (handle + 1) ^ (static_cast<std::uint64_t>(held) << 60);
}
std::uint64_t hash_of(std::uint64_t key) {
  return key * 0x9e3779b97f4a7c15ull;
}
Shard& shard_of(std::uint64_t key) {
  return shards[hash_of(key) >> 60];
}
std::uint64_t home_of(const Shard& shard, std::uint64_t key) {
  return hash_of(key) >> 20 & (shard.size - 1);
}

Place* find_place(const Shard& shard, std::uint64_t key) {
  if (!shard.places) return nullptr;
  for (std::uint64_t at = home_of(shard, key);; at = (at + 1) & (shard.size - 1)) {
    if (shard.places[at].key == key) return &shard.places[at];
    if (shard.places[at].key == 0) return nullptr;
  }
}

void put(Shard& shard, std::uint64_t key, const Record& record) {
  std::uint64_t at = home_of(shard, key);
  while (shard.places[at].key != 0 && shard.places[at].key != key) at = (at + 1) & (shard.size - 1);
  if (shard.places[at].key == 0) ++shard.used;
  shard.places[at] = Place{key, record};
}

bool make_room(Shard& shard) {
  if (shard.places && shard.used * 2 < shard.size) return true;
  Shard wider;
  wider.size = shard.size ? shard.size * 2 : first_size;
  wider.places = static_cast<Place*>(std::calloc(wider.size, sizeof(Place)));
  if (!wider.places) return false;
  for (std::uint64_t i = 0; i < shard.size; ++i)
    if (shard.places[i].key != 0) put(wider, shard.places[i].key, shard.places[i].record);
  std::free(shard.places);
  shard.places = wider.places;
  shard.size = wider.size;
  return true;
}

void remove(Shard& shard, Place* place) {
  auto hole = static_cast<std::uint64_t>(place - shard.places);
  for (std::uint64_t at = hole;;) {
    at = (at + 1) & (shard.size - 1);
    if (shard.places[at].key == 0) break;
    const std::uint64_t home = home_of(shard, shard.places[at].key);
    // It may move into the hole unless its home lies between the hole and itself.
    if (((at - home) & (shard.size - 1)) < ((at - hole) & (shard.size - 1))) continue;
    shard.places[hole] = shard.places[at];
    hole = at;
  }
  shard.places[hole].key = 0;
  --shard.used;
}

// A forked child holds nothing: what its parent allocated is the parent's.
void forget_in_child() {
  for (Shard& shard : shards) {
    shard.lock.forget();
    if (shard.places) std::memset(static_cast<void*>(shard.places), 0, shard.size * sizeof(Place));
    shard.used = 0;
  }
}
[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

}  // namespace

bool remember(Held held, std::uint64_t handle, const Record& record) {
  const std::uint64_t key = key_of(held, handle);
  Shard& shard = shard_of(key);
  const Spinning locked(shard.lock);
  if (!make_room(shard)) return false;
  put(shard, key, record);
  return true;
}

bool forget(Held held, std::uint64_t handle, Record* record) {
  const std::uint64_t key = key_of(held, handle);
  Shard& shard = shard_of(key);
  const Spinning locked(shard.lock);
  Place* const place = find_place(shard, key);
  if (!place) return false;
  *record = place->record;
  remove(shard, place);
  return true;
}

bool find(Held held, std::uint64_t handle, Record* record) {
  const std::uint64_t key = key_of(held, handle);
  Shard& shard = shard_of(key);
  const Spinning locked(shard.lock);
  const Place* const place = find_place(shard, key);
  if (place) *record = place->record;
  return place != nullptr;
}

bool change_through(Held held, std::uint64_t handle, Change change, void* closure) {
  const std::uint64_t key = key_of(held, handle);
  Shard& shard = shard_of(key);
  const Spinning locked(shard.lock);
  Place* const place = find_place(shard, key);
  if (!place) return false;
  if (change(&place->record, closure)) remove(shard, place);
  return true;
}

void forget_all_of(CUcontext context, Ended ended, void* closure) {
  for (Shard& shard : shards) {
    const Spinning locked(shard.lock);
    for (std::uint64_t at = 0; at < shard.size;) {
      if (shard.places[at].key == 0 || shard.places[at].record.context != context) {
        ++at;
        continue;
      }
      const Record record = shard.places[at].record;
      remove(shard, &shard.places[at]);  // another may have moved here: look again
      ended(record, closure);
    }
  }
}

}  // namespace loam::guard::cuda

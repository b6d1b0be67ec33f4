#include "guard/lookup.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>

LOAM_GUARD_EXPORT void* dlsym(void* handle, const char* name) noexcept;
LOAM_GUARD_EXPORT void* dlvsym(void* handle, const char* name, const char* version) noexcept;

namespace loam::guard {

namespace {

// ---- the C library's functions by its own tables: the lookups themselves cannot be looked up ----

// The parts of a loaded object's dynamic section that name its symbols (ELF gABI, "Dynamic
// Section"; the hash table as the GNU tools write it).
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* hash = nullptr;
};

Tables tables_of(const dl_phdr_info& info) {
  Tables tables;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      // The loader has made these addresses; some loaders leave offsets.
      const ElfW(Addr) value = entry->d_un.d_ptr;
      const ElfW(Addr) address = value < info.dlpi_addr ? value + info.dlpi_addr : value;
      if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_HASH) tables.hash = reinterpret_cast<const std::uint32_t*>(address);
      if (entry->d_tag == DT_GNU_HASH)
        tables.gnu_hash = reinterpret_cast<const std::uint32_t*>(address);
    }
  }
  return tables;
}

std::uint32_t symbol_count(const Tables& tables) {
  if (tables.hash) return tables.hash[1];
  if (!tables.gnu_hash) return 0;
  // The table does not say how many there are: the last chain of the highest bucket ends there.
  const std::uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1];
  const std::uint32_t bloom_words = tables.gnu_hash[2];
  const std::uint32_t* const bucket =
      tables.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  const std::uint32_t* const chain = bucket + buckets;
  while ((chain[last - first] & 1u) == 0) ++last;
  return last + 1;
}

struct Sought {
  const char* name;
  void* found;
};

int look_into(dl_phdr_info* info, std::size_t, void* data) {
  auto* const sought = static_cast<Sought*>(data);
  // Since glibc 2.34 in the C library, before in a library of its own.
  if (!info->dlpi_name ||
      (!std::strstr(info->dlpi_name, "/libc.so") && !std::strstr(info->dlpi_name, "/libc-") &&
       !std::strstr(info->dlpi_name, "/libdl")))
    return 0;
  const Tables tables = tables_of(*info);
  if (!tables.symbols || !tables.strings) return 0;
  const std::uint32_t count = symbol_count(tables);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) continue;
    if (std::strcmp(tables.strings + symbol.st_name, sought->name) != 0) continue;
    sought->found = reinterpret_cast<void*>(info->dlpi_addr + symbol.st_value);
    return 1;
  }
  return 0;
}

void* in_c_library(const char* name) {
  Sought sought{name, nullptr};
  ::dl_iterate_phdr(&look_into, &sought);
  return sought.found;
}

// ---- answers ----

// Which layer is asked: by the first two letters, since programs look up a great deal else.
void* answer(const Asked& asked, const void* caller) {
  const char* const name = asked.name;
  if (name[0] == 'c' && name[1] == 'l') return opencl_answer(asked, caller);
  const bool nvidia = (name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'v');
  if (nvidia) return &cuda_answer != nullptr ? cuda_answer(asked, caller) : nullptr;
  // Who looks the lookups up, to get at what is behind them, gets the guard's.
  const struct {
    const char* name;
    void* function;
  } lookups[] = {{"dlsym", reinterpret_cast<void*>(&::dlsym)},
                 {"dlvsym", reinterpret_cast<void*>(&::dlvsym)}};
  for (const auto& lookup : lookups)
    if (std::strcmp(name, lookup.name) == 0) return real_address(asked) ? lookup.function : nullptr;
  return nullptr;
}

bool may_have_answer(const char* name) {
  return name[0] == 'c' || name[0] == 'n' || (name[0] == 'd' && name[1] == 'l');
}

}  // namespace

VersionedLookup real_versioned_lookup() {
  static std::atomic<VersionedLookup> cached{nullptr};
  VersionedLookup lookup = cached.load(std::memory_order_acquire);
  if (lookup) return lookup;
  lookup = reinterpret_cast<VersionedLookup>(in_c_library("dlvsym"));
  cached.store(lookup, std::memory_order_release);
  return lookup;
}

Lookup real_lookup() {
  static std::atomic<Lookup> cached{nullptr};
  Lookup lookup = cached.load(std::memory_order_acquire);
  if (lookup) return lookup;
  if (const VersionedLookup versioned = real_versioned_lookup())
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.0"}) {
      lookup = reinterpret_cast<Lookup>(versioned(RTLD_NEXT, "dlsym", version));
      if (lookup) break;
    }
  if (!lookup) lookup = reinterpret_cast<Lookup>(in_c_library("dlsym"));
  cached.store(lookup, std::memory_order_release);
  return lookup;
}

void* real_address(const Asked& asked) {
  if (asked.version) {
    const VersionedLookup lookup = real_versioned_lookup();
    return lookup ? lookup(asked.handle, asked.name, asked.version) : nullptr;
  }
  const Lookup lookup = real_lookup();
  return lookup ? lookup(asked.handle, asked.name) : nullptr;
}

}  // namespace loam::guard

// Everything that is not one of the guard's names leaves by a jump, so that the C library sees the
// true caller.
LOAM_GUARD_EXPORT void* dlsym(void* handle, const char* name) noexcept {
  if (loam::guard::may_have_answer(name)) [[unlikely]] {
    if (void* hook = loam::guard::answer({handle, name, nullptr}, __builtin_return_address(0)))
      return hook;
  }
  const loam::guard::Lookup lookup = loam::guard::real_lookup();
  if (!lookup) [[unlikely]]
    return nullptr;
  return lookup(handle, name);
}

LOAM_GUARD_EXPORT void* dlvsym(void* handle, const char* name, const char* version) noexcept {
  if (loam::guard::may_have_answer(name)) [[unlikely]] {
    if (void* hook = loam::guard::answer({handle, name, version}, __builtin_return_address(0)))
      return hook;
  }
  const loam::guard::VersionedLookup lookup = loam::guard::real_versioned_lookup();
  if (!lookup) [[unlikely]]
    return nullptr;
  return lookup(handle, name, version);
}

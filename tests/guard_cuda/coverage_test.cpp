// The guard's table of entries against what drivers export: an entry that the table does not know
// is named. The fake driver stands for a real one; where a real driver or CUDA's stub library is
// installed, it is compared too, and else that is reported as skipped.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Row {
  std::string symbol;
  bool hooked;
};
const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
#define HOOK(symbol, since, kind) {#symbol, true},
#define REFUSE(symbol, kind) {#symbol, true},
#define PASS(symbol, kind) {#symbol, false},
#include "guard/cuda/entries.def"
#undef HOOK
#undef REFUSE
#undef PASS
  };
  return rows;
}

// The dynamic symbols that a shared object defines, from its section headers.
std::set<std::string> exports_of(const std::string& path) {
  std::set<std::string> names;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (fd < 0 || ::fstat(fd, &facts) != 0) return names;
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (address == MAP_FAILED) return names;
  const char* const file = static_cast<const char*>(address);
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(file);
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(file + sections[i].sh_offset);
    const char* const text = file + sections[sections[i].sh_link].sh_offset;
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s)
      if (symbols[s].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC)
        names.insert(text + symbols[s].st_name);
  }
  ::munmap(address, size);
  return names;
}

std::vector<std::string> not_covered(const std::string& driver) {
  std::set<std::string> known;
  for (const Row& row : table()) known.insert(row.symbol);
  std::vector<std::string> missing;
  for (const std::string& name : exports_of(driver))
    if (name.starts_with("cu") && name.size() > 2 && std::isupper(name[2]) && !known.count(name))
      missing.push_back(name);
  return missing;
}

TEST(GuardCudaCoverage, EveryEntryOfTheFakeDriverIsInTheTable) {
  const std::string driver = std::string(LOAM_FAKE_CUDA_FOLDER) + "/libcuda.so.1";
  EXPECT_GT(exports_of(driver).size(), 150u);
  EXPECT_THAT(not_covered(driver), IsEmpty());
}

TEST(GuardCudaCoverage, AnUnknownEntryIsNamed) {
  EXPECT_THAT(not_covered(std::string(LOAM_FAKE_CUDA_NEWER_FOLDER) + "/libcuda.so.1"),
              ElementsAre("cuMemAllocFancy", "cuShinyQuery"));
}

TEST(GuardCudaCoverage, EveryEntryOfAnInstalledDriverIsInTheTable) {
  std::string found;
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1",
        "/usr/local/cuda/lib64/stubs/libcuda.so"})
    if (found.empty() && std::filesystem::exists(path)) found = path;
  if (found.empty())
    GTEST_SKIP() << "no CUDA driver and no stub library is installed; nothing to compare with";
  EXPECT_THAT(not_covered(found), IsEmpty()) << found;
}

TEST(GuardCudaCoverage, TheGuardExportsEveryHookAndNoEntryTwice) {
  const std::set<std::string> exported = exports_of(LOAM_GUARD_LIBRARY);
  std::set<std::string> seen;
  for (const Row& row : table()) {
    EXPECT_TRUE(seen.insert(row.symbol).second) << row.symbol << " is in the table twice";
    EXPECT_EQ(exported.count(row.symbol) > 0, row.hooked) << row.symbol;
  }
}

// What an unknown name is taken for: every entry of the table that is hooked to count memory or
// work is recognised by its name alone.
TEST(GuardCudaCoverage, EveryAllocationAndLaunchHasBothFlavoursOrNone) {
  std::set<std::string> known;
  for (const Row& row : table()) known.insert(row.symbol);
  for (const Row& row : table()) {
    const auto tail = row.symbol.size() > 5 ? row.symbol.substr(row.symbol.size() - 5) : "";
    if (tail != "_ptsz" && tail != "_ptds") continue;
    if (row.symbol == "cuGraphInstantiateWithParams_ptsz") continue;
    EXPECT_TRUE(known.count(row.symbol.substr(0, row.symbol.size() - 5))) << row.symbol;
  }
}

}  // namespace

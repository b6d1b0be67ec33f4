// Discovery against fake drivers: what a machine may show, and every way in which a driver fails.
#include "node/device/discovery.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fakes/fake_nvidia.hpp"
#include "fakes/fake_opencl_list.hpp"
#include "fakes/fake_rocm_smi.hpp"

namespace loam::node {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Severity = DiscoveryNote::Severity;

constexpr std::uint64_t gib = 1ULL << 30U;

std::string fake(const std::string& name) {
  return std::string(LOAM_BUILD_DIR) + "/fakes/" + name + ".so";
}

// Opens the fake itself and resets its panel. The address survives, as drivers are never unloaded.
template <class Panel>
Panel& panel_of(const std::string& name, const char* entry) {
  void* handle = ::dlopen(fake(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(::dlerror());
  Panel& panel = *reinterpret_cast<Panel* (*)()>(::dlsym(handle, entry))();
  panel = Panel{};
  return panel;
}

fakes::FakeNvidia& nvml_panel(const std::string& name = "fake_nvml") {
  return panel_of<fakes::FakeNvidia>(name, "fake_nvidia");
}
fakes::FakeNvidia& cuda_panel(const std::string& name = "fake_cuda_list") {
  return panel_of<fakes::FakeNvidia>(name, "fake_nvidia");
}
fakes::FakeAmd& amd_panel(const std::string& name = "fake_rocm_smi") {
  return panel_of<fakes::FakeAmd>(name, "fake_amd");
}
fakes::FakeCl& cl_panel() {
  return panel_of<fakes::FakeCl>("fake_opencl_list", "fake_cl");
}

// A machine without any driver; a test names those that it wants.
DiscoveryPaths bare_machine() {
  DiscoveryPaths paths;
  paths.opencl = {"libloam-no-opencl.so.1"};
  paths.nvml = {"libloam-no-nvml.so.1"};
  paths.cuda = {"libloam-no-cuda.so.1"};
  paths.rocm_smi = {"libloam-no-rocm.so.1"};
  paths.pci_devices = "/nonexistent";
  paths.machine_id = "machine-a";
  return paths;
}

fakes::FakeNvidiaCard h100(unsigned bus) {
  fakes::FakeNvidiaCard card;
  static const char* const uuids[] = {"GPU-00000000-0000-0000-0000-000000000010",
                                      "GPU-00000000-0000-0000-0000-000000000020"};
  card.uuid = uuids[bus == 0x10 ? 0 : 1];
  card.uuid_bytes[15] = static_cast<unsigned char>(bus);
  card.name = "NVIDIA H100 80GB HBM3";
  card.memory_bytes = 80 * gib;
  card.bus = bus;
  card.multiprocessors = 132;
  card.mig = 0;
  return card;
}

fakes::FakeClDevice cl_device(const char* name, std::uint64_t type = 4) {
  fakes::FakeClDevice device;
  device.name = name;
  device.vendor = "Some Vendor";
  device.type = type;
  device.memory_bytes = 8 * gib;
  device.compute_units = 16;
  return device;
}

std::vector<std::string> warnings_of(const Finding& finding) {
  std::vector<std::string> texts;
  for (const DiscoveryNote& note : finding.notes) {
    if (note.severity == Severity::warning) texts.push_back(note.source + ": " + note.text);
  }
  return texts;
}

TEST(Discovery, AMachineWithoutDriversHasNotesAndNoWarnings) {
  const Finding finding = discover(default_sources(bare_machine()));
  EXPECT_THAT(finding.devices, IsEmpty());
  EXPECT_THAT(warnings_of(finding), IsEmpty());
  EXPECT_EQ(finding.notes.size(), 4U);  // NVML, CUDA, ROCm SMI, OpenCL
  EXPECT_THAT(finding.notes.front().text, HasSubstr("libloam-no-nvml.so.1"));
}

TEST(Discovery, ReadsEveryFactOfNvidiaCards) {
  auto& panel = nvml_panel();
  panel.count = 2;
  panel.cards[0] = h100(0x10);
  panel.cards[0].domain = 1;
  panel.cards[1] = h100(0x20);
  panel.cards[1].mig = 1;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  const FoundDevice& first = finding.devices[0];
  EXPECT_EQ(first.uuid, "GPU-00000000-0000-0000-0000-000000000010");
  EXPECT_EQ(first.backend, Backend::cuda);
  EXPECT_EQ(first.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(first.driver_version, "570.86.10");
  EXPECT_EQ(first.memory, Mebibytes{81920});
  EXPECT_EQ(first.pci_bus, "0001:10:00.0");
  EXPECT_EQ(first.mig_enabled, std::optional<bool>(false));
  EXPECT_EQ(first.health, Health::healthy);
  EXPECT_THAT(first.found_by, ElementsAre("nvml"));
  EXPECT_EQ(finding.devices[1].mig_enabled, std::optional<bool>(true));
  EXPECT_EQ(panel.inits, panel.shutdowns);
}

TEST(Discovery, TakesTheNumaNodeFromTheKernel) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "loam_pci" / "0000:10:00.0";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "numa_node") << "1\n";
  auto& panel = nvml_panel();
  panel.count = 2;
  panel.cards[0] = h100(0x10);
  panel.cards[1] = h100(0x20);
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  paths.pci_devices = folder.parent_path().string();
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_EQ(finding.devices[0].numa_node, std::optional<std::int32_t>(1));
  EXPECT_EQ(finding.devices[1].numa_node, std::nullopt);
}

std::vector<std::string> link_groups_of(const Finding& finding) {
  std::vector<std::string> groups;
  for (const FoundDevice& device : finding.devices) groups.push_back(device.link_group);
  return groups;
}

// Of five cards: pairs 0-1 and 2-3, and 4 joined to 3 alone; asking for those of 0 gives a code.
std::vector<std::string> nvlink_groups(const std::string& library, int code_of_first = 0) {
  auto& panel = nvml_panel(library);
  panel.count = 5;
  static const char* const uuids[] = {"GPU-link-0", "GPU-link-1", "GPU-link-2", "GPU-link-3",
                                      "GPU-link-4"};
  const unsigned links[] = {0b00010, 0b00001, 0b01000, 0b10100, 0b01000};
  for (unsigned i = 0; i < 5; ++i) {
    panel.cards[i] = h100(0x10 + i);
    panel.cards[i].uuid = uuids[i];
    panel.cards[i].links = links[i];
  }
  panel.cards[0].p2p_code = code_of_first;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake(library)};
  const Finding finding = discover(default_sources(paths));
  EXPECT_THAT(warnings_of(finding), IsEmpty());
  return link_groups_of(finding);
}

TEST(Discovery, CardsThatNvlinkJoinsEachWithEveryOtherAreOneLinkGroup) {
  EXPECT_THAT(nvlink_groups("fake_nvml"),
              ElementsAre("0000:10:00.0", "0000:10:00.0", "0000:12:00.0", "0000:12:00.0", ""));
}

TEST(Discovery, LinksThatTheDriverDoesNotTellAreUnknownAndNoFailure) {
  EXPECT_THAT(nvlink_groups("fake_nvml_old"), ElementsAre("", "", "", "", ""));
  // One card whose links cannot be asked for does not hide those of the others.
  EXPECT_THAT(nvlink_groups("fake_nvml", 3),
              ElementsAre("", "", "0000:12:00.0", "0000:12:00.0", ""));
}

TEST(Discovery, ReportsTheHealthThatTheDriverCounts) {
  auto& panel = nvml_panel();
  panel.count = 2;
  panel.cards[0] = h100(0x10);
  panel.cards[0].uncorrected_errors = 3;
  panel.cards[1] = h100(0x20);
  panel.cards[1].remap_pending = 1;
  panel.cards[1].remap_failed = 1;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_EQ(finding.devices[0].health, Health::degraded);
  EXPECT_THAT(finding.devices[0].health_note, HasSubstr("3 uncorrected"));
  EXPECT_EQ(finding.devices[1].health, Health::failed);
  EXPECT_THAT(finding.devices[1].health_note, HasSubstr("replace"));
}

TEST(Discovery, ALostCardIsKeptAsFailedInTheDriversWords) {
  auto& panel = nvml_panel();
  panel.count = 1;
  panel.cards[0] = h100(0x10);
  panel.cards[0].memory_code = 15;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 1U);
  EXPECT_EQ(finding.devices[0].health, Health::failed);
  EXPECT_THAT(finding.devices[0].health_note, HasSubstr("code 15: GPU is lost"));
}

TEST(Discovery, OneBadCardDoesNotHideTheOthers) {
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  for (auto fault : {&fakes::FakeNvidiaCard::handle_code, &fakes::FakeNvidiaCard::uuid_code,
                     &fakes::FakeNvidiaCard::memory_code}) {
    auto& panel = nvml_panel();
    panel.count = 2;
    panel.cards[0] = h100(0x10);
    panel.cards[0].*fault = 999;
    panel.cards[1] = h100(0x20);
    const Finding finding = discover(default_sources(paths));
    ASSERT_EQ(finding.devices.size(), 1U);
    EXPECT_EQ(finding.devices[0].pci_bus, "0000:20:00.0");
    EXPECT_THAT(warnings_of(finding), ElementsAre(HasSubstr("code 999: Some Other Error")));
  }
}

TEST(Discovery, AFailingLibraryIsAWarningWithItsCodeAndWords) {
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  nvml_panel().init_code = 18;
  EXPECT_THAT(
      warnings_of(discover(default_sources(paths))),
      ElementsAre("nvidia: nvmlInit_v2 failed with code 18: Driver/library version mismatch"));
  nvml_panel().count_code = 9;
  EXPECT_THAT(warnings_of(discover(default_sources(paths))),
              ElementsAre(HasSubstr("code 9: Driver Not Loaded")));
}

TEST(Discovery, ALibraryWithoutARequiredEntryIsNamedWithIt) {
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml_without_count")};
  paths.cuda = {fake("fake_cuda_list_without_uuid")};
  paths.rocm_smi = {fake("fake_rocm_smi_without_count")};
  paths.opencl = {fake("fake_nvml")};  // a library that is no OpenCL loader at all
  EXPECT_THAT(
      warnings_of(discover(default_sources(paths))),
      ElementsAre(HasSubstr("lacks nvmlDeviceGetCount_v2:"), HasSubstr("lacks cuDeviceGetUuid:"),
                  HasSubstr("lacks rsmi_num_monitor_devices:"),
                  HasSubstr("lacks clGetPlatformIDs, clGetPlatformInfo")));
}

TEST(Discovery, AnOlderLibraryWithoutOptionalEntriesStillServes) {
  auto& nvidia = nvml_panel("fake_nvml_old");
  nvidia.count = 1;
  nvidia.cards[0] = h100(0x10);
  auto& amd = amd_panel("fake_rocm_smi_old");
  amd.count = 1;
  amd.cards[0].name = "AMD Instinct MI300X";
  amd.cards[0].memory_bytes = 192 * gib;
  amd.cards[0].bus_id = 0x300;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml_old")};
  paths.rocm_smi = {fake("fake_rocm_smi_old")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_THAT(warnings_of(finding), IsEmpty());
  EXPECT_EQ(finding.devices[0].mig_enabled, std::nullopt);
  EXPECT_EQ(finding.devices[0].driver_version, "");
  EXPECT_THAT(finding.devices[1].uuid, HasSubstr("CL-"));  // no unique id: named by its address
}

TEST(Discovery, AFileThatIsNoLibraryIsAWarning) {
  const std::string path = testing::TempDir() + "/loam_not_a_library.so";
  std::ofstream(path) << "this is not ELF";
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {path};
  paths.rocm_smi = {path};
  paths.opencl = {path};
  EXPECT_THAT(warnings_of(discover(default_sources(paths))),
              ElementsAre(HasSubstr(path), HasSubstr(path), HasSubstr(path)));
}

TEST(Discovery, AbsurdCountsAreRefused) {
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  paths.cuda = {fake("fake_cuda_list")};
  paths.rocm_smi = {fake("fake_rocm_smi")};
  paths.opencl = {fake("fake_opencl_list")};
  nvml_panel().count = 0xFFFFFFFF;
  cuda_panel().count = 0xFFFFFFFF;  // -1 as CUDA gives it
  amd_panel().count = 1'000'000;
  auto& cl = cl_panel();
  cl.count = 1;
  cl.platforms[0].name = "Liar";
  cl.platforms[0].count = 0x7FFFFFFF;
  const Finding finding = discover(default_sources(paths));
  EXPECT_THAT(finding.devices, IsEmpty());
  EXPECT_EQ(warnings_of(finding).size(), 4U);
  cl.count = 0x7FFFFFFF;
  EXPECT_THAT(warnings_of(discover(default_sources(paths))),
              Contains(HasSubstr("2147483647 platforms")));
}

TEST(Discovery, AbsurdMemoryIsRefused) {
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1000}, ~std::uint64_t{0}}) {
    auto& panel = nvml_panel();
    panel.count = 2;
    panel.cards[0] = h100(0x10);
    panel.cards[0].memory_bytes = bytes;
    panel.cards[1] = h100(0x20);
    const Finding finding = discover(default_sources(paths));
    ASSERT_EQ(finding.devices.size(), 1U) << bytes;
    EXPECT_THAT(warnings_of(finding), ElementsAre(HasSubstr("memory")));
  }
}

TEST(Discovery, BadIdentitiesAreRefused) {
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  for (const char* uuid :
       {"", "x", "GPU-1234\n5678", "GPU-\xff\xfe\xfd\xfc", "GPU-; rm -rf /", "../../etc/passwd"}) {
    auto& panel = nvml_panel();
    panel.count = 1;
    panel.cards[0] = h100(0x10);
    panel.cards[0].uuid = uuid;
    const Finding finding = discover(default_sources(paths));
    EXPECT_THAT(finding.devices, IsEmpty()) << uuid;
    EXPECT_THAT(warnings_of(finding), ElementsAre(HasSubstr("is not one")));
  }
}

TEST(Discovery, TwoCardsWithOneUuidAreNotTwoDevices) {
  auto& panel = nvml_panel();
  panel.count = 2;
  panel.cards[0] = panel.cards[1] = h100(0x10);
  panel.cards[1].bus = 0x20;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  const Finding finding = discover(default_sources(paths));
  EXPECT_EQ(finding.devices.size(), 1U);
  EXPECT_THAT(warnings_of(finding), ElementsAre(HasSubstr("to two devices")));
}

TEST(Discovery, NamesThatAreNotTextAreMadePrintable) {
  auto& panel = nvml_panel();
  panel.count = 2;
  panel.cards[0] = h100(0x10);
  panel.cards[0].name = " Card\x1b[31m\xff ";
  panel.cards[1] = h100(0x20);
  panel.cards[1].name = "";
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_EQ(finding.devices[0].name, "Card?[31m?");
  EXPECT_EQ(finding.devices[1].name, "unnamed");
}

TEST(Discovery, OneCardSeenByThreeSourcesIsOneDevice) {
  auto& nvml = nvml_panel();
  nvml.count = 1;
  nvml.cards[0] = h100(0x10);
  auto& cuda = cuda_panel();
  cuda.count = 1;
  cuda.cards[0] = h100(0x10);
  auto& cl = cl_panel();
  cl.count = 1;
  cl.platforms[0].name = "NVIDIA CUDA";
  cl.platforms[0].count = 1;
  cl.platforms[0].devices[0] = cl_device("NVIDIA H100 80GB HBM3");
  cl.platforms[0].devices[0].extensions = "cl_khr_fp64 cl_nv_device_attribute_query";
  cl.platforms[0].devices[0].bus = 0x10;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  paths.cuda = {fake("fake_cuda_list")};
  paths.opencl = {fake("fake_opencl_list")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 1U);
  const FoundDevice& card = finding.devices[0];
  EXPECT_THAT(card.found_by, ElementsAre("nvml", "cuda", "opencl:NVIDIA CUDA"));
  EXPECT_EQ(card.compute_units, 132U);
  EXPECT_EQ(card.uuid, "GPU-00000000-0000-0000-0000-000000000010");
  ASSERT_TRUE(card.opencl);
  EXPECT_EQ(*card.opencl, (OpenClPlace{0, 0, "NVIDIA CUDA"}));
}

TEST(Discovery, OpenClJoinsByUuidAlone) {
  auto& cuda = cuda_panel();
  cuda.count = 2;
  cuda.cards[0] = h100(0x10);
  cuda.cards[1] = h100(0x20);
  auto& cl = cl_panel();
  cl.count = 1;
  cl.platforms[0].name = "P";
  cl.platforms[0].count = 2;
  for (std::size_t i = 0; i < 2; ++i) {
    cl.platforms[0].devices[i] = cl_device("H100");
    cl.platforms[0].devices[i].extensions = "cl_khr_device_uuid";
    // The other way round than CUDA lists them.
    cl.platforms[0].devices[i].uuid = cuda.cards[1 - i].uuid_bytes;
  }
  DiscoveryPaths paths = bare_machine();
  paths.cuda = {fake("fake_cuda_list")};
  paths.opencl = {fake("fake_opencl_list")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_EQ(finding.devices[0].opencl->device, 1U);
  EXPECT_EQ(finding.devices[1].opencl->device, 0U);
}

TEST(Discovery, AmdCardsJoinWithTheirOpenClByAddress) {
  auto& amd = amd_panel();
  amd.count = 2;
  for (std::size_t i = 0; i < 2; ++i) {
    amd.cards[i].name = "AMD Instinct MI300X";
    amd.cards[i].unique_id = 0xABCD0 + i;
    amd.cards[i].memory_bytes = 192 * gib;
    amd.cards[i].bus_id = (0x40 + i) << 8U;
    amd.cards[i].links = 0b11;
  }
  auto& cl = cl_panel();
  cl.count = 1;
  cl.platforms[0].name = "AMD Accelerated Parallel Processing";
  cl.platforms[0].count = 1;
  cl.platforms[0].devices[0] = cl_device("gfx942");
  cl.platforms[0].devices[0].extensions = "cl_amd_device_attribute_query";
  cl.platforms[0].devices[0].bus = 0x41;
  cl.platforms[0].devices[0].compute_units = 304;
  DiscoveryPaths paths = bare_machine();
  paths.rocm_smi = {fake("fake_rocm_smi")};
  paths.opencl = {fake("fake_opencl_list")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_EQ(finding.devices[0].uuid, "GPU-00000000000abcd0");
  EXPECT_EQ(finding.devices[0].pci_bus, "0000:40:00.0");
  EXPECT_FALSE(finding.devices[0].opencl);
  EXPECT_EQ(finding.devices[1].compute_units, 304U);
  EXPECT_EQ(finding.devices[1].backend, Backend::rocm);
  EXPECT_EQ(finding.devices[1].driver_version, "6.8.5");
  EXPECT_THAT(link_groups_of(finding), ElementsAre("0000:40:00.0", "0000:40:00.0"));
}

TEST(Discovery, AmdFailuresAreSaidInTheDriversWords) {
  DiscoveryPaths paths = bare_machine();
  paths.rocm_smi = {fake("fake_rocm_smi")};
  amd_panel().init_code = 8;
  EXPECT_THAT(warnings_of(discover(default_sources(paths))),
              ElementsAre(HasSubstr("code 8: RSMI_STATUS_INIT_ERROR")));
  auto& panel = amd_panel();
  panel.count = 3;
  panel.cards[0].name = "no memory figure";
  panel.cards[0].bus_id = 0x100;
  panel.cards[0].memory_code = 2;
  panel.cards[1].name = "no identity";
  panel.cards[1].unique_id_code = panel.cards[1].bus_id_code = 2;
  panel.cards[1].memory_bytes = gib;
  panel.cards[2].name = "good";
  panel.cards[2].unique_id = 7;
  panel.cards[2].memory_bytes = gib;
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 1U);
  EXPECT_EQ(finding.devices[0].name, "good");
  EXPECT_THAT(warnings_of(finding),
              ElementsAre(HasSubstr("rsmi_dev_memory_total_get"), HasSubstr("neither")));
}

TEST(Discovery, ADeviceWithoutUuidHasOneThatLastsAndDiffersByMachine) {
  auto& cl = cl_panel();
  cl.count = 1;
  cl.platforms[0].name = "P";
  cl.platforms[0].count = 2;
  cl.platforms[0].devices[0] = cl.platforms[0].devices[1] = cl_device("Twin");
  DiscoveryPaths paths = bare_machine();
  paths.opencl = {fake("fake_opencl_list")};
  const Finding once = discover(default_sources(paths));
  cl.platforms[0].devices[0].driver_version = "2.0";  // an upgrade
  const Finding again = discover(default_sources(paths));
  paths.machine_id = "machine-b";
  const Finding elsewhere = discover(default_sources(paths));
  ASSERT_EQ(once.devices.size(), 2U);
  EXPECT_NE(once.devices[0].uuid, once.devices[1].uuid);
  EXPECT_EQ(once.devices[0].uuid, again.devices[0].uuid);
  EXPECT_NE(once.devices[0].uuid, elsewhere.devices[0].uuid);
}

TEST(Discovery, OneCpuSeenByTwoOpenClDriversIsOneDevice) {
  auto& cl = cl_panel();
  cl.count = 2;
  cl.platforms[0].name = "PoCL";
  cl.platforms[0].count = 2;  // asked for two by its user: two devices
  cl.platforms[0].devices[0] = cl.platforms[0].devices[1] = cl_device("pthread-cpu", 2);
  cl.platforms[1].name = "Another";
  cl.platforms[1].count = 1;
  cl.platforms[1].devices[0] = cl_device("The same CPU", 2);
  DiscoveryPaths paths = bare_machine();
  paths.opencl = {fake("fake_opencl_list")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 2U);
  EXPECT_TRUE(finding.devices[0].is_cpu);
  EXPECT_THAT(finding.devices[0].found_by, ElementsAre("opencl:PoCL", "opencl:Another"));
  EXPECT_EQ(finding.devices[0].opencl->platform_name, "PoCL");
}

TEST(Discovery, OpenClFaultsAreSaidAndCustomDevicesPassedOver) {
  auto& cl = cl_panel();
  cl.count = 4;
  cl.platforms[0].name = "Broken";
  cl.platforms[0].code = -6;
  cl.platforms[1].name = "Empty";
  cl.platforms[1].code = -1;
  cl.platforms[2].name = "Odd";
  cl.platforms[2].count = 1;
  cl.platforms[2].devices[0] = cl_device("Fixed function", 16);
  cl.platforms[3].name = "Good";
  cl.platforms[3].count = 1;
  cl.platforms[3].devices[0] = cl_device("Card");
  cl.platforms[3].devices[0].available = false;
  DiscoveryPaths paths = bare_machine();
  paths.opencl = {fake("fake_opencl_list")};
  const Finding finding = discover(default_sources(paths));
  ASSERT_EQ(finding.devices.size(), 1U);
  EXPECT_EQ(finding.devices[0].name, "Card");
  EXPECT_EQ(finding.devices[0].health, Health::failed);
  EXPECT_THAT(warnings_of(finding), ElementsAre(HasSubstr("CL_OUT_OF_HOST_MEMORY (-6)")));
}

TEST(Discovery, ALoaderWithoutDriversIsANote) {
  DiscoveryPaths paths = bare_machine();
  paths.opencl = {fake("fake_opencl_list")};
  cl_panel().code = -1001;
  const Finding finding = discover(default_sources(paths));
  EXPECT_THAT(warnings_of(finding), IsEmpty());
  EXPECT_THAT(finding.notes.back().text, HasSubstr("finds no driver"));
}

TEST(DiscoveryApart, FindsTheSameAsInProcess) {
  auto& panel = nvml_panel();
  panel.count = 2;
  panel.cards[0] = h100(0x10);
  panel.cards[1] = h100(0x20);
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  const Finding apart = discover_apart(default_sources(paths));
  const Finding here = discover(default_sources(paths));
  EXPECT_EQ(apart.devices, here.devices);
  EXPECT_EQ(apart.notes, here.notes);
}

TEST(DiscoveryApart, ACrashingOrHangingDriverIsAWarningAndHidesNothingElse) {
  auto& amd = amd_panel();
  amd.count = 1;
  amd.cards[0].name = "good";
  amd.cards[0].unique_id = 7;
  amd.cards[0].memory_bytes = gib;
  DiscoveryPaths paths = bare_machine();
  paths.nvml = {fake("fake_nvml")};
  paths.rocm_smi = {fake("fake_rocm_smi")};
  nvml_panel().crash_on_init = true;
  const Finding crashed = discover_apart(default_sources(paths));
  EXPECT_EQ(crashed.devices.size(), 1U);
  EXPECT_THAT(warnings_of(crashed), ElementsAre(HasSubstr("crashed with signal 6")));
  nvml_panel().hang_on_init = true;
  const Finding hung = discover_apart(default_sources(paths), Duration{300});
  EXPECT_EQ(hung.devices.size(), 1U);
  EXPECT_THAT(warnings_of(hung), ElementsAre(HasSubstr("did not answer within 300ms")));
}

}  // namespace
}  // namespace loam::node

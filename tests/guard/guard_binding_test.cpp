// How the guard gets into a program and finds its page, and what it does where it cannot.
#include <fstream>
#include <set>
#include <sstream>

#include "guard/house.hpp"

namespace loam::node {
namespace {

class GuardBinding : public House {
 protected:
  std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    char part[4096];
    while (const std::size_t n = std::fread(part, 1, sizeof part, pipe)) text.append(part, n);
    ::pclose(pipe);
    return text;
  }
  void refuses(Guest& guest) {
    EXPECT_EQ(guest.ask("open"), "error -1");  // CL_DEVICE_NOT_FOUND: no devices
    const std::string said = guest.errors();
    EXPECT_NE(said.find("loam-guard: "), std::string::npos) << said;
    EXPECT_EQ(guest.ask("open"), "error -1");
    EXPECT_EQ(guest.errors(), "") << "said more than once";
  }
};

TEST_F(GuardBinding, AProgramThatOpensTheLibraryItselfIsBound) {
  make_page("l1", {fake_slice(100 * mib)});
  Guest guest({LOAM_GUEST_DLOPEN_PROGRAM, "dlopen"}, environment("l1"));
  ASSERT_EQ(guest.ask("open"), "ok");
  EXPECT_EQ(guest.ask("devices"), "ok 1");
  EXPECT_EQ(guest.ask("alloc " + std::to_string(60 * mib)), "ok 1");
  EXPECT_EQ(guest.ask("alloc " + std::to_string(60 * mib)), "error -4");
}

TEST_F(GuardBinding, ExtensionsThatWouldLeadAroundTheGuardAreNotThere) {
  make_page("l1", {fake_slice(100 * mib)});
  auto guest = start_guest("l1");
  ASSERT_EQ(guest->ask("open"), "ok");
  EXPECT_EQ(guest->ask("extensions"), "ok cl_khr_fp64 cl_khr_il_program");
  EXPECT_EQ(guest->ask("extension clEnqueueCommandBufferKHR"), "none");
  EXPECT_EQ(guest->ask("extension clGetDeviceInfo"), "found");
  EXPECT_EQ(guest->ask("extension clCreateBuffer"), "found");
}

TEST_F(GuardBinding, WithoutAPageDevicesAreRefused) {
  auto settings = environment("l1");
  settings.erase("LOAM_SLICE_PAGE");
  Guest guest({LOAM_GUEST_PROGRAM}, settings);
  refuses(guest);
}

TEST_F(GuardBinding, AMissingPageRefuses) {
  auto guest = start_guest("no_such_lease");
  refuses(*guest);
}

TEST_F(GuardBinding, APageThatCannotBeTrustedRefuses) {
  const auto spoil = [&](const char* suffix, std::streamoff offset, const std::string& bytes) {
    ASSERT_TRUE(remove_page(root_, "l1").ok());
    make_page("l1", {fake_slice(100 * mib)});
    const std::string path = page_prefix(root_, "l1") + suffix;
    ::chmod(path.c_str(), 0600);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    auto guest = start_guest("l1");
    refuses(*guest);
  };
  const std::string newer("\x03\0\0\0", 4), older("\x01\0\0\0", 4), none("\0\0\0\0", 4),
      many("\x11\0\0\0", 4);
  spoil(".limits", 0, "garbage!");
  spoil(".limits", 8, newer);
  spoil(".limits", 8, older);
  spoil(".limits", 16, none);  // no devices
  spoil(".limits", 16, many);
  spoil(".limits", 24, "l2");  // another lease's
  spoil(".counters", 0, "garbage!");
  spoil(".counters", 8, newer);
  spoil(".counters", 20, many);  // slots
}

TEST_F(GuardBinding, APageCutShortRefuses) {
  for (const char* suffix : {".limits", ".counters"}) {
    ASSERT_TRUE(remove_page(root_, "l1").ok());
    make_page("l1", {fake_slice(100 * mib)});
    std::filesystem::resize_file(page_prefix(root_, "l1") + suffix, 1000);
    auto guest = start_guest("l1");
    refuses(*guest);
  }
}

TEST_F(GuardBinding, ADeviceThatIsNotOnThePageIsNotThere) {
  SliceLimits other = fake_slice(100 * mib);
  other.device_key = uuid_device_key("GPU-00000000-0000-0000-0000-000000000001");
  make_page("l1", {other});
  auto guest = start_guest("l1");
  EXPECT_EQ(guest->ask("open"), "error -1");
}

TEST_F(GuardBinding, LookupsReachTheirTrueTargets) {
  const std::string plain = output_of(LOAM_LOOKUPS_PROGRAM);
  const std::string guarded =
      output_of(std::string("LD_PRELOAD=" LOAM_GUARD_LIBRARY " ") + LOAM_LOOKUPS_PROGRAM);
  EXPECT_NE(plain.find("next malloc libc.so.6"), std::string::npos) << plain;
  EXPECT_EQ(plain, guarded);
}

// A guard is upgraded by installing the new one under another name and renaming it: who runs keeps
// the old one, who starts gets the new one.
TEST_F(GuardBinding, UpgradingTheGuardHarmsNobodyWhoRuns) {
  const std::string installed = root_ + "/guard.so";
  std::filesystem::copy_file(LOAM_GUARD_LIBRARY, installed);
  make_page("l1", {fake_slice(100 * mib)});
  auto settings = environment("l1");
  settings["LD_PRELOAD"] = installed;
  Guest before({LOAM_GUEST_PROGRAM}, settings);
  ASSERT_EQ(before.ask("open"), "ok");
  ASSERT_EQ(before.ask("alloc " + std::to_string(60 * mib)), "ok 1");
  std::filesystem::copy_file(LOAM_GUARD_LIBRARY, installed + ".new");
  std::filesystem::rename(installed + ".new", installed);
  EXPECT_EQ(before.ask("alloc " + std::to_string(60 * mib)), "error -4");
  Guest after({LOAM_GUEST_PROGRAM}, settings);
  ASSERT_EQ(after.ask("open"), "ok");
  EXPECT_EQ(after.ask("alloc " + std::to_string(60 * mib)), "error -4");
  EXPECT_EQ(before.ask("free 1"), "ok");
  EXPECT_EQ(after.ask("alloc " + std::to_string(60 * mib)), "ok 1");
  EXPECT_EQ(before.finish(), 0);
}

TEST_F(GuardBinding, AProgramWithoutOpenClHearsNothing) {
  Guest guest({"/bin/sh", "-c", "read line; echo $line"},
              {{"LD_PRELOAD", LOAM_GUARD_LIBRARY}, {"PATH", "/bin:/usr/bin"}});
  EXPECT_EQ(guest.ask("hello"), "hello");
  EXPECT_EQ(guest.errors(), "");
}

// Every call of the installed OpenCL library, and of the dispatch table that drivers fill, is the
// guard's or is known not to need it, by name. A new version of either that brings a new call fails
// here.
TEST_F(GuardBinding, NoCallOfTheLibraryIsForgotten) {
  // Neither memory nor work: they look, count references, set arguments, compile, wait.
  const auto is_harmless_kind = [](const std::string& name) {
    for (const char* prefix : {"clGet",
                               "clRetain",
                               "clRelease",
                               "clSetKernel",
                               "clSetEvent",
                               "clSetMemObject",
                               "clSetProgram",
                               "clSetContext",
                               "clSetCommandQueue",
                               "clSetDefault",
                               "clBuild",
                               "clCompile",
                               "clLink",
                               "clUnload",
                               "clWait",
                               "clFinish",
                               "clFlush",
                               "clCreateProgram",
                               "clCreateKernel",
                               "clCreateSampler",
                               "clCreateCommandQueue",
                               "clCreateSubDevices",
                               "clCreateUserEvent",
                               "clCloneKernel"})
      if (name.starts_with(prefix)) return true;
    return false;
  };
  // Direct3D is Windows' alone.
  const auto is_of_windows = [](const std::string& name) {
    return name.find("D3D1") != std::string::npos || name.find("DX9") != std::string::npos;
  };
  // Not covered, each for its reason.
  const std::set<std::string> not_covered{
      "clCreateSubBuffer",     // lies in memory that is counted
      "clCreateFromGLBuffer",  // the next ones share what a graphics program allocated
      "clCreateFromGLRenderbuffer",
      "clCreateFromGLTexture",
      "clCreateFromGLTexture2D",
      "clCreateFromGLTexture3D",
      "clCreateFromEGLImageKHR",
      "clEnqueueAcquireGLObjects",
      "clEnqueueReleaseGLObjects",
      "clEnqueueAcquireEGLObjectsKHR",
      "clEnqueueReleaseEGLObjectsKHR",
      "clCreateEventFromGLsyncKHR",
      "clCreateEventFromEGLSyncKHR"};
  const auto names = [&](const std::string& path) {
    std::set<std::string> found;
    std::istringstream lines(output_of("nm -D --defined-only " + path));
    for (std::string line; std::getline(lines, line);) {
      const std::string name = line.substr(line.rfind(' ') + 1);
      if (name.starts_with("cl")) found.insert(name.substr(0, name.find('@')));
    }
    return found;
  };
  const std::set<std::string> ours = names(LOAM_GUARD_LIBRARY);
  std::set<std::string> theirs;
  const std::string library =
      output_of("ldconfig -p | sed -n 's/.*libOpenCL.so.1.* => //p' | head -n1");
  if (!library.empty()) theirs = names(library.substr(0, library.find('\n')));
  // "  cl_api_clGetPlatformIDs clGetPlatformIDs;"
  std::ifstream header("/usr/include/CL/cl_icd.h");
  std::size_t in_table = 0;
  for (std::string line; std::getline(header, line);) {
    std::istringstream words(line);
    std::string type, name;
    if (!(words >> type >> name) || !type.starts_with("cl_api_") || !name.ends_with(';')) continue;
    theirs.insert(name.substr(0, name.size() - 1));
    ++in_table;
  }
  if (theirs.empty()) GTEST_SKIP() << "this machine has neither libOpenCL.so.1 nor CL/cl_icd.h";
  EXPECT_TRUE(in_table == 0 || in_table > 100) << in_table << " names in the dispatch table";
  ASSERT_GT(theirs.size(), 50u);
  std::size_t covered = 0;
  for (const std::string& name : theirs) {
    if (ours.contains(name)) ++covered;
    EXPECT_TRUE(ours.contains(name) || is_harmless_kind(name) || is_of_windows(name) ||
                not_covered.contains(name))
        << name;
  }
  EXPECT_GT(covered, 40u);
  EXPECT_TRUE(ours.contains("clSetUserEventStatus"));
}

// The real thing: the first OpenCL device of this machine, through its own loader and driver.
TEST_F(GuardBinding, ARealDriverIsBound) {
  std::string platform, device;
  {
    Guest plain({LOAM_GUEST_PROGRAM}, {});
    const std::string names = plain.ask("names");
    if (!names.starts_with("ok ")) GTEST_SKIP() << "no OpenCL device on this machine: " << names;
    const std::size_t bar = names.find('|');
    platform = names.substr(3, bar - 3);
    device = names.substr(bar + 1);
  }
  SliceLimits slice = fake_slice(64 * mib);
  slice.device_key = opencl_device_key(platform, device, 0);
  make_page("l1", {slice});
  start_keeper();
  for (const bool opens_itself : {false, true}) {
    auto settings = environment("l1");
    settings.erase("LD_LIBRARY_PATH");
    settings["HOME"] = root_;
    settings["PATH"] = "/usr/bin:/bin";  // PoCL links its kernels with ld
    Guest guest(opens_itself ? std::vector<std::string>{LOAM_GUEST_DLOPEN_PROGRAM, "dlopen"}
                             : std::vector<std::string>{LOAM_GUEST_PROGRAM},
                settings);
    ASSERT_EQ(guest.ask("open"), "ok") << guest.errors();
    EXPECT_EQ(guest.ask("info"), "ok 67108864 67108864");
    EXPECT_EQ(guest.ask("alloc " + std::to_string(40 * mib)), "ok 1");
    EXPECT_EQ(guest.ask("alloc " + std::to_string(40 * mib)), "error -4");
    EXPECT_EQ(guest.ask("kernel 1000 20"), "ok");
    EXPECT_EQ(guest.ask("user_event"), "ok 2");
    EXPECT_EQ(guest.ask("after 2 1000"), "ok 3");
    EXPECT_EQ(guest.ask("set 2"), "ok");
    EXPECT_EQ(guest.ask("wait 3"), "ok");
    EXPECT_EQ(guest.ask("free 1"), "ok");
    EXPECT_EQ(guest.ask("alloc " + std::to_string(40 * mib)), "ok 4");
    EXPECT_EQ(guest.finish(), 0);
  }
  EXPECT_EQ(usage("l1").launches, 42u);
  EXPECT_GT(usage("l1").busy_ns, 0);
  EXPECT_EQ(usage("l1").memory_used_bytes, 0u);
}

// In a sandbox the guard enters by /etc/ld.so.preload and finds its page at the well-known path:
// a child whose environment is empty is bound all the same.
TEST_F(GuardBinding, AChildWithAnEmptyEnvironmentIsBound) {
  if (std::system("bwrap --ro-bind / / true 2>/dev/null") != 0)
    GTEST_SKIP() << "bubblewrap is not usable on this machine";
  make_page("l1", {fake_slice(100 * mib)});
  const std::string preload = root_ + "/preload";
  std::ofstream(preload) << "/run/guard.so\n";
  // The fake library takes the place of the system's, as a driver would.
  std::filesystem::create_directory(root_ + "/etc");
  std::ofstream(root_ + "/etc/empty") << "";
  std::vector<std::string> command{"bwrap",
                                   "--die-with-parent",
                                   "--unshare-pid",
                                   "--ro-bind",
                                   "/",
                                   "/",
                                   "--proc",
                                   "/proc",
                                   "--dev",
                                   "/dev",
                                   "--tmpfs",
                                   "/tmp",
                                   "--bind",
                                   root_,
                                   root_,
                                   "--tmpfs",
                                   "/etc",
                                   "--ro-bind",
                                   preload,
                                   "/etc/ld.so.preload",
                                   "--tmpfs",
                                   "/run",
                                   "--ro-bind",
                                   LOAM_GUARD_LIBRARY,
                                   "/run/guard.so",
                                   "--ro-bind",
                                   LOAM_GUEST_PROGRAM,
                                   "/run/guest",
                                   "--ro-bind",
                                   LOAM_FAKE_OPENCL_FOLDER "/libOpenCL.so.1",
                                   "/run/libOpenCL.so.1",
                                   "--ro-bind",
                                   page_prefix(root_, "l1") + ".limits",
                                   "/run/loam/slice.limits",
                                   "--bind",
                                   page_prefix(root_, "l1") + ".counters",
                                   "/run/loam/slice.counters",
                                   "--",
                                   "/usr/bin/env",
                                   "-i",
                                   "/bin/sh",
                                   "-c",
                                   "exec env -i LD_LIBRARY_PATH=/run /run/guest"};
  Guest inside(command, {{"PATH", "/bin:/usr/bin"}});
  ASSERT_EQ(inside.ask("open"), "ok") << inside.errors();
  EXPECT_EQ(inside.ask("alloc " + std::to_string(60 * mib)), "ok 1");
  EXPECT_EQ(inside.ask("alloc " + std::to_string(60 * mib)), "error -4");
  EXPECT_EQ(usage("l1").memory_used_bytes, 60 * mib);

  // Pids mean nothing across the sandbox's wall; the lock that says "alive" does.
  auto outside = start_guest("l1");
  ASSERT_EQ(outside->ask("open"), "ok");
  EXPECT_EQ(outside->ask("alloc " + std::to_string(60 * mib)), "error -4");
  inside.tell("quit");
  inside.kill();
  for (int i = 0; i < 400 && usage("l1").memory_used_bytes != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(usage("l1").memory_used_bytes, 0u);
}

}  // namespace
}  // namespace loam::node

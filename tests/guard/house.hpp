// What the guard's tests share: a folder with pages and a keeper, and guests that are told what to
// do line by line.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fakes/fake_opencl.hpp"
#include "node/keeper/keeper_process.hpp"
#include "node/keeper/slice_page.hpp"

namespace loam::node {

inline constexpr std::uint64_t mib = 1u << 20;

// What a guest is asked to allocate.
inline std::string alloc(std::uint64_t mebibytes) {
  return "alloc " + std::to_string(mebibytes * mib);
}

// A running program with a line each way.
class Guest {
 public:
  using Environment = std::map<std::string, std::string>;

  Guest(std::vector<std::string> command, const Environment& environment) {
    ::signal(SIGPIPE, SIG_IGN);  // a guest that died is seen by what it does not answer
    std::array<int, 2> in{}, out{}, err{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0 ||
        ::pipe2(err.data(), O_CLOEXEC) != 0)
      std::abort();
    std::vector<std::string> settings;
    for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
    std::vector<char*> arguments, variables;
    for (auto& word : command) arguments.push_back(word.data());
    for (auto& setting : settings) variables.push_back(setting.data());
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::signal(SIGPIPE, SIG_DFL);
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      ::execvpe(arguments[0], arguments.data(), variables.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    ::close(err[1]);
    to_ = in[1];
    from_ = out[0];
    err_ = err[0];
    ::fcntl(err_, F_SETFL, O_NONBLOCK);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() {
    kill();
    ::close(to_);
    ::close(from_);
    ::close(err_);
  }

  void tell(const std::string& line) {
    const std::string text = line + "\n";
    (void)!::write(to_, text.data(), text.size());
  }
  // The next line; "gone" when the program has ended.
  std::string hear() {
    std::string line;
    char c = 0;
    while (::read(from_, &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return "gone";
  }
  std::string ask(const std::string& line) {
    tell(line);
    return hear();
  }
  // Whether a line comes within this time.
  bool hears_within(int ms) const {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(from_, &set);
    timeval time{ms / 1000, ms % 1000 * 1000};
    return ::select(from_ + 1, &set, nullptr, nullptr, &time) == 1;
  }
  // What it has written to standard error so far.
  std::string errors() const {
    std::string text;
    char part[4096];
    for (ssize_t n; (n = ::read(err_, part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(n));
    return text;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Ends its input and waits; its exit status, or 128 + the signal that ended it.
  int finish() {
    ::close(to_);
    to_ = -1;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  int to_ = -1, from_ = -1, err_ = -1;
};

// One node's folder, with the fake device's books in it.
class House : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/loam_guard_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    const int fd = ::open(books_path().c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(::ftruncate(fd, 4096), 0);
    void* const address = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(address, MAP_FAILED);
    ::close(fd);
    books_ = static_cast<fakes::FakeDeviceBooks*>(address);
  }
  void TearDown() override {
    stop_keeper(SIGTERM);
    ::munmap(books_, 4096);
    std::filesystem::remove_all(root_);
  }

  std::string books_path() const { return root_ + "/books"; }
  fakes::FakeDeviceBooks& books() { return *books_; }

  static SliceLimits fake_slice(std::uint64_t memory_bytes, int share_milli = 1000,
                                SliceMode mode = SliceMode::strict, unsigned index = 0) {
    SliceLimits slice;
    slice.device_key = opencl_device_key(fakes::fake_platform_name, fakes::fake_device_name, index);
    slice.device_name = fakes::fake_device_name;
    slice.memory_bytes = memory_bytes;
    slice.share_milli = share_milli;
    slice.mode = mode;
    return slice;
  }
  void make_page(const std::string& lease, const std::vector<SliceLimits>& slices) {
    const auto made = create_page(root_, lease, slices);
    ASSERT_TRUE(made.ok()) << to_text(made.error());
  }
  SliceUsage usage(const std::string& lease, std::size_t device = 0) {
    auto usages = read_counters(root_, lease);
    EXPECT_TRUE(usages.ok()) << to_text(usages.error());
    return usages.ok() ? usages.value().at(device) : SliceUsage{};
  }
  void start_keeper() {
    const auto started = ensure_keeper(root_, LOAM_KEEPER_PROGRAM);
    ASSERT_TRUE(started.ok()) << to_text(started.error());
    keeper_ = started.value();
  }
  void stop_keeper(int signal) {
    if (keeper_ <= 0) return;
    ::kill(keeper_, signal);
    for (int i = 0; i < 1000; ++i) {
      const auto running = keeper_running(root_);
      if (running.ok() && running.value() == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    keeper_ = 0;
  }
  // What a guest of the lease runs with: the fake device and the guard.
  Guest::Environment environment(const std::string& lease) const {
    return {{"LD_LIBRARY_PATH", LOAM_FAKE_OPENCL_FOLDER},
            {"LOAM_FAKE_OPENCL", books_path()},
            {"LD_PRELOAD", LOAM_GUARD_LIBRARY},
            {"LOAM_SLICE_PAGE", page_prefix(root_, lease)}};
  }
  std::unique_ptr<Guest> start_guest(const std::string& lease) {
    return std::make_unique<Guest>(std::vector<std::string>{LOAM_GUEST_PROGRAM},
                                   environment(lease));
  }

  std::string root_;
  pid_t keeper_ = 0;
  fakes::FakeDeviceBooks* books_ = nullptr;
};

}  // namespace loam::node

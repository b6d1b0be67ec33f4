#include "node/device/device_holder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <optional>
#include <sstream>

#include "node/keeper/keeper_process.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::node {
namespace {

constexpr std::size_t text_max = 8192;  // of a file: a path and two numbers
constexpr mode_t for_everybody = 0666;  // loamd of other users hold devices, too

struct Holder {
  std::string data;
  pid_t process = 0;
  std::uint64_t start_ticks = 0;
};

// "PROCESS START_TICKS DATA\n"
std::string to_text(const Holder& holder) {
  return std::to_string(holder.process) + " " + std::to_string(holder.start_ticks) + " " +
         holder.data + "\n";
}

std::optional<Holder> parse(const std::string& text) {
  std::istringstream in(text);
  Holder holder;
  if (!(in >> holder.process >> holder.start_ticks) || holder.process <= 0) return std::nullopt;
  in.get();  // the blank
  if (!std::getline(in, holder.data) || holder.data.empty()) return std::nullopt;
  return holder;
}

bool is_alive(const Holder& holder) {
  if (process_start_ticks(holder.process) == holder.start_ticks) return true;
  const auto keeper = keeper_running(holder.data + "/keeper");
  return keeper && *keeper != 0;
}

std::string path_of(const std::string& folder, const std::string& uuid) {
  std::string name = "loam-device-";
  for (const char c : uuid) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    name.push_back(plain ? c : '_');
  }
  return folder + "/" + name;
}

// Without O_CREAT first: in a folder that everybody may write, the kernel may refuse it for what
// another user made.
Fd open_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.valid() || errno != ENOENT) return file;
  file = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, for_everybody));
  if (file.valid()) ::fchmod(file.get(), for_everybody);  // whatever the umask
  return file;
}

bool lock(const Fd& file) {
  constexpr int tries_max = 200;  // it is held for as long as it takes to read and write it
  for (int tries = 0; tries < tries_max; ++tries) {
    if (try_lock_file(file)) return true;
    ::poll(nullptr, 0, 10);
  }
  return false;
}

}  // namespace

Result<void> hold_device(const std::string& folder, const std::string& uuid,
                         const std::string& data) {
  LOAM_CHECK(make_directories(folder));
  const std::string path = path_of(folder, uuid);
  const auto fault = [&](const char* doing) {
    return os_error(doing + path, errno, "name another folder with: device_locks");
  };
  const Fd file = open_file(path);
  if (!file.valid()) return fault("opening ");
  if (!lock(file)) return fault("locking ");
  std::string text(text_max, '\0');
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  const auto other = parse(text);
  if (other && other->data != data && is_alive(*other)) {
    return Error{ErrorKind::conflict,
                 "another loamd of this machine sells it: the one with the data folder " +
                     other->data + " (process " + std::to_string(other->process) + ")",
                 "stop that one, once its tasks have ended"};
  }
  const Holder self{data, ::getpid(), process_start_ticks(::getpid()).value_or(0)};
  if (text == to_text(self)) return {};  // asked again at every look at the devices
  if (::ftruncate(file.get(), 0) != 0 || ::lseek(file.get(), 0, SEEK_SET) < 0 ||
      !write_all(file.get(), to_text(self)))
    return fault("writing ");
  return {};
}

}  // namespace loam::node

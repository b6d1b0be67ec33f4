#include "app/loamd/notice_outbox.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "domain/json_codec.hpp"

namespace loam::daemon {
namespace {

Error os_fault(const std::string& doing) {
  return {ErrorKind::unavailable, doing + ": " + std::strerror(errno),
          "check the folder's permissions and free space"};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

Result<NoticeBox> read_notice_box(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return NoticeBox{};
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return os_fault("reading " + path);
  auto box = json::from_document<NoticeBox>(text.str(), json::Missing::is_error);
  if (box.ok()) return box;
  return Error{ErrorKind::corrupt, path + " is damaged: " + box.error().message,
               "move it away: notices that wait in it are then lost"};
}

Result<void> write_notice_box(const std::string& path, const NoticeBox& box) {
  const std::string fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return os_fault("making " + fresh);
  const bool written = write_all(file, json::to_document(box)) && ::fsync(file) == 0;
  const int fault = errno;
  ::close(file);
  errno = fault;
  if (!written) return os_fault("writing " + fresh);
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return os_fault("replacing " + path);
  return {};
}

}  // namespace loam::daemon

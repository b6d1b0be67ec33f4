#include "app/loamd/notice_outbox.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "domain/json_codec.hpp"
#include "node/launch/file.hpp"

namespace loam::daemon {
namespace {

Error os_fault(const std::string& doing) {
  return {ErrorKind::unavailable, doing + ": " + std::strerror(errno),
          "check the folder's permissions and free space"};
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
  const std::filesystem::path file(path);
  LOAM_TRY(folder, node::open_directory(file.parent_path().string()));
  return node::write_atomically_at(folder.get(), file.filename().c_str(), json::to_document(box),
                                   node::Durable::yes, 0600);
}

}  // namespace loam::daemon

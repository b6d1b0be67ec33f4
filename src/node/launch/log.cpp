#include "node/launch/log.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <vector>

namespace loam::node {

namespace {

struct Segment {
  std::int64_t index = 0;
  std::int64_t bytes = 0;
};

// The segments of a stream, oldest first.
std::vector<Segment> list_segments(int directory, std::string_view stream) {
  std::vector<Segment> found;
  Fd again(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* listing = again.valid() ? ::fdopendir(again.get()) : nullptr;
  if (listing == nullptr) return found;
  again.release();  // closedir closes it
  const std::string prefix = std::string(stream) + ".log.";
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const std::string_view digits = name.substr(prefix.size());
    Segment segment;
    const auto [end, fault] =
        std::from_chars(digits.data(), digits.data() + digits.size(), segment.index);
    struct stat facts {};
    if (fault != std::errc{} || end != digits.data() + digits.size() || segment.index < 0 ||
        ::fstatat(directory, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    segment.bytes = facts.st_size;
    found.push_back(segment);
  }
  ::closedir(listing);
  std::sort(found.begin(), found.end(),
            [](const Segment& a, const Segment& b) { return a.index < b.index; });
  return found;
}

}  // namespace

std::string log_segment_name(std::string_view stream, std::int64_t index) {
  char number[32];
  std::snprintf(number, sizeof number, ".log.%06lld", static_cast<long long>(index));
  return std::string(stream) + number;
}

Result<LogWriter> LogWriter::open(Fd directory, std::string stream, std::int64_t segment_bytes,
                                  std::int64_t segments) {
  LOAM_ASSERT(segment_bytes > 0 && segments >= 2);
  LogWriter writer;
  writer.directory_ = std::move(directory);
  writer.stream_ = std::move(stream);
  writer.segment_bytes_ = segment_bytes;
  writer.segments_ = segments;
  const auto present = list_segments(writer.directory_.get(), writer.stream_);
  if (!present.empty()) {
    writer.offset_ = present.back().index * segment_bytes + present.back().bytes;
  }
  if (!writer.open_segment()) {
    return os_error("creating the log " + log_segment_name(writer.stream_, writer.index_), errno,
                    "make room on the disk of the attempts");
  }
  return writer;
}

// Opens the segment that `offset_` falls into, moves the link and drops the oldest segment.
bool LogWriter::open_segment() {
  index_ = offset_ / segment_bytes_;
  const std::string name = log_segment_name(stream_, index_);
  file_ =
      Fd(::openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_.valid()) return false;
  const std::string link = stream_ + ".log";
  const std::string new_link = "." + link + ".new";
  ::unlinkat(directory_.get(), new_link.c_str(), 0);
  if (::symlinkat(name.c_str(), directory_.get(), new_link.c_str()) == 0) {
    ::renameat(directory_.get(), new_link.c_str(), directory_.get(), link.c_str());
  }
  if (index_ >= segments_) {
    ::unlinkat(directory_.get(), log_segment_name(stream_, index_ - segments_).c_str(), 0);
  }
  return true;
}

void LogWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if ((!file_.valid() || offset_ / segment_bytes_ != index_) && !open_segment()) {
      dropped_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    const std::int64_t room = segment_bytes_ - offset_ % segment_bytes_;
    const auto part = static_cast<std::size_t>(
        std::min<std::int64_t>(room, static_cast<std::int64_t>(bytes.size())));
    const ssize_t n = ::write(file_.get(), bytes.data(), part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      dropped_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    offset_ += n;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

namespace {

// One call gives no more than this, whatever is asked for.
constexpr std::int64_t read_bytes_max = 16 << 20;

// Appends what the segment holds from chunk.next_offset on, up to `wanted` bytes in all; false if
// that is nothing.
bool read_segment(int directory, const std::string& name, std::int64_t segment_bytes,
                  std::int64_t wanted, LogChunk& chunk) {
  const Fd file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  const std::int64_t within = chunk.next_offset % segment_bytes;
  const std::size_t before = chunk.bytes.size();
  const auto part = static_cast<std::size_t>(
      std::min(wanted - static_cast<std::int64_t>(before), segment_bytes - within));
  chunk.bytes.resize(before + part);
  const ssize_t n = ::pread(file.get(), chunk.bytes.data() + before, part, within);
  chunk.bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  chunk.next_offset += std::max<ssize_t>(n, 0);
  return n > 0;
}

}  // namespace

Result<LogChunk> read_log(const std::string& log_directory, std::string_view stream,
                          std::int64_t segment_bytes, std::int64_t offset, std::int64_t max_bytes) {
  if (segment_bytes <= 0) {
    return Error{ErrorKind::corrupt,
                 "the log segment size is " + std::to_string(segment_bytes) + " bytes", ""};
  }
  LOAM_TRY(directory, open_directory(log_directory));
  const auto segments = list_segments(directory.get(), stream);
  LogChunk chunk;
  if (segments.empty()) return chunk;
  const std::int64_t first = segments.front().index * segment_bytes;
  chunk.end_offset = segments.back().index * segment_bytes + segments.back().bytes;
  if (offset < 0) {
    chunk.offset = std::max(chunk.end_offset + offset, first);
  } else {
    chunk.offset = std::min(std::max(offset, first), chunk.end_offset);
    chunk.lost_bytes = std::max<std::int64_t>(0, chunk.offset - offset);
  }
  chunk.next_offset = chunk.offset;
  const std::int64_t wanted =
      std::min({max_bytes, chunk.end_offset - chunk.offset, read_bytes_max});
  while (static_cast<std::int64_t>(chunk.bytes.size()) < wanted) {
    const std::int64_t index = chunk.next_offset / segment_bytes;
    if (read_segment(directory.get(), log_segment_name(stream, index), segment_bytes, wanted,
                     chunk)) {
      continue;
    }
    // Nothing there although more follows: dropped since the listing, or removed by hand.
    const auto next = std::find_if(segments.begin(), segments.end(),
                                   [&](const Segment& s) { return s.index > index; });
    if (!chunk.bytes.empty() || next == segments.end()) break;
    chunk.lost_bytes += next->index * segment_bytes - chunk.offset;
    chunk.offset = chunk.next_offset = next->index * segment_bytes;
  }
  return chunk;
}

Result<LogWatch> LogWatch::open(const std::string& log_directory) {
  LogWatch watch;
  watch.inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.inotify_.valid()) return os_error("starting to watch the logs", errno);
  if (::inotify_add_watch(watch.fd(), log_directory.c_str(), IN_MODIFY | IN_CREATE) < 0) {
    return os_error("watching " + log_directory, errno);
  }
  return watch;
}

void LogWatch::clear() {
  char buffer[4096];
  while (::read(inotify_.get(), buffer, sizeof buffer) > 0) {
  }
}

bool LogWatch::wait(int timeout_ms) {
  pollfd wait{inotify_.get(), POLLIN, 0};
  if (::poll(&wait, 1, timeout_ms) <= 0) return false;
  clear();
  return true;
}

}  // namespace loam::node

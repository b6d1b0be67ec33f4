// One output stream of a program on disk, newest bytes kept, and how to read it while it grows.
//
// A stream is cut every `segment_bytes` bytes exactly; segment k holds the bytes from
// k * segment_bytes on and lies in NAME.log.<k, six digits or more>. So an offset counted from the
// stream's beginning names the same byte for ever, whatever was dropped before it, and no file is
// ever renamed. NAME.log is a link to the newest segment, for people. Format:
// docs/formats/attempt.md. Shell.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "node/launch/file.hpp"

namespace loam::node {

// "stdout.log.000007".
std::string log_segment_name(std::string_view stream, std::int64_t index);

class LogWriter {
 public:
  // Goes on after what is there. Requires segment_bytes > 0 and segments >= 2.
  static Result<LogWriter> open(Fd directory, std::string stream, std::int64_t segment_bytes,
                                std::int64_t segments);

  // Bytes as they are. Never fails and never waits for room: what the disk refuses is dropped and
  // counted, and the stream's offsets go on as if it had not been written.
  void write(std::string_view bytes);

  std::int64_t size() const { return offset_; }  // bytes written to the stream so far
  std::int64_t dropped_bytes() const { return dropped_; }

 private:
  LogWriter() = default;
  bool open_segment();

  Fd directory_;
  std::string stream_;
  std::int64_t segment_bytes_ = 0;
  std::int64_t segments_ = 0;
  Fd file_;
  std::int64_t index_ = -1;  // of the open segment
  std::int64_t offset_ = 0;
  std::int64_t dropped_ = 0;
};

struct LogChunk {
  std::string bytes;        // as the program wrote them, possibly not UTF-8
  std::int64_t offset = 0;  // of the first byte of `bytes`; later than asked where bytes are gone
  std::int64_t next_offset = 0;  // ask for this next
  std::int64_t lost_bytes = 0;   // asked for but already dropped: show that something is missing
  std::int64_t end_offset = 0;   // the stream's size now: the end is reached where next == end
};

// Up to `max_bytes` from `offset` on. An offset past the end gives nothing at the end; a negative
// one counts back from the end. `log_directory` is the attempt's `logs`. Cost: a directory listing
// and one read.
Result<LogChunk> read_log(const std::string& log_directory, std::string_view stream,
                          std::int64_t segment_bytes, std::int64_t offset, std::int64_t max_bytes);

// Tells when a log directory changes. fd() becomes readable on growth (put it in any poll loop),
// clear() makes it unreadable again; a change between clear() and the next read is never missed if
// clear() comes first.
class LogWatch {
 public:
  static Result<LogWatch> open(const std::string& log_directory);
  int fd() const { return inotify_.get(); }
  void clear();
  // Waits for a change for at most `timeout_ms` and clears it; false if there was none.
  bool wait(int timeout_ms);

 private:
  Fd inotify_;
};

}  // namespace loam::node

// Server-sent events, text/event-stream (WHATWG HTML, "Server-sent events", §9.2): a writer and
// an incremental reader. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::http {

struct SseEvent {
  std::string type;  // "" is sent without an event line, and read as "message"
  std::string data;  // any text; line ends come out as '\n'
  std::string id;    // the last event id; "" leaves the receiver's as it is when sent
  friend bool operator==(const SseEvent&, const SseEvent&) = default;
};

// One event, ready to send. Requires a type and an id without CR, LF and NUL.
std::string encode_event(const SseEvent& event);
// A comment: ignored by readers, keeps middle boxes awake. Requires text without CR and LF.
std::string encode_comment(std::string_view text);
// Asks the client to wait that long before it reconnects.
std::string encode_retry(std::int64_t milliseconds);

// Takes the stream in pieces of any size and gives out whole events. An event that the stream's
// end cuts off is never given out, as the specification has it. Bytes are passed on as they
// came: no UTF-8 check.
class SseParser {
 public:
  // Bounds one line and one event's data, so that a broken peer cannot fill memory.
  explicit SseParser(std::size_t event_bytes_max = 16 * 1024 * 1024)
      : event_bytes_max_(event_bytes_max) {}

  // The events that `bytes` completed, in order. On an event over the limit: corrupt, and the
  // parser must not be fed again.
  Result<std::vector<SseEvent>> feed(std::string_view bytes);

  const std::string& last_event_id() const noexcept { return last_event_id_; }
  // The server's wish for the reconnection time, in milliseconds, where it told one.
  std::optional<std::int64_t> retry_ms() const noexcept { return retry_ms_; }

 private:
  void take_line(std::string_view line, std::vector<SseEvent>& events);
  void take_field(std::string_view name, std::string_view value);
  void dispatch(std::vector<SseEvent>& events);

  std::size_t event_bytes_max_;
  std::string line_;
  std::string type_;
  std::string data_;
  std::string last_event_id_;
  std::optional<std::int64_t> retry_ms_;
  bool at_start_ = true;   // a byte order mark may still come
  bool after_cr_ = false;  // a LF that follows belongs to the CR
};

}  // namespace loam::http

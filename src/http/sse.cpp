// text/event-stream, written and read. Pure.
#include "http/sse.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.hpp"

namespace loam::http {
namespace {

constexpr std::string_view line_ends = "\r\n";
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

bool fits_one_line(std::string_view text) {
  return text.find_first_of(line_ends) == std::string_view::npos &&
         text.find('\0') == std::string_view::npos;
}

}  // namespace

std::string encode_event(const SseEvent& event) {
  LOAM_ASSERT(fits_one_line(event.type));
  LOAM_ASSERT(fits_one_line(event.id));
  std::string out;
  out.reserve(event.data.size() + event.type.size() + event.id.size() + 32);
  if (!event.type.empty()) out.append("event: ").append(event.type).append("\n");
  if (!event.id.empty()) out.append("id: ").append(event.id).append("\n");
  std::string_view rest = event.data;
  for (;;) {
    const std::size_t end = std::min(rest.find_first_of(line_ends), rest.size());
    out.append("data: ").append(rest.substr(0, end)).append("\n");
    if (end == rest.size()) break;
    const bool pair = rest[end] == '\r' && end + 1 < rest.size() && rest[end + 1] == '\n';
    rest.remove_prefix(end + (pair ? 2 : 1));
  }
  out += '\n';
  return out;
}

std::string encode_comment(std::string_view text) {
  LOAM_ASSERT(fits_one_line(text));
  return ": " + std::string(text) + "\n\n";
}

std::string encode_retry(std::int64_t milliseconds) {
  LOAM_ASSERT(milliseconds >= 0);
  return "retry: " + std::to_string(milliseconds) + "\n\n";
}

Result<std::vector<SseEvent>> SseParser::feed(std::string_view bytes) {
  std::vector<SseEvent> events;
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(bytes.find_first_of(line_ends), bytes.size());
    if (line_.size() + end + data_.size() > event_bytes_max_)
      return Error{
          ErrorKind::corrupt,
          "an event of the stream is larger than " + std::to_string(event_bytes_max_) + " bytes",
          {}};
    line_.append(bytes.substr(0, end));
    if (end == bytes.size()) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    std::string line = std::exchange(line_, {});
    std::string_view content = line;
    if (std::exchange(at_start_, false) && content.starts_with(byte_order_mark))
      content.remove_prefix(byte_order_mark.size());
    take_line(content, events);
  }
  return events;
}

void SseParser::take_line(std::string_view line, std::vector<SseEvent>& events) {
  if (line.empty()) return dispatch(events);
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment
  if (colon == std::string_view::npos) return take_field(line, {});
  std::string_view value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  take_field(line.substr(0, colon), value);
}

void SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "event") {
    type_ = value;
  } else if (name == "data") {
    data_.append(value).append("\n");
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) last_event_id_ = value;
  } else if (name == "retry") {
    std::int64_t ms = 0;
    const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), ms);
    const bool digits = !value.empty() && value.front() != '-';
    if (digits && fault == std::errc{} && end == value.data() + value.size()) retry_ms_ = ms;
  }  // any other field is ignored, as specified
}

void SseParser::dispatch(std::vector<SseEvent>& events) {
  std::string type = std::exchange(type_, {});
  if (data_.empty()) return;  // the specification drops events without data
  data_.pop_back();           // the last line's '\n'
  if (type.empty()) type = "message";
  events.push_back({std::move(type), std::exchange(data_, {}), last_event_id_});
}

}  // namespace loam::http

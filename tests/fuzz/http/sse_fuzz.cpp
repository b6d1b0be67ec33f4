// The parser gives the same events however the stream is cut, and reads back what it gave.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "http/sse.hpp"

namespace {

using loam::http::SseEvent;
using loam::http::SseParser;

std::vector<SseEvent> parse(std::string_view bytes, std::size_t piece_bytes) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    auto some = parser.feed(bytes.substr(at, piece_bytes));
    LOAM_ASSERT(some.ok());
    events.insert(events.end(), some->begin(), some->end());
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = parse(bytes, size + 1);
  LOAM_ASSERT(parse(bytes, 1) == whole);
  LOAM_ASSERT(parse(bytes, 3) == whole);

  std::string encoded;
  for (const SseEvent& event : whole) {
    LOAM_ASSERT(!event.type.empty());
    SseEvent sendable = event;
    if (sendable.type.find('\0') != std::string::npos) sendable.type = "nul";
    encoded += encode_event(sendable);
  }
  const auto again = parse(encoded, 7);
  LOAM_ASSERT(again.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) LOAM_ASSERT(again[i].data == whole[i].data);
  return 0;
}

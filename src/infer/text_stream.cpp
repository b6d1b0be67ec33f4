#include "infer/text_stream.hpp"

#include <algorithm>
#include <utility>

namespace loam::infer {

namespace {

// Bytes of the character that starts with `lead`; 0: no character starts so.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The second byte excludes overlong forms, surrogates and what is beyond U+10FFFF.
bool second_fits(unsigned char lead, unsigned char second) {
  if (lead == 0xE0) return second >= 0xA0;
  if (lead == 0xED) return second < 0xA0;
  if (lead == 0xF0) return second >= 0x90;
  if (lead == 0xF4) return second < 0x90;
  return true;
}

// Bytes of the whole, valid character at the start; 0 where there is none.
std::size_t character_at(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  const std::size_t length = length_of(lead);
  if (length == 0 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(bytes[i])) return 0;
  }
  if (length > 1 && !second_fits(lead, static_cast<unsigned char>(bytes[1]))) return 0;
  return length;
}

}  // namespace

std::size_t whole_characters(std::string_view bytes) {
  // Only the last three bytes can belong to a character that is not whole yet.
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const char byte = bytes[bytes.size() - back];
    if (continues(byte)) continue;
    const std::size_t length = length_of(static_cast<unsigned char>(byte));
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = character_at(bytes);
    if (length == 0) {
      text += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

TextStream::TextStream(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {}

TextStream::Piece TextStream::push(std::string_view bytes) {
  held_ += bytes;
  std::size_t stop_at = std::string::npos;
  for (const std::string& stop : stop_strings_) stop_at = std::min(stop_at, held_.find(stop));
  if (stop_at != std::string::npos) {
    Piece piece{valid_utf8(std::string_view(held_).substr(0, stop_at)), true};
    held_.clear();
    return piece;
  }
  std::size_t certain = whole_characters(held_);
  for (const std::string& stop : stop_strings_) {
    // The longest end of what is held that begins the stop string.
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > 0; --size) {
      if (held_.compare(held_.size() - size, size, stop, 0, size) != 0) continue;
      certain = std::min(certain, held_.size() - size);
      break;
    }
  }
  Piece piece{valid_utf8(std::string_view(held_).substr(0, certain)), false};
  held_.erase(0, certain);
  return piece;
}

std::string TextStream::finish() {
  return valid_utf8(std::exchange(held_, {}));
}

}  // namespace loam::infer

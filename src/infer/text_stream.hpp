// From the bytes of tokens to text that may be sent: whole UTF-8 characters only, and nothing that
// may still turn out to be the beginning of a stop string. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loam::infer {

class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stop_strings);

  struct Piece {
    std::string text;      // certain now
    bool stopped = false;  // a stop string was reached; it and what follows are dropped
  };
  // Requires that nothing stopped before.
  Piece push(std::string_view bytes);
  // What is still held, once nothing follows; bytes that are no character become U+FFFD.
  std::string finish();

 private:
  std::vector<std::string> stop_strings_;
  std::string held_;
};

// The longest beginning of `bytes` that ends with a whole character. Broken bytes count as whole,
// so that they never hold up what follows.
std::size_t whole_characters(std::string_view bytes);
// The same text with each byte that belongs to no character replaced by U+FFFD.
std::string valid_utf8(std::string_view bytes);

}  // namespace loam::infer

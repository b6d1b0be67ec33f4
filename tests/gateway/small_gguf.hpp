// GGUF files of a few bytes, for tests that start no real engine.
#pragma once

#include <cstdint>
#include <string>

namespace loam::serving {

class GgufWriter {
 public:
  template <class T>
  GgufWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufWriter& text(const std::string& text) {
    number(std::uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  GgufWriter& begin(std::uint64_t tensors, std::uint64_t values) {
    bytes_ += "GGUF";
    return number(std::uint32_t{3}).number(tensors).number(values);
  }
  GgufWriter& value(const std::string& key, std::uint32_t value) {
    constexpr std::uint32_t kind_u32 = 4;
    return text(key).number(kind_u32).number(value);
  }
  GgufWriter& value(const std::string& key, const std::string& value) {
    constexpr std::uint32_t kind_text = 8;
    return text(key).number(kind_text).text(value);
  }
  // One of `count` 32-bit numbers, at the beginning of the data.
  GgufWriter& tensor(const std::string& name, std::uint64_t count) {
    return text(name)
        .number(std::uint32_t{1})
        .number(count)
        .number(std::uint32_t{0})
        .number(std::uint64_t{0});
  }
  // With `data` bytes after the header.
  std::string whole(std::size_t data) const {
    std::string out = bytes_;
    out.resize((out.size() + 31) / 32 * 32 + data);
    return out;
  }

 private:
  std::string bytes_;
};

inline std::string small_gguf() {
  return GgufWriter().begin(1, 0).tensor("w", 1).whole(4);
}

}  // namespace loam::serving

// Whatever parse_target lets pass keeps its promises and survives the way back.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "http/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loam::http;
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  const auto target = parse_target(raw);
  if (!target.ok()) {
    LOAM_ASSERT(target.error().kind == loam::ErrorKind::invalid_argument);
    LOAM_ASSERT(!target.error().message.empty());
    return 0;
  }
  const std::string& path = target->path;
  LOAM_ASSERT(path.starts_with('/'));
  LOAM_ASSERT(is_utf8(path));
  LOAM_ASSERT(path == "/" || !path.ends_with('/'));
  LOAM_ASSERT(path.find("//") == std::string::npos);
  for (char c : path) LOAM_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  const std::string fenced = path + "/";
  LOAM_ASSERT(fenced.find("/../") == std::string::npos && fenced.find("/./") == std::string::npos);
  for (const Parameter& parameter : target->query) {
    LOAM_ASSERT(is_utf8(parameter.name) && is_utf8(parameter.value));
    LOAM_ASSERT(parameter.value.find('\0') == std::string::npos);
  }
  const auto again = parse_target(encode_target(path, target->query));
  LOAM_ASSERT(again.ok());
  LOAM_ASSERT(*again == *target);
  return 0;
}

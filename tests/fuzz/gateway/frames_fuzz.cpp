// Bytes from a peer, cut anywhere, are the same frames or the same end; a frame that was read is
// written back to the bytes it came from.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "infer/wire.hpp"

namespace {

using namespace loam::infer::wire;

struct Read {
  std::vector<std::string> frames;  // written again: floats that are no number have no equality
  bool broken = false;
};

void take(FrameReader& reader, Read& read) {
  while (!read.broken) {
    auto frame = reader.next();
    read.broken = !frame.ok();
    if (read.broken || !frame->has_value()) return;
    read.frames.push_back(encode(**frame));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FrameReader whole_reader;
  Read whole;
  whole_reader.append(bytes);
  take(whole_reader, whole);
  FrameReader piece_reader;
  Read pieces;
  const std::size_t step = size == 0 ? 1 : 1 + data[0] % 7;
  for (std::size_t at = 0; at < size; at += step) {
    piece_reader.append(bytes.substr(at, step));
    take(piece_reader, pieces);
  }
  LOAM_ASSERT(whole.frames == pieces.frames);
  LOAM_ASSERT(whole.broken == pieces.broken);
  std::string again;
  for (const std::string& frame : whole.frames) again += frame;
  LOAM_ASSERT(bytes.starts_with(again));
  return 0;
}

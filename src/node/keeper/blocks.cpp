#include "node/keeper/blocks.hpp"

#include <iterator>

#include "base/assert.hpp"

namespace loam::node {

BlockMap::BlockMap(std::uint64_t bytes, std::uint64_t grain) : grain_(grain), free_bytes_(bytes) {
  LOAM_ASSERT(grain > 0 && bytes % grain == 0);
  if (bytes > 0) insert_free(0, Free{bytes, nobody});
}

void BlockMap::insert_free(std::uint64_t offset, Free block) {
  free_.emplace(offset, block);
  by_bytes_.emplace(block.bytes, offset);
}

void BlockMap::erase_free(std::map<std::uint64_t, Free>::iterator at) {
  by_bytes_.erase({at->second.bytes, at->first});
  free_.erase(at);
}

std::optional<BlockMap::Block> BlockMap::allocate(std::uint64_t bytes, std::uint64_t tenant) {
  LOAM_ASSERT(tenant != nobody && tenant != several);
  if (bytes == 0 || bytes > free_bytes_) return std::nullopt;
  const std::uint64_t rounded = (bytes + grain_ - 1) / grain_ * grain_;
  const auto fit = by_bytes_.lower_bound({rounded, 0});
  if (fit == by_bytes_.end()) return std::nullopt;
  const std::uint64_t offset = fit->second;
  const auto at = free_.find(offset);
  const Free whole = at->second;
  erase_free(at);
  if (whole.bytes > rounded) insert_free(offset + rounded, Free{whole.bytes - rounded, whole.last});
  used_.emplace(offset, Used{rounded, tenant});
  free_bytes_ -= rounded;
  return Block{offset, rounded, whole.last != nobody && whole.last != tenant};
}

bool BlockMap::free(std::uint64_t offset) {
  const auto held = used_.find(offset);
  if (held == used_.end()) return false;
  Free block{held->second.bytes, held->second.tenant};
  used_.erase(held);
  free_bytes_ += block.bytes;
  std::uint64_t begin = offset;
  const auto join = [&](std::map<std::uint64_t, Free>::iterator neighbour) {
    block.bytes += neighbour->second.bytes;
    // What nobody used holds no data; two tenants' data make a block that any third must clear, and
    // each of the two as well.
    const std::uint64_t last = neighbour->second.last;
    if (last != nobody && last != block.last) block.last = several;
    erase_free(neighbour);
  };
  if (const auto above = free_.find(offset + block.bytes); above != free_.end()) join(above);
  auto below = free_.lower_bound(offset);
  if (below != free_.begin()) {
    below = std::prev(below);
    if (below->first + below->second.bytes == offset) {
      begin = below->first;
      join(below);
    }
  }
  insert_free(begin, block);
  return true;
}

std::uint64_t BlockMap::free_all(std::uint64_t tenant) {
  std::uint64_t bytes = 0;
  for (auto held = used_.begin(); held != used_.end();) {
    const auto next = std::next(held);
    if (held->second.tenant == tenant) {
      bytes += held->second.bytes;
      free(held->first);
    }
    held = next;
  }
  return bytes;
}

std::uint64_t BlockMap::largest_free_bytes() const {
  return by_bytes_.empty() ? 0 : by_bytes_.rbegin()->first;
}

}  // namespace loam::node

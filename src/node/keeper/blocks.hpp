// BlockMap: hands out a device's memory in blocks. Best fit, and neighbours that are free are one
// block; so what is left stays in large pieces. Remembers who had a block last: memory that changes
// its tenant is to be cleared before it is used. Pure. (Knuth, "The Art of Computer Programming",
// volume 1, section 2.5, for best fit with boundary coalescing.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace loam::node {

class BlockMap {
 public:
  // `bytes` of memory, handed out in multiples of `grain` (> 0; bytes a multiple of it).
  BlockMap(std::uint64_t bytes, std::uint64_t grain);

  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // asked for, rounded up to the grain
    bool must_clear = false;  // somebody else's data may be in it
  };
  // The smallest free block that fits, at its lower end; nothing where none does. Ties: the lower
  // offset. `tenant` > 0. Cost: logarithmic in the blocks.
  std::optional<Block> allocate(std::uint64_t bytes, std::uint64_t tenant);
  // Gives back the block at `offset`; false where none begins there.
  bool free(std::uint64_t offset);
  // Gives back all that the tenant holds; bytes.
  std::uint64_t free_all(std::uint64_t tenant);

  std::uint64_t free_bytes() const { return free_bytes_; }
  std::uint64_t largest_free_bytes() const;
  std::size_t free_blocks() const { return free_.size(); }

 private:
  static constexpr std::uint64_t nobody = 0;  // never used: what the device starts with
  static constexpr std::uint64_t several = UINT64_MAX;

  struct Free {
    std::uint64_t bytes;
    std::uint64_t last;  // whose data is in it: a tenant, nobody or several
  };
  struct Used {
    std::uint64_t bytes;
    std::uint64_t tenant;
  };

  void insert_free(std::uint64_t offset, Free block);
  void erase_free(std::map<std::uint64_t, Free>::iterator at);

  std::uint64_t grain_;
  std::uint64_t free_bytes_;
  std::map<std::uint64_t, Free> free_;                          // by offset
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_bytes_;  // bytes, offset
  std::map<std::uint64_t, Used> used_;
};

}  // namespace loam::node

// The radix tree of prompt beginnings whose key-value memory is kept on the host. A node stands for
// the tokens between its parent and itself; their key-value rows are one segment, held by the
// caller. The tree says which segments to fill, cut, drop and put together. Pure.
//
// Who may find what: the first `public_tokens` of a sequence live on public edges, the rest on
// edges of its tenant. A walk takes public edges only inside the part that it marks public itself,
// and private edges only of its own tenant, so nothing private of another tenant is ever found, nor
// can its presence be timed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/id.hpp"
#include "infer/request.hpp"

namespace loam::infer {

struct SegmentTag {
  static constexpr const char* prefix = "g";
};
using SegmentId = Id<SegmentTag>;

// The first `tokens` tokens of a segment.
struct Part {
  SegmentId segment;
  std::uint32_t tokens = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

// What the holder of the key-value memory must do, in the order given.
struct CaptureOp {  // copy the rows [from, to) of a slot into a new segment
  std::uint32_t slot = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  SegmentId segment;
};
struct SplitOp {  // `segment` keeps its first `at` tokens, the new segment `tail` gets the others
  SegmentId segment;
  std::uint32_t at = 0;
  SegmentId tail;
};
struct DropOp {
  SegmentId segment;
};
struct RestoreOp {  // the slot, empty before, holds the parts' rows one after the other
  std::uint32_t slot = 0;
  std::uint32_t tokens = 0;
  std::vector<Part> parts;
};
struct ClearOp {  // the slot's rows are free
  std::uint32_t slot = 0;
};
struct MoveOp {  // the rows of `from` go to `to`, which is empty; `from` is free afterwards
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};
using MemoryOp = std::variant<CaptureOp, SplitOp, DropOp, RestoreOp, ClearOp, MoveOp>;

// A sequence as the tree sees it.
struct PrefixKey {
  std::span<const Token> tokens;
  std::string_view tenant;
  std::uint32_t public_tokens = 0;
};

// How many leading tokens two sequences may share: same tokens, and at each position both public
// or both private of one tenant.
std::uint32_t shared_tokens(const PrefixKey& a, const PrefixKey& b);

class PrefixTree {
 public:
  using Node = std::uint32_t;
  static constexpr Node root = 0;

  // `bytes_max` 0 keeps nothing.
  PrefixTree(std::uint64_t bytes_max, std::uint32_t token_bytes);

  struct Match {
    std::uint32_t tokens = 0;
    std::vector<Part> parts;
  };
  // The longest stored beginning of `key`, marked as used now. Cost: its length.
  Match match(const PrefixKey& key);
  // The same length without the mark.
  std::uint32_t stored_tokens(const PrefixKey& key) const;

  struct Stored {
    std::uint32_t tokens = 0;  // of the key, now in the tree
    Node node = root;          // where they end
  };
  // Stores what is missing of `key`, whose rows are in `slot`, dropping the least recently used
  // beginnings for room. Where room cannot be made, nothing is added.
  Stored store(const PrefixKey& key, std::uint32_t slot, std::vector<MemoryOp>& ops);

  // A pinned node and those above it are not dropped. Pins are counted.
  void pin(Node node);
  void unpin(Node node);

  std::uint64_t bytes() const noexcept { return tokens_ * token_bytes_; }
  std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  std::size_t nodes() const noexcept { return nodes_.size() - 1; }
  // Every stored token is in exactly one segment; links, counts and sizes agree. For tests.
  bool consistent() const;

 private:
  // Children are told apart by whose edge it is ("" is public) and its first token.
  using EdgeKey = std::pair<std::string, Token>;
  struct Record {
    Node parent = root;
    std::string scope;
    std::vector<Token> tokens;  // of the edge from the parent
    SegmentId segment;
    std::map<EdgeKey, Node> children;
    std::uint32_t pins = 0;
    std::uint64_t used = 0;
  };
  struct Position {
    Node node = root;          // the last node reached
    Node below = root;         // the edge entered after it, where `inside` > 0
    std::uint32_t inside = 0;  // tokens of that edge that matched
    std::uint32_t tokens = 0;  // all that matched
    std::vector<Part> parts;
  };

  Position walk(const PrefixKey& key) const;
  void touch(Node node);
  Node split(Node node, std::uint32_t at, std::vector<MemoryOp>& ops);
  Node add(Node parent, const PrefixKey& key, std::uint32_t from, std::uint32_t to,
           std::uint32_t slot, std::vector<MemoryOp>& ops);
  bool make_room(std::uint64_t tokens, std::vector<MemoryOp>& ops);
  bool droppable(Node node) const;
  void index(Node node);
  void unindex(Node node);

  std::uint64_t bytes_max_;
  std::uint32_t token_bytes_;
  std::map<Node, Record> nodes_;
  std::set<std::pair<std::uint64_t, Node>> droppable_;  // least recently used first
  std::uint64_t tokens_ = 0;
  std::uint64_t clock_ = 0;  // counts uses
  Node next_node_ = 1;
  std::uint64_t next_segment_ = 1;
};

}  // namespace loam::infer

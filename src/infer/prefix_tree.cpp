#include "infer/prefix_tree.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::infer {

namespace {

std::string_view scope_at(const PrefixKey& key, std::uint32_t position) {
  return position < key.public_tokens ? std::string_view{} : key.tenant;
}

// Where the scope that holds at `position` ends.
std::uint32_t scope_end(const PrefixKey& key, std::uint32_t position) {
  const auto size = static_cast<std::uint32_t>(key.tokens.size());
  return position < key.public_tokens ? std::min(key.public_tokens, size) : size;
}

}  // namespace

std::uint32_t shared_tokens(const PrefixKey& a, const PrefixKey& b) {
  const std::size_t size = std::min(a.tokens.size(), b.tokens.size());
  std::size_t limit = size;
  if (a.tenant != b.tenant) {
    limit = std::min<std::size_t>({size, a.public_tokens, b.public_tokens});
  } else if (a.public_tokens != b.public_tokens) {
    limit = std::min<std::size_t>(size, std::min(a.public_tokens, b.public_tokens));
  }
  std::uint32_t shared = 0;
  while (shared < limit && a.tokens[shared] == b.tokens[shared]) ++shared;
  return shared;
}

PrefixTree::PrefixTree(std::uint64_t bytes_max, std::uint32_t token_bytes)
    : bytes_max_(bytes_max), token_bytes_(token_bytes) {
  LOAM_ASSERT(token_bytes > 0);
  nodes_.emplace(root, Record{});
}

PrefixTree::Position PrefixTree::walk(const PrefixKey& key) const {
  Position at;
  while (at.tokens < key.tokens.size()) {
    const auto& children = nodes_.at(at.node).children;
    const auto child =
        children.find({std::string(scope_at(key, at.tokens)), key.tokens[at.tokens]});
    if (child == children.end()) break;
    const Record& edge = nodes_.at(child->second);
    const std::uint32_t end = scope_end(key, at.tokens);
    std::uint32_t inside = 0;
    while (inside < edge.tokens.size() && at.tokens + inside < end &&
           edge.tokens[inside] == key.tokens[at.tokens + inside]) {
      ++inside;
    }
    at.tokens += inside;
    at.parts.push_back({edge.segment, inside});
    if (inside < edge.tokens.size()) {
      at.below = child->second;
      at.inside = inside;
      break;
    }
    at.node = child->second;
  }
  return at;
}

PrefixTree::Match PrefixTree::match(const PrefixKey& key) {
  Position at = walk(key);
  touch(at.inside > 0 ? at.below : at.node);
  return {at.tokens, std::move(at.parts)};
}

std::uint32_t PrefixTree::stored_tokens(const PrefixKey& key) const {
  return walk(key).tokens;
}

PrefixTree::Stored PrefixTree::store(const PrefixKey& key, std::uint32_t slot,
                                     std::vector<MemoryOp>& ops) {
  Position at = walk(key);
  const auto size = static_cast<std::uint32_t>(key.tokens.size());
  Node held = at.inside > 0 ? at.below : at.node;
  touch(held);
  if (at.tokens == size) {
    // Room is dropped by whole nodes, so a beginning inside an edge is kept by the edge's end.
    return {size, held};
  }
  pin(held);
  const bool room = make_room(size - at.tokens, ops);
  unpin(held);
  if (!room) return {at.tokens, held};
  Node node = at.inside > 0 ? split(at.below, at.inside, ops) : at.node;
  std::uint32_t from = at.tokens;
  while (from < size) {
    const std::uint32_t to = scope_end(key, from);
    node = add(node, key, from, to, slot, ops);
    from = to;
  }
  return {size, node};
}

// The new node takes the first `at` tokens of the edge; `node` keeps its children, pins and the
// rest, so that whoever pinned it still holds the same end.
PrefixTree::Node PrefixTree::split(Node node, std::uint32_t at, std::vector<MemoryOp>& ops) {
  const Node upper = next_node_++;
  Record& lower = nodes_.at(node);
  LOAM_ASSERT(at > 0 && at < lower.tokens.size());
  Record record;
  record.parent = lower.parent;
  record.scope = lower.scope;
  record.tokens.assign(lower.tokens.begin(), lower.tokens.begin() + at);
  record.segment = lower.segment;
  record.used = lower.used;
  lower.tokens.erase(lower.tokens.begin(), lower.tokens.begin() + at);
  lower.segment = SegmentId{next_segment_++};
  lower.parent = upper;
  ops.emplace_back(SplitOp{record.segment, at, lower.segment});
  nodes_.at(record.parent).children[{record.scope, record.tokens.front()}] = upper;
  record.children.emplace(EdgeKey{lower.scope, lower.tokens.front()}, node);
  nodes_.emplace(upper, std::move(record));
  return upper;
}

PrefixTree::Node PrefixTree::add(Node parent, const PrefixKey& key, std::uint32_t from,
                                 std::uint32_t to, std::uint32_t slot, std::vector<MemoryOp>& ops) {
  LOAM_ASSERT(from < to);
  const Node node = next_node_++;
  Record record;
  record.parent = parent;
  record.scope = scope_at(key, from);
  record.tokens.assign(key.tokens.begin() + from, key.tokens.begin() + to);
  record.segment = SegmentId{next_segment_++};
  record.used = ++clock_;
  ops.emplace_back(CaptureOp{slot, from, to, record.segment});
  tokens_ += to - from;
  unindex(parent);
  nodes_.at(parent).children.emplace(EdgeKey{record.scope, record.tokens.front()}, node);
  nodes_.emplace(node, std::move(record));
  index(node);
  return node;
}

bool PrefixTree::make_room(std::uint64_t tokens, std::vector<MemoryOp>& ops) {
  const std::uint64_t capacity = bytes_max_ / token_bytes_;
  if (tokens > capacity) return false;
  while (tokens_ + tokens > capacity) {
    if (droppable_.empty()) return false;
    const Node node = droppable_.begin()->second;
    droppable_.erase(droppable_.begin());
    const Record& record = nodes_.at(node);
    ops.emplace_back(DropOp{record.segment});
    tokens_ -= record.tokens.size();
    const Node parent = record.parent;
    nodes_.at(parent).children.erase({record.scope, record.tokens.front()});
    nodes_.erase(node);
    index(parent);
  }
  return true;
}

bool PrefixTree::droppable(Node node) const {
  const Record& record = nodes_.at(node);
  return node != root && record.children.empty() && record.pins == 0;
}

void PrefixTree::index(Node node) {
  if (droppable(node)) droppable_.emplace(nodes_.at(node).used, node);
}

void PrefixTree::unindex(Node node) {
  droppable_.erase({nodes_.at(node).used, node});
}

// The nodes above are used too: when they become leaves, they are no older than this use.
void PrefixTree::touch(Node node) {
  ++clock_;
  while (node != root) {
    unindex(node);
    nodes_.at(node).used = clock_;
    index(node);
    node = nodes_.at(node).parent;
  }
}

void PrefixTree::pin(Node node) {
  unindex(node);
  ++nodes_.at(node).pins;
}

void PrefixTree::unpin(Node node) {
  Record& record = nodes_.at(node);
  LOAM_ASSERT(record.pins > 0);
  --record.pins;
  index(node);
}

bool PrefixTree::consistent() const {
  std::uint64_t tokens = 0;
  std::set<SegmentId> segments;
  for (const auto& [node, record] : nodes_) {
    for (const auto& [key, child] : record.children) {
      const auto found = nodes_.find(child);
      if (found == nodes_.end() || found->second.parent != node) return false;
      if (found->second.scope != key.first || found->second.tokens.front() != key.second)
        return false;
    }
    if (droppable(node) != (droppable_.count({record.used, node}) == 1)) return false;
    if (node == root) continue;
    if (record.tokens.empty() || !segments.insert(record.segment).second) return false;
    tokens += record.tokens.size();
  }
  return tokens == tokens_ && bytes() <= bytes_max_;
}

}  // namespace loam::infer

#include "app/engine/kv_store.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/assert.hpp"

namespace loam::serve {

namespace {

Error broken(const char* what) {
  return Error{ErrorKind::internal, std::string("key-value rows cannot be ") + what,
               "the engine computes them again"};
}

// A cursor over a state's bytes that stops at its end.
class Cursor {
 public:
  explicit Cursor(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  template <class T>
  bool get(T& value) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool skip(std::uint64_t bytes) {
    if (bytes_.size() - at_ < bytes) return false;
    at_ += bytes;
    return true;
  }
  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
};

template <class T>
void put(std::vector<std::uint8_t>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

}  // namespace

bool KvStore::save(std::uint32_t slot) {
  const auto sequence = static_cast<llama_seq_id>(slot);
  state_.resize(llama_state_seq_get_size(context_, sequence));
  return llama_state_seq_get_data(context_, state_.data(), state_.size(), sequence) ==
             state_.size() &&
         !state_.empty();
}

// magic u32, sequence i32, streams u32; for each stream a cell count u32 and, where it is not 0:
// for each cell position i32, count of sequences u32 (1), sequence i32; values transposed u32 (must
// be 0), layers u32; for each layer's keys, then values: type i32, row size u64, the rows.
bool KvStore::read(State& state) const {
  Cursor in(state_);
  std::uint32_t magic = 0;
  std::int32_t sequence = 0;
  if (!in.get(magic) || !in.get(sequence) || !in.get(state.streams)) return false;
  for (std::uint32_t stream = 0; stream < state.streams; ++stream) {
    std::uint32_t cells = 0;
    if (!in.get(cells)) return false;
    if (cells == 0) continue;
    if (state.cells != 0) return false;
    state.cells = cells;
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
      std::int32_t position = 0;
      std::uint32_t sequences = 0;
      if (!in.get(position) || !in.get(sequences) || sequences != 1 || !in.get(sequence))
        return false;
      state.positions.push_back(position);
    }
    std::uint32_t transposed = 0;
    if (!in.get(transposed) || transposed != 0 || !in.get(state.layers)) return false;
    for (std::uint64_t i = 0; i < 2ULL * state.layers; ++i) {
      Rows rows;
      if (!in.get(rows.type) || !in.get(rows.bytes)) return false;
      rows.data = in.at();
      if (rows.bytes > state_.size() || !in.skip(rows.bytes * cells)) return false;
      state.rows.push_back(rows);
    }
  }
  return in.at_end();
}

std::uint64_t KvStore::token_bytes(const State& state) {
  return std::accumulate(state.rows.begin(), state.rows.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Rows& rows) { return sum + rows.bytes; });
}

std::uint32_t KvStore::probe() {
  shape_ = {};
  if (!save(0) || !read(shape_) || shape_.cells == 0) return 0;
  return static_cast<std::uint32_t>(token_bytes(shape_));
}

Result<void> KvStore::capture(const infer::CaptureOp& op) {
  State state;
  if (!save(op.slot) || !read(state)) return broken("read");
  // Cells lie in the order in which they were taken, not always in that of the tokens.
  std::vector<std::uint32_t> cell_of(op.to, UINT32_MAX);
  for (std::uint32_t cell = 0; cell < state.cells; ++cell) {
    const auto position = static_cast<std::uint32_t>(state.positions[cell]);
    if (position < op.to) cell_of[position] = cell;
  }
  bool in_order = true;
  for (std::uint32_t position = op.from; position < op.to; ++position) {
    if (cell_of[position] == UINT32_MAX) return broken("found");
    in_order = in_order && cell_of[position] == cell_of[op.from] + (position - op.from);
  }
  Bytes& segment = segments_[op.segment];
  segment.reserve(token_bytes(state) * (op.to - op.from));
  for (const Rows& rows : state.rows) {
    const std::uint8_t* data = state_.data() + rows.data;
    if (in_order) {
      const std::uint8_t* first = data + cell_of[op.from] * rows.bytes;
      segment.insert(segment.end(), first, first + (op.to - op.from) * rows.bytes);
      continue;
    }
    for (std::uint32_t position = op.from; position < op.to; ++position) {
      const std::uint8_t* row = data + cell_of[position] * rows.bytes;
      segment.insert(segment.end(), row, row + rows.bytes);
    }
  }
  return {};
}

void KvStore::split(const infer::SplitOp& op) {
  const auto found = segments_.find(op.segment);
  if (found == segments_.end()) return;  // its capture failed; restore() will say so
  const Bytes whole = std::move(found->second);
  const std::uint64_t tokens = whole.size() / token_bytes(shape_);
  Bytes& head = found->second;
  Bytes& tail = segments_[op.tail];
  head.clear();
  auto at = whole.begin();
  for (const Rows& rows : shape_.rows) {
    const auto cut = at + static_cast<std::ptrdiff_t>(op.at * rows.bytes);
    const auto end = at + static_cast<std::ptrdiff_t>(tokens * rows.bytes);
    head.insert(head.end(), at, cut);
    tail.insert(tail.end(), cut, end);
    at = end;
  }
}

Result<void> KvStore::restore(const infer::RestoreOp& op) {
  state_.clear();
  put(state_, std::uint32_t{0xaf143cd8});
  put(state_, static_cast<std::int32_t>(op.slot));
  put(state_, shape_.streams);
  put(state_, op.tokens);
  for (std::uint32_t token = 0; token < op.tokens; ++token) {
    put(state_, static_cast<std::int32_t>(token));
    put(state_, std::uint32_t{1});
    put(state_, static_cast<std::int32_t>(op.slot));
  }
  put(state_, std::uint32_t{0});
  put(state_, shape_.layers);
  const std::uint64_t one = token_bytes(shape_);
  std::uint64_t before = 0;  // bytes of a token's rows in earlier layers
  for (const Rows& rows : shape_.rows) {
    put(state_, rows.type);
    put(state_, rows.bytes);
    for (const infer::Part& part : op.parts) {
      const auto found = segments_.find(part.segment);
      if (found == segments_.end() || found->second.size() < part.tokens * one)
        return broken("found");
      const std::uint64_t tokens = found->second.size() / one;
      const std::uint8_t* first = found->second.data() + before * tokens;
      state_.insert(state_.end(), first, first + part.tokens * rows.bytes);
    }
    before += rows.bytes;
  }
  for (std::uint32_t stream = 1; stream < shape_.streams; ++stream) put(state_, std::uint32_t{0});
  const std::size_t read = llama_state_seq_set_data(context_, state_.data(), state_.size(),
                                                    static_cast<llama_seq_id>(op.slot));
  if (read != state_.size()) return broken("restored");
  return {};
}

Result<void> KvStore::move(const infer::MoveOp& op) {
  if (!save(op.from)) return broken("read");
  const std::size_t read = llama_state_seq_set_data(context_, state_.data(), state_.size(),
                                                    static_cast<llama_seq_id>(op.to));
  if (read != state_.size()) return broken("moved");
  llama_memory_seq_rm(llama_get_memory(context_), static_cast<llama_seq_id>(op.from), -1, -1);
  return {};
}

}  // namespace loam::serve

// Key-value rows on the host: segments copied out of a context's slots and put back, joined and
// cut at any token. Shell.
//
// The rows are cut out of what llama_state_seq_get_data gives. Its layout is no promise of the
// library, but the version is pinned; probe() checks that a state is understood to its last
// byte, and where it is not (other attention kinds), nothing is kept.
#pragma once

#include <llama.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "infer/prefix_tree.hpp"

namespace loam::serve {

class KvStore {
 public:
  explicit KvStore(llama_context* context) : context_(context) {}

  // Bytes of one token's rows, found by saving what slot 0 holds, which must be at least one token;
  // 0 where the state is not understood.
  std::uint32_t probe();

  Result<void> capture(const infer::CaptureOp& op);
  void split(const infer::SplitOp& op);
  void drop(const infer::DropOp& op) { segments_.erase(op.segment); }
  Result<void> restore(const infer::RestoreOp& op);
  Result<void> move(const infer::MoveOp& op);

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct Rows {
    std::int32_t type = 0;
    std::uint64_t bytes = 0;  // of one row
    std::size_t data = 0;     // where in the state the rows start
  };
  struct State {
    std::uint32_t streams = 0;
    std::uint32_t cells = 0;
    std::uint32_t layers = 0;
    std::vector<std::int32_t> positions;
    std::vector<Rows> rows;  // keys of each layer, then values of each layer
  };

  bool save(std::uint32_t slot);  // into state_
  bool read(State& state) const;  // of state_
  static std::uint64_t token_bytes(const State& state);

  llama_context* context_;
  std::map<infer::SegmentId, Bytes> segments_;  // layer by layer, as in a state
  Bytes state_;                                 // reused: it is large
  State shape_;                                 // of the probe: row sizes and types
};

}  // namespace loam::serve

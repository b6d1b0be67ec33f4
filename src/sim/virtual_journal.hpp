// VirtualJournal: the journal as bytes in memory. Every record goes through its stored text on
// the way in and out; a batch is one frame with a length and a checksum, so that it can be torn at
// any byte and still is there whole or not at all. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports.hpp"

namespace loam::sim {

class VirtualJournal final : public engine::Journal {
 public:
  Result<void> append(std::span<const Record> records) override;
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const Record&)>& each) override;
  Result<engine::StateImage> load_snapshot() override;

  // Keeps a snapshot of `state` as its stored text.
  void keep_snapshot(const engine::State& state);
  void forget_snapshot() { snapshot_.clear(); }

  // While full, appends fail and nothing is written.
  void set_full(bool full) { full_ = full; }
  bool full() const { return full_; }
  // The next append with records writes only the first `bytes` of its frame (the whole frame is
  // kept where it is shorter) and reports failure: the machine stopped in the middle.
  void tear_next(std::size_t bytes) { tear_at_ = bytes; }
  // Whether an append was torn since the last call.
  bool take_torn() { return std::exchange(torn_, false); }

  // Drops the torn frame at the end, if there is one; what a journal does when it is opened.
  // Returns the number of bytes dropped.
  std::size_t repair();

  const std::string& bytes() const { return bytes_; }

 private:
  Result<void> read_on();

  std::string bytes_;
  // Every record as it was read back from bytes_, once: replays are many.
  std::vector<Record> read_;
  std::size_t read_bytes_ = 0;   // of bytes_, in read_
  std::size_t whole_bytes_ = 0;  // of bytes_, in frames known to be whole
  std::string snapshot_;
  bool full_ = false;
  bool torn_ = false;
  std::optional<std::size_t> tear_at_;
};

}  // namespace loam::sim

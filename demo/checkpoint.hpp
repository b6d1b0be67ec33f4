// The training program's checkpoint: one file, replaced atomically, with the one before it kept.
//
// Layout, little endian: 8 bytes magic "LOAMTRN1"; u64 size (rows of a matrix), u64 step, u64
// run_ms; then 2·size² floats (W1, W2); then u64 FNV-1a of everything before it.
// Reads and writes files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace demo {

struct Checkpoint {
  std::uint64_t size = 0;    // rows and columns of each weight matrix
  std::uint64_t step = 0;    // steps done
  std::uint64_t run_ms = 0;  // training time so far, over all attempts
  std::vector<float> weights_in;
  std::vector<float> weights_out;

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// What a read found. `checkpoint` is empty where there was nothing usable.
struct CheckpointRead {
  std::optional<Checkpoint> checkpoint;
  bool found_any = false;  // a file was there, usable or not
  std::string message;     // what was wrong or where it fell back to; may be empty
};

std::string checkpoint_path(const std::string& folder);

// Writes beside, syncs, keeps the last one as "train.ckpt.previous", renames. Returns an error
// text with the path, or nothing.
std::optional<std::string> save_checkpoint(const std::string& folder, const Checkpoint& checkpoint);

// Reads the newest whole checkpoint: the current one, else the previous one with a message.
CheckpointRead load_checkpoint(const std::string& folder);

// The bytes of a checkpoint, and back: nothing on any fault, with its reason in `why`.
std::string encode(const Checkpoint& checkpoint);
std::optional<Checkpoint> decode(const std::string& bytes, std::string& why);

}  // namespace demo

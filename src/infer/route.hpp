// Which instance of a model a request goes to: the one that knows the longest beginning of its
// prompt, among those with room. What an instance knows is remembered here as marks of what
// was sent to it, so that choosing needs no talk with it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "infer/request.hpp"

namespace loam::infer {

// A prompt's beginnings as numbers: mark i stands for its first i+1 blocks, so two prompts have as
// many leading marks in common as blocks. Blocks inside the public part are marked alike for
// everybody; every later mark is the tenant's own, so that no choice depends on what another
// tenant has sent.
using PrefixMarks = std::vector<std::uint64_t>;
inline constexpr std::size_t block_bytes = 128;  // some 32 tokens of text
inline constexpr std::size_t block_tokens = 32;
inline constexpr std::size_t prefix_marks_max = 512;  // beyond it prompts are taken as equal

PrefixMarks prefix_marks(std::string_view tenant, const Prompt& prompt);

// How many tokens a prompt has, about, where only the engine could tell: one for every four bytes,
// and four for each message's frame. Exact for tokens.
std::uint64_t estimate_tokens(const Prompt& prompt);

// The marks of what one instance was sent, the oldest forgotten first. All costs are logarithmic in
// `marks_max`, for each mark.
class PrefixTrail {
 public:
  explicit PrefixTrail(std::size_t marks_max = 16 * 1024) : marks_max_(marks_max) {}

  void note(const PrefixMarks& marks);
  // How many leading marks it knows.
  std::size_t matched(const PrefixMarks& marks) const;
  void forget() {
    by_mark_.clear();
    by_age_.clear();
  }
  std::size_t size() const { return by_mark_.size(); }

 private:
  std::size_t marks_max_;
  std::uint64_t age_ = 0;
  std::map<std::uint64_t, std::uint64_t> by_mark_;  // mark -> age
  std::map<std::uint64_t, std::uint64_t> by_age_;   // age -> mark
};

// An instance as a choice.
struct InstanceView {
  bool accepting = false;       // healthy, not draining, not tried before for this request
  std::size_t matched = 0;      // leading marks that it knows
  std::uint32_t slots = 1;      // requests computed at once
  std::uint32_t in_flight = 0;  // requests it has, running or waiting
  std::uint64_t cells = 0;      // tokens of all requests at once; 0: not known
  std::uint64_t cells_promised = 0;
};

// The index of the instance to send a request to that will need `tokens` at most; nothing where
// none accepts. With room: a free slot and enough unpromised memory. Among those with room the
// longest match wins, then the fewest requests for its slots, then the lowest index. Where none
// has room the request will queue: the shortest queue for its slots wins, then the match.
std::optional<std::size_t> choose_instance(std::span<const InstanceView> instances,
                                           std::uint64_t tokens);

}  // namespace loam::infer

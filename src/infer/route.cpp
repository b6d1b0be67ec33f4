#include "infer/route.hpp"

#include <algorithm>
#include <string>

namespace loam::infer {

namespace {

// FNV-1a, 64 bits: a fixed function, so that the same prompts are always routed alike. Who forges a
// collision is sent to a worse instance, no more.
class Hash {
 public:
  explicit Hash(std::string_view salt) { add(salt); }
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      value_ ^= static_cast<unsigned char>(byte);
      value_ *= 0x100000001b3ULL;
    }
  }
  void add(Token token) {
    for (int shift = 0; shift < 32; shift += 8) {
      value_ ^= (static_cast<std::uint32_t>(token) >> shift) & 0xFFU;
      value_ *= 0x100000001b3ULL;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

class Marker {
 public:
  Marker(std::string_view tenant, std::size_t public_units)
      : tenant_(tenant), hash_(public_units > 0 ? "public" : tenant), left_(public_units) {
    is_public_ = public_units > 0;
  }
  // One unit of what public_extent counts begins.
  void begin_unit() {
    if (is_public_ && left_-- == 0) {
      is_public_ = false;
      hash_.add("\x1f private \x1f");
      hash_.add(tenant_);
    }
  }
  void add(char byte) {
    hash_.add(std::string_view(&byte, 1));
    fill(block_bytes);
  }
  void add(Token token) {
    hash_.add(token);
    fill(block_tokens);
  }
  bool full() const { return marks_.size() >= prefix_marks_max; }
  PrefixMarks take() { return std::move(marks_); }

 private:
  void fill(std::size_t whole) {
    if (++filled_ < whole) return;
    filled_ = 0;
    if (!full()) marks_.push_back(hash_.value());
  }
  std::string_view tenant_;
  Hash hash_;
  std::size_t left_;
  bool is_public_ = false;
  std::size_t filled_ = 0;
  PrefixMarks marks_;
};

// True where a waits less than b: in_flight / slots compared without division.
bool less_loaded(const InstanceView& a, const InstanceView& b) {
  return std::uint64_t{a.in_flight} * std::max<std::uint32_t>(b.slots, 1) <
         std::uint64_t{b.in_flight} * std::max<std::uint32_t>(a.slots, 1);
}

bool has_room(const InstanceView& view, std::uint64_t tokens) {
  if (view.in_flight >= view.slots) return false;
  return view.cells == 0 || view.cells_promised + tokens <= view.cells;
}

}  // namespace

PrefixMarks prefix_marks(std::string_view tenant, const Prompt& prompt) {
  Marker marker(tenant, prompt.public_extent);
  switch (prompt.kind) {
    case Prompt::Kind::tokens:
      for (const Token token : prompt.tokens) {
        if (marker.full()) break;
        marker.begin_unit();
        marker.add(token);
      }
      break;
    case Prompt::Kind::text:
      for (const char byte : prompt.text) {
        if (marker.full()) break;
        marker.begin_unit();
        marker.add(byte);
      }
      break;
    case Prompt::Kind::messages:
      for (const ChatMessage& message : prompt.messages) {
        marker.begin_unit();
        for (const std::string_view part :
             {std::string_view(message.role), std::string_view("\x1e", 1),
              std::string_view(message.content), std::string_view("\x1d", 1)}) {
          for (const char byte : part) {
            if (marker.full()) break;
            marker.add(byte);
          }
        }
      }
      break;
  }
  return marker.take();
}

std::uint64_t estimate_tokens(const Prompt& prompt) {
  constexpr std::uint64_t bytes_a_token = 4;
  constexpr std::uint64_t tokens_a_message = 4;
  switch (prompt.kind) {
    case Prompt::Kind::tokens:
      return prompt.tokens.size();
    case Prompt::Kind::text:
      return prompt.text.size() / bytes_a_token + 1;
    case Prompt::Kind::messages:
      break;
  }
  std::uint64_t tokens = 0;
  for (const ChatMessage& message : prompt.messages)
    tokens += message.content.size() / bytes_a_token + tokens_a_message;
  return tokens;
}

void PrefixTrail::note(const PrefixMarks& marks) {
  // The longest beginning is noted first, so that it is the first to be forgotten: a mark without
  // those before it would never be found.
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
    const auto [at, is_new] = by_mark_.try_emplace(*mark, 0);
    if (!is_new) by_age_.erase(at->second);
    at->second = ++age_;
    by_age_.emplace(age_, *mark);
  }
  while (by_mark_.size() > marks_max_) {
    by_mark_.erase(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
  }
}

std::size_t PrefixTrail::matched(const PrefixMarks& marks) const {
  const auto unknown = std::find_if(marks.begin(), marks.end(),
                                    [&](std::uint64_t mark) { return !by_mark_.contains(mark); });
  return static_cast<std::size_t>(unknown - marks.begin());
}

std::optional<std::size_t> choose_instance(std::span<const InstanceView> instances,
                                           std::uint64_t tokens) {
  std::optional<std::size_t> best;
  bool best_has_room = false;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const InstanceView& view = instances[i];
    if (!view.accepting) continue;
    const bool room = has_room(view, tokens);
    if (!best) {
      best = i;
      best_has_room = room;
      continue;
    }
    const InstanceView& other = instances[*best];
    bool better = false;
    if (room != best_has_room) {
      better = room;
    } else if (room) {
      better =
          view.matched != other.matched ? view.matched > other.matched : less_loaded(view, other);
    } else {
      better =
          less_loaded(view, other) || (!less_loaded(other, view) && view.matched > other.matched);
    }
    if (better) {
      best = i;
      best_has_room = room;
    }
  }
  return best;
}

}  // namespace loam::infer

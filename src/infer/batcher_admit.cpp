// Who holds a slot: starting, waiting for a shared beginning, preempting, swapping, compacting.
#include <algorithm>

#include "base/assert.hpp"
#include "infer/batcher.hpp"

namespace loam::infer {

std::vector<Batcher::Sequence*> Batcher::running() {
  std::vector<Sequence*> held;
  for (const SequenceId id : slots_) {
    if (id.valid()) held.push_back(&sequences_.at(id));
  }
  return held;
}

std::optional<std::uint32_t> Batcher::free_slot() const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot].valid()) return slot;
  }
  return std::nullopt;
}

Batcher::Standings Batcher::standings() const {
  Standings standings;
  for (const auto& [id, sequence] : sequences_) {
    Standing& standing = standings[sequence.tenant];
    if (standing.service == 0) standing.service = counters_.counter(sequence.tenant);
    if (sequence.phase != Phase::running) continue;
    ++standing.running;
    const std::uint32_t tokens_left = sequence.tokens_max - sequence.generated();
    standing.service +=
        counters_.scaled(sequence.tenant, std::uint64_t{tokens_left} * config_.generated_cost);
  }
  return standings;
}

bool Batcher::goes_before(const Sequence& a, const Sequence& b, const Standings& standings) const {
  if (!config_.fair) return a.id < b.id;
  if (a.service_class != b.service_class) return a.service_class > b.service_class;
  const Standing& of_a = standings.at(a.tenant);
  const Standing& of_b = standings.at(b.tenant);
  const bool newcomer_a = of_a.running == 0;
  const bool newcomer_b = of_b.running == 0;
  if (newcomer_a != newcomer_b) return newcomer_a;
  if (a.phase != b.phase) return a.phase == Phase::swapped;
  if (of_a.service != of_b.service) return of_a.service < of_b.service;
  return a.id < b.id;
}

Batcher::Sequence* Batcher::next_candidate(const Standings& standings,
                                           const std::vector<SequenceId>& deferred) {
  Sequence* best = nullptr;
  for (auto& [id, sequence] : sequences_) {
    if (sequence.phase == Phase::running) continue;
    if (best != nullptr && !goes_before(sequence, *best, standings)) continue;
    if (std::find(deferred.begin(), deferred.end(), id) != deferred.end()) continue;
    best = &sequence;
  }
  return best;
}

void Batcher::admit(std::vector<MemoryOp>& ops) {
  std::vector<SequenceId> deferred;
  // Of those that wait for a beginning only so many are looked past: the cost of a plan must not
  // grow with the square of the queue.
  while (deferred.size() < 2 * slots_.size()) {
    const Standings now = standings();
    Sequence* candidate = next_candidate(now, deferred);
    if (candidate == nullptr) break;
    if (waits_for_prefix(*candidate, ops)) {
      deferred.push_back(candidate->id);
      continue;
    }
    // Nobody overtakes a request for want of room: those behind it would only use up what it
    // waits for.
    if (!make_place(*candidate, now, ops)) return;
    start(*candidate, ops);
  }
  if (!config_.unified) compact(ops);
}

// Whether memory, as promised, has room for the candidate beside what runs.
bool Batcher::fits(const Sequence& candidate) const {
  if (!config_.unified) return true;
  const Load now = load();
  if (now.running == 0) return true;
  const std::uint64_t limit = std::uint64_t{cells_there_} * config_.overcommit_permille / 1000;
  if (std::uint64_t{now.cells_promised} + candidate.promised() > limit) return false;
  // What is promised twice needs some steps' room to grow, or it would be swapped out at once.
  constexpr std::uint64_t growth_tokens = 16;
  return now.cells_used + candidate.tokens.size() + growth_tokens * (now.running + 1) <=
             cells_there_ ||
         config_.overcommit_permille == 1000;
}

bool Batcher::make_place(const Sequence& candidate, const Standings& standings,
                         std::vector<MemoryOp>& ops) {
  while (!free_slot() || !fits(candidate)) {
    Sequence* victim = victim_for(candidate, standings);
    if (victim == nullptr) return false;
    swap_out(*victim, ops);
  }
  return true;
}

// Who is put aside for the candidate: a lower class first, else, for a newcomer, the tenant of its
// class that runs most. Of these the latest start, which has least to lose.
Batcher::Sequence* Batcher::victim_for(const Sequence& candidate, const Standings& standings) {
  if (!config_.fair) return nullptr;
  const bool newcomer = standings.at(candidate.tenant).running == 0;
  std::map<std::string, std::uint32_t> running_of;
  for (const Sequence* sequence : running()) ++running_of[sequence->tenant];
  Sequence* victim = nullptr;
  for (Sequence* sequence : running()) {
    const bool lower = sequence->service_class < candidate.service_class;
    const bool spared = sequence->service_class > candidate.service_class || !newcomer ||
                        running_of[sequence->tenant] < 2;
    if (!lower && spared) continue;
    if (victim == nullptr || sequence->service_class < victim->service_class) {
      victim = sequence;
      continue;
    }
    if (sequence->service_class > victim->service_class) continue;
    const std::uint32_t count = running_of[sequence->tenant];
    const std::uint32_t count_of_victim = running_of[victim->tenant];
    if (count > count_of_victim ||
        (count == count_of_victim && sequence->started > victim->started)) {
      victim = sequence;
    }
  }
  return victim;
}

// The first wave: where a running sequence is about to compute a beginning that the candidate
// shares, the candidate waits for it; where it already has, the rows are taken over now.
bool Batcher::waits_for_prefix(const Sequence& candidate, std::vector<MemoryOp>& ops) {
  if (!config_.share_prefixes || config_.cache_bytes_max == 0 || candidate.embeds()) return false;
  const auto size = static_cast<std::uint32_t>(candidate.tokens.size());
  const PrefixKey key = candidate.key(size);
  const std::uint32_t stored = tree_.stored_tokens(key);
  if (stored + config_.prefix_tokens_least > size) return false;
  for (const Sequence* other : running()) {
    // The last token is always computed, to sample after it.
    const auto whole = static_cast<std::uint32_t>(other->tokens.size());
    const std::uint32_t shared = std::min(shared_tokens(key, other->key(whole)), size - 1);
    if (shared < stored + config_.prefix_tokens_least) continue;
    if (other->computed >= shared) {
      tree_.store(other->key(shared), other->slot, ops);
      return false;
    }
    // Waiting for a lower class would lend it this one's place.
    if (other->service_class >= candidate.service_class) return true;
  }
  return false;
}

void Batcher::start(Sequence& sequence, std::vector<MemoryOp>& ops) {
  const auto slot = free_slot();
  LOAM_ASSERT(slot.has_value());
  sequence.slot = *slot;
  slots_[*slot] = sequence.id;
  PrefixTree::Match match;
  auto most = static_cast<std::uint32_t>(sequence.tokens.size()) - 1;
  // Stored rows hold no vectors: an embedding takes none that it has not computed itself.
  if (sequence.embeds()) most = std::min(most, sequence.computed_max);
  if (most > 0 && (config_.share_prefixes || sequence.phase == Phase::swapped)) {
    match = tree_.match(sequence.key(most));
  }
  if (match.tokens > 0) ops.emplace_back(RestoreOp{*slot, match.tokens, std::move(match.parts)});
  if (sequence.pinned != PrefixTree::root) {
    tree_.unpin(sequence.pinned);
    sequence.pinned = PrefixTree::root;
  }
  // What a first start finds stored counts as prompt; what a resumed one misses is recomputed.
  const std::uint32_t found = std::min(match.tokens, sequence.prompt_tokens);
  if (found > sequence.computed_max && sequence.meter_prompt) {
    sequence.usage.prompt_tokens += found - sequence.computed_max;
    sequence.usage.cached_tokens += found - sequence.computed_max;
  }
  sequence.computed = match.tokens;
  sequence.computed_max = std::max(sequence.computed_max, match.tokens);
  sequence.phase = Phase::running;
  sequence.started = next_start_++;
}

void Batcher::swap_out(Sequence& sequence, std::vector<MemoryOp>& ops) {
  LOAM_ASSERT(sequence.phase == Phase::running);
  if (sequence.computed > 0) {
    const auto stored = tree_.store(sequence.key(sequence.computed), sequence.slot, ops);
    sequence.pinned = stored.node;
    if (stored.node != PrefixTree::root) tree_.pin(stored.node);
  }
  ops.emplace_back(ClearOp{sequence.slot});
  slots_[sequence.slot] = SequenceId{};
  sequence.phase = Phase::swapped;
  sequence.computed = 0;
  ++sequence.preemptions;
  ++preemptions_;
}

// The library computes a run of neighbouring slots at once and cuts a batch at every hole, so that
// a hole costs each further step more than one move costs once. One move a step.
void Batcher::compact(std::vector<MemoryOp>& ops) {
  constexpr std::uint32_t tokens_left_least = 8;  // an end so near is worth no move
  const std::vector<Sequence*> held = running();
  if (held.size() < 2) return;
  const std::uint32_t first = held.front()->slot;
  Sequence& last = *held.back();
  for (std::uint32_t slot = first + 1; slot < last.slot; ++slot) {
    if (slots_[slot].valid()) continue;
    if (last.computed == 0 || last.tokens_max - last.generated() < tokens_left_least) return;
    ops.emplace_back(MoveOp{last.slot, slot});
    slots_[last.slot] = SequenceId{};
    slots_[slot] = last.id;
    last.slot = slot;
    ++compactions_;
    return;
  }
}

}  // namespace loam::infer

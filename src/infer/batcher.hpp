// Continuous batching on one context of a model: which sequences hold a slot, what the next step
// computes, who is put aside for whom, and what of the key-value memory is kept on the host.
// Pure: it decides, the caller computes and reports back.
//
// A round is plan(), the plan's operations and batch carried out, finish(). In between nothing
// else may be called but the readers.
//
// The rules, in the order in which they hold:
//   class      a higher class starts first and may swap a running lower one out;
//   newcomer   a tenant with nothing running goes before those with something, and may swap out the
//              latest stream of a tenant of its class that runs two or more;
//   resume     what was swapped out goes before what never started;
//   fairness   then the tenant with the least service goes (token_counter.hpp), then the oldest.
//
// A text to embed is a sequence like any other: it takes a slot by these rules and is computed in
// pieces, within the same bound on a step. A step computes prompts of one kind of work, the kind of
// the one that goes first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/token_usage.hpp"
#include "infer/prefix_tree.hpp"
#include "infer/request.hpp"
#include "infer/step_cost.hpp"
#include "infer/token_counter.hpp"

namespace loam::infer {

struct SequenceTag {
  static constexpr const char* prefix = "s";
};
using SequenceId = Id<SequenceTag>;

struct BatcherConfig {
  std::uint32_t slots = 8;
  // Key-value cells (one token each). Apart: every slot has cells_per_slot of its own. Unified: all
  // slots share `cells` and may use up any part of it.
  bool unified = false;
  std::uint32_t cells_per_slot = 512;
  std::uint32_t cells = 8 * 512;
  // Unified: how much may be promised (prompt + tokens_max of what runs) of what is there. Above
  // 1000, streams are swapped out when all use what they were promised.
  std::uint32_t overcommit_permille = 1000;
  std::uint32_t step_tokens_max = 512;     // the most one step can take
  std::uint32_t chunk_tokens = 32;         // of prompts, in a step without running streams
  std::uint32_t chunk_tokens_least = 8;    // of prompts, beside running streams
  std::uint32_t gap_factor = 5;            // a step with a prompt lasts at most so many without one
  std::uint32_t prefix_tokens_least = 16;  // shorter common beginnings are computed again
  std::uint64_t cache_bytes_max = 256ULL << 20U;
  std::uint32_t token_bytes = 1;  // key-value memory of a token
  bool share_prefixes = true;     // false: neither stored beginnings nor the first wave
  bool fair = true;               // false: first come, first served; for comparison
  std::uint32_t prompt_cost = 1;  // what a computed prompt token counts for fairness
  std::uint32_t generated_cost = 2;
};

struct SequenceRequest {
  std::vector<Token> prompt;
  std::uint32_t public_tokens = 0;
  std::string tenant;
  std::uint32_t weight = 1;
  ServiceClass service_class = ServiceClass::standard;
  std::uint32_t tokens_max = 1;
  bool meter_prompt = true;  // false for the second and later answers to one prompt
  // Nothing is generated (tokens_max 0): each token's vector is wanted, and the sequence ends when
  // its last one is computed.
  PromptWork work = PromptWork::answer;
};

// The sequence's tokens [position, position + tokens) are computed in its slot; `sample`: and the
// next one is sampled from the last of them.
struct BatchItem {
  SequenceId sequence;
  std::uint32_t slot = 0;
  std::uint32_t position = 0;
  std::uint32_t tokens = 0;
  bool sample = false;
  bool vectors = false;  // and the vector of each of them is taken, for an embedding
};

struct StepPlan {
  std::vector<MemoryOp> before;  // carry out first, in this order
  std::vector<BatchItem> items;  // by rising slot
  bool empty() const { return before.empty() && items.empty(); }
};

struct Sampled {
  SequenceId sequence;
  Token token = 0;
  bool end = false;  // nothing comes after it: the model's end, a stop string, a grammar's end
};

struct Ended {
  SequenceId sequence;
  bool at_limit = false;  // tokens_max was reached; else `end` was sampled
  TokenUsage usage;
  std::uint32_t preemptions = 0;
};

class Batcher {
 public:
  // `counters` outlives the batcher; several batchers may share it.
  Batcher(BatcherConfig config, TokenCounters& counters);

  // Waits for its turn from now on. Refused where prompt and answer cannot fit one slot. Requires
  // tokens_max 0 of an embedding.
  Result<SequenceId> submit(SequenceRequest request);
  // The sequence is over and its slot free; what it used so far, or nothing where it is unknown.
  // `keep`: what it computed stays on the host for those who begin alike; not where its slot is
  // broken.
  std::optional<TokenUsage> cancel(SequenceId sequence, bool keep = true);

  // The next step; empty where there is nothing to do.
  StepPlan plan();
  // What came of it: one sample for each item that asked for one, in any order; it took `us`.
  std::vector<Ended> finish(const StepPlan& plan, std::span<const Sampled> samples,
                            std::uint64_t us);
  // After finish() of an empty plan: the step `plan` found no room in the key-value memory, of
  // which there is less than was told, and nothing of it was computed. The stream that can wait
  // best is put aside, and until one ends nothing is let in that would need as much again. False
  // where nobody is there to be put aside, or slots have memory of their own: then the step cannot
  // be computed.
  bool lacked_room(const StepPlan& plan);

  // Requires that the sequence is not over.
  std::span<const Token> tokens(SequenceId sequence) const;
  const TokenUsage& usage(SequenceId sequence) const;
  bool has_work() const { return !sequences_.empty() || !pending_.empty(); }

  struct Load {
    std::uint32_t running = 0;
    std::uint32_t waiting = 0;
    std::uint32_t swapped = 0;
    std::uint32_t cells_used = 0;
    std::uint32_t cells_promised = 0;
    std::uint32_t fragmentation_permille = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t compactions = 0;
  };
  Load load() const;
  Load load_of(const std::string& tenant) const;  // the first three only
  const PrefixTree& prefixes() const { return tree_; }
  const StepCost& costs() const { return costs_; }
  const BatcherConfig& config() const { return config_; }
  // Tokens that one sequence can hold, prompt and answer together.
  std::uint32_t capacity() const;

 private:
  enum class Phase { waiting, running, swapped };
  struct Sequence {
    SequenceId id;
    std::vector<Token> tokens;  // prompt, then generated
    std::uint32_t prompt_tokens = 0;
    std::uint32_t public_tokens = 0;
    std::string tenant;
    ServiceClass service_class = ServiceClass::standard;
    std::uint32_t tokens_max = 0;
    bool meter_prompt = true;
    PromptWork work = PromptWork::answer;
    Phase phase = Phase::waiting;
    std::uint32_t slot = 0;          // while running
    std::uint32_t computed = 0;      // leading tokens in the slot, or pinned in the tree
    std::uint32_t computed_max = 0;  // ever: below it, work is work done again
    PrefixTree::Node pinned = PrefixTree::root;
    std::uint64_t started = 0;  // order of the latest start
    std::uint32_t preemptions = 0;
    TokenUsage usage;

    std::uint32_t generated() const {
      return static_cast<std::uint32_t>(tokens.size()) - prompt_tokens;
    }
    std::uint32_t left_to_compute() const {
      return static_cast<std::uint32_t>(tokens.size()) - computed;
    }
    bool embeds() const { return work == PromptWork::embedding; }
    // The next step computes its latest token and samples the one after it.
    bool streams() const { return !embeds() && left_to_compute() == 1; }
    std::uint32_t promised() const { return prompt_tokens + tokens_max; }
    PrefixKey key(std::uint32_t tokens_wanted) const {
      return {std::span(tokens).first(tokens_wanted), tenant, public_tokens};
    }
  };
  // How tenants stand while a plan is made.
  struct Standing {
    std::uint32_t running = 0;
    std::uint64_t service = 0;  // counted, and promised to what runs
  };
  using Standings = std::map<std::string, Standing>;

  // batcher_admit.cpp: who holds a slot
  void admit(std::vector<MemoryOp>& ops);
  Sequence* next_candidate(const Standings& standings, const std::vector<SequenceId>& deferred);
  bool goes_before(const Sequence& a, const Sequence& b, const Standings& standings) const;
  bool make_place(const Sequence& candidate, const Standings& standings,
                  std::vector<MemoryOp>& ops);
  bool fits(const Sequence& candidate) const;
  Sequence* victim_for(const Sequence& candidate, const Standings& standings);
  bool waits_for_prefix(const Sequence& candidate, std::vector<MemoryOp>& ops);
  void start(Sequence& sequence, std::vector<MemoryOp>& ops);
  void swap_out(Sequence& sequence, std::vector<MemoryOp>& ops);
  void compact(std::vector<MemoryOp>& ops);
  Standings standings() const;
  std::optional<std::uint32_t> free_slot() const;
  std::vector<Sequence*> running();

  // batcher.cpp: what the step computes
  void compose(StepPlan& plan);
  std::vector<Sequence*> prompts_in_order();
  bool newcomers_alone(const std::vector<Sequence*>& prompts, std::uint32_t streams) const;
  void relieve(StepPlan& plan);
  Sequence* waits_best();  // of those that run
  void add_item(StepPlan& plan, const Sequence& sequence, std::uint32_t tokens) const;
  void account(Sequence& sequence, const BatchItem& item, std::uint64_t us);
  void learn(const StepPlan& plan, std::uint64_t us);
  void release(Sequence& sequence, bool keep);

  BatcherConfig config_;
  TokenCounters& counters_;
  PrefixTree tree_;
  StepCost costs_;
  std::map<SequenceId, Sequence> sequences_;
  std::vector<SequenceId> slots_;  // who holds each; an invalid id: nobody
  std::vector<MemoryOp> pending_;  // of sequences that ended since the last plan
  std::uint64_t next_sequence_ = 1;
  std::uint64_t next_start_ = 1;
  std::uint64_t preemptions_ = 0;
  std::uint64_t compactions_ = 0;
  std::uint32_t cells_there_;  // of config_.cells, as far as is known
  bool last_alone_ = false;    // the latest step held newcomers' prompts only
};

}  // namespace loam::infer

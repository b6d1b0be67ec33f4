// A model without maths for the batcher's tests: a slot's rows are numbers that depend on every
// token before them and remember who computed them, so that a wrong, missing or foreign row is
// noticed. It also counts what was computed.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "infer/batcher.hpp"

namespace loam::infer {

// Four slots of 512 tokens over one pool of cells.
inline BatcherConfig small() {
  BatcherConfig config;
  config.slots = 4;
  config.cells_per_slot = 512;
  config.cells = 2048;
  config.token_bytes = 100;
  config.cache_bytes_max = 1'000'000;
  return config;
}

class FakeModel {
 public:
  FakeModel(BatcherConfig config, TokenCounters& counters)
      : config_(config), batcher(config, counters), slots_(config.slots) {}

  struct Asked {
    SequenceRequest request;
    std::uint32_t end_after = 0;  // samples the end token then; 0: never
  };

  SequenceId submit(SequenceRequest request, std::uint32_t end_after = 0) {
    const auto id = batcher.submit(request);
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    asked_.emplace(*id, Asked{std::move(request), end_after});
    return *id;
  }

  // One round, which takes 1000 us for each stream, 300 for each token of a prompt and 500 for each
  // token of a text to embed.
  std::vector<Ended> step() {
    StepPlan plan = batcher.plan();
    for (const MemoryOp& op : plan.before) std::visit([this](const auto& o) { apply(o); }, op);
    if (lacks_room(plan)) return {};
    std::vector<Sampled> samples;
    std::uint64_t us = 0;
    std::uint32_t step_tokens = 0;
    std::int64_t last_slot = -1;
    for (const BatchItem& item : plan.items) {
      EXPECT_GT(std::int64_t{item.slot}, last_slot) << "items go by rising slot";
      last_slot = item.slot;
      compute(item);
      step_tokens += item.tokens;
      if (item.vectors) {
        us += 500ULL * item.tokens;
        embed(item);
      } else {
        us += item.tokens == 1 ? 1000 : 300ULL * item.tokens;
      }
      if (item.sample) samples.push_back(sample(item.sequence));
    }
    EXPECT_LE(step_tokens, config_.step_tokens_max);
    check_memory();
    last_step_us = us;
    last_items = plan.items;
    auto ended = batcher.finish(plan, samples, us);
    now_us += us;
    for (const Ended& end : ended) {
      usage[end.sequence] = end.usage;
      const auto found = vectors.find(end.sequence);
      if (found == vectors.end()) continue;
      EXPECT_EQ(found->second, asked_.at(end.sequence).request.prompt.size()) << "each token once";
    }
    EXPECT_TRUE(batcher.prefixes().consistent());
    return ended;
  }

  void run(int rounds_max = 100'000) {
    while (batcher.has_work()) {
      step();
      ASSERT_GT(--rounds_max, 0) << "it does not come to an end";
    }
  }

 private:
  struct Row {
    std::uint64_t chain = 0;
    std::string owner;  // "" where public
  };

  static std::uint64_t chain_of(std::uint64_t before, Token token) {
    return (before ^ (static_cast<std::uint64_t>(token) + 0x9e3779b97f4a7c15ULL)) *
           0xbf58476d1ce4e5b9ULL;
  }

  void compute(const BatchItem& item) {
    std::vector<Row>& rows = slots_[item.slot];
    const Asked& asked = asked_.at(item.sequence);
    const auto tokens = batcher.tokens(item.sequence);
    ASSERT_EQ(rows.size(), item.position) << "a slot holds exactly what was computed";
    ASSERT_LE(item.position + item.tokens, tokens.size());
    std::uint64_t chain = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      chain = chain_of(chain, tokens[i]);
      ASSERT_EQ(rows[i].chain, chain) << "row " << i << " is of other tokens";
      const bool is_public = i < asked.request.public_tokens;
      ASSERT_EQ(rows[i].owner, is_public ? "" : asked.request.tenant) << "row " << i;
    }
    for (std::size_t i = item.position; i < item.position + item.tokens; ++i) {
      chain = chain_of(chain, tokens[i]);
      rows.push_back({chain, i < asked.request.public_tokens ? "" : asked.request.tenant});
      ++computed;
    }
  }

  // Takes the vectors that it does not have yet.
  void embed(const BatchItem& item) {
    EXPECT_FALSE(item.sample) << "an embedding generates nothing";
    std::uint32_t& taken = vectors[item.sequence];
    ASSERT_LE(item.position, taken) << "a token's vector is missing";
    taken = std::max(taken, item.position + item.tokens);
  }

  Sampled sample(SequenceId id) {
    const Asked& asked = asked_.at(id);
    const auto generated =
        static_cast<std::uint32_t>(batcher.tokens(id).size() - asked.request.prompt.size()) + 1;
    first_sample_us.emplace(id, now_us);
    return {id, static_cast<Token>(generated % 7), generated == asked.end_after};
  }

  // What the library does where it finds fewer free cells than it was thought to have: nothing.
  bool lacks_room(const StepPlan& plan) {
    std::size_t used = 0;
    for (const auto& rows : slots_) used += rows.size();
    for (const BatchItem& item : plan.items) used += item.tokens;
    if (used <= cells_there) return false;
    batcher.finish({}, {}, 0);
    ++rooms_lacked;
    EXPECT_TRUE(batcher.lacked_room(plan)) << "one sequence alone finds no room";
    return true;
  }

  void check_memory() {
    std::size_t used = 0;
    for (const auto& rows : slots_) {
      used += rows.size();
      if (!config_.unified) {
        ASSERT_LE(rows.size(), config_.cells_per_slot);
      }
    }
    if (config_.unified) {
      ASSERT_LE(used, config_.cells);
    }
    std::size_t stored = 0;
    for (const auto& [id, rows] : segments_) stored += rows.size();
    EXPECT_EQ(stored * config_.token_bytes, batcher.prefixes().bytes());
    EXPECT_LE(stored * config_.token_bytes, config_.cache_bytes_max);
  }

  void apply(const CaptureOp& op) {
    const auto& rows = slots_.at(op.slot);
    ASSERT_LE(op.to, rows.size()) << "rows are captured before they are computed";
    segments_[op.segment].assign(rows.begin() + op.from, rows.begin() + op.to);
  }
  void apply(const SplitOp& op) {
    auto& rows = segments_.at(op.segment);
    segments_[op.tail].assign(rows.begin() + op.at, rows.end());
    rows.resize(op.at);
  }
  void apply(const DropOp& op) { ASSERT_EQ(segments_.erase(op.segment), 1U); }
  void apply(const RestoreOp& op) {
    auto& rows = slots_.at(op.slot);
    ASSERT_TRUE(rows.empty());
    for (const Part& part : op.parts) {
      const auto& segment = segments_.at(part.segment);
      ASSERT_LE(part.tokens, segment.size());
      rows.insert(rows.end(), segment.begin(), segment.begin() + part.tokens);
    }
    ASSERT_EQ(rows.size(), op.tokens);
  }
  void apply(const ClearOp& op) { slots_.at(op.slot).clear(); }
  void apply(const MoveOp& op) {
    ASSERT_TRUE(slots_.at(op.to).empty());
    ASSERT_FALSE(slots_.at(op.from).empty());
    slots_.at(op.to).swap(slots_.at(op.from));
  }

  BatcherConfig config_;

 public:
  Batcher batcher;
  std::uint64_t computed = 0;          // rows, each time
  std::size_t cells_there = SIZE_MAX;  // fewer than the configuration has
  std::uint32_t rooms_lacked = 0;      // steps that were not computed therefore
  std::uint64_t now_us = 0;
  std::uint64_t last_step_us = 0;
  std::vector<BatchItem> last_items;
  std::map<SequenceId, std::uint64_t> first_sample_us;
  std::map<SequenceId, TokenUsage> usage;
  std::map<SequenceId, std::uint32_t> vectors;  // of a text to embed, how many were computed

 private:
  std::vector<std::vector<Row>> slots_;
  std::map<SegmentId, std::vector<Row>> segments_;
  std::map<SequenceId, Asked> asked_;
};

inline std::vector<Token> numbered(Token first, std::uint32_t count) {
  std::vector<Token> tokens(count);
  for (std::uint32_t i = 0; i < count; ++i) tokens[i] = first + static_cast<Token>(i);
  return tokens;
}

inline SequenceRequest ask(const std::string& tenant, std::vector<Token> prompt,
                           std::uint32_t tokens_max) {
  SequenceRequest request;
  request.tenant = tenant;
  request.prompt = std::move(prompt);
  request.tokens_max = tokens_max;
  return request;
}

inline SequenceRequest ask_embedding(const std::string& tenant, std::vector<Token> text) {
  SequenceRequest request = ask(tenant, std::move(text), 0);
  request.work = PromptWork::embedding;
  return request;
}

}  // namespace loam::infer

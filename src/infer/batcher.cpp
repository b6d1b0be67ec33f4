// The batcher's round: requests in, steps out, results back.
#include "infer/batcher.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::infer {

Batcher::Batcher(BatcherConfig config, TokenCounters& counters)
    : config_(config),
      counters_(counters),
      tree_(config.cache_bytes_max, config.token_bytes),
      costs_(config.slots),
      slots_(config.slots),
      cells_there_(config.cells) {
  LOAM_ASSERT(config.slots > 0 && config.gap_factor > 1);
  LOAM_ASSERT(config.step_tokens_max >= config.slots);
  LOAM_ASSERT(config.chunk_tokens > 0 && config.chunk_tokens_least > 0);
  LOAM_ASSERT(config.overcommit_permille >= 1000);
}

std::uint32_t Batcher::capacity() const {
  return config_.unified ? config_.cells : config_.cells_per_slot;
}

Result<SequenceId> Batcher::submit(SequenceRequest request) {
  LOAM_ASSERT(!request.prompt.empty() && request.weight > 0);
  LOAM_ASSERT(request.public_tokens <= request.prompt.size());
  const std::uint64_t wanted = request.prompt.size() + std::uint64_t{request.tokens_max};
  const bool embeds = request.work == PromptWork::embedding;
  LOAM_ASSERT(!embeds || request.tokens_max == 0);
  if (embeds && wanted > capacity()) {
    return invalid("the text's " + std::to_string(wanted) + " tokens do not fit a context of " +
                       std::to_string(capacity()),
                   "embed it in parts");
  }
  if (!embeds && request.tokens_max == 0) {
    return invalid("0 tokens are to be generated", "ask for at least one");
  }
  if (wanted > capacity()) {
    return invalid("the prompt's " + std::to_string(request.prompt.size()) + " tokens and " +
                       std::to_string(request.tokens_max) +
                       " to generate do not fit a context of " + std::to_string(capacity()),
                   "shorten the prompt or ask for fewer tokens");
  }
  Sequence sequence;
  sequence.id = SequenceId{next_sequence_++};
  sequence.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
  sequence.tokens = std::move(request.prompt);
  sequence.tokens.reserve(wanted);
  sequence.public_tokens = request.public_tokens;
  sequence.tenant = std::move(request.tenant);
  sequence.service_class = request.service_class;
  sequence.tokens_max = request.tokens_max;
  sequence.meter_prompt = request.meter_prompt;
  sequence.work = request.work;
  counters_.arrive(sequence.tenant, request.weight);
  const SequenceId id = sequence.id;
  sequences_.emplace(id, std::move(sequence));
  return id;
}

std::optional<TokenUsage> Batcher::cancel(SequenceId id, bool keep) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return std::nullopt;
  const TokenUsage usage = found->second.usage;
  release(found->second, keep);
  sequences_.erase(found);
  return usage;
}

// Takes the slot back; `keep`: what was computed stays on the host for those who begin alike.
void Batcher::release(Sequence& sequence, bool keep) {
  if (sequence.phase == Phase::running) {
    if (keep && !sequence.embeds() && config_.share_prefixes &&
        sequence.computed >= config_.prefix_tokens_least) {
      tree_.store(sequence.key(sequence.computed), sequence.slot, pending_);
    }
    pending_.emplace_back(ClearOp{sequence.slot});
    slots_[sequence.slot] = SequenceId{};
  } else if (sequence.pinned != PrefixTree::root) {
    tree_.unpin(sequence.pinned);
  }
  counters_.leave(sequence.tenant);
  cells_there_ = config_.cells;  // to be found out anew, now that memory was given back
}

StepPlan Batcher::plan() {
  StepPlan plan;
  plan.before.swap(pending_);
  admit(plan.before);
  if (config_.unified) relieve(plan);
  compose(plan);
  return plan;
}

// Tokens of prompts that are in work, the first to be served first.
std::vector<Batcher::Sequence*> Batcher::prompts_in_order() {
  std::vector<Sequence*> prompts;
  for (Sequence* sequence : running()) {
    if (!sequence->streams()) prompts.push_back(sequence);
  }
  // By what is promised to what runs, too: a newcomer's counter starts level with the others'.
  const Standings now = standings();
  std::sort(prompts.begin(), prompts.end(), [&](const Sequence* a, const Sequence* b) {
    if (!config_.fair) return a->started < b->started;
    if (a->service_class != b->service_class) return a->service_class > b->service_class;
    const std::uint64_t service_a = now.at(a->tenant).service;
    const std::uint64_t service_b = now.at(b->tenant).service;
    return service_a != service_b ? service_a < service_b : a->started < b->started;
  });
  return prompts;
}

// A newcomer's whole prompt goes without the running streams where that keeps their gaps in bounds:
// its first token then comes after its own work alone. Never twice in a row.
bool Batcher::newcomers_alone(const std::vector<Sequence*>& prompts, std::uint32_t streams) const {
  if (!config_.fair || last_alone_ || streams == 0 || prompts.empty()) return false;
  const Sequence& first = *prompts.front();
  if (first.embeds() || first.generated() > 0 || load_of(first.tenant).running != 1) return false;
  const std::uint32_t budget = costs_.prompt_budget(
      streams, config_.gap_factor, config_.chunk_tokens_least, config_.step_tokens_max);
  return first.left_to_compute() <= std::max(budget, config_.chunk_tokens);
}

void Batcher::compose(StepPlan& plan) {
  const std::vector<Sequence*> prompts = prompts_in_order();
  std::vector<Sequence*> streams;
  for (Sequence* sequence : running()) {
    if (sequence->streams()) streams.push_back(sequence);
  }
  const auto count = static_cast<std::uint32_t>(streams.size());
  const bool alone = newcomers_alone(prompts, count);
  const PromptWork work = prompts.empty() ? PromptWork::answer : prompts.front()->work;
  std::uint32_t budget = config_.chunk_tokens;
  if (alone) {
    budget = prompts.front()->left_to_compute();
  } else if (count > 0) {
    budget = costs_.prompt_budget(count, config_.gap_factor, config_.chunk_tokens_least,
                                  config_.chunk_tokens, work);
  }
  if (!alone) {
    budget = std::min(budget, config_.step_tokens_max - count);
    for (const Sequence* sequence : streams) add_item(plan, *sequence, 1);
  }
  budget = std::min(budget, config_.step_tokens_max);
  for (const Sequence* sequence : prompts) {
    if (budget == 0) break;
    if (sequence->work != work) continue;
    const std::uint32_t tokens = std::min(budget, sequence->left_to_compute());
    add_item(plan, *sequence, tokens);
    budget -= tokens;
  }
  last_alone_ = alone;
  // The library computes neighbouring slots together; a batch out of order would be cut up.
  std::sort(plan.items.begin(), plan.items.end(),
            [](const BatchItem& a, const BatchItem& b) { return a.slot < b.slot; });
}

void Batcher::add_item(StepPlan& plan, const Sequence& sequence, std::uint32_t tokens) const {
  const bool last = tokens == sequence.left_to_compute();
  plan.items.push_back({sequence.id, sequence.slot, sequence.computed, tokens,
                        last && !sequence.embeds(), sequence.embeds()});
}

// The latest start of the lowest class; none where fewer than two run.
Batcher::Sequence* Batcher::waits_best() {
  Sequence* best = nullptr;
  const std::vector<Sequence*> held = running();
  for (Sequence* sequence : held) {
    if (best == nullptr || sequence->service_class < best->service_class ||
        (sequence->service_class == best->service_class && sequence->started > best->started)) {
      best = sequence;
    }
  }
  return held.size() < 2 ? nullptr : best;
}

// Unified memory that was promised more than once: before a step that might not fit, the stream
// that can wait best is swapped out.
void Batcher::relieve(StepPlan& plan) {
  while (Sequence* last = waits_best()) {
    std::uint64_t used = 0;
    std::uint64_t step = 0;
    for (const Sequence* sequence : running()) {
      used += sequence->computed;
      step += std::min(sequence->left_to_compute(), config_.chunk_tokens);
    }
    if (used + std::min<std::uint64_t>(step, config_.step_tokens_max) <= cells_there_) return;
    swap_out(*last, plan.before);
  }
}

bool Batcher::lacked_room(const StepPlan& plan) {
  Sequence* last = config_.unified ? waits_best() : nullptr;
  if (last == nullptr) return false;
  std::uint32_t wanted = 0;
  for (const Sequence* sequence : running()) wanted += sequence->computed;
  for (const BatchItem& item : plan.items) wanted += item.tokens;
  cells_there_ = std::min(cells_there_, std::max(wanted, 1U) - 1);
  swap_out(*last, pending_);
  return true;
}

std::vector<Ended> Batcher::finish(const StepPlan& plan, std::span<const Sampled> samples,
                                   std::uint64_t us) {
  std::uint64_t all = 0;
  for (const BatchItem& item : plan.items) all += item.tokens;
  learn(plan, us);
  std::vector<Ended> ended;
  for (const BatchItem& item : plan.items) {
    Sequence& sequence = sequences_.at(item.sequence);
    account(sequence, item, us * item.tokens / all);
    if (!sequence.embeds() || sequence.left_to_compute() > 0) continue;
    ended.push_back({sequence.id, false, sequence.usage, sequence.preemptions});
    release(sequence, false);
    sequences_.erase(item.sequence);
  }
  for (const Sampled& sample : samples) {
    Sequence& sequence = sequences_.at(sample.sequence);
    LOAM_ASSERT(sequence.left_to_compute() == 0);
    sequence.tokens.push_back(sample.token);
    ++sequence.usage.generated_tokens;
    counters_.charge(sequence.tenant, config_.generated_cost);
    const bool at_limit = sequence.generated() >= sequence.tokens_max;
    if (!sample.end && !at_limit) continue;
    ended.push_back({sequence.id, !sample.end, sequence.usage, sequence.preemptions});
    release(sequence, true);
    sequences_.erase(sample.sequence);
  }
  return ended;
}

void Batcher::learn(const StepPlan& plan, std::uint64_t us) {
  std::uint32_t streams = 0;
  std::uint32_t prompt_tokens = 0;
  PromptWork work = PromptWork::answer;
  for (const BatchItem& item : plan.items) {
    (item.tokens == 1 && !item.vectors ? streams : prompt_tokens) += item.tokens;
    if (item.vectors) work = PromptWork::embedding;
  }
  if (streams + prompt_tokens > 0) costs_.learn(streams, prompt_tokens, us, work);
}

void Batcher::account(Sequence& sequence, const BatchItem& item, std::uint64_t us) {
  LOAM_ASSERT(item.position == sequence.computed);
  const std::uint32_t end = item.position + item.tokens;
  const std::uint32_t anew =
      std::min(end, std::max(sequence.computed_max, item.position)) - item.position;
  sequence.usage.recomputed_tokens += anew;
  const std::uint32_t first_new = item.position + anew;
  if (first_new < sequence.prompt_tokens) {
    const std::uint32_t tokens = std::min(end, sequence.prompt_tokens) - first_new;
    if (sequence.meter_prompt) sequence.usage.prompt_tokens += tokens;
    counters_.charge(sequence.tenant, std::uint64_t{tokens} * config_.prompt_cost);
  }
  sequence.usage.engine_time_us += us;
  sequence.computed = end;
  sequence.computed_max = std::max(sequence.computed_max, end);
}

std::span<const Token> Batcher::tokens(SequenceId sequence) const {
  return sequences_.at(sequence).tokens;
}

const TokenUsage& Batcher::usage(SequenceId sequence) const {
  return sequences_.at(sequence).usage;
}

Batcher::Load Batcher::load() const {
  Load load;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.phase == Phase::waiting) ++load.waiting;
    if (sequence.phase == Phase::swapped) ++load.swapped;
    if (sequence.phase != Phase::running) continue;
    ++load.running;
    load.cells_used += sequence.computed;
    load.cells_promised += sequence.promised();
  }
  const auto held = [](SequenceId id) { return id.valid(); };
  const auto first = std::find_if(slots_.begin(), slots_.end(), held);
  const auto last = std::find_if(slots_.rbegin(), slots_.rend(), held).base();
  if (first < last) {
    const auto span = static_cast<std::uint32_t>(last - first);
    load.fragmentation_permille = (span - load.running) * 1000 / span;
  }
  load.preemptions = preemptions_;
  load.compactions = compactions_;
  return load;
}

Batcher::Load Batcher::load_of(const std::string& tenant) const {
  Load load;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.tenant != tenant) continue;
    if (sequence.phase == Phase::waiting) ++load.waiting;
    if (sequence.phase == Phase::swapped) ++load.swapped;
    if (sequence.phase == Phase::running) ++load.running;
  }
  return load;
}

}  // namespace loam::infer

#include "app/engine/instance.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/assert.hpp"

namespace loam::serve {

namespace {

using infer::SequenceId;

constexpr std::int32_t no_cells = 1;  // what llama_decode gives where the batch found no room

std::uint64_t now_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

void add_token(llama_batch& batch, llama_token token, std::uint32_t position, std::uint32_t slot,
               bool logits) {
  const int i = batch.n_tokens++;
  batch.token[i] = token;
  batch.pos[i] = static_cast<llama_pos>(position);
  batch.n_seq_id[i] = 1;
  batch.seq_id[i][0] = static_cast<llama_seq_id>(slot);
  batch.logits[i] = logits ? 1 : 0;
}

Error no_context(const std::string& why) {
  return Error{ErrorKind::exhausted, "no context can be made on the model: " + why,
               "give the instance more memory, or fewer slots or cells"};
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::make(const Model& model, const InstanceOptions& options,
                                                 const std::vector<infer::AdapterUse>& adapters,
                                                 infer::TokenCounters& counters) {
  infer::BatcherConfig config = options.batching;
  llama_context_params params = llama_context_default_params();
  params.n_seq_max = config.slots;
  params.n_ctx = config.unified ? config.cells : config.cells_per_slot * config.slots;
  params.n_batch = config.step_tokens_max;
  params.n_ubatch = config.step_tokens_max;
  // A row for each stream and for each token of a text to embed.
  params.n_outputs_max = std::min(config.slots + config.chunk_tokens, config.step_tokens_max);
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  params.kv_unified = config.unified;
  // Fused attention also keeps values by token, which is how segments are cut.
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  // Texts to embed come in pieces: each token's vector is taken, and the mean made of them here.
  params.pooling_type = LLAMA_POOLING_TYPE_NONE;
  params.no_perf = true;
  std::unique_ptr<Instance> instance(new Instance);
  last_complaint();
  instance->context_.reset(llama_init_from_model(model.handle(), params));
  if (!instance->context_) return no_context(last_complaint());
  llama_context* context = instance->context();
  // The library rounds up; what it gives is used. Apart, each slot has its own part.
  if (config.unified) {
    config.cells = llama_n_ctx(context);
  } else {
    config.cells_per_slot = llama_n_ctx_seq(context);
    config.cells = config.cells_per_slot * config.slots;
  }
  if (!adapters.empty()) {
    std::vector<llama_adapter_lora*> handles;
    std::vector<float> scales;
    for (const infer::AdapterUse& use : adapters) {
      handles.push_back(model.adapter(use.name));
      scales.push_back(use.scale);
      LOAM_ASSERT(handles.back() != nullptr);
    }
    if (llama_set_adapters_lora(context, handles.data(), handles.size(), scales.data()) != 0) {
      return no_context("the adapters do not apply: " + last_complaint());
    }
  }
  instance->store_ = std::make_unique<KvStore>(context);
  LOAM_TRY(token_bytes, instance->warm_up());
  if (token_bytes == 0) {
    // The state's layout is another one: nothing is kept on the host, preempted streams recompute.
    config.share_prefixes = false;
    config.cache_bytes_max = 0;
  }
  config.token_bytes = std::max(token_bytes, 1U);
  instance->batcher_ = std::make_unique<infer::Batcher>(config, counters);
  instance->batch_ = llama_batch_init(static_cast<std::int32_t>(config.step_tokens_max), 0, 1);
  instance->batch_free_.batch = &instance->batch_;
  return instance;
}

// Some tokens through slot 0, one a step: to touch the weights once, to see a state's layout and
// whether the library does what it was asked to. A state of which each value lies beside its token
// is there with fused attention only. Gives a token's bytes of key-value memory, or 0.
Result<std::uint32_t> Instance::warm_up() {
  constexpr std::uint32_t steps = 3;
  llama_batch one = llama_batch_init(1, 0, 1);
  int failed = 0;
  for (std::uint32_t i = 0; i < steps && failed == 0; ++i) {
    one.n_tokens = 0;
    add_token(one, 0, i, 0, true);
    failed = llama_decode(context(), one);
  }
  llama_batch_free(one);
  if (failed != 0) return no_context("its first step failed: " + last_complaint());
  compute_.graph_reuse = llama_perf_context(context()).n_reused > 0;
  const std::uint32_t bytes = store_->probe();
  compute_.fused_attention = bytes > 0;
  llama_memory_clear(llama_get_memory(context()), true);
  llama_perf_context_reset(context());
  return bytes;
}

// Those whose rows could not be put in place.
std::vector<SequenceId> Instance::carry_out(const infer::StepPlan& plan) {
  std::vector<std::uint32_t> broken_slots;
  llama_memory_t memory = llama_get_memory(context());
  for (const infer::MemoryOp& op : plan.before) {
    if (const auto* capture = std::get_if<infer::CaptureOp>(&op)) {
      // A segment that is missing is noticed by whoever wants it.
      (void)store_->capture(*capture).ok();
    } else if (const auto* split = std::get_if<infer::SplitOp>(&op)) {
      store_->split(*split);
    } else if (const auto* drop = std::get_if<infer::DropOp>(&op)) {
      store_->drop(*drop);
    } else if (const auto* restore = std::get_if<infer::RestoreOp>(&op)) {
      if (!store_->restore(*restore).ok()) broken_slots.push_back(restore->slot);
    } else if (const auto* clear = std::get_if<infer::ClearOp>(&op)) {
      llama_memory_seq_rm(memory, static_cast<llama_seq_id>(clear->slot), -1, -1);
    } else if (const auto* move = std::get_if<infer::MoveOp>(&op)) {
      if (!store_->move(*move).ok()) broken_slots.push_back(move->to);
    }
  }
  std::vector<SequenceId> broken;
  for (const infer::BatchItem& item : plan.items) {
    if (std::find(broken_slots.begin(), broken_slots.end(), item.slot) != broken_slots.end()) {
      broken.push_back(item.sequence);
    }
  }
  return broken;
}

std::int32_t Instance::decode(const infer::StepPlan& plan) {
  batch_.n_tokens = 0;
  bool vectors = false;
  for (const infer::BatchItem& item : plan.items) {
    const auto tokens = batcher_->tokens(item.sequence);
    vectors = vectors || item.vectors;
    for (std::uint32_t i = 0; i < item.tokens; ++i) {
      const std::uint32_t position = item.position + i;
      add_token(batch_, tokens[position], position, item.slot,
                item.vectors || (item.sample && i + 1 == item.tokens));
    }
  }
  // Then every token of the batch has to be an output: beside texts it holds streams only.
  llama_set_embeddings(context(), vectors);
  return llama_decode(context(), batch_);
}

void Instance::give_up(SequenceId sequence, Step& step) {
  step.broken.push_back(sequence);
  step.broken_usage.push_back(batcher_->cancel(sequence, false).value_or(TokenUsage{}));
}

// The step was not computed. Where it only lacked cells, which leaves all as it was, a stream is
// put aside and the step repeated. Else nothing of it can be trusted: its sequences end, and the
// others are not disturbed.
void Instance::lack_room(const infer::StepPlan& plan, const std::vector<SequenceId>& broken,
                         bool is_full, Step& step) {
  batcher_->finish({}, {}, 0);
  for (const SequenceId sequence : broken) give_up(sequence, step);
  step.again = is_full && batcher_->lacked_room(plan);
  if (step.again) return;
  for (const infer::BatchItem& item : plan.items) give_up(item.sequence, step);
}

Instance::Step Instance::step(const Sample& sample, const TakeVector& take) {
  Step out;
  infer::StepPlan plan = batcher_->plan();
  const std::vector<SequenceId> broken = carry_out(plan);
  std::erase_if(plan.items, [&](const infer::BatchItem& item) {
    return std::find(broken.begin(), broken.end(), item.sequence) != broken.end();
  });
  const std::uint64_t start = now_us();
  const std::int32_t fault = plan.items.empty() ? 0 : decode(plan);
  out.us = now_us() - start;
  if (fault != 0) {
    lack_room(plan, broken, fault == no_cells, out);
    return out;
  }
  std::vector<infer::Sampled> samples;
  int row = 0;
  for (const infer::BatchItem& item : plan.items) {
    row += static_cast<int>(item.tokens);
    out.tokens += item.tokens;
    out.computed.push_back(item.sequence);
    if (item.sample)
      samples.push_back(sample(item.sequence, llama_get_logits_ith(context(), row - 1)));
    for (std::uint32_t i = 0; item.vectors && i < item.tokens; ++i) {
      const int at = row - static_cast<int>(item.tokens - i);
      take(item.sequence, item.position + i, llama_get_embeddings_ith(context(), at));
    }
  }
  out.ended = batcher_->finish(plan, samples, out.us);
  for (const SequenceId sequence : broken) give_up(sequence, out);
  return out;
}

}  // namespace loam::serve

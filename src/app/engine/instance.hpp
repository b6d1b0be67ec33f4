// One context on a loaded model, with the batcher that fills it: carries out its plans. Instances
// of the same model share the weights; each set of adapters has its own. Shell; one thread at a
// time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "app/engine/kv_store.hpp"
#include "app/engine/model.hpp"
#include "infer/batcher.hpp"

namespace loam::serve {

struct InstanceOptions {
  infer::BatcherConfig batching;  // token_bytes is filled in
  int threads = 1;
};

class Instance {
 public:
  static Result<std::unique_ptr<Instance>> make(const Model& model, const InstanceOptions& options,
                                                const std::vector<infer::AdapterUse>& adapters,
                                                infer::TokenCounters& counters);

  infer::Batcher& batcher() { return *batcher_; }
  const infer::Batcher& batcher() const { return *batcher_; }
  llama_context* context() { return context_.get(); }

  // What was seen of the library when the context was made.
  struct Compute {
    bool fused_attention = false;  // false as well where it cannot be told
    bool graph_reuse = false;      // a step like the one before is not planned again
  };
  const Compute& compute() const { return compute_; }

  // Called for each sequence whose next token is due, with its logits; gives what was sampled.
  using Sample = std::function<infer::Sampled(infer::SequenceId, const float* logits)>;
  // Called for each token of a text to embed, by rising position; a token whose vector was given
  // before may come again after its sequence was put aside.
  using TakeVector =
      std::function<void(infer::SequenceId, std::uint32_t position, const float* vector)>;
  struct Step {
    std::vector<infer::Ended> ended;
    std::vector<infer::SequenceId>
        broken;  // not computed; over for the batcher, usage lost on them
    std::vector<TokenUsage> broken_usage;
    std::vector<infer::SequenceId> computed;
    std::uint32_t tokens = 0;
    std::uint64_t us = 0;  // the model's part
    bool again = false;    // it lacked memory: a stream was put aside, and the next step repeats it
  };
  // One round of the batcher.
  Step step(const Sample& sample, const TakeVector& take);

 private:
  Instance() = default;
  std::vector<infer::SequenceId> carry_out(const infer::StepPlan& plan);
  std::int32_t decode(const infer::StepPlan& plan);
  void lack_room(const infer::StepPlan& plan, const std::vector<infer::SequenceId>& broken,
                 bool is_full, Step& step);
  Result<std::uint32_t> warm_up();
  void give_up(infer::SequenceId sequence, Step& step);

  ContextHandle context_;
  std::unique_ptr<KvStore> store_;
  std::unique_ptr<infer::Batcher> batcher_;
  Compute compute_;
  llama_batch batch_{};
  struct BatchFree {
    llama_batch* batch = nullptr;
    ~BatchFree() {
      if (batch != nullptr) llama_batch_free(*batch);
    }
  } batch_free_;
};

}  // namespace loam::serve

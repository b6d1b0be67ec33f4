// Picks the next token of one answer from the model's logits, by the request's options. Shell; one
// thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "app/engine/model.hpp"
#include "infer/wire.hpp"

namespace loam::serve {

class Sampler {
 public:
  // Grammars that cannot be read and biases on unknown tokens are errors. `choice` sets the answers
  // to one seed apart.
  static Result<Sampler> make(const Model& model, const infer::Sampling& options,
                              std::uint64_t seed);

  struct Pick {
    infer::Token token = 0;
    bool end = false;  // the model's end token, or a grammar that is complete
    std::optional<infer::wire::TokenLogprob> logprob;
  };
  // `logits` has one entry a token of the vocabulary.
  Result<Pick> pick(const float* logits);

 private:
  Sampler(const Model& model, const infer::Sampling& options) : model_(&model), options_(options) {}
  infer::Token likeliest(const float* logits) const;
  std::optional<infer::Token> by_chain(const float* logits);
  void fill(const float* logits);
  infer::wire::TokenLogprob logprob_of(const float* logits, infer::Token token) const;

  const Model* model_;
  infer::Sampling options_;
  SamplerHandle adjust_;   // biases and penalties; may be absent
  SamplerHandle grammar_;  // may be absent
  SamplerHandle choose_;   // absent: the likeliest
  std::vector<llama_token_data> candidates_;
};

}  // namespace loam::serve

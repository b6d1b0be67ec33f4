#include "app/engine/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "infer/json_grammar.hpp"

namespace loam::serve {

namespace {

using infer::Grammar;
using infer::Token;

constexpr std::int32_t penalty_window_tokens = 4096;  // of the answer so far

SamplerHandle chain() {
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  params.no_perf = true;
  return SamplerHandle(llama_sampler_chain_init(params));
}

bool has_penalties(const infer::Sampling& options) {
  return options.frequency_penalty != 0 || options.presence_penalty != 0 ||
         options.repeat_penalty != 1;
}

Result<std::string> grammar_text(const Grammar& grammar) {
  if (grammar.kind == Grammar::Kind::json_schema) return infer::grammar_of_schema(grammar.text);
  if (grammar.kind == Grammar::Kind::json_object) return infer::grammar_of_any_object();
  return grammar.text;
}

}  // namespace

Result<Sampler> Sampler::make(const Model& model, const infer::Sampling& options,
                              std::uint64_t seed) {
  Sampler sampler(model, options);
  std::vector<llama_logit_bias> biases;
  for (const auto& [token, bias] : options.logit_bias) {
    if (token >= model.vocabulary_size()) {
      return invalid("logit_bias names token " + std::to_string(token) + " of a vocabulary of " +
                         std::to_string(model.vocabulary_size()),
                     "use this model's tokens");
    }
    biases.push_back({token, bias});
  }
  if (!biases.empty() || has_penalties(options)) {
    sampler.adjust_ = chain();
    if (!biases.empty()) {
      llama_sampler_chain_add(
          sampler.adjust_.get(),
          llama_sampler_init_logit_bias(model.vocabulary_size(),
                                        static_cast<std::int32_t>(biases.size()), biases.data()));
    }
    if (has_penalties(options)) {
      llama_sampler_chain_add(
          sampler.adjust_.get(),
          llama_sampler_init_penalties(model.vocabulary_size(), penalty_window_tokens,
                                       options.repeat_penalty, options.frequency_penalty,
                                       options.presence_penalty));
    }
  }
  if (options.grammar.kind != Grammar::Kind::none) {
    LOAM_TRY(text, grammar_text(options.grammar));
    sampler.grammar_.reset(llama_sampler_init_grammar(model.vocabulary(), text.c_str(), "root"));
    if (!sampler.grammar_) {
      return invalid("the grammar cannot be read: " + last_complaint(),
                     "write it in GBNF, with a rule 'root'");
    }
  }
  if (options.temperature > 0) {
    sampler.choose_ = chain();
    llama_sampler* into = sampler.choose_.get();
    if (options.top_k > 0) {
      llama_sampler_chain_add(
          into, llama_sampler_init_top_k(static_cast<std::int32_t>(
                    std::min(options.top_k, static_cast<std::uint32_t>(model.vocabulary_size())))));
    }
    if (options.top_p < 1)
      llama_sampler_chain_add(into, llama_sampler_init_top_p(options.top_p, 1));
    if (options.min_p > 0)
      llama_sampler_chain_add(into, llama_sampler_init_min_p(options.min_p, 1));
    llama_sampler_chain_add(into, llama_sampler_init_temp(options.temperature));
    llama_sampler_chain_add(
        into, llama_sampler_init_dist(static_cast<std::uint32_t>(seed ^ (seed >> 32U))));
  }
  return sampler;
}

Token Sampler::likeliest(const float* logits) const {
  return static_cast<Token>(std::max_element(logits, logits + model_->vocabulary_size()) - logits);
}

void Sampler::fill(const float* logits) {
  candidates_.resize(static_cast<std::size_t>(model_->vocabulary_size()));
  for (Token token = 0; token < model_->vocabulary_size(); ++token) {
    candidates_[static_cast<std::size_t>(token)] = {token, logits[token], 0.0F};
  }
}

// The chain first and the grammar only on its pick: most picks fit, and a grammar over the whole
// vocabulary is slow. Where it does not fit, once more with the grammar before the chain.
std::optional<Token> Sampler::by_chain(const float* logits) {
  for (const bool constrained : {false, true}) {
    fill(logits);
    llama_token_data_array all{candidates_.data(), candidates_.size(), -1, false};
    if (adjust_) llama_sampler_apply(adjust_.get(), &all);
    if (constrained) llama_sampler_apply(grammar_.get(), &all);
    Token token = 0;
    if (choose_) {
      llama_sampler_apply(choose_.get(), &all);
      if (all.selected < 0) return std::nullopt;
      token = all.data[all.selected].id;
    } else {
      token = std::max_element(all.data, all.data + all.size, [](const auto& a, const auto& b) {
                return a.logit < b.logit;
              })->id;
    }
    if (!grammar_) return token;
    llama_token_data one{token, 1.0F, 0.0F};
    llama_token_data_array single{&one, 1, -1, false};
    llama_sampler_apply(grammar_.get(), &single);
    if (std::isfinite(one.logit)) return token;
  }
  return std::nullopt;
}

infer::wire::TokenLogprob Sampler::logprob_of(const float* logits, Token token) const {
  const std::int32_t size = model_->vocabulary_size();
  const float highest = *std::max_element(logits, logits + size);
  double sum = 0;
  for (std::int32_t i = 0; i < size; ++i) sum += std::exp(static_cast<double>(logits[i] - highest));
  const double total = static_cast<double>(highest) + std::log(sum);
  const auto entry = [&](Token which) {
    return infer::wire::Alternative{which, model_->piece(which),
                                    static_cast<float>(static_cast<double>(logits[which]) - total)};
  };
  infer::wire::TokenLogprob out{entry(token), {}};
  const std::size_t top =
      std::min<std::size_t>(options_.top_logprobs, static_cast<std::size_t>(size));
  if (top > 0) {
    std::vector<Token> order(static_cast<std::size_t>(size));
    for (std::int32_t i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = i;
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                      [&](Token a, Token b) { return logits[a] > logits[b]; });
    for (std::size_t i = 0; i < top; ++i) out.top.push_back(entry(order[i]));
  }
  return out;
}

Result<Sampler::Pick> Sampler::pick(const float* logits) {
  Pick out;
  try {
    if (!adjust_ && !grammar_ && !choose_) {
      out.token = likeliest(logits);
    } else {
      const auto token = by_chain(logits);
      if (!token) {
        return Error{ErrorKind::internal, "the grammar allows no token here",
                     "try another grammar"};
      }
      out.token = *token;
      if (adjust_) llama_sampler_accept(adjust_.get(), out.token);
      if (grammar_) llama_sampler_accept(grammar_.get(), out.token);
      if (choose_) llama_sampler_accept(choose_.get(), out.token);
    }
  } catch (const std::exception& fault) {  // the library's grammar throws
    return Error{ErrorKind::internal, std::string("sampling failed: ") + fault.what(),
                 "try another grammar"};
  }
  // A grammar lets the end through where nothing may follow: to ignore it would leave no token.
  out.end = (!options_.ignore_end || grammar_) && model_->ends(out.token);
  if (options_.logprobs) out.logprob = logprob_of(logits, out.token);
  return out;
}

}  // namespace loam::serve

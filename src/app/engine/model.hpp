// A model's weights, loaded once, with its vocabulary, chat template and adapters: RAII around
// libllama's objects. Shell. Constant once loaded: several threads may read it at once.
#pragma once

#include <llama.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "infer/request.hpp"

namespace loam::serve {

struct Free {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using ModelHandle = std::unique_ptr<llama_model, Free>;
using ContextHandle = std::unique_ptr<llama_context, Free>;
using SamplerHandle = std::unique_ptr<llama_sampler, Free>;

// Loads the library's processor-specific parts, once a process; afterwards what the library says
// at warning level and above goes to `report`, the latest line also into error messages.
Result<void> start_library();
// The library's latest complaint in this thread since the last call, on one line; may be empty.
std::string last_complaint();

struct TokenizedPrompt {
  std::vector<infer::Token> tokens;
  std::uint32_t public_tokens = 0;
};

class Model {
 public:
  struct Options {
    std::string path;                             // a GGUF file
    std::map<std::string, std::string> adapters;  // LoRA adapters: name, GGUF file
    std::uint64_t memory_bytes_max = 0;           // weights beyond it are refused; 0: no bound
  };
  // Corrupt and truncated files, unknown architectures and too large ones are errors.
  static Result<std::unique_ptr<Model>> load(const Options& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  llama_model* handle() const { return model_.get(); }
  const llama_vocab* vocabulary() const { return vocabulary_; }
  std::int32_t vocabulary_size() const { return vocabulary_size_; }
  const std::string& chat_template() const { return chat_template_; }  // empty: none usable
  std::string description() const;
  std::string file_type() const;
  llama_adapter_lora* adapter(const std::string& name) const;  // nullptr: unknown
  std::vector<std::string> adapter_names() const;

  // Token ids outside the vocabulary, messages without a chat template and, before they are looked
  // at, texts that cannot be of `tokens_max` tokens or fewer are errors. 0: no bound. Cost: some
  // third of a millisecond a kilobyte.
  Result<TokenizedPrompt> tokenize(const infer::Prompt& prompt, std::uint32_t tokens_max = 0) const;
  // What of that can be judged from the text's length alone. Cost: none.
  Result<void> check_length(std::string_view text, std::uint32_t tokens_max) const;
  // The bytes a token stands for; the model's control tokens stand for none.
  const std::string& piece(infer::Token token) const;
  bool ends(infer::Token token) const { return llama_vocab_is_eog(vocabulary_, token); }

 private:
  Model() = default;
  std::vector<infer::Token> tokens_of(std::string_view text, bool at_start) const;
  Result<std::string> rendered(const std::vector<infer::ChatMessage>& messages, std::size_t count,
                               bool answer_follows) const;

  ModelHandle model_;
  const llama_vocab* vocabulary_ = nullptr;
  std::int32_t vocabulary_size_ = 0;
  std::string chat_template_;
  std::vector<std::string> pieces_;
  std::size_t token_bytes_max_ = 0;  // of a text, that one token stands for; 0: any number
  std::map<std::string, llama_adapter_lora*> adapters_;  // freed before the model
};

}  // namespace loam::serve

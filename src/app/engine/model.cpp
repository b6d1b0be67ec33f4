#include "app/engine/model.hpp"

#include <ggml-backend.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace loam::serve {

namespace {

std::string& complaint() {
  thread_local std::string text;
  return text;
}

void take_line(ggml_log_level level, const char* text, void*) {
  if (level < GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_CONT) return;
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  if (line.empty()) return;
  if (level == GGML_LOG_LEVEL_ERROR) complaint() = line;
}

Result<void> check_file(const std::string& path, std::uint64_t bytes_max) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{ErrorKind::not_found, "there is no model file '" + path + "'", "name a GGUF file"};
  }
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  if (bytes_max > 0 && bytes > bytes_max) {
    return Error{ErrorKind::exhausted,
                 "the model '" + path + "' takes " + std::to_string(bytes >> 20U) +
                     " MiB and the instance has " + std::to_string(bytes_max >> 20U) + " MiB",
                 "give it more memory, or import the model at a lower precision"};
  }
  return {};
}

// The most bytes of a text that one token stands for, or 0 where that cannot be told: some
// vocabularies drop or replace what they do not know, and some control tokens swallow white space.
std::size_t longest_token_bytes(const llama_vocab* vocabulary, std::int32_t size) {
  const auto type = llama_vocab_type(vocabulary);
  if (type != LLAMA_VOCAB_TYPE_BPE && type != LLAMA_VOCAB_TYPE_SPM) return 0;
  std::size_t longest = 0;
  std::string buffer(256, '\0');
  for (llama_token token = 0; token < size; ++token) {
    const int attributes = llama_vocab_get_attr(vocabulary, token);
    if ((attributes & (LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP)) != 0) return 0;
    const int bytes = llama_token_to_piece(vocabulary, token, buffer.data(),
                                           static_cast<std::int32_t>(buffer.size()), 0, true);
    longest = std::max(longest, static_cast<std::size_t>(std::abs(bytes)));
  }
  return longest;
}

}  // namespace

Result<void> start_library() {
  static bool started = false;
  if (started) return {};
  llama_log_set(take_line, nullptr);
  ggml_backend_load_all_from_path(LOAM_LLAMA_BACKENDS);
  llama_backend_init();
  if (ggml_backend_dev_count() == 0) {
    return Error{ErrorKind::unavailable, "the model library found no processor it can use",
                 "its parts should lie in " LOAM_LLAMA_BACKENDS};
  }
  started = true;
  return {};
}

std::string last_complaint() {
  return std::exchange(complaint(), {});
}

Result<std::unique_ptr<Model>> Model::load(const Options& options) {
  LOAM_CHECK(start_library());
  LOAM_CHECK(check_file(options.path, options.memory_bytes_max));
  last_complaint();
  llama_model_params params = llama_model_default_params();
  params.load_mode =
      LLAMA_LOAD_MODE_MMAP;  // read-only, so that processes on a host share the pages
  std::unique_ptr<Model> model(new Model);
  model->model_.reset(llama_model_load_from_file(options.path.c_str(), params));
  if (!model->model_) {
    return Error{
        ErrorKind::corrupt,
        "the model '" + options.path + "' cannot be loaded: " + last_complaint(),
        "check that it is a whole GGUF file of an architecture that version " LOAM_LLAMA_VERSION
        " of the library knows"};
  }
  model->vocabulary_ = llama_model_get_vocab(model->handle());
  model->vocabulary_size_ = llama_vocab_n_tokens(model->vocabulary_);
  model->pieces_.resize(static_cast<std::size_t>(model->vocabulary_size_));
  for (llama_token token = 0; token < model->vocabulary_size_; ++token) {
    char buffer[256];
    const int size =
        llama_token_to_piece(model->vocabulary_, token, buffer, sizeof buffer, 0, false);
    if (size > 0)
      model->pieces_[static_cast<std::size_t>(token)].assign(buffer,
                                                             static_cast<std::size_t>(size));
  }
  model->token_bytes_max_ = longest_token_bytes(model->vocabulary_, model->vocabulary_size_);
  if (const char* chat = llama_model_chat_template(model->handle(), nullptr)) {
    model->chat_template_ = chat;
    // A template that the library does not recognise is as good as none.
    if (!model->rendered({{"user", "x"}}, 1, true)) model->chat_template_.clear();
  }
  for (const auto& [name, path] : options.adapters) {
    LOAM_CHECK(check_file(path, 0));
    llama_adapter_lora* adapter = llama_adapter_lora_init(model->handle(), path.c_str());
    if (adapter == nullptr) {
      return Error{ErrorKind::corrupt,
                   "the adapter '" + path + "' cannot be loaded: " + last_complaint(),
                   "check that it was made for this model"};
    }
    model->adapters_.emplace(name, adapter);
  }
  return model;
}

Model::~Model() = default;  // the library frees a model's adapters with it

std::string Model::description() const {
  char text[256];
  llama_model_desc(handle(), text, sizeof text);
  return text;
}

std::string Model::file_type() const {
  return llama_ftype_name(llama_model_ftype(handle()));
}

llama_adapter_lora* Model::adapter(const std::string& name) const {
  const auto found = adapters_.find(name);
  return found == adapters_.end() ? nullptr : found->second;
}

std::vector<std::string> Model::adapter_names() const {
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters_) names.push_back(name);
  return names;
}

const std::string& Model::piece(infer::Token token) const {
  return pieces_.at(static_cast<std::size_t>(token));
}

std::vector<infer::Token> Model::tokens_of(std::string_view text, bool at_start) const {
  std::vector<infer::Token> tokens(text.size() + 8);
  const auto size = static_cast<std::int32_t>(text.size());
  int count = llama_tokenize(vocabulary_, text.data(), size, tokens.data(),
                             static_cast<std::int32_t>(tokens.size()), at_start, true);
  if (count < 0) {
    tokens.resize(static_cast<std::size_t>(-count));
    count = llama_tokenize(vocabulary_, text.data(), size, tokens.data(), -count, at_start, true);
  }
  tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  return tokens;
}

Result<std::string> Model::rendered(const std::vector<infer::ChatMessage>& messages,
                                    std::size_t count, bool answer_follows) const {
  std::vector<llama_chat_message> chat;
  std::size_t bytes = 256;
  for (std::size_t i = 0; i < count; ++i) {
    chat.push_back({messages[i].role.c_str(), messages[i].content.c_str()});
    bytes += messages[i].role.size() + 2 * messages[i].content.size() + 64;
  }
  std::string text(bytes, '\0');
  int size =
      llama_chat_apply_template(chat_template_.c_str(), chat.data(), chat.size(), answer_follows,
                                text.data(), static_cast<std::int32_t>(text.size()));
  if (size > static_cast<int>(text.size())) {
    text.resize(static_cast<std::size_t>(size));
    size =
        llama_chat_apply_template(chat_template_.c_str(), chat.data(), chat.size(), answer_follows,
                                  text.data(), static_cast<std::int32_t>(text.size()));
  }
  if (size < 0) {
    return Error{ErrorKind::unsupported, "the model's chat template is not known to the library",
                 "send the prompt as text"};
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Result<void> Model::check_length(std::string_view text, std::uint32_t tokens_max) const {
  if (tokens_max == 0 || token_bytes_max_ == 0) return {};
  if (text.size() <= std::uint64_t{tokens_max} * token_bytes_max_) return {};
  return invalid(
      "the prompt's " + std::to_string(text.size()) + " bytes do not fit a context of " +
          std::to_string(tokens_max) + " tokens",
      "shorten it; a token stands for at most " + std::to_string(token_bytes_max_) + " bytes");
}

Result<TokenizedPrompt> Model::tokenize(const infer::Prompt& prompt,
                                        std::uint32_t tokens_max) const {
  TokenizedPrompt out;
  if (prompt.kind == infer::Prompt::Kind::tokens) {
    for (const infer::Token token : prompt.tokens) {
      if (token < 0 || token >= vocabulary_size_) {
        return invalid("token " + std::to_string(token) + " is not in the model's vocabulary of " +
                           std::to_string(vocabulary_size_),
                       "tokenize with this model");
      }
    }
    return TokenizedPrompt{prompt.tokens, prompt.public_extent};
  }
  std::string text = prompt.text;
  std::string open = text.substr(0, prompt.public_extent);
  if (prompt.kind == infer::Prompt::Kind::messages) {
    if (chat_template_.empty()) {
      return Error{ErrorKind::unsupported, "the model has no chat template that can be used",
                   "send the prompt as text"};
    }
    LOAM_TRY(whole, rendered(prompt.messages, prompt.messages.size(), true));
    text = std::move(whole);
    open.clear();
    if (prompt.public_extent > 0) {
      LOAM_TRY(beginning, rendered(prompt.messages, prompt.public_extent, false));
      // A template may write the beginning otherwise when more follows; then nothing is public.
      if (text.starts_with(beginning)) open = std::move(beginning);
    }
  }
  LOAM_CHECK(check_length(text, tokens_max));
  // The public part is cut off first, so that its tokens do not depend on what follows.
  if (!open.empty()) out.tokens = tokens_of(open, true);
  out.public_tokens = static_cast<std::uint32_t>(out.tokens.size());
  const auto rest = tokens_of(std::string_view(text).substr(open.size()), open.empty());
  out.tokens.insert(out.tokens.end(), rest.begin(), rest.end());
  if (out.tokens.empty()) return invalid("the prompt gives no tokens", "send some text");
  return out;
}

}  // namespace loam::serve

#include "app/engine/make_model.hpp"

#include <ggml.h>
#include <gguf.h>

#include <cmath>
#include <memory>
#include <vector>

#include "app/engine/model.hpp"
#include "base/random.hpp"

namespace loam::serve {

namespace {

struct FreeGguf {
  void operator()(gguf_context* file) const { gguf_free(file); }
};
struct FreeTensors {
  void operator()(ggml_context* tensors) const { ggml_free(tensors); }
};
using GgufHandle = std::unique_ptr<gguf_context, FreeGguf>;
using TensorsHandle = std::unique_ptr<ggml_context, FreeTensors>;

// Nearly normal, of variance 1: the sum of four uniform numbers.
float bell(Random& random) {
  std::uint64_t bits = random.next();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<float>(bits & 0xffffU) / 65536.0F;
    bits >>= 16U;
  }
  return (sum - 2.0F) * 1.7320508F;
}

// Adds tensors of a model to a file, filling them with seeded numbers.
class Builder {
 public:
  Builder(ggml_context* tensors, gguf_context* file, bool half, std::uint64_t seed)
      : tensors_(tensors), file_(file), half_(half), random_(seed) {}

  // `deviation` of the weights; columns first, as ggml counts.
  void matrix(const std::string& name, std::int64_t columns, std::int64_t rows, float deviation) {
    ggml_tensor* tensor =
        ggml_new_tensor_2d(tensors_, half_ ? GGML_TYPE_F16 : GGML_TYPE_F32, columns, rows);
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (float& value : row) value = bell(random_) * deviation;
      if (half_) {
        ggml_fp32_to_fp16_row(row.data(), static_cast<ggml_fp16_t*>(tensor->data) + r * columns,
                              columns);
      } else {
        std::copy(row.begin(), row.end(), static_cast<float*>(tensor->data) + r * columns);
      }
    }
    add(tensor, name);
  }
  void norm(const std::string& name, std::int64_t size) {
    ggml_tensor* tensor = ggml_new_tensor_1d(tensors_, GGML_TYPE_F32, size);
    std::fill_n(static_cast<float*>(tensor->data), size, 1.0F);
    add(tensor, name);
  }

 private:
  void add(ggml_tensor* tensor, const std::string& name) {
    ggml_set_name(tensor, name.c_str());
    gguf_add_tensor(file_, tensor);
  }

  ggml_context* tensors_;
  gguf_context* file_;
  bool half_;
  Random random_;
};

void describe(gguf_context* file, const ModelShape& shape, std::uint32_t vocabulary) {
  gguf_set_val_str(file, "general.architecture", "llama");
  gguf_set_val_str(file, "general.name", "generated");
  gguf_set_val_u32(file, "general.file_type",
                   shape.half ? LLAMA_FTYPE_MOSTLY_F16 : LLAMA_FTYPE_ALL_F32);
  gguf_set_val_u32(file, "llama.vocab_size", vocabulary);
  gguf_set_val_u32(file, "llama.context_length", shape.context);
  gguf_set_val_u32(file, "llama.embedding_length", shape.embedding);
  gguf_set_val_u32(file, "llama.block_count", shape.layers);
  gguf_set_val_u32(file, "llama.feed_forward_length", shape.feed_forward);
  gguf_set_val_u32(file, "llama.attention.head_count", shape.heads);
  gguf_set_val_u32(file, "llama.attention.head_count_kv", shape.kv_heads);
  gguf_set_val_u32(file, "llama.rope.dimension_count", shape.embedding / shape.heads);
  gguf_set_val_f32(file, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
  gguf_set_val_f32(file, "llama.rope.freq_base", 10'000.0F);
  // The library knows this template by its marks.
  gguf_set_val_str(file, "tokenizer.chat_template",
                   "{% for message in messages %}<|im_start|>{{ message.role }}\n"
                   "{{ message.content }}<|im_end|>\n{% endfor %}"
                   "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

// GPT-2's tokens are the 256 bytes, then one for each merge, then the end of a text: a beginning
// of the merges is a vocabulary too.
void cut_vocabulary(const gguf_context* from, gguf_context* to, std::uint32_t words) {
  const auto cut = [&](const char* name, std::uint32_t count, const char* last) {
    const std::int64_t key = gguf_find_key(from, name);
    std::vector<const char*> entries;
    for (std::uint32_t i = 0; i < count; ++i) entries.push_back(gguf_get_arr_str(from, key, i));
    if (last != nullptr) entries.push_back(last);
    gguf_set_arr_str(to, name, entries.data(), entries.size());
  };
  cut("tokenizer.ggml.tokens", words - 1, "<|endoftext|>");
  cut("tokenizer.ggml.merges", words - 257, nullptr);
  std::vector<std::int32_t> kinds(words, 1);  // normal tokens
  kinds.back() = 3;                           // a control token
  gguf_set_arr_data(to, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, kinds.data(), kinds.size());
  for (const char* name : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) {
    gguf_set_val_u32(to, name, words - 1);
  }
  gguf_remove_key(to, "tokenizer.ggml.unknown_token_id");
}

std::uint64_t parameters_of(const ModelShape& shape, std::uint64_t vocabulary) {
  const std::uint64_t e = shape.embedding;
  const std::uint64_t kv = e / shape.heads * shape.kv_heads;
  return vocabulary * e +
         shape.layers * (2 * e * e + 2 * e * kv + 3 * e * shape.feed_forward + 2 * e) + e;
}

}  // namespace

Result<ModelShape> shape_named(const std::string& name) {
  if (name == "tiny") return ModelShape{32, 2, 2, 2, 64, 2048, 0, true};
  if (name == "20m") return ModelShape{256, 8, 8, 8, 768, 2048, 0, true};
  if (name == "124m") return ModelShape{768, 12, 12, 12, 2048, 2048, 0, true};
  if (name == "learner") return ModelShape{256, 2, 4, 4, 512, 512, 1024, false};
  return invalid("'" + name + "' is no model size", "name tiny, 20m, 124m or learner");
}

Result<void> generate_model(const std::string& path, const ModelShape& shape, std::uint64_t seed) {
  LOAM_CHECK(start_library());
  const GgufHandle vocabulary(gguf_init_from_file(LOAM_LLAMA_VOCABULARY, {true, nullptr}));
  const std::int64_t key =
      vocabulary ? gguf_find_key(vocabulary.get(), "tokenizer.ggml.tokens") : -1;
  if (key < 0) {
    return Error{ErrorKind::not_found, "the vocabulary " LOAM_LLAMA_VOCABULARY " cannot be read",
                 "configure the build again"};
  }
  const auto all_words = static_cast<std::uint32_t>(gguf_get_arr_n(vocabulary.get(), key));
  const std::uint32_t words = shape.vocabulary == 0 ? all_words : shape.vocabulary;
  if (words < 258 || words > all_words) {
    return invalid("a vocabulary of " + std::to_string(words) + " tokens is not possible",
                   "give one from 258 to " + std::to_string(all_words));
  }
  const GgufHandle file(gguf_init_empty());
  gguf_set_kv(file.get(), vocabulary.get());
  if (words < all_words) cut_vocabulary(vocabulary.get(), file.get(), words);
  describe(file.get(), shape, words);
  const std::uint64_t bytes = parameters_of(shape, words) * 4 + (64ULL << 20U);
  const TensorsHandle tensors(ggml_init({bytes, nullptr, false}));
  Builder builder(tensors.get(), file.get(), shape.half, seed);
  const std::int64_t e = shape.embedding;
  const std::int64_t kv = e / shape.heads * shape.kv_heads;
  const float deviation = 0.02F;
  const float inner = deviation / std::sqrt(2.0F * static_cast<float>(shape.layers));
  builder.matrix("token_embd.weight", e, words, deviation);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".";
    builder.norm(name + "attn_norm.weight", e);
    builder.matrix(name + "attn_q.weight", e, e, deviation);
    builder.matrix(name + "attn_k.weight", e, kv, deviation);
    builder.matrix(name + "attn_v.weight", e, kv, deviation);
    builder.matrix(name + "attn_output.weight", e, e, inner);
    builder.norm(name + "ffn_norm.weight", e);
    builder.matrix(name + "ffn_gate.weight", e, shape.feed_forward, deviation);
    builder.matrix(name + "ffn_up.weight", e, shape.feed_forward, deviation);
    builder.matrix(name + "ffn_down.weight", shape.feed_forward, e, inner);
  }
  builder.norm("output_norm.weight", e);
  if (!gguf_write_to_file(file.get(), path.c_str(), false)) {
    return Error{ErrorKind::unavailable, "'" + path + "' cannot be written",
                 "check the folder and the disk"};
  }
  return {};
}

}  // namespace loam::serve

#include "app/gateway/gguf_header.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

namespace loam::serving {
namespace {

constexpr std::uint64_t text_bytes_max = 64U << 20U;  // a chat template is some kilobytes
constexpr std::uint64_t entries_max = 1U << 20U;
constexpr std::uint32_t dimensions_max = 4;

enum class Kind : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  list,
  u64,
  i64,
  f64
};

// Bytes of a value; 0 for texts and lists.
constexpr std::array<std::uint64_t, 13> kind_bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct Block {
  std::uint64_t values, bytes;
};
// How tensors of a type are packed, for types that are in use.
const std::map<std::uint32_t, Block> blocks{
    {0, {1, 4}},      {1, {1, 2}},      {2, {32, 18}},    {3, {32, 20}},    {6, {32, 22}},
    {7, {32, 24}},    {8, {32, 34}},    {9, {32, 36}},    {10, {256, 84}},  {11, {256, 110}},
    {12, {256, 144}}, {13, {256, 176}}, {14, {256, 210}}, {15, {256, 292}}, {24, {1, 1}},
    {25, {1, 2}},     {26, {1, 4}},     {27, {1, 8}},     {28, {1, 8}},     {30, {1, 2}}};

Error corrupt(const std::string& what) {
  return Error{ErrorKind::invalid_argument, "the model file is no whole GGUF: " + what,
               "copy or make it again"};
}

// Reads from front to back; once something is wrong, everything after it is.
class Header {
 public:
  Header(const std::string& path, std::uint64_t bytes)
      : in_(path, std::ios::binary), left_(bytes) {}

  template <class T>
  T number() {
    T value{};
    take(&value, sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::uint64_t>();
    if (size > std::min(left_, text_bytes_max)) return fail("a text is longer than the file"), "";
    std::string text(size, '\0');
    take(text.data(), size);
    return text;
  }
  void skip(std::uint64_t bytes) {
    if (bytes > left_) return fail("it ends in the middle of its header");
    in_.ignore(static_cast<std::streamsize>(bytes));
    left_ -= bytes;
    at_ += bytes;
  }
  // A number's value, summed up for a list of numbers; nothing for other kinds.
  std::optional<std::uint64_t> value(std::uint32_t kind) {
    if (kind >= kind_bytes.size())
      return fail("a value of unknown kind " + std::to_string(kind)), std::nullopt;
    switch (static_cast<Kind>(kind)) {
      case Kind::text:
        skip(number<std::uint64_t>());
        return std::nullopt;
      case Kind::list:
        return list();
      case Kind::u32:
      case Kind::i32:
        return number<std::uint32_t>();
      case Kind::u64:
      case Kind::i64:
        return number<std::uint64_t>();
      default:
        skip(kind_bytes[kind]);
        return std::nullopt;
    }
  }
  std::uint64_t length() const { return length_; }  // of the last list
  std::uint64_t at() const { return at_; }
  bool is_good() const { return fault_.empty(); }
  const std::string& fault() const { return fault_; }
  void fail(const std::string& fault) {
    if (fault_.empty()) fault_ = fault;
    left_ = 0;
  }

 private:
  void take(void* into, std::uint64_t bytes) {
    if (bytes > left_ || !in_.read(static_cast<char*>(into), static_cast<std::streamsize>(bytes)))
      return fail("it ends in the middle of its header");
    left_ -= bytes;
    at_ += bytes;
  }
  std::optional<std::uint64_t> list() {
    const auto kind = number<std::uint32_t>();
    const auto size = number<std::uint64_t>();
    if (kind >= kind_bytes.size() || kind == static_cast<std::uint32_t>(Kind::list))
      return fail("a list of unknown kind " + std::to_string(kind)), std::nullopt;
    length_ = size;
    const std::uint64_t least = std::max<std::uint64_t>(kind_bytes[kind], 1);
    if (size > left_ / least) return fail("it ends in the middle of a list"), std::nullopt;
    const bool counts = kind == static_cast<std::uint32_t>(Kind::u32) ||
                        kind == static_cast<std::uint32_t>(Kind::i32);
    if (!counts && kind_bytes[kind] > 0) return skip(size * kind_bytes[kind]), std::nullopt;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < size && is_good(); ++i) sum += value(kind).value_or(0);
    return counts ? std::optional(sum) : std::nullopt;
  }

  std::ifstream in_;
  std::uint64_t left_;
  std::uint64_t at_ = 0;
  std::uint64_t length_ = 0;
  std::string fault_;
};

struct Values {
  std::map<std::string, std::uint64_t> numbers;  // by key without the architecture
  bool heads_by_layer = false;                   // then key-value heads are summed over layers
  std::uint64_t vocabulary = 0;
};

Values read_values(Header& header, std::uint64_t count, std::string& architecture) {
  Values out;
  for (std::uint64_t i = 0; i < count && header.is_good(); ++i) {
    std::string key = header.text();
    const auto kind = header.number<std::uint32_t>();
    if (key == "general.architecture" && kind == static_cast<std::uint32_t>(Kind::text)) {
      architecture = header.text();
      continue;
    }
    const auto value = header.value(kind);
    if (key == "tokenizer.ggml.tokens") out.vocabulary = header.length();
    if (!value) continue;
    if (key.starts_with(architecture + ".")) key.erase(0, architecture.size() + 1);
    if (key == "attention.head_count_kv" && kind == static_cast<std::uint32_t>(Kind::list))
      out.heads_by_layer = true;
    out.numbers[key] = *value;
  }
  return out;
}

// Where the last tensor ends, in the part of the file that holds them.
std::uint64_t read_tensors(Header& header, std::uint64_t count) {
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count && header.is_good(); ++i) {
    const std::string name = header.text();
    const auto dimensions = header.number<std::uint32_t>();
    if (dimensions > dimensions_max) {
      header.fail("the tensor " + name + " has " + std::to_string(dimensions) + " dimensions");
      break;
    }
    std::uint64_t values = 1;
    for (std::uint32_t dimension = 0; dimension < dimensions; ++dimension) {
      if (__builtin_mul_overflow(values, header.number<std::uint64_t>(), &values))
        header.fail("the tensor " + name + " is larger than can be");
    }
    const auto type = header.number<std::uint32_t>();
    const auto offset = header.number<std::uint64_t>();
    // Of types that are not known here only the beginning is.
    const auto block = blocks.find(type);
    std::uint64_t bytes = 1;
    if (block != blocks.end() &&
        __builtin_mul_overflow(values / block->second.values, block->second.bytes, &bytes))
      header.fail("the tensor " + name + " is larger than can be");
    std::uint64_t last = 0;
    if (__builtin_add_overflow(offset, bytes, &last))
      header.fail("the tensor " + name + " lies beyond what can be");
    end = std::max(end, last);
  }
  return end;
}

std::uint64_t kv_token_bytes(const Values& values) {
  const auto number = [&](const char* key) {
    const auto found = values.numbers.find(key);
    return found == values.numbers.end() ? 0 : found->second;
  };
  const std::uint64_t heads = number("attention.head_count");
  if (heads == 0) return 0;
  const std::uint64_t one = number("embedding_length") / heads;
  const std::uint64_t key = number("attention.key_length");
  const std::uint64_t value = number("attention.value_length");
  std::uint64_t kv_heads = number("attention.head_count_kv");
  if (kv_heads == 0) kv_heads = heads;
  if (!values.heads_by_layer) kv_heads *= number("block_count");
  constexpr std::uint64_t element_bytes = 2;
  return kv_heads * ((key > 0 ? key : one) + (value > 0 ? value : one)) * element_bytes;
}

}  // namespace

Result<ModelFacts> read_model_facts(const std::string& path) {
  std::error_code fault;
  const std::uint64_t bytes = std::filesystem::file_size(path, fault);
  if (fault || !std::ifstream(path, std::ios::binary)) {
    return Error{ErrorKind::not_found,
                 "the model file " + path +
                     " cannot be read: " + (fault ? fault.message() : std::strerror(errno)),
                 "give a path on the gateway's machine that its user may read"};
  }
  Header header(path, bytes);
  constexpr std::uint32_t magic = 0x46554747;  // "GGUF"
  if (header.number<std::uint32_t>() != magic) return corrupt("it does not begin with 'GGUF'");
  const auto version = header.number<std::uint32_t>();
  if (version < 2 || version > 3)
    return corrupt("version " + std::to_string(version) + " is not one of 2 and 3");
  ModelFacts facts;
  facts.file_bytes = bytes;
  facts.tensors = header.number<std::uint64_t>();
  const auto values_count = header.number<std::uint64_t>();
  if (facts.tensors == 0) return corrupt("it holds no tensor");
  if (facts.tensors > entries_max || values_count > entries_max)
    return corrupt("it says that it holds " + std::to_string(facts.tensors) + " tensors and " +
                   std::to_string(values_count) + " values");
  const Values values = read_values(header, values_count, facts.architecture);
  const std::uint64_t tensors_end = read_tensors(header, facts.tensors);
  if (!header.is_good()) return corrupt(header.fault());
  const auto alignment = values.numbers.find("general.alignment");
  const std::uint64_t step = alignment == values.numbers.end() ? 32 : alignment->second;
  if (step == 0 || step > bytes) return corrupt("an alignment of " + std::to_string(step));
  const std::uint64_t begin = (header.at() + step - 1) / step * step;
  std::uint64_t end = 0;
  if (__builtin_add_overflow(begin, tensors_end, &end) || end > bytes) {
    return corrupt("its tensors end at byte " + std::to_string(end) + " and the file has " +
                   std::to_string(bytes));
  }
  facts.kv_token_bytes = kv_token_bytes(values);
  facts.vocabulary = values.vocabulary;
  const auto embedding = values.numbers.find("embedding_length");
  facts.embedding = embedding == values.numbers.end() ? 0 : embedding->second;
  return facts;
}

}  // namespace loam::serving

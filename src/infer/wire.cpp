// Each frame's fields are listed once, in order; the list serves writing and reading alike.
#include "infer/wire.hpp"

#include <bit>
#include <concepts>
#include <type_traits>
#include <utility>

namespace loam::infer::wire {

namespace {

template <class T>
concept Enumeration = std::is_enum_v<T>;

// The highest value of each enumeration that travels.
constexpr unsigned last_of(ServiceClass) {
  return 2;
}
constexpr unsigned last_of(Submit::Work) {
  return 1;
}
constexpr unsigned last_of(Prompt::Kind) {
  return 2;
}
constexpr unsigned last_of(Grammar::Kind) {
  return 3;
}
constexpr unsigned last_of(FinishReason) {
  return 3;
}
constexpr unsigned last_of(ErrorKind) {
  return static_cast<unsigned>(ErrorKind::internal);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

 private:
  template <std::unsigned_integral T>
  void put_integer(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
    }
  }
  void put(bool value) { out_.push_back(value ? 1 : 0); }
  void put(std::uint32_t value) { put_integer(value); }
  void put(std::uint64_t value) { put_integer(value); }
  void put(Token value) { put_integer(static_cast<std::uint32_t>(value)); }
  void put(float value) { put_integer(std::bit_cast<std::uint32_t>(value)); }
  template <Enumeration T>
  void put(T value) {
    out_.push_back(static_cast<char>(value));
  }
  void put(const std::string& value) {
    put_integer(static_cast<std::uint32_t>(value.size()));
    out_.append(value);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put_integer(static_cast<std::uint32_t>(values.size()));
    for (const T& value : values) put(value);
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& record);

  std::string& out_;
};

// After the first fault nothing more is read and `fault` says what it was.
class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  const char* fault() const { return fault_; }
  std::size_t left() const { return in_.size(); }

 private:
  bool take(std::size_t bytes) {
    if (fault_ != nullptr) return false;
    if (in_.size() < bytes) {
      fault_ = "it ends inside a field";
      return false;
    }
    return true;
  }
  template <std::unsigned_integral T>
  T integer() {
    if (!take(sizeof(T))) return 0;
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(
          value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(in_[i])) << (8 * i)));
    }
    in_.remove_prefix(sizeof(T));
    return value;
  }
  void get(bool& value) {
    const auto byte = integer<std::uint8_t>();
    if (byte > 1) fault_ = "a truth value is neither 0 nor 1";
    value = byte == 1;
  }
  void get(std::uint32_t& value) { value = integer<std::uint32_t>(); }
  void get(std::uint64_t& value) { value = integer<std::uint64_t>(); }
  void get(Token& value) { value = static_cast<Token>(integer<std::uint32_t>()); }
  void get(float& value) { value = std::bit_cast<float>(integer<std::uint32_t>()); }
  template <Enumeration T>
  void get(T& value) {
    const auto byte = integer<std::uint8_t>();
    if (byte > last_of(T{})) {
      fault_ = "a value is outside its enumeration";
      return;
    }
    value = static_cast<T>(byte);
  }
  void get(std::string& value) {
    const auto size = integer<std::uint32_t>();
    if (!take(size)) return;
    value.assign(in_.substr(0, size));
    in_.remove_prefix(size);
  }
  template <class A, class B>
  void get(std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& values) {
    const auto count = integer<std::uint32_t>();
    // Every element takes at least four bytes, so that a lying count cannot ask for much memory.
    if (!take(std::size_t{count} * 4)) return;
    values.resize(count);
    for (T& value : values) {
      get(value);
      if (fault_ != nullptr) return;
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& record);

  std::string_view in_;
  const char* fault_ = nullptr;
};

// `Archive` is Writer or Reader and `R` the record, const for writing.
template <class R, class T>
concept Is = std::same_as<std::remove_const_t<R>, T>;

template <class Archive, class R>
void fields(Archive& archive, R& r) {
  if constexpr (Is<R, ChatMessage>) {
    archive(r.role, r.content);
  } else if constexpr (Is<R, Prompt>) {
    archive(r.kind, r.tokens, r.text, r.messages, r.public_extent);
  } else if constexpr (Is<R, Grammar>) {
    archive(r.kind, r.text);
  } else if constexpr (Is<R, Sampling>) {
    archive(r.temperature, r.top_p, r.min_p, r.top_k, r.frequency_penalty, r.presence_penalty,
            r.repeat_penalty, r.seed, r.logit_bias, r.logprobs, r.top_logprobs, r.stop,
            r.ignore_end, r.grammar);
  } else if constexpr (Is<R, AdapterUse>) {
    archive(r.name, r.scale);
  } else if constexpr (Is<R, TokenUsage>) {
    archive(r.prompt_tokens, r.cached_tokens, r.generated_tokens, r.recomputed_tokens,
            r.engine_time_us);
  } else if constexpr (Is<R, Hello>) {
    archive(r.version, r.client);
  } else if constexpr (Is<R, Submit>) {
    archive(r.stream, r.request, r.tenant, r.weight, r.service_class, r.work, r.prompt,
            r.tokens_max, r.choices, r.sampling, r.adapters);
  } else if constexpr (Is<R, Cancel>) {
    archive(r.stream);
  } else if constexpr (Is<R, Tokenize>) {
    archive(r.stream, r.prompt);
  } else if constexpr (Is<R, Welcome>) {
    archive(r.version, r.model, r.description, r.file_type, r.parameters, r.weights_bytes,
            r.vocabulary, r.context_tokens, r.slots, r.cells, r.kv_token_bytes, r.embedding_length,
            r.tokens_max_default, r.chat_template, r.adapters, r.compute);
  } else if constexpr (Is<R, Accepted>) {
    archive(r.stream, r.prompt_tokens, r.ahead);
  } else if constexpr (Is<R, Alternative>) {
    archive(r.token, r.bytes, r.logprob);
  } else if constexpr (Is<R, TokenLogprob>) {
    archive(r.chosen, r.top);
  } else if constexpr (Is<R, Chunk>) {
    archive(r.stream, r.choice, r.generated, r.text, r.logprobs);
  } else if constexpr (Is<R, ChoiceDone>) {
    archive(r.stream, r.choice, r.reason, r.generated);
  } else if constexpr (Is<R, Embedding>) {
    archive(r.stream, r.values);
  } else if constexpr (Is<R, Timing>) {
    archive(r.started_us, r.first_token_us, r.ended_us, r.preemptions);
  } else if constexpr (Is<R, Finished>) {
    archive(r.stream, r.reason, r.usage, r.timing);
  } else if constexpr (Is<R, Failed>) {
    archive(r.stream, r.kind, r.message, r.next_step, r.retry_after_ms, r.usage);
  } else if constexpr (Is<R, Tokens>) {
    archive(r.stream, r.tokens);
  } else if constexpr (Is<R, TenantStats>) {
    archive(r.tenant, r.running, r.waiting, r.swapped, r.requests, r.usage, r.counter);
  } else if constexpr (Is<R, Stats>) {
    archive(r.uptime_ms, r.running, r.waiting, r.swapped, r.slots, r.cells, r.cells_used,
            r.cells_promised, r.fragmentation_permille, r.cache_bytes, r.cache_bytes_max, r.steps,
            r.steps_us, r.batch_tokens, r.preemptions, r.compactions, r.cancelled, r.failed,
            r.last_batch, r.last_step_us, r.usage, r.tenants);
  } else {
    static_assert(Is<R, AskStats> || Is<R, Drain> || Is<R, Drained>, "list this record's fields");
  }
}

template <class T>
requires std::is_class_v<T>
void Writer::put(const T& record) {
  fields(*this, record);
}

template <class T>
requires std::is_class_v<T>
void Reader::get(T& record) {
  fields(*this, record);
}

Error corrupt(const std::string& message) {
  return Error{ErrorKind::corrupt, message,
               "close the connection; the peer speaks another protocol"};
}

template <std::size_t... I>
Frame empty_frame(std::size_t type, std::index_sequence<I...>) {
  Frame frame;
  (void)((type == I && (frame.emplace<I>(), true)) || ...);
  return frame;
}

}  // namespace

void encode(const Frame& frame, std::string& out) {
  const std::size_t start = out.size();
  out.append(4, '\0');
  out.push_back(static_cast<char>(frame.index()));
  Writer write(out);
  std::visit([&](const auto& record) { fields(write, record); }, frame);
  const std::size_t size = out.size() - start - 4;
  LOAM_ASSERT(size <= frame_bytes_max);
  for (std::size_t i = 0; i < 4; ++i) out[start + i] = static_cast<char>((size >> (8 * i)) & 0xFF);
}

std::string encode(const Frame& frame) {
  std::string out;
  encode(frame, out);
  return out;
}

Result<Frame> decode(std::string_view bytes) {
  constexpr std::size_t types = std::variant_size_v<Frame>;
  if (bytes.empty()) return corrupt("a frame is empty");
  const auto type = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front()));
  if (type >= types) return corrupt("a frame has the unknown type " + std::to_string(type));
  Frame frame = empty_frame(type, std::make_index_sequence<types>{});
  Reader read(bytes.substr(1));
  std::visit([&](auto& record) { fields(read, record); }, frame);
  const std::string where = "a frame of type " + std::to_string(type) + " cannot be read: ";
  if (read.fault() != nullptr) return corrupt(where + read.fault());
  if (read.left() != 0) return corrupt(where + std::to_string(read.left()) + " bytes follow it");
  return frame;
}

Result<void> check_submit(const Submit& submit) {
  if (submit.stream == 0) return invalid("stream 0 names no request", "count streams from 1");
  if (submit.tenant.empty()) return invalid("the request names no tenant", "say for whom it runs");
  if (submit.weight == 0 || submit.weight > weight_max) {
    return invalid("weight is " + std::to_string(submit.weight),
                   "give a whole number from 1 to " + std::to_string(weight_max));
  }
  if (submit.choices == 0 || submit.choices > choices_max) {
    return invalid("the number of choices is " + std::to_string(submit.choices),
                   "give a whole number from 1 to " + std::to_string(choices_max));
  }
  LOAM_CHECK(check_prompt(submit.prompt));
  return check_sampling(submit.sampling);
}

Result<std::optional<Frame>> FrameReader::next() {
  if (held_bytes() < 4) return std::optional<Frame>{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(buffer_[offset_ + i])) << (8 * i);
  }
  if (size == 0 || size > frame_bytes_max) {
    return corrupt("a frame says it is " + std::to_string(size) + " bytes long, and 1 to " +
                   std::to_string(frame_bytes_max) + " are possible");
  }
  if (held_bytes() < 4 + size) return std::optional<Frame>{};
  LOAM_TRY(frame, decode(std::string_view(buffer_).substr(offset_ + 4, size)));
  offset_ += 4 + size;
  // Moving the rest forward only now and then keeps the cost of a frame in its own bytes.
  if (offset_ == buffer_.size() || offset_ > (1U << 16U)) {
    buffer_.erase(0, offset_);
    offset_ = 0;
  }
  return std::optional<Frame>{std::move(frame)};
}

}  // namespace loam::infer::wire

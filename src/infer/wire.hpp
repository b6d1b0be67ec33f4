// The protocol between whoever serves clients and loam-engine: frames over a Unix stream socket.
// Specification: docs/formats/engine-wire.md. Pure: bytes in, frames out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "domain/token_usage.hpp"
#include "infer/request.hpp"

namespace loam::infer::wire {

inline constexpr std::uint32_t protocol_version = 1;
// A frame's length without its own four bytes. Fits a context of a million tokens.
inline constexpr std::uint32_t frame_bytes_max = 16U << 20U;

// Chosen by the client, unique among its requests in flight on this connection; never 0.
using StreamId = std::uint64_t;

// --- client to engine ----------------------------------------------------------------------

// The first frame each way. The engine answers with Welcome, or Failed{0} and the end.
struct Hello {
  std::uint32_t version = protocol_version;
  std::string client;  // who asks, for the engine's log
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Submit {
  StreamId stream = 0;
  std::string request;       // the name under which it is metered: "chatcmpl-..."
  std::string tenant;        // private prefixes are shared inside it, and tokens counted for it
  std::uint32_t weight = 1;  // the tenant's share against other tenants in the same class
  ServiceClass service_class = ServiceClass::standard;
  enum class Work : std::uint8_t { complete = 0, embed = 1 } work = Work::complete;
  Prompt prompt;
  std::uint32_t tokens_max = 0;  // to generate, per choice; 0: the engine's default
  std::uint32_t choices = 1;     // answers to the same prompt
  Sampling sampling;
  std::vector<AdapterUse> adapters;
  friend bool operator==(const Submit&, const Submit&) = default;
};

// The client is gone: nothing more is generated; Finished follows with what was used.
struct Cancel {
  StreamId stream = 0;
  friend bool operator==(const Cancel&, const Cancel&) = default;
};

// Turns a prompt into tokens without running it; answered by Tokens.
struct Tokenize {
  StreamId stream = 0;
  Prompt prompt;
  friend bool operator==(const Tokenize&, const Tokenize&) = default;
};

struct AskStats {
  friend bool operator==(const AskStats&, const AskStats&) = default;
};

// No new requests from anyone; what runs is finished. Answered by Drained when nothing is left.
struct Drain {
  friend bool operator==(const Drain&, const Drain&) = default;
};

// --- engine to client ----------------------------------------------------------------------

// What this instance is. Constant while the process lives.
struct Welcome {
  std::uint32_t version = protocol_version;
  std::string model;        // the name it serves under
  std::string description;  // architecture, size and precision, as the library tells it
  std::string file_type;    // "f16", "q8_0", "q4_K_M", ...
  std::uint64_t parameters = 0;
  std::uint64_t weights_bytes = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context_tokens = 0;    // prompt + generated of one request
  std::uint32_t slots = 0;             // requests computed at once
  std::uint32_t cells = 0;             // tokens of all requests at once
  std::uint32_t kv_token_bytes = 0;    // key-value memory of one token
  std::uint32_t embedding_length = 0;  // floats of an embedding; 0: no embeddings
  std::uint32_t tokens_max_default = 0;
  bool chat_template = false;  // without one, messages are refused
  std::vector<std::string> adapters;
  std::string compute;  // backend, threads, fused attention, graph reuse
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The request is well-formed and waits for its turn.
struct Accepted {
  StreamId stream = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t ahead = 0;  // requests waiting before it, of any tenant
  friend bool operator==(const Accepted&, const Accepted&) = default;
};

struct Alternative {
  Token token = 0;
  std::string bytes;
  float logprob = 0;
  friend bool operator==(const Alternative&, const Alternative&) = default;
};

struct TokenLogprob {
  Alternative chosen;
  std::vector<Alternative> top;
  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

// Text that became certain in one step: whole UTF-8 characters, nothing that may still turn out to
// be a stop string. So a token may give no chunk, and a chunk may hold several tokens' text.
struct Chunk {
  StreamId stream = 0;
  std::uint32_t choice = 0;
  std::uint32_t generated = 0;  // tokens of this choice so far, metered
  std::string text;
  std::vector<TokenLogprob> logprobs;  // of the tokens since the last chunk, if asked for
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

enum class FinishReason : std::uint8_t { stop = 0, length = 1, cancelled = 2, failed = 3 };

// One choice ends; its last text went before.
struct ChoiceDone {
  StreamId stream = 0;
  std::uint32_t choice = 0;
  FinishReason reason = FinishReason::stop;
  std::uint32_t generated = 0;
  friend bool operator==(const ChoiceDone&, const ChoiceDone&) = default;
};

struct Embedding {
  StreamId stream = 0;
  std::vector<float> values;  // of Euclidean length 1
  friend bool operator==(const Embedding&, const Embedding&) = default;
};

// From the request's arrival at the engine, in microseconds.
struct Timing {
  std::uint64_t started_us = 0;      // the first step that worked on it
  std::uint64_t first_token_us = 0;  // 0: there was none
  std::uint64_t ended_us = 0;
  std::uint32_t preemptions = 0;
  friend bool operator==(const Timing&, const Timing&) = default;
};

// The last frame of a stream that was accepted and did not fail.
struct Finished {
  StreamId stream = 0;
  FinishReason reason = FinishReason::stop;  // of choice 0; `cancelled` after Cancel
  TokenUsage usage;                          // the prompt once, the choices summed
  Timing timing;
  friend bool operator==(const Finished&, const Finished&) = default;
};

// The last frame of a stream that was refused or broke. Stream 0: the connection itself is at
// fault and closes.
struct Failed {
  StreamId stream = 0;
  ErrorKind kind = ErrorKind::internal;
  std::string message;
  std::string next_step;
  std::uint32_t retry_after_ms = 0;  // with exhausted and unavailable; 0: unknown
  TokenUsage usage;                  // what was spent before
  friend bool operator==(const Failed&, const Failed&) = default;
};

struct Tokens {
  StreamId stream = 0;
  std::vector<Token> tokens;
  friend bool operator==(const Tokens&, const Tokens&) = default;
};

// One tenant's standing. Totals are since the engine started.
struct TenantStats {
  std::string tenant;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t swapped = 0;
  std::uint64_t requests = 0;
  TokenUsage usage;
  std::uint64_t counter = 0;  // its virtual token counter
  friend bool operator==(const TenantStats&, const TenantStats&) = default;
};

struct Stats {
  std::uint64_t uptime_ms = 0;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t swapped = 0;
  std::uint32_t slots = 0;
  std::uint32_t cells = 0;
  std::uint32_t cells_used = 0;
  std::uint32_t cells_promised = 0;          // prompt + tokens_max of what runs
  std::uint32_t fragmentation_permille = 0;  // of the used slots' span, how much is holes
  std::uint64_t cache_bytes = 0;             // stored prefixes in host memory
  std::uint64_t cache_bytes_max = 0;
  std::uint64_t steps = 0;
  std::uint64_t steps_us = 0;      // time spent in them
  std::uint64_t batch_tokens = 0;  // computed in them
  std::uint64_t preemptions = 0;
  std::uint64_t compactions = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint32_t last_batch = 0;  // requests in the latest step
  std::uint32_t last_step_us = 0;
  TokenUsage usage;
  std::vector<TenantStats> tenants;  // in order of name
  friend bool operator==(const Stats&, const Stats&) = default;
};

struct Drained {
  friend bool operator==(const Drained&, const Drained&) = default;
};

// The index in this list is the frame's type byte: only ever append.
using Frame = std::variant<Hello, Submit, Cancel, Tokenize, AskStats, Drain,  //
                           Welcome, Accepted, Chunk, ChoiceDone, Embedding, Finished, Failed,
                           Tokens, Stats, Drained>;

// Appends the frame with its length to `out`. Requires that it fits frame_bytes_max.
void encode(const Frame& frame, std::string& out);
std::string encode(const Frame& frame);

// One frame's bytes without the length. Unknown types, cut or trailing bytes and values out of an
// enumeration's range are errors of kind `corrupt`; what a request may say is checked by
// check_submit.
Result<Frame> decode(std::string_view bytes);

// Ranges of everything that can be judged without the model: kind invalid_argument.
Result<void> check_submit(const Submit& submit);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, nothing while it is incomplete, or an error after which the connection
  // is of no more use.
  Result<std::optional<Frame>> next();
  std::size_t held_bytes() const noexcept { return buffer_.size() - offset_; }

 private:
  std::string buffer_;
  std::size_t offset_ = 0;
};

}  // namespace loam::infer::wire

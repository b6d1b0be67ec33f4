// Long prompts become tokens, and grammars samplers, on a thread of their own, so that no stream
// waits for it. Tenants take turns, a prompt each; the thread gives way to the model's maths.
// Shell.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "app/engine/model.hpp"
#include "app/engine/sampler.hpp"
#include "infer/wire.hpp"

namespace loam::serve {

// A request as it came, and what reading it needs besides.
struct UnreadRequest {
  std::uint64_t connection = 0;
  std::uint64_t serial = 0;  // of this reading; chosen by the caller
  std::variant<infer::wire::Submit, infer::wire::Tokenize> frame;
  std::uint64_t seed = 0;
  std::uint64_t arrived_us = 0;
  std::uint32_t tokens_max = 0;  // longer prompts are refused unread; 0: no bound

  const infer::Prompt& prompt() const;
  const std::string& tenant() const;  // empty for a Tokenize
  std::size_t bytes() const;          // of its texts and grammar
};

struct ReadRequest {
  TokenizedPrompt prompt;
  std::vector<Sampler> samplers;  // one a choice
};

// What a prompt and its sampling come to, in the calling thread.
Result<ReadRequest> read_request(const Model& model, const UnreadRequest& request);

class PromptReader {
 public:
  struct Done {
    UnreadRequest request;
    Result<ReadRequest> read;
  };

  static constexpr std::size_t unread_bytes_default = 32U << 20U;
  // Makes the thread. `model` outlives the reader. `unread_bytes_max`: of one tenant.
  static Result<std::unique_ptr<PromptReader>> make(
      const Model& model, std::size_t unread_bytes_max = unread_bytes_default);
  // Returns when the prompt in work is read; the others are forgotten.
  ~PromptReader();
  PromptReader(const PromptReader&) = delete;
  PromptReader& operator=(const PromptReader&) = delete;

  // Refused (exhausted) where the tenant has unread prompts and they would pass the bound.
  Result<void> add(UnreadRequest request);
  // Those with this serial that are not in work yet are forgotten.
  void forget(std::uint64_t serial);
  // What was read since the last call, in that order.
  std::vector<Done> take();
  // Readable while there is something to take.
  int descriptor() const { return wake_; }

 private:
  PromptReader(const Model& model, std::size_t unread_bytes_max)
      : model_(model), unread_bytes_max_(unread_bytes_max) {}
  void work();

  const Model& model_;
  const std::size_t unread_bytes_max_;
  int wake_ = -1;  // an eventfd
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::deque<UnreadRequest>> unread_;  // by tenant; none is empty
  std::map<std::string, std::size_t> bytes_;                 // of them and of the one in work
  std::string last_tenant_;
  std::vector<Done> done_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace loam::serve

// loam-engine's loop: clients on a Unix socket, requests into instances, tokens back. One thread:
// frames are read and written between two steps, since a request can join only at the next step
// anyway; only long prompts are made into tokens on a thread beside it. Specification:
// docs/formats/engine-wire.md. Shell.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/engine/connection.hpp"
#include "app/engine/instance.hpp"
#include "app/engine/prompt_reader.hpp"
#include "app/engine/sampler.hpp"
#include "infer/text_stream.hpp"
#include "infer/token_counter.hpp"
#include "infer/wire.hpp"

namespace loam::serve {

struct ServerOptions {
  std::string socket_path;
  std::string model_name;
  std::string usage_path;  // a line of JSON for each request that ended; empty: none
  InstanceOptions instance;
  std::uint32_t instances_max = 4;  // contexts on the model: the plain one and those with adapters
  std::uint32_t tokens_max_default = 256;
  std::uint32_t waiting_max = 1024;   // requests; more are refused with when to come again
  std::chrono::seconds drain_max{0};  // how long streams may go on once it is told to end
};

class Server {
 public:
  // Listens from now on; a socket file without a listener is replaced.
  static Result<std::unique_ptr<Server>> make(const Model& model, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until `stop` is set (looked at between steps and when a signal arrives). Then what runs
  // may go on for as long as the options say, new requests are refused, and what is unfinished in
  // the end fails with `unavailable`.
  void run(const std::atomic<bool>& stop);
  // One line for the log: the steps so far, and how many the library computed on a graph that it
  // had from the step before.
  std::string summary() const;

 private:
  using ConnectionId = std::uint64_t;
  struct Answer {  // one choice of a request
    infer::SequenceId sequence;
    Sampler sampler;
    infer::TextStream text;
    std::vector<infer::wire::TokenLogprob> logprobs;
    std::uint32_t generated = 0;
    bool stopped = false;  // by a stop string
    bool done = false;
    infer::wire::FinishReason reason = infer::wire::FinishReason::stop;
  };
  struct Request {
    ConnectionId connection = 0;
    infer::wire::StreamId stream = 0;
    std::string name;
    std::string tenant;
    std::size_t instance = 0;
    std::vector<Answer> answers;
    TokenUsage usage;
    std::uint64_t arrived_us = 0;
    std::uint64_t started_us = 0;
    std::uint64_t first_token_us = 0;
    std::uint32_t preemptions = 0;
    Error fault;  // with kind and message once sampling failed
    bool faulty = false;
  };
  using RequestKey = std::pair<ConnectionId, infer::wire::StreamId>;
  // A text to embed. Its vector is the mean of its tokens', of length 1.
  struct EmbedJob {
    std::string name;
    std::string tenant;
    infer::SequenceId sequence;
    std::vector<double> sum;  // of the vectors so far
    std::uint32_t taken = 0;  // how many these are
    std::uint64_t arrived_us = 0;
    std::uint64_t started_us = 0;
  };
  struct Pool {
    std::vector<infer::AdapterUse> adapters;
    std::unique_ptr<Instance> instance;
    std::map<infer::SequenceId, std::pair<RequestKey, std::size_t>> owners;  // and which answer
  };

  Server(const Model& model, ServerOptions options);

  // server.cpp: the loop and the clients
  bool goes_on(const std::atomic<bool>& stop);
  void wait_for_clients(const std::atomic<bool>& stop);
  void accept_clients();
  void read_from(Connection& connection);
  void handle(Connection& connection, infer::wire::Frame frame);
  void drop_gone();
  void send(ConnectionId connection, const infer::wire::Frame& frame);
  bool has_work() const;  // for the model
  bool is_idle() const;   // nothing is left to do for anybody
  bool in_use(const RequestKey& key) const;
  infer::wire::Welcome welcome() const;
  infer::wire::Stats stats() const;

  // server_requests.cpp: a request's life
  void submit(Connection& connection, infer::wire::Submit submit);
  Result<void> admit(Connection& connection, infer::wire::Submit submit);
  Result<void> read_later(UnreadRequest request);
  void take_read();
  void refuse(ConnectionId connection, infer::wire::StreamId stream, const Error& error);
  Result<void> begin(const UnreadRequest& request, ReadRequest read);
  Result<void> begin_embedding(const UnreadRequest& request, ReadRequest read);
  Result<std::size_t> instance_for(const std::vector<infer::AdapterUse>& adapters);
  void tokenize(Connection& connection, infer::wire::Tokenize ask);
  void answer_tokens(const UnreadRequest& request, const Result<ReadRequest>& read);
  void step(std::size_t index);
  infer::Sampled sample(Pool& pool, infer::SequenceId sequence, const float* logits);
  void end_answer(Pool& pool, const infer::Ended& ended);
  void end_request(const RequestKey& key, infer::wire::FinishReason reason);
  // `spent`: what an embedding used whose sequence is over already.
  // Their key may be that of the very entry that they erase: it is copied.
  void fail_request(RequestKey key, const Error& error, const TokenUsage& spent = {});
  void cancel(RequestKey key);
  void stop_answers(Request& request);
  TokenUsage stop_embedding(const EmbedJob& job);
  void take_vector(infer::SequenceId sequence, std::uint32_t position, const float* vector);
  void mark_started(Pool& pool, infer::SequenceId sequence, std::uint64_t start_us);
  void break_off(Pool& pool, infer::SequenceId sequence, const TokenUsage& usage);
  void end_embedding(const infer::Ended& ended);
  void record(const std::string& name, const std::string& tenant, const TokenUsage& usage,
              const char* outcome);
  void check_drained();

  const Model& model_;
  ServerOptions options_;
  int listener_ = -1;
  int usage_file_ = -1;
  infer::TokenCounters counters_;
  std::vector<Pool> pools_;  // 0: without adapters
  std::unique_ptr<PromptReader> reader_;
  std::map<ConnectionId, Connection> connections_;
  std::map<RequestKey, Request> requests_;
  std::map<RequestKey, EmbedJob> embeddings_;
  std::map<infer::SequenceId, RequestKey> texts_;  // whose sequences these are, in pool 0
  std::map<RequestKey, std::uint64_t> reading_;    // the serial of each submit not read yet
  std::uint64_t next_serial_ = 1;
  std::size_t bytes_read_ = 0;  // of prompts, since the latest step
  std::vector<ConnectionId> draining_;
  std::optional<std::chrono::steady_clock::time_point> stopped_at_;
  ConnectionId next_connection_ = 1;
  std::uint64_t started_us_ = 0;
  struct TenantTotals {
    std::uint64_t requests = 0;
    TokenUsage usage;
  };
  std::map<std::string, TenantTotals> tenants_;
  infer::wire::Stats totals_;  // the counts that only grow
};

std::uint64_t monotonic_us();

}  // namespace loam::serve

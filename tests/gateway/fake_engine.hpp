// An engine worker that computes nothing: it speaks the wire protocol on a Unix socket, as slowly
// or as badly as it is told, and keeps books of what was asked and what it counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "infer/wire.hpp"

namespace loam::gateway {

class FakeEngine {
 public:
  struct Options {
    std::string model = "tiny";
    std::uint32_t context_tokens = 4096;
    std::uint32_t slots = 8;
    std::uint32_t cells = 1U << 20U;
    std::uint32_t embedding_length = 4;
    std::uint32_t tokens = 3;  // generated for each choice, where the request does not say fewer
    int tick_ms = 0;           // between two tokens of a stream
    std::string text = "ab ";  // of each token
    bool answers_stats = true;
    std::size_t gather = 0;  // generates nothing until so many streams were running at once
  };
  // What it does with a submission.
  struct Script {
    enum class Do {
      serve,
      hold,         // accept, then nothing more until it is cancelled
      refuse,       // Failed instead of Accepted
      drop,         // close the connection before any token
      drop_midway,  // close it after the first token
      fail_midway,  // Failed after the first token
    } what = Do::serve;
    infer::wire::Failed failure;  // with refuse and fail_midway
  };
  using Choose = std::function<Script(const infer::wire::Submit&)>;

  FakeEngine(std::string path, Options options, Choose choose = {});
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;
  ~FakeEngine();  // as if the process had died

  std::vector<infer::wire::Submit> submits() const;
  std::size_t cancels() const { return cancels_; }
  std::size_t running() const { return running_count_; }
  // By the request's name: what this engine says it used.
  std::map<std::string, TokenUsage> books() const;
  std::uint64_t chunks() const { return chunks_; }

 private:
  struct Running {
    infer::wire::Submit submit;
    Script script;
    std::uint32_t done = 0;   // tokens of each choice
    std::uint32_t total = 0;  // to come
    TokenUsage usage;
  };
  struct Peer {
    int fd = -1;
    infer::wire::FrameReader reader;
    std::string out;
    std::map<infer::wire::StreamId, Running> running;
    bool is_lost = false;
  };

  void run();
  void take_input(Peer& peer);
  void take(Peer& peer, infer::wire::Frame& frame);
  void submit(Peer& peer, infer::wire::Submit& submit);
  void tick(Peer& peer);
  bool step(Peer& peer, Running& one);
  void finish(Peer& peer, Running& one, infer::wire::FinishReason reason);
  void flush(Peer& peer);

  const Options options_;
  const Choose choose_;
  bool is_gathered_ = false;
  int listener_ = -1;
  int stop_ = -1;
  mutable std::mutex mutex_;
  std::vector<infer::wire::Submit> submits_;
  std::map<std::string, TokenUsage> books_;
  std::atomic<std::size_t> cancels_ = 0;
  std::atomic<std::size_t> running_count_ = 0;
  std::atomic<std::uint64_t> chunks_ = 0;
  std::vector<Peer> peers_;
  std::thread thread_;
};

}  // namespace loam::gateway

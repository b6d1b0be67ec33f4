// A running engine on a generated model, and a client that collects what its streams give.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "app/engine/client.hpp"
#include "app/engine/make_model.hpp"
#include "app/engine/server.hpp"

namespace loam::serve {

namespace wire = infer::wire;

// One model for all tests of the process, about 1.6M parameters.
inline const std::string& model_folder() {
  static const std::string folder = [] {
    std::string path =
        std::filesystem::temp_directory_path() / ("loam_engine_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
  return folder;
}

inline const std::string& model_path() {
  static const std::string path = [] {
    std::string file = model_folder() + "/tiny.gguf";
    const auto made = generate_model(file, *shape_named("tiny"), 1);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return file;
  }();
  return path;
}

inline const Model& shared_model() {
  static const std::unique_ptr<Model> model = [] {
    Model::Options options;
    options.path = model_path();
    auto loaded = Model::load(options);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
    return std::move(*loaded);
  }();
  return *model;
}

class RunningEngine {
 public:
  explicit RunningEngine(ServerOptions options, const Model& model = shared_model()) {
    static int count = 0;
    options.socket_path = model_folder() + "/engine" + std::to_string(++count);
    options.model_name = "tiny";
    path = options.socket_path;
    auto made = Server::make(model, options);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    server_ = std::move(*made);
    thread_ = std::thread([this] { server_->run(stop_); });
  }
  ~RunningEngine() {
    stop_ = true;
    thread_.join();
  }
  std::string path;

 private:
  std::unique_ptr<Server> server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

inline ServerOptions small_engine(std::uint32_t slots = 4) {
  ServerOptions options;
  options.instance.batching.slots = slots;
  options.instance.batching.cells_per_slot = 512;
  return options;
}

struct Stream {
  std::map<std::uint32_t, std::string> text;  // by choice
  std::map<std::uint32_t, wire::FinishReason> reason;
  std::vector<wire::TokenLogprob> logprobs;
  std::vector<float> embedding;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t generated_told = 0;  // the highest that a chunk of choice 0 told
  std::optional<wire::Finished> finished;
  std::optional<wire::Failed> failed;
  std::uint64_t ended_as = 0;  // the how-many-eth stream of this client to end
  bool over() const { return finished || failed; }
};

class Client {
 public:
  explicit Client(const RunningEngine& engine) {
    auto connected = EngineClient::connect(engine.path, "test");
    EXPECT_TRUE(connected.ok()) << (connected.ok() ? "" : connected.error().message);
    client_.emplace(std::move(*connected));
  }

  static wire::Submit ask(const std::string& text, std::uint32_t tokens_max) {
    wire::Submit submit;
    submit.request = "request";
    submit.tenant = "acme";
    submit.prompt.text = text;
    submit.tokens_max = tokens_max;
    submit.sampling.temperature = 0;
    submit.sampling.ignore_end = true;
    return submit;
  }

  wire::StreamId submit(wire::Submit submit) {
    submit.stream = ++last_stream_;
    EXPECT_TRUE(client_->send(submit).ok());
    return last_stream_;
  }
  void send(const wire::Frame& frame) { EXPECT_TRUE(client_->send(frame).ok()); }

  // Takes frames until `done` or, generously, a minute without one.
  template <class Done>
  void until(Done done) {
    while (!done()) {
      auto frame = client_->receive(60'000);
      ASSERT_TRUE(frame.ok()) << frame.error().message;
      ASSERT_TRUE(frame->has_value()) << "nothing came for a minute";
      std::visit([this](auto& f) { take(f); }, **frame);
    }
  }
  const Stream& wait(wire::StreamId id) {
    until([&] { return streams[id].over(); });
    return streams[id];
  }
  Stream run(const wire::Submit& ask) { return wait(submit(ask)); }

  wire::Stats stats() {
    stats_.reset();
    send(wire::AskStats{});
    until([&] { return stats_.has_value(); });
    return stats_.value_or(wire::Stats{});
  }
  const wire::Welcome& welcome() const { return client_->welcome(); }

  std::map<wire::StreamId, Stream> streams;
  std::vector<infer::Token> tokens;
  bool drained = false;

 private:
  template <class F>
  void take(F& frame) {
    using T = std::decay_t<F>;
    if constexpr (std::is_same_v<T, wire::Accepted>) {
      streams[frame.stream].prompt_tokens = frame.prompt_tokens;
    } else if constexpr (std::is_same_v<T, wire::Chunk>) {
      Stream& stream = streams[frame.stream];
      stream.text[frame.choice] += frame.text;
      if (frame.choice == 0) stream.generated_told = frame.generated;
      for (auto& logprob : frame.logprobs) stream.logprobs.push_back(logprob);
    } else if constexpr (std::is_same_v<T, wire::ChoiceDone>) {
      streams[frame.stream].reason[frame.choice] = frame.reason;
    } else if constexpr (std::is_same_v<T, wire::Embedding>) {
      streams[frame.stream].embedding = frame.values;
    } else if constexpr (std::is_same_v<T, wire::Finished>) {
      streams[frame.stream].finished = frame;
      streams[frame.stream].ended_as = ++ended_;
    } else if constexpr (std::is_same_v<T, wire::Failed>) {
      streams[frame.stream].failed = frame;
      streams[frame.stream].ended_as = ++ended_;
    } else if constexpr (std::is_same_v<T, wire::Stats>) {
      stats_ = frame;
    } else if constexpr (std::is_same_v<T, wire::Tokens>) {
      tokens = frame.tokens;
      streams[frame.stream].finished.emplace();
    } else if constexpr (std::is_same_v<T, wire::Drained>) {
      drained = true;
    }
  }

  std::optional<EngineClient> client_;
  std::optional<wire::Stats> stats_;
  wire::StreamId last_stream_ = 0;
  std::uint64_t ended_ = 0;
};

// `words` words that differ with `seed`, about a token each.
inline std::string words(int count, unsigned seed) {
  static const char* const list[] = {" river", " stone",  " light", " garden",
                                     " paper", " winter", " table", " music"};
  std::string text;
  for (int i = 0; i < count; ++i) text += list[(seed = seed * 1103515245U + 12345U) >> 16U & 7U];
  return text;
}

}  // namespace loam::serve

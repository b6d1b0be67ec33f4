#include "bench/infer/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>

#include "base/random.hpp"

namespace loam::bench::infer {

namespace wire = loam::infer::wire;
using serve::EngineClient;

namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench_infer: %s\n", why.c_str());
  std::exit(1);
}

std::vector<loam::infer::Token> prompt_of(const Load& load, std::uint32_t number) {
  std::vector<loam::infer::Token> tokens;
  Random same(static_cast<std::uint64_t>(load.salt) + 1);
  for (std::uint32_t i = 0; i < load.shared; ++i)
    tokens.push_back(static_cast<int>(same.below(40'000)));
  Random own((static_cast<std::uint64_t>(load.salt) << 32U) + number + 7);
  for (std::uint32_t i = 0; i < load.own; ++i)
    tokens.push_back(static_cast<int>(own.below(40'000)));
  return tokens;
}

wire::Submit ask(wire::StreamId stream, const std::string& tenant, const Load& load) {
  wire::Submit submit;
  submit.stream = stream;
  submit.request = "bench";
  submit.tenant = tenant;
  submit.prompt.kind = loam::infer::Prompt::Kind::tokens;
  submit.prompt.tokens = prompt_of(load, static_cast<std::uint32_t>(stream));
  submit.tokens_max = load.generated;
  submit.sampling.temperature = 0;
  submit.sampling.ignore_end = true;
  return submit;
}

EngineClient client_of(const Engine& engine) {
  auto client = EngineClient::connect(engine.path(), "bench");
  if (!client.ok()) give_up(client.error().message);
  return std::move(*client);
}

void send(EngineClient& client, const wire::Frame& frame) {
  if (!client.send(frame).ok()) give_up("the engine is gone");
}

wire::Frame receive(EngineClient& client) {
  auto frame = client.receive(600'000);
  if (!frame.ok() || !frame->has_value()) give_up("the engine gives no answer");
  return std::move(**frame);
}

}  // namespace

Cost now() {
  return {seconds_of(CLOCK_PROCESS_CPUTIME_ID), seconds_of(CLOCK_MONOTONIC)};
}

std::unique_ptr<Model> load_model(const std::string& path) {
  Model::Options options;
  options.path = path;
  auto model = Model::load(options);
  if (!model.ok()) {
    std::fprintf(stderr, "bench_infer: %s\n", to_text(model.error()).c_str());
    return nullptr;
  }
  return std::move(*model);
}

serve::ServerOptions slots(std::uint32_t count) {
  serve::ServerOptions options;
  options.instance.batching.slots = count;
  options.instance.batching.cells_per_slot = 512;
  options.instance.batching.cache_bytes_max = 1ULL << 30U;
  return options;
}

Engine::Engine(const Model& model, serve::ServerOptions options) : model_(model) {
  static int count = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("loam_bench_infer_" + std::to_string(getpid()) + "_" + std::to_string(++count));
  options.socket_path = path_;
  options.model_name = "bench";
  auto server = serve::Server::make(model, options);
  if (!server.ok()) give_up(to_text(server.error()));
  server_ = std::move(*server);
  thread_ = std::thread([this] { server_->run(stop_); });
}

Engine::~Engine() {
  stop_ = true;
  thread_.join();
}

double Run::first_token_p99() const {
  std::vector<double> sorted = first_token_ms;
  std::sort(sorted.begin(), sorted.end());
  return sorted.at((sorted.size() * 99 + 99) / 100 - 1);
}

Run run_all(Engine& engine, std::uint32_t requests, std::uint32_t at_once, const Load& load) {
  EngineClient client = client_of(engine);
  Run run;
  const Cost start = now();
  std::map<wire::StreamId, double> sent;
  std::map<wire::StreamId, bool> seen;
  wire::StreamId next = 1;
  const auto send_next = [&] {
    sent[next] = now().processor;
    send(client, ask(next, "tenant", load));
    ++next;
  };
  while (next <= at_once) send_next();
  std::uint32_t ended = 0;
  while (ended < requests) {
    const wire::Frame frame = receive(client);
    if (const auto* chunk = std::get_if<wire::Chunk>(&frame)) {
      if (!seen[chunk->stream])
        run.first_token_ms.push_back((now().processor - sent[chunk->stream]) * 1000);
      seen[chunk->stream] = true;
    }
    const bool failed = std::holds_alternative<wire::Failed>(frame);
    run.failures += failed ? 1 : 0;
    if (!failed && !std::holds_alternative<wire::Finished>(frame)) continue;
    ++ended;
    if (next <= requests) send_next();
  }
  run.cost = {now().processor - start.processor, now().wall - start.wall};
  return run;
}

double newcomer_first_token_ms(Engine& engine, std::uint32_t flood) {
  EngineClient client = client_of(engine);
  EngineClient late = client_of(engine);
  const Load load{.shared = 0, .own = 32, .generated = 64, .salt = 900};
  for (wire::StreamId stream = 1; stream <= flood; ++stream)
    send(client, ask(stream, "flood", load));
  const double flood_start = now().processor;
  while (now().processor - flood_start < 0.3) usleep(1'000);
  const double start = now().processor;
  send(late, ask(5'000, "newcomer", load));
  while (!std::holds_alternative<wire::Chunk>(receive(late))) {
  }
  return (now().processor - start) * 1000;  // the flood is cancelled as its client goes
}

Gaps gaps_beside_long_prompt(Engine& engine) {
  EngineClient client = client_of(engine);
  send(client, ask(1, "tenant", {.shared = 0, .own = 32, .generated = 200, .salt = 30}));
  std::vector<double> gaps;
  double last = 0;
  bool sent = false;
  while (true) {
    const wire::Frame frame = receive(client);
    if (const auto* chunk = std::get_if<wire::Chunk>(&frame);
        chunk != nullptr && chunk->stream == 1) {
      const double at = now().processor;
      if (last > 0) gaps.push_back((at - last) * 1000);
      last = at;
      if (!sent && chunk->generated >= 60) {
        send(client, ask(2, "tenant", {.shared = 0, .own = 480, .generated = 2, .salt = 31}));
        sent = true;
      }
    }
    if (const auto* done = std::get_if<wire::Finished>(&frame);
        done != nullptr && done->stream == 1)
      break;
  }
  std::sort(gaps.begin(), gaps.end());
  return {gaps.at(gaps.size() / 2), gaps.back()};
}

double bare_loop_seconds(const Model& model, std::uint32_t streams, std::uint32_t prompt_tokens,
                         std::uint32_t generated, int salt) {
  llama_context_params params = llama_context_default_params();
  params.n_seq_max = 16;
  params.n_ctx = 16 * 512;
  params.n_batch = params.n_ubatch = 512;
  params.n_outputs_max = 16;
  params.n_threads = params.n_threads_batch = 1;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.no_perf = true;
  const serve::ContextHandle context(llama_init_from_model(model.handle(), params));
  llama_batch batch = llama_batch_init(512, 0, 1);
  const auto add = [&](llama_token token, std::uint32_t position, std::uint32_t sequence,
                       bool logits) {
    const int i = batch.n_tokens++;
    batch.token[i] = token;
    batch.pos[i] = static_cast<llama_pos>(position);
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = static_cast<llama_seq_id>(sequence);
    batch.logits[i] = logits ? 1 : 0;
  };
  const double start = now().processor;
  std::vector<llama_token> last(streams);
  const auto likeliest = [&](int row) {
    const float* logits = llama_get_logits_ith(context.get(), row);
    return static_cast<llama_token>(std::max_element(logits, logits + model.vocabulary_size()) -
                                    logits);
  };
  for (std::uint32_t s = 0; s < streams; ++s) {
    const auto prompt =
        prompt_of({.shared = 0, .own = prompt_tokens, .generated = 0, .salt = salt}, s);
    batch.n_tokens = 0;
    for (std::uint32_t i = 0; i < prompt_tokens; ++i) add(prompt[i], i, s, i + 1 == prompt_tokens);
    if (llama_decode(context.get(), batch) != 0) give_up("the bare loop failed");
    last[s] = likeliest(-1);
  }
  for (std::uint32_t n = 1; n < generated; ++n) {
    batch.n_tokens = 0;
    for (std::uint32_t s = 0; s < streams; ++s) add(last[s], prompt_tokens + n - 1, s, true);
    if (llama_decode(context.get(), batch) != 0) give_up("the bare loop failed");
    for (std::uint32_t s = 0; s < streams; ++s) last[s] = likeliest(static_cast<int>(s));
  }
  const double spent = now().processor - start;
  llama_batch_free(batch);
  return spent;
}

}  // namespace loam::bench::infer

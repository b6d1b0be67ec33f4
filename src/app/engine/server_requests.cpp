// A request's life in the engine: from the frame that asks to the frame that says what it used.
#include <unistd.h>

#include <algorithm>
#include <random>

#include "app/engine/server.hpp"
#include "base/assert.hpp"

namespace loam::serve {

namespace wire = infer::wire;

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4U];
      out += digits[static_cast<unsigned char>(c) & 0xFU];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::uint64_t drawn_seed() {
  static std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

}  // namespace

void Server::submit(Connection& connection, wire::Submit submit) {
  Result<void> begun = wire::check_submit(submit);
  if (begun.ok() && requests_.count({connection.id(), submit.stream}) != 0) {
    begun = Error{ErrorKind::conflict, "stream " + std::to_string(submit.stream) + " is in use",
                  "choose another number"};
  }
  if (begun.ok() && !draining_.empty()) {
    begun = Error{ErrorKind::unavailable, "the instance takes no new requests",
                  "send the request to another one"};
  }
  if (begun.ok() && requests_.size() + embeddings_.size() >= options_.waiting_max) {
    begun =
        Error{ErrorKind::exhausted, std::to_string(options_.waiting_max) + " requests wait already",
              "come again later"};
  }
  if (begun.ok()) {
    begun = submit.work == wire::Submit::Work::embed ? begin_embedding(connection, submit)
                                                     : begin(connection, submit);
  }
  if (begun.ok()) return;
  const Error& error = begun.error();
  const bool later = error.kind == ErrorKind::exhausted || error.kind == ErrorKind::unavailable;
  ++totals_.failed;
  connection.send(wire::Failed{
      submit.stream, error.kind, error.message, error.next_step, later ? 1000U : 0U, {}});
}

Result<void> Server::begin(Connection& connection, const wire::Submit& submit) {
  LOAM_TRY(prompt, model_.tokenize(submit.prompt));
  LOAM_TRY(index, instance_for(submit.adapters));
  Pool& pool = pools_[index];
  infer::Batcher& batcher = pool.instance->batcher();
  const auto prompt_tokens = static_cast<std::uint32_t>(prompt.tokens.size());
  std::uint32_t tokens_max = submit.tokens_max;
  if (tokens_max == 0) {
    const std::uint32_t room =
        batcher.capacity() > prompt_tokens ? batcher.capacity() - prompt_tokens : 1;
    tokens_max = std::min(options_.tokens_max_default, room);
  }
  const RequestKey key{connection.id(), submit.stream};
  Request request;
  request.connection = connection.id();
  request.stream = submit.stream;
  request.name = submit.request;
  request.tenant = submit.tenant;
  request.instance = index;
  request.arrived_us = monotonic_us();
  const infer::Batcher::Load before = batcher.load();
  const std::uint64_t seed = submit.sampling.seed.value_or(drawn_seed());
  // Every sampler is made before the first answer is submitted, so that a failure leaves nothing.
  for (std::uint32_t choice = 0; choice < submit.choices; ++choice) {
    LOAM_TRY(sampler, Sampler::make(model_, submit.sampling, seed + choice));
    request.answers.push_back(
        {{}, std::move(sampler), infer::TextStream(submit.sampling.stop), {}});
  }
  for (std::uint32_t choice = 0; choice < submit.choices; ++choice) {
    infer::SequenceRequest ask{prompt.tokens, prompt.public_tokens, submit.tenant,
                               submit.weight, submit.service_class, tokens_max,
                               choice == 0};
    // The first may be refused; the others ask for the same.
    LOAM_TRY(sequence, batcher.submit(std::move(ask)));
    request.answers[choice].sequence = sequence;
    pool.owners.emplace(sequence, std::pair{key, std::size_t{choice}});
  }
  requests_.emplace(key, std::move(request));
  ++tenants_[submit.tenant].requests;
  connection.send(wire::Accepted{submit.stream, prompt_tokens, before.waiting + before.swapped});
  return {};
}

Result<void> Server::begin_embedding(Connection& connection, const wire::Submit& submit) {
  LOAM_TRY(prompt, model_.tokenize(submit.prompt));
  if (!embedder_) {
    LOAM_TRY(made, Embedder::make(model_, options_.embed_tokens_max, options_.instance.threads));
    embedder_ = std::move(made);
  }
  if (prompt.tokens.size() > embedder_->tokens_max()) {
    return invalid("the text to embed has " + std::to_string(prompt.tokens.size()) + " tokens",
                   "at most " + std::to_string(embedder_->tokens_max()) + " are possible");
  }
  const auto count = static_cast<std::uint32_t>(prompt.tokens.size());
  embeddings_.push_back({{connection.id(), submit.stream},
                         submit.request,
                         submit.tenant,
                         std::move(prompt.tokens),
                         monotonic_us()});
  ++tenants_[submit.tenant].requests;
  connection.send(
      wire::Accepted{submit.stream, count, static_cast<std::uint32_t>(embeddings_.size() - 1)});
  return {};
}

// The context with exactly these adapters; the library applies them to a whole context. One that
// nobody uses makes room for a new one.
Result<std::size_t> Server::instance_for(const std::vector<infer::AdapterUse>& adapters) {
  for (const infer::AdapterUse& use : adapters) {
    if (model_.adapter(use.name) == nullptr) {
      return Error{ErrorKind::not_found, "there is no adapter '" + use.name + "'",
                   "use one of those that the instance was started with"};
    }
  }
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].adapters == adapters) return i;
  }
  LOAM_TRY(made, Instance::make(model_, options_.instance, adapters, counters_));
  Pool fresh{adapters, std::move(made), {}};
  if (pools_.size() < options_.instances_max) {
    pools_.push_back(std::move(fresh));
    return pools_.size() - 1;
  }
  for (std::size_t i = 1; i < pools_.size(); ++i) {
    if (pools_[i].instance->batcher().has_work()) continue;
    pools_[i] = std::move(fresh);
    return i;
  }
  return Error{ErrorKind::exhausted,
               "all " + std::to_string(pools_.size()) + " contexts are in use", "come again later"};
}

void Server::tokenize(Connection& connection, const wire::Tokenize& ask) {
  const auto checked = infer::check_prompt(ask.prompt);
  const auto tokens =
      checked.ok() ? model_.tokenize(ask.prompt) : Result<TokenizedPrompt>(checked.error());
  if (tokens.ok()) {
    connection.send(wire::Tokens{ask.stream, tokens->tokens});
    return;
  }
  connection.send(wire::Failed{
      ask.stream, tokens.error().kind, tokens.error().message, tokens.error().next_step, 0, {}});
}

void Server::step(std::size_t index) {
  Pool& pool = pools_[index];
  const std::uint64_t start_us = monotonic_us();
  const Instance::Step step =
      pool.instance->step([&](infer::SequenceId sequence, const float* logits) {
        return sample(pool, sequence, logits);
      });
  ++totals_.steps;
  totals_.steps_us += step.us;
  totals_.batch_tokens += step.tokens;
  totals_.last_batch = static_cast<std::uint32_t>(step.computed.size());
  totals_.last_step_us = static_cast<std::uint32_t>(step.us);
  for (const infer::SequenceId sequence : step.computed) {
    const auto owner = pool.owners.find(sequence);
    if (owner == pool.owners.end()) continue;
    Request& request = requests_.at(owner->second.first);
    if (request.started_us == 0)
      request.started_us = std::max<std::uint64_t>(start_us - request.arrived_us, 1);
  }
  for (const infer::Ended& ended : step.ended) end_answer(pool, ended);
  for (std::size_t i = 0; i < step.broken.size(); ++i) {
    const auto owner = pool.owners.find(step.broken[i]);
    if (owner == pool.owners.end()) continue;
    const RequestKey key = owner->second.first;
    requests_.at(key).usage += step.broken_usage[i];
    requests_.at(key).answers[owner->second.second].done = true;
    pool.owners.erase(owner);
    fail_request(key, {ErrorKind::internal, "a step of the model failed: " + last_complaint(),
                       "send the request again"});
  }
}

infer::Sampled Server::sample(Pool& pool, infer::SequenceId sequence, const float* logits) {
  const auto& [key, choice] = pool.owners.at(sequence);
  Request& request = requests_.at(key);
  Answer& answer = request.answers[choice];
  auto picked = answer.sampler.pick(logits);
  if (!picked.ok()) {
    // Its request fails after the step; the other streams of the batch go on.
    request.faulty = true;
    request.fault = picked.error();
    return {sequence, 0, true};
  }
  ++answer.generated;
  if (request.first_token_us == 0) request.first_token_us = monotonic_us() - request.arrived_us;
  if (picked->logprob) answer.logprobs.push_back(std::move(*picked->logprob));
  wire::Chunk chunk{request.stream, static_cast<std::uint32_t>(choice), answer.generated, {}, {}};
  if (!picked->end) {
    auto piece = answer.text.push(model_.piece(picked->token));
    answer.stopped = piece.stopped;
    chunk.text = std::move(piece.text);
  }
  if (!chunk.text.empty()) {
    chunk.logprobs.swap(answer.logprobs);
    send(request.connection, std::move(chunk));
  }
  return {sequence, picked->token, picked->end || answer.stopped};
}

void Server::end_answer(Pool& pool, const infer::Ended& ended) {
  const auto owner = pool.owners.find(ended.sequence);
  // Another answer of its request failed in this same step and took it along.
  if (owner == pool.owners.end()) return;
  const auto [key, choice] = owner->second;
  pool.owners.erase(owner);
  Request& request = requests_.at(key);
  Answer& answer = request.answers[choice];
  request.usage += ended.usage;
  request.preemptions += ended.preemptions;
  answer.done = true;
  if (request.faulty) {
    const Error fault = request.fault;
    fail_request(key, fault);
    return;
  }
  answer.reason = ended.at_limit ? wire::FinishReason::length : wire::FinishReason::stop;
  std::string rest = answer.stopped ? std::string{} : answer.text.finish();
  if (!rest.empty() || !answer.logprobs.empty()) {
    send(request.connection,
         wire::Chunk{request.stream, static_cast<std::uint32_t>(choice), answer.generated,
                     std::move(rest), std::move(answer.logprobs)});
  }
  send(request.connection, wire::ChoiceDone{request.stream, static_cast<std::uint32_t>(choice),
                                            answer.reason, answer.generated});
  const bool all = std::all_of(request.answers.begin(), request.answers.end(),
                               [](const Answer& other) { return other.done; });
  if (all) end_request(key, request.answers.front().reason);
}

// Takes back what still runs of it; its usage is added up.
void Server::stop_answers(Request& request) {
  Pool& pool = pools_[request.instance];
  for (Answer& answer : request.answers) {
    if (answer.done) continue;
    answer.done = true;
    pool.owners.erase(answer.sequence);
    request.usage += pool.instance->batcher().cancel(answer.sequence).value_or(TokenUsage{});
  }
}

void Server::end_request(const RequestKey& key, wire::FinishReason reason) {
  const auto found = requests_.find(key);
  Request& request = found->second;
  const wire::Timing timing{request.started_us, request.first_token_us,
                            monotonic_us() - request.arrived_us, request.preemptions};
  send(request.connection, wire::Finished{request.stream, reason, request.usage, timing});
  record(request.name, request.tenant, request.usage,
         reason == wire::FinishReason::cancelled ? "cancelled" : "finished");
  requests_.erase(found);
}

void Server::fail_request(const RequestKey& key, const Error& error) {
  const auto found = requests_.find(key);
  if (found == requests_.end()) return;
  Request& request = found->second;
  stop_answers(request);
  ++totals_.failed;
  send(request.connection,
       wire::Failed{request.stream, error.kind, error.message, error.next_step,
                    error.kind == ErrorKind::unavailable ? 1000U : 0U, request.usage});
  record(request.name, request.tenant, request.usage, "failed");
  requests_.erase(found);
}

void Server::cancel(const RequestKey& key) {
  const auto found = requests_.find(key);
  if (found != requests_.end()) {
    stop_answers(found->second);
    ++totals_.cancelled;
    end_request(key, wire::FinishReason::cancelled);
    return;
  }
  for (auto job = embeddings_.begin(); job != embeddings_.end(); ++job) {
    if (job->key != key) continue;
    ++totals_.cancelled;
    send(key.first, wire::Finished{key.second, wire::FinishReason::cancelled, {}, {}});
    embeddings_.erase(job);
    return;
  }
}

void Server::embed_one() {
  const EmbedJob job = std::move(embeddings_.front());
  embeddings_.pop_front();
  const std::uint64_t start = monotonic_us();
  auto values = embedder_->embed(job.tokens);
  TokenUsage usage;
  usage.engine_time_us = monotonic_us() - start;
  if (!values.ok()) {
    const Error& error = values.error();
    ++totals_.failed;
    send(job.key.first,
         wire::Failed{job.key.second, error.kind, error.message, error.next_step, 0, usage});
    return;
  }
  usage.prompt_tokens = static_cast<std::uint32_t>(job.tokens.size());
  const std::uint64_t waited = start - job.arrived_us;
  send(job.key.first, wire::Embedding{job.key.second, std::move(*values)});
  send(job.key.first, wire::Finished{job.key.second,
                                     wire::FinishReason::stop,
                                     usage,
                                     {waited, 0, monotonic_us() - job.arrived_us, 0}});
  record(job.name, job.tenant, usage, "finished");
}

void Server::record(const std::string& name, const std::string& tenant, const TokenUsage& usage,
                    const char* outcome) {
  tenants_[tenant].usage += usage;
  totals_.usage += usage;
  if (usage_file_ < 0) return;
  const std::string line = "{\"request\":" + quoted(name) + ",\"tenant\":" + quoted(tenant) +
                           ",\"model\":" + quoted(options_.model_name) + ",\"outcome\":\"" +
                           outcome + "\",\"prompt_tokens\":" + std::to_string(usage.prompt_tokens) +
                           ",\"cached_tokens\":" + std::to_string(usage.cached_tokens) +
                           ",\"generated_tokens\":" + std::to_string(usage.generated_tokens) +
                           ",\"recomputed_tokens\":" + std::to_string(usage.recomputed_tokens) +
                           ",\"engine_time_us\":" + std::to_string(usage.engine_time_us) + "}\n";
  // One write a line: a reader never sees half of one.
  if (write(usage_file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    ++totals_.failed;
}

}  // namespace loam::serve

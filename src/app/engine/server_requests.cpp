// A request's life in the engine: from the frame that asks to the frame that says what it used.
#include <unistd.h>

#include <algorithm>
#include <cmath>
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
  const wire::StreamId stream = submit.stream;
  const auto begun = admit(connection, std::move(submit));
  if (!begun.ok()) refuse(connection.id(), stream, begun.error());
}

// What needs no more than a moment between two steps is read here; more prompts, longer ones, and
// grammars, whose cost is not seen from their length, beside the loop.
Result<void> Server::admit(Connection& connection, wire::Submit submit) {
  constexpr std::size_t round_bytes = 4096;  // of all clients; about a millisecond
  LOAM_CHECK(wire::check_submit(submit));
  const RequestKey key{connection.id(), submit.stream};
  if (in_use(key)) {
    return Error{ErrorKind::conflict, "stream " + std::to_string(submit.stream) + " is in use",
                 "choose another number"};
  }
  if (!draining_.empty()) {
    return Error{ErrorKind::unavailable, "the instance takes no new requests",
                 "send the request to another one"};
  }
  if (requests_.size() + embeddings_.size() + reading_.size() >= options_.waiting_max) {
    return Error{ErrorKind::exhausted,
                 std::to_string(options_.waiting_max) + " requests wait already",
                 "come again later"};
  }
  const std::uint32_t tokens_max = pools_.front().instance->batcher().capacity();
  if (submit.prompt.kind == infer::Prompt::Kind::text) {
    LOAM_CHECK(model_.check_length(submit.prompt.text, tokens_max));
  }
  const bool has_grammar = submit.sampling.grammar.kind != infer::Grammar::Kind::none;
  UnreadRequest request{connection.id(), 0,         std::move(submit), drawn_seed(),
                        monotonic_us(),  tokens_max};
  if (const auto seed = std::get<wire::Submit>(request.frame).sampling.seed) request.seed = *seed;
  if (has_grammar || bytes_read_ + request.bytes() > round_bytes) {
    return read_later(std::move(request));
  }
  bytes_read_ += request.bytes();
  LOAM_TRY(read, read_request(model_, request));
  return begin(request, std::move(read));
}

Result<void> Server::read_later(UnreadRequest request) {
  const RequestKey key{request.connection, std::get<wire::Submit>(request.frame).stream};
  request.serial = next_serial_++;
  const std::uint64_t serial = request.serial;
  LOAM_CHECK(reader_->add(std::move(request)));
  reading_.emplace(key, serial);
  return {};
}

void Server::take_read() {
  for (PromptReader::Done& done : reader_->take()) {
    const auto* submit = std::get_if<wire::Submit>(&done.request.frame);
    if (submit == nullptr) {
      answer_tokens(done.request, done.read);
      continue;
    }
    const auto found = reading_.find({done.request.connection, submit->stream});
    // Cancelled meanwhile; its number may be another request's by now.
    if (found == reading_.end() || found->second != done.request.serial) continue;
    reading_.erase(found);
    const auto begun = done.read.ok() ? begin(done.request, std::move(*done.read))
                                      : Result<void>(done.read.error());
    if (!begun.ok()) refuse(done.request.connection, submit->stream, begun.error());
  }
}

void Server::refuse(ConnectionId connection, wire::StreamId stream, const Error& error) {
  const bool later = error.kind == ErrorKind::exhausted || error.kind == ErrorKind::unavailable;
  ++totals_.failed;
  send(connection,
       wire::Failed{stream, error.kind, error.message, error.next_step, later ? 1000U : 0U, {}});
}

Result<void> Server::begin(const UnreadRequest& unread, ReadRequest read) {
  const auto& submit = std::get<wire::Submit>(unread.frame);
  if (submit.work == wire::Submit::Work::embed) return begin_embedding(unread, std::move(read));
  const TokenizedPrompt& prompt = read.prompt;
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
  const RequestKey key{unread.connection, submit.stream};
  Request request;
  request.connection = unread.connection;
  request.stream = submit.stream;
  request.name = submit.request;
  request.tenant = submit.tenant;
  request.instance = index;
  request.arrived_us = unread.arrived_us;
  const infer::Batcher::Load before = batcher.load();
  for (Sampler& sampler : read.samplers) {
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
  send(key.first, wire::Accepted{submit.stream, prompt_tokens, before.waiting + before.swapped});
  return {};
}

Result<void> Server::begin_embedding(const UnreadRequest& unread, ReadRequest read) {
  const auto& submit = std::get<wire::Submit>(unread.frame);
  infer::Batcher& batcher = pools_.front().instance->batcher();
  const infer::Batcher::Load before = batcher.load();
  const auto prompt_tokens = static_cast<std::uint32_t>(read.prompt.tokens.size());
  infer::SequenceRequest ask;
  ask.prompt = std::move(read.prompt.tokens);
  ask.public_tokens = read.prompt.public_tokens;
  ask.tenant = submit.tenant;
  ask.weight = submit.weight;
  ask.service_class = submit.service_class;
  ask.tokens_max = 0;
  ask.work = infer::PromptWork::embedding;
  LOAM_TRY(sequence, batcher.submit(std::move(ask)));
  const RequestKey key{unread.connection, submit.stream};
  EmbedJob job{submit.request, submit.tenant, sequence, {}, 0, unread.arrived_us, 0};
  job.sum.resize(static_cast<std::size_t>(llama_model_n_embd_out(model_.handle())));
  embeddings_.emplace(key, std::move(job));
  texts_.emplace(sequence, key);
  ++tenants_[submit.tenant].requests;
  send(key.first, wire::Accepted{submit.stream, prompt_tokens, before.waiting + before.swapped});
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

void Server::tokenize(Connection& connection, wire::Tokenize ask) {
  const auto checked = infer::check_prompt(ask.prompt);
  UnreadRequest request{connection.id(), 0, std::move(ask), 0, 0, 0};
  if (!checked.ok()) return answer_tokens(request, checked.error());
  const wire::StreamId stream = std::get<wire::Tokenize>(request.frame).stream;
  const auto added = reader_->add(std::move(request));
  if (!added.ok()) refuse(connection.id(), stream, added.error());
}

void Server::answer_tokens(const UnreadRequest& request, const Result<ReadRequest>& read) {
  const wire::StreamId stream = std::get<wire::Tokenize>(request.frame).stream;
  if (!read.ok()) return refuse(request.connection, stream, read.error());
  send(request.connection, wire::Tokens{stream, read->prompt.tokens});
}

void Server::step(std::size_t index) {
  Pool& pool = pools_[index];
  const std::uint64_t start_us = monotonic_us();
  const Instance::Step step =
      pool.instance->step([&](infer::SequenceId sequence,
                              const float* logits) { return sample(pool, sequence, logits); },
                          [&](infer::SequenceId sequence, std::uint32_t position,
                              const float* vector) { take_vector(sequence, position, vector); });
  ++totals_.steps;
  totals_.steps_us += step.us;
  totals_.batch_tokens += step.tokens;
  totals_.last_batch = static_cast<std::uint32_t>(step.computed.size());
  totals_.last_step_us = static_cast<std::uint32_t>(step.us);
  for (const infer::SequenceId sequence : step.computed) mark_started(pool, sequence, start_us);
  for (const infer::Ended& ended : step.ended) {
    if (&pool == &pools_.front() && texts_.count(ended.sequence) != 0) {
      end_embedding(ended);
    } else {
      end_answer(pool, ended);
    }
  }
  for (std::size_t i = 0; i < step.broken.size(); ++i) {
    break_off(pool, step.broken[i], step.broken_usage[i]);
  }
}

void Server::mark_started(Pool& pool, infer::SequenceId sequence, std::uint64_t start_us) {
  const auto mark = [&](auto& request) {
    if (request.started_us == 0)
      request.started_us = std::max<std::uint64_t>(start_us - request.arrived_us, 1);
  };
  const auto owner = pool.owners.find(sequence);
  if (owner != pool.owners.end()) return mark(requests_.at(owner->second.first));
  const auto text = texts_.find(sequence);
  if (&pool == &pools_.front() && text != texts_.end()) mark(embeddings_.at(text->second));
}

// The sequence's step failed; the batcher has let go of it.
void Server::break_off(Pool& pool, infer::SequenceId sequence, const TokenUsage& usage) {
  const Error error{ErrorKind::internal, "a step of the model failed: " + last_complaint(),
                    "send the request again"};
  const auto text = texts_.find(sequence);
  if (&pool == &pools_.front() && text != texts_.end()) {
    return fail_request(text->second, error, usage);
  }
  const auto owner = pool.owners.find(sequence);
  if (owner == pool.owners.end()) return;
  const RequestKey key = owner->second.first;
  requests_.at(key).usage += usage;
  requests_.at(key).answers[owner->second.second].done = true;
  pool.owners.erase(owner);
  fail_request(key, error);
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

void Server::fail_request(RequestKey key, const Error& error, const TokenUsage& spent) {
  TokenUsage usage = spent;
  const auto found = requests_.find(key);
  const auto text = embeddings_.find(key);
  if (found != requests_.end()) {
    stop_answers(found->second);
    usage = found->second.usage;
    record(found->second.name, found->second.tenant, usage, "failed");
    requests_.erase(found);
  } else if (text != embeddings_.end()) {
    usage += stop_embedding(text->second);
    record(text->second.name, text->second.tenant, usage, "failed");
    embeddings_.erase(text);
  } else {
    return;
  }
  ++totals_.failed;
  send(key.first, wire::Failed{key.second, error.kind, error.message, error.next_step,
                               error.kind == ErrorKind::unavailable ? 1000U : 0U, usage});
}

void Server::cancel(RequestKey key) {
  TokenUsage usage;
  const auto found = requests_.find(key);
  if (found != requests_.end()) {
    stop_answers(found->second);
    ++totals_.cancelled;
    end_request(key, wire::FinishReason::cancelled);
    return;
  }
  const auto text = embeddings_.find(key);
  const auto unread = reading_.find(key);
  if (text != embeddings_.end()) {
    usage = stop_embedding(text->second);
    record(text->second.name, text->second.tenant, usage, "cancelled");
    embeddings_.erase(text);
  } else if (unread != reading_.end()) {
    reader_->forget(unread->second);
    reading_.erase(unread);
  } else {
    return;
  }
  ++totals_.cancelled;
  send(key.first, wire::Finished{key.second, wire::FinishReason::cancelled, usage, {}});
}

// Takes back what still runs of it; gives what it used.
TokenUsage Server::stop_embedding(const EmbedJob& job) {
  texts_.erase(job.sequence);
  return pools_.front().instance->batcher().cancel(job.sequence).value_or(TokenUsage{});
}

void Server::take_vector(infer::SequenceId sequence, std::uint32_t position, const float* vector) {
  EmbedJob& job = embeddings_.at(texts_.at(sequence));
  if (position < job.taken) return;
  LOAM_ASSERT(position == job.taken && vector != nullptr);
  ++job.taken;
  for (std::size_t i = 0; i < job.sum.size(); ++i) job.sum[i] += static_cast<double>(vector[i]);
}

void Server::end_embedding(const infer::Ended& ended) {
  const auto text = texts_.find(ended.sequence);
  const RequestKey key = text->second;
  texts_.erase(text);
  const auto found = embeddings_.find(key);
  const EmbedJob job = std::move(found->second);
  embeddings_.erase(found);
  double square = 0;
  for (const double value : job.sum) square += value * value;
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  std::vector<float> values;
  for (const double value : job.sum) values.push_back(static_cast<float>(value * scale));
  send(key.first, wire::Embedding{key.second, std::move(values)});
  send(key.first,
       wire::Finished{key.second,
                      wire::FinishReason::stop,
                      ended.usage,
                      {job.started_us, 0, monotonic_us() - job.arrived_us, ended.preemptions}});
  record(job.name, job.tenant, ended.usage, "finished");
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

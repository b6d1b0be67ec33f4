// The clients' side of the hub: a request is let in, sent to an instance, answered and settled.
#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "gateway/hub.hpp"

namespace loam::gateway {

namespace wire = infer::wire;

namespace {

// Instances that one prompt is tried on: what breaks three would break the next, too.
constexpr int tries_max = 3;
// Reserved for a request that names no bound, where no instance has told its own.
constexpr std::uint32_t tokens_reserved_default = 256;
// Tenants whose meters are kept although they are idle.
constexpr std::size_t meters_max = 4096;

std::int64_t elapsed_ms(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
}
std::uint64_t elapsed_us(SteadyTime from, SteadyTime to) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(to - from).count(), 0));
}

ApiError no_model(const std::string& model) {
  return {404, "There is no model \"" + model.substr(0, 80) + "\" here; GET /v1/models lists them.",
          "invalid_request_error", "model", "model_not_found"};
}

ApiError unavailable(std::string message) {
  return {503, std::move(message), "server_error", {}, "unavailable", Duration::seconds(1)};
}

std::string prompt_field(Work work) {
  return work == Work::chat ? "messages" : work == Work::completion ? "prompt" : "input";
}

ApiError too_long(Work work, std::uint64_t tokens, std::uint32_t context) {
  return bad_request("The prompt has " + std::to_string(tokens) +
                         " tokens and the model's context " + std::to_string(context) +
                         "; send a shorter prompt.",
                     prompt_field(work), "context_length_exceeded");
}

ApiError over_limit(const std::string& tenant, const TenantMeter::Refusal& refusal) {
  const bool requests = refusal.which == TenantMeter::Which::requests;
  const bool tokens = refusal.which == TenantMeter::Which::tokens;
  const std::string unit = requests ? "requests a minute"
                           : tokens ? "tokens a minute"
                                    : "requests at once";
  return {429,
          tenant + " has reached its limit of " + std::to_string(refusal.limit) + " " + unit +
              "; try again in " + to_text(refusal.retry_after) + ".",
          requests ? "requests"
          : tokens ? "tokens"
                   : "concurrency",
          {},
          "rate_limit_exceeded",
          refusal.retry_after};
}

ApiError error_of(const wire::Failed& failed, Work work) {
  ApiError error = api_error({failed.kind, failed.message, failed.next_step});
  if (failed.kind == ErrorKind::exhausted) {  // the instance's capacity, not the tenant's limit
    error.status = 503;
    error.type = "server_error";
    error.code = "overloaded";
  }
  if (failed.retry_after_ms > 0) {
    error.retry_after = Duration{failed.retry_after_ms};
  } else if (error.status == 503) {
    error.retry_after = Duration::seconds(1);
  }
  if (failed.kind != ErrorKind::invalid_argument) return error;
  // Faults of a request that only the engine can tell, by what it says of them. Clients look for
  // the first by its name.
  if (failed.message.find("context") != std::string::npos) {
    error.param = prompt_field(work);
    error.code = "context_length_exceeded";
  } else if (failed.message.starts_with("logit_bias")) {
    error.param = "logit_bias";
  } else if (failed.message.starts_with("the grammar")) {
    error.param = "loam.grammar";
  }
  return error;
}

bool may_be_elsewhere(ErrorKind kind) {
  return kind == ErrorKind::exhausted || kind == ErrorKind::unavailable ||
         kind == ErrorKind::internal || kind == ErrorKind::corrupt;
}

const char* name_of(UsageOutcome outcome) {
  switch (outcome) {
    case UsageOutcome::answered:
      return "answered";
    case UsageOutcome::client_left:
      return "client_left";
    case UsageOutcome::failed:
      break;
  }
  return "failed";
}

}  // namespace

// --- Letting a request in ------------------------------------------------------------------------

void Hub::take_job(std::shared_ptr<Job> given) {
  Job& job = *given;
  jobs_.emplace(job.id, std::move(given));
  if (auto refused = admit(job)) return fail(job, std::move(*refused));
  // Asked for here and not where the request came in, so that nobody leaves before he is known.
  job.responder->on_leave(when_client_leaves(job.id));
  advance(job);
}

std::optional<ApiError> Hub::admit(Job& job) {
  const auto found = models_.find(job.head.model);
  if (found == models_.end() || !found->second.endpoint.tier_of.empty())
    return no_model(job.head.model);
  const Endpoint& endpoint = found->second.endpoint;
  const std::string& tenant = job.caller.tenant;
  if (!endpoint.callers.empty() && tenant != endpoint.owner &&
      std::find(endpoint.callers.begin(), endpoint.callers.end(), tenant) == endpoint.callers.end())
    return no_model(job.head.model);
  if (jobs_.size() > settings.requests_max)
    return unavailable("The gateway has " + std::to_string(settings.requests_max) +
                       " requests in flight, which is all it takes; send it again later.");
  job.model = served_as(job);
  Model& model = models_.at(job.model);
  ++model.requests;
  model.last_request = job.arrived;
  predict(job, model);
  if (auto refused = check_limits(job)) {
    ++model.metrics.refused;
    return refused;
  }
  job.is_admitted = true;
  ++model.metrics.in_flight;
  return std::nullopt;
}

const wire::Welcome* Hub::any_welcome(const Model& model) const {
  for (const LinkId id : model.links) {
    if (links_.at(id)->is_up) return &links_.at(id)->welcome;
  }
  return nullptr;
}

// How many tokens each part will need at most.
void Hub::predict(Job& job, const Model& model) const {
  const wire::Welcome* welcome = any_welcome(model);
  std::uint64_t answer = 0;
  if (job.head.work != Work::embedding) {
    answer = job.tokens_max > 0                                      ? job.tokens_max
             : welcome != nullptr && welcome->tokens_max_default > 0 ? welcome->tokens_max_default
                                                                     : tokens_reserved_default;
    if (welcome != nullptr && welcome->context_tokens > 0)
      answer = std::min<std::uint64_t>(answer, welcome->context_tokens);
  }
  for (Part& part : job.parts) {
    part.tokens = infer::estimate_tokens(part.submit.prompt) + answer * job.choices;
    job.tokens_reserved += part.tokens;
  }
}

std::optional<ApiError> Hub::check_limits(Job& job) {
  const Instant now = wall_now();
  if (meters_.size() > meters_max) {
    for (auto meter = meters_.begin(); meter != meters_.end();)
      meter = meter->second.idle(now) ? meters_.erase(meter) : std::next(meter);
  }
  const auto refusal =
      meters_[job.caller.tenant].admit(job.caller.limits, job.tokens_reserved, now);
  if (!refusal) return std::nullopt;
  return over_limit(job.caller.tenant, *refusal);
}

// --- Sending it to an instance -------------------------------------------------------------------

void Hub::advance(Job& job) {
  while (!job.is_over && !job.to_place.empty() && job.parts_out < settings.prompts_at_once) {
    const std::uint32_t index = job.to_place.front();
    switch (place(job, index)) {
      case Placed::sent:
        job.to_place.pop_front();
        break;
      case Placed::nowhere:
        return wait_for_instance(job);
      case Placed::refused:
        return;
    }
  }
}

Hub::Link* Hub::choose(const Model& model, const Part& part) {
  std::vector<Link*> links;
  std::vector<infer::InstanceView> views;
  for (const LinkId id : model.links) {
    Link& link = *links_.at(id);
    infer::InstanceView view;
    view.accepting =
        accepts(link) && std::find(part.tried.begin(), part.tried.end(), id) == part.tried.end();
    view.matched = link.trail.matched(part.marks);
    view.slots = std::max<std::uint32_t>(link.welcome.slots, 1);
    view.in_flight = static_cast<std::uint32_t>(link.flights.size());
    view.cells = link.welcome.cells;
    view.cells_promised = std::max<std::uint64_t>(link.stats.cells_promised, link.tokens_promised);
    links.push_back(&link);
    views.push_back(view);
  }
  const auto chosen = infer::choose_instance(views, part.tokens);
  return chosen ? links[*chosen] : nullptr;
}

Hub::Placed Hub::place(Job& job, std::uint32_t index) {
  const auto found = models_.find(job.model);
  if (found == models_.end()) {
    fail(job, no_model(job.head.model));
    return Placed::refused;
  }
  Part& part = job.parts[index];
  Link* link = choose(found->second, part);
  if (link == nullptr) return Placed::nowhere;
  const wire::Welcome& welcome = link->welcome;
  const infer::Prompt& prompt = part.submit.prompt;
  if (welcome.context_tokens > 0 && prompt.tokens.size() >= welcome.context_tokens) {
    fail(job, too_long(job.head.work, prompt.tokens.size(), welcome.context_tokens));
    return Placed::refused;
  }
  if (job.head.work == Work::embedding &&
      (welcome.embedding_length == 0 ||
       (job.dimensions != 0 && job.dimensions != welcome.embedding_length))) {
    fail(job, welcome.embedding_length == 0
                  ? bad_request("The model " + job.head.model + " gives no embeddings.", "model",
                                "unsupported_value")
                  : bad_request("dimensions is " + std::to_string(job.dimensions) +
                                    " and the model's embeddings have " +
                                    std::to_string(welcome.embedding_length) + "; leave it out.",
                                "dimensions", "unsupported_value"));
    return Placed::refused;
  }
  part.link = link->id;
  part.stream = ++link->last_stream;
  ++part.tries;
  ++job.parts_out;
  link->flights.emplace(part.stream, Flight{&job, index});
  link->tokens_promised += part.tokens;
  link->trail.note(part.marks);
  part.submit.stream = part.stream;
  wire::Frame frame(std::move(part.submit));
  send(*link, frame);
  part.submit = std::move(std::get<wire::Submit>(frame));
  return Placed::sent;
}

void Hub::wait_for_instance(Job& job) {
  Model& model = models_.at(job.model);
  if (model.links.empty() && ports.demand == nullptr)
    return fail(job,
                unavailable("No instance serves " + job.head.model + " now; try again later."));
  if (model.is_refused && model.links.empty()) {
    if (ports.demand != nullptr) ports.demand->wanted(job.model);  // it is tried again
    return fail(job, no_instance(job, model, "No instance serves " + job.head.model + " now"));
  }
  for (const std::uint32_t part : job.to_place) job.parts[part].tried.clear();
  if (!job.is_waiting) ++model.metrics.waiting;
  job.is_waiting = true;
  job.wait_until = job.arrived_at + std::chrono::milliseconds(settings.start_wait_max.ms);
  waiting_.insert(job.id);
  if (ports.demand != nullptr) ports.demand->wanted(job.model);
}

ApiError Hub::no_instance(const Job& job, const Model& model, std::string what) const {
  const bool may_know = !model.is_refused || job.caller.tenant == model.endpoint.owner;
  if (!model.why.empty() && may_know) what += ": " + model.why;
  return unavailable(what + "; try again later.");
}

void Hub::explain(const std::string& name, std::string why, bool is_refused) {
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  Model& model = found->second;
  model.why = std::move(why);
  model.is_refused = is_refused;
  if (!is_refused || !model.links.empty()) return;
  const std::vector<std::uint64_t> ids(waiting_.begin(), waiting_.end());
  for (const std::uint64_t id : ids) {
    Job& job = *jobs_.at(id);
    if (job.model == name)
      fail(job, no_instance(job, model, "No instance serves " + name + " now"));
  }
}

void Hub::end_waiting(Job& job) {
  if (!job.is_waiting) return;
  job.is_waiting = false;
  waiting_.erase(job.id);
  if (const auto model = models_.find(job.model); model != models_.end())
    --model->second.metrics.waiting;
}

// Sends those that wait for `model` on; without a model, ends those that have waited too long.
void Hub::tend_waiting(const std::string* model) {
  while (model == nullptr && !waiting_.empty()) {
    Job& job = *jobs_.at(*waiting_.begin());
    if (now_ < job.wait_until) return;
    const std::string what =
        "No instance of " + job.head.model + " came up in " + to_text(settings.start_wait_max);
    const auto model = models_.find(job.model);
    fail(job, model == models_.end() ? unavailable(what + "; try again later.")
                                     : no_instance(job, model->second, what));
  }
  if (model == nullptr) return;
  const std::vector<std::uint64_t> ids(waiting_.begin(), waiting_.end());
  for (const std::uint64_t id : ids) {
    Job& job = *jobs_.at(id);
    if (job.model != *model || !job.is_waiting) continue;
    end_waiting(job);
    advance(job);
  }
}

// --- What the engine says ------------------------------------------------------------------------

void Hub::note_text(Job& job, Part& part, std::uint32_t tokens) {
  const auto model = models_.find(job.model);
  if (!part.is_started) {
    part.is_started = true;
    part.submit = {};
    part.marks = {};
    part.tried = {};
    if (!job.first_token_at) {
      job.first_token_at = now_;
      if (model != models_.end())
        model->second.note_first_token(elapsed_us(job.arrived_at, now_), steady_now());
    }
  } else if (model != models_.end()) {
    model->second.note_gap(elapsed_us(part.last_text, now_), steady_now());
  }
  part.last_text = now_;
  if (model == models_.end()) return;
  ++model->second.metrics.chunks;
  model->second.recent.generated(tokens, steady_now());
}

void Hub::take_text(Flight flight, wire::Chunk& chunk) {
  Job& job = *flight.job;
  Part& part = job.parts[flight.part];
  if (chunk.choice >= job.choices) return;
  const std::uint32_t before = std::exchange(part.generated[chunk.choice], chunk.generated);
  note_text(job, part, chunk.generated - std::min(chunk.generated, before));
  if (job.is_over || (chunk.text.empty() && chunk.logprobs.empty())) return;
  const std::size_t choice = std::size_t{flight.part} * job.choices + chunk.choice;
  if (!job.streams) {
    Choice& answer = job.answers[choice];
    answer.text += chunk.text;
    std::move(chunk.logprobs.begin(), chunk.logprobs.end(), std::back_inserter(answer.logprobs));
    return;
  }
  scratch_.clear();
  begin_choice(job, choice);
  job.writer.text(scratch_, static_cast<std::uint32_t>(choice), chunk.text, chunk.logprobs,
                  job.text_offsets[choice]);
  write(job, scratch_);
}

void Hub::take_choice_end(Flight flight, const wire::ChoiceDone& done) {
  Job& job = *flight.job;
  if (done.choice >= job.choices) return;
  job.parts[flight.part].generated[done.choice] = done.generated;
  if (job.is_over || done.reason == wire::FinishReason::failed ||
      done.reason == wire::FinishReason::cancelled)
    return;  // the stream's own end follows, and says it
  const std::size_t choice = std::size_t{flight.part} * job.choices + done.choice;
  job.answers[choice].reason = done.reason;
  if (!job.streams) return;
  scratch_.clear();
  begin_choice(job, choice);
  job.writer.end_choice(scratch_, static_cast<std::uint32_t>(choice), done.reason);
  write(job, scratch_);
}

void Hub::take_embedding(Flight flight, wire::Embedding& embedding) {
  Job& job = *flight.job;
  if (job.is_over || job.head.work != Work::embedding) return;
  const auto& values = embedding.values;
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    return fail(
        job, {500, "The model's embedding is not a number.", "server_error", {}, "internal_error"});
  job.vectors[flight.part] = std::move(embedding.values);
}

void Hub::take_end(Link& link, Flight flight, const wire::Finished& finished) {
  Job& job = *flight.job;
  job.usage += finished.usage;
  job.instance = link.name;
  if (job.is_over) return forget_if_done(job);
  if (finished.reason == wire::FinishReason::failed ||
      finished.reason == wire::FinishReason::cancelled) {
    return fail(job,
                {500, "The instance gave the request up.", "server_error", {}, "internal_error"});
  }
  end_part(job);
}

void Hub::take_failure(Link& link, Flight flight, const wire::Failed& failed) {
  Job& job = *flight.job;
  Part& part = job.parts[flight.part];
  job.instance = link.name;
  if (!job.is_over && !part.is_started && part.tries < tries_max && may_be_elsewhere(failed.kind)) {
    part.tried.push_back(link.id);
    Model& model = models_.at(job.model);
    if (choose(model, part) != nullptr) {
      ++model.metrics.repeated;
      job.wasted += failed.usage;
      job.to_place.push_front(flight.part);
      return advance(job);
    }
  }
  job.usage += failed.usage;
  if (job.is_over) return forget_if_done(job);
  fail(job, error_of(failed, job.head.work));
}

// The connection to the instance has ended.
void Hub::lose_part(Flight flight, const Link& link) {
  Job& job = *flight.job;
  Part& part = job.parts[flight.part];
  part.link = 0;
  --job.parts_out;
  job.instance = link.name;
  if (!job.is_over && !part.is_started && part.tries < tries_max) {
    part.tried.push_back(link.id);
    ++models_.at(job.model).metrics.repeated;
    job.to_place.push_front(flight.part);
    return advance(job);
  }
  // What was seen; the engine's own file has the rest.
  job.is_settled = false;
  job.usage.prompt_tokens += part.prompt_tokens;
  for (const std::uint32_t generated : part.generated) job.usage.generated_tokens += generated;
  if (job.is_over) return forget_if_done(job);
  fail(job, {502,
             "The instance that computed the answer was lost; send the request again.",
             "server_error",
             {},
             "instance_lost",
             Duration::seconds(1)});
}

// --- What the client is told ---------------------------------------------------------------------

http::Response Hub::head_of(const Job& job, http::Response response) const {
  response.headers.set("X-Request-Id", job.head.id);
  response.headers.set("OpenAI-Processing-Ms", std::to_string(elapsed_ms(job.arrived_at, now_)));
  return response;
}

// The answer's head leaves with its first text, so that until then every fault has its own status.
void Hub::begin_choice(Job& job, std::size_t choice) {
  if (job.responder) {
    job.stream = job.responder->begin_events(head_of(job, {}));
    job.responder.reset();
    job.stream.on_close(when_client_leaves(job.id));
  }
  if (job.begun[choice]) return;
  job.begun[choice] = true;
  job.writer.begin_choice(scratch_, static_cast<std::uint32_t>(choice));
}

// Called on a server thread, maybe after the gateway's end.
std::function<void()> Hub::when_client_leaves(std::uint64_t job) {
  return [weak = weak_from_this(), job] {
    const auto hub = weak.lock();
    if (hub != nullptr) hub->post([hub = hub.get(), job] { hub->client_left(job); });
  };
}

// A client that does not read is let go before it fills the memory.
void Hub::write(Job& job, std::string_view bytes) {
  if (job.stream.write(bytes) != http::Sent::queued) abandon(job);
}

void Hub::client_left(std::uint64_t id) {
  const auto found = jobs_.find(id);
  if (found != jobs_.end() && !found->second->is_over) abandon(*found->second);
}

void Hub::cancel_parts(Job& job) {
  end_waiting(job);
  job.to_place.clear();
  for (const Part& part : job.parts) {
    if (part.link != 0) send(*links_.at(part.link), wire::Cancel{part.stream});
  }
}

void Hub::abandon(Job& job) {
  job.is_over = true;
  job.outcome = UsageOutcome::client_left;
  cancel_parts(job);
  if (job.responder) {  // one that has only closed its sending side can still read
    job.responder->respond(
        head_of(job, to_response(bad_request("The client closed the connection before the answer.",
                                             "", "client_closed"))));
    job.responder.reset();
  }
  job.stream = {};
  forget_if_done(job);
}

void Hub::fail(Job& job, ApiError error) {
  if (job.is_over) return;
  job.is_over = true;
  job.outcome = UsageOutcome::failed;
  cancel_parts(job);
  if (job.responder) {
    job.responder->respond(head_of(job, to_response(error)));
    job.responder.reset();
  } else {
    scratch_.clear();
    error_event(scratch_, error);
    static_cast<void>(job.stream.write(scratch_));  // best effort
    job.stream.finish();
  }
  forget_if_done(job);
}

void Hub::end_part(Job& job) {
  ++job.parts_ended;
  if (job.parts_ended < job.parts.size()) return advance(job);
  job.is_over = true;
  settle(job);
  answer(job);
  done_.push_back(job.id);
}

void Hub::forget_if_done(Job& job) {
  if (job.parts_out > 0) return;
  settle(job);
  done_.push_back(job.id);
}

// The request's accounts, once.
void Hub::settle(Job& job) {
  if (!std::exchange(job.is_admitted, false)) return;
  const std::uint64_t used = std::uint64_t{job.usage.prompt_tokens} + job.usage.generated_tokens;
  const Instant now = wall_now();
  meters_[job.caller.tenant].end(job.tokens_reserved, used, now);
  UsageRecord record{job.head.id,   job.caller,  job.model, {},         job.instance,
                     job.head.work, job.outcome, job.usage, job.wasted, job.is_settled,
                     job.arrived,   {},          {}};
  record.lasted = {elapsed_ms(job.arrived_at, now_)};
  record.tags = job.tags;
  if (job.first_token_at) record.to_first_token = {elapsed_ms(job.arrived_at, *job.first_token_at)};
  if (const auto model = models_.find(job.model); model != models_.end()) {
    record.owner = model->second.endpoint.owner;
    record.owner_attribution = model->second.endpoint.attribution;
    ModelMetrics& metrics = model->second.metrics;
    --metrics.in_flight;
    ++metrics.ended[name_of(job.outcome)];
    metrics.lasted.observe(elapsed_us(job.arrived_at, now_));
    metrics.count(job.usage, now);
    model->second.recent.prompt(job.usage.prompt_tokens, job.usage.cached_tokens, steady_now());
  }
  if (ports.sink != nullptr) ports.sink->record(record);
}

void Hub::answer(Job& job) {
  if (job.streams) {
    scratch_.clear();
    if (job.responder) begin_choice(job, 0);  // a stream without a single choice's text
    if (job.head.include_usage) job.writer.usage(scratch_, job.usage);
    scratch_ += done_event;
    static_cast<void>(job.stream.write(scratch_));  // the accounts are closed either way
    job.stream.finish();
    return;
  }
  std::string body = job.head.work == Work::embedding
                         ? embedding_answer(job.head.model, job.vectors, job.base64, job.usage)
                         : whole_answer(job.head, job.answers, job.usage);
  job.responder->respond(
      head_of(job, http::make_response(200, "application/json", std::move(body))));
  job.responder.reset();
}

}  // namespace loam::gateway

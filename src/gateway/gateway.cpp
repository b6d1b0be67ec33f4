// The HTTP side: who is asking, what for, and the request made ready for the hub.
#include "gateway/gateway.hpp"

#include <algorithm>
#include <atomic>
#include <random>

#include "base/assert.hpp"
#include "gateway/hub.hpp"

namespace loam::gateway {

namespace {

// A name that no other gateway, now or later, gives: 64 random bits for each process and a count.
struct RequestNames {
  std::uint64_t process = 0;
  std::atomic<std::uint64_t> count{0};
  RequestNames() {
    std::random_device source;
    process = std::uint64_t{source()} << 32U | source();
  }
};
RequestNames& request_names() {
  static RequestNames names;
  return names;
}

std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4U) text[i] = "0123456789abcdef"[value & 0xFU];
  return text;
}

std::string_view bearer_of(const http::Request& request) {
  std::string_view value = request.headers.get("authorization");
  constexpr std::string_view scheme = "Bearer ";
  if (value.size() < scheme.size() ||
      !http::equal_ignoring_case(value.substr(0, scheme.size()), scheme))
    return {};
  value.remove_prefix(scheme.size());
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return value;
}

std::optional<Work> work_at(std::string_view path) {
  if (path == "/v1/chat/completions") return Work::chat;
  if (path == "/v1/completions") return Work::completion;
  if (path == "/v1/embeddings") return Work::embedding;
  return std::nullopt;
}

ApiError wrong_method(const http::Request& request, std::string_view allow) {
  return {405,
          std::string(http::name_of(request.method)) + " is not possible on " + request.path +
              "; use " + std::string(allow) + ".",
          "invalid_request_error",
          {},
          "method_not_supported"};
}

std::shared_ptr<Job> make_job(InferenceRequest request, Caller caller, http::Responder responder,
                              Instant now) {
  auto job = std::make_shared<Job>();
  job->id = ++request_names().count;
  const char* prefix = request.work == Work::chat         ? "chatcmpl-"
                       : request.work == Work::completion ? "cmpl-"
                                                          : "embd-";
  job->head = {request.work,
               prefix + hex(request_names().process, 16) + hex(job->id, 8),
               request.model,
               now.ms / 1000,
               request.sampling.logprobs,
               request.include_usage};
  job->choices = request.work == Work::embedding ? 1 : request.choices;
  job->tokens_max = request.tokens_max;
  job->dimensions = request.dimensions;
  job->streams = request.stream;
  job->base64 = request.base64;
  job->tags = std::move(request.tags);
  job->responder = std::move(responder);
  if (job->streams) job->writer = EventWriter(job->head);
  job->arrived = now;
  job->arrived_at = std::chrono::steady_clock::now();
  job->service_class =
      std::min(request.service_class.value_or(caller.service_class), caller.service_class);
  for (infer::Prompt& prompt : request.prompts) {
    Part part;
    part.marks = infer::prefix_marks(caller.tenant, prompt);
    part.submit.request = job->head.id;
    if (request.prompts.size() > 1) part.submit.request += "-" + std::to_string(job->parts.size());
    part.submit.tenant = caller.tenant;
    part.submit.weight = caller.weight;
    part.submit.service_class = job->service_class;
    part.submit.work = request.work == Work::embedding ? infer::wire::Submit::Work::embed
                                                       : infer::wire::Submit::Work::complete;
    part.submit.prompt = std::move(prompt);
    part.submit.tokens_max = request.tokens_max;
    part.submit.choices = job->choices;
    part.submit.sampling = request.sampling;
    part.submit.adapters = request.adapters;
    part.generated.resize(job->choices);
    job->to_place.push_back(static_cast<std::uint32_t>(job->parts.size()));
    job->parts.push_back(std::move(part));
  }
  const std::size_t answers = job->parts.size() * job->choices;
  if (request.work == Work::embedding) {
    job->vectors.resize(job->parts.size());
  } else {
    job->answers.resize(answers);
  }
  if (job->streams) {
    job->text_offsets.resize(answers);
    job->begun.resize(answers);
  }
  job->caller = std::move(caller);
  return job;
}

// What the frame to the engine could not hold. Only lists of tokens grow on the way: two bytes of
// JSON become four.
std::optional<ApiError> check_size(const InferenceRequest& request) {
  constexpr std::size_t tokens_max = infer::wire::frame_bytes_max / 4 - (1U << 18U);
  for (const infer::Prompt& prompt : request.prompts) {
    if (prompt.tokens.size() > tokens_max) {
      return bad_request(
          "The prompt has " + std::to_string(prompt.tokens.size()) +
              " tokens; no model here takes more than " + std::to_string(tokens_max) + ".",
          request.work == Work::embedding ? "input" : "prompt", "context_length_exceeded");
    }
  }
  return std::nullopt;
}

Instant wall_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

// Runs on the hub's thread, with the Responder shared because actions are copied.
void post_answer(Hub& hub, http::Responder responder, std::function<http::Response()> make) {
  auto shared = std::make_shared<http::Responder>(std::move(responder));
  const bool posted = hub.post([shared, make] { shared->respond(make()); });
  if (!posted) shared->respond(refusal(503, "the gateway is stopping"));
}

void answer_models(Hub& hub, const http::Request& request, const Caller& caller,
                   http::Responder responder) {
  constexpr std::string_view list = "/v1/models";
  std::string name;
  if (request.path.size() > list.size()) name = request.path.substr(list.size() + 1);
  post_answer(hub, std::move(responder), [&hub, name, tenant = caller.tenant] {
    const std::vector<ModelEntry> models = hub.models_for(tenant);
    if (name.empty()) return http::make_response(200, "application/json", model_list(models));
    for (const ModelEntry& model : models) {
      if (model.name == name)
        return http::make_response(200, "application/json", model_answer(model));
    }
    return to_response({404, "There is no model \"" + name.substr(0, 80) + "\" here.",
                        "invalid_request_error", "model", "model_not_found"});
  });
}

}  // namespace

std::string tier_model(std::string_view model, infer::ServiceClass service_class) {
  using infer::ServiceClass;
  const char* tier = service_class == ServiceClass::batch         ? "@flex"
                     : service_class == ServiceClass::interactive ? "@priority"
                                                                  : "@default";
  return std::string(model) + tier;
}

Gateway::Gateway(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}
Gateway::Gateway(Gateway&&) noexcept = default;
Gateway& Gateway::operator=(Gateway&& other) noexcept {
  if (this != &other) {
    stop();
    hub_ = std::move(other.hub_);
  }
  return *this;
}
Gateway::~Gateway() {
  stop();
}

Result<Gateway> Gateway::start(Settings settings, Ports ports) {
  auto hub = std::make_shared<Hub>(settings, ports);
  LOAM_CHECK(hub->start());
  return Gateway(std::move(hub));
}

void Gateway::stop() {
  if (hub_ != nullptr) hub_->stop();
}

http::ServerOptions Gateway::server_options() const {
  http::ServerOptions options;
  options.body_bytes_max = hub_->settings.body_bytes_max;
  options.stream_bytes_max = 256U << 10U;  // some thousand pieces of text
  options.connections_max = hub_->settings.requests_max;
  options.refusal = refusal;
  return options;
}

void Gateway::handle(http::Request request, http::Responder responder) {
  const bool is_models = request.path == "/v1/models" || request.path.starts_with("/v1/models/");
  const auto work = work_at(request.path);
  const auto refuse = [&](const ApiError& error) { responder.respond(to_response(error)); };
  if (!is_models && !work) {
    return refuse({404,
                   "There is nothing at " + request.path.substr(0, 200) + ".",
                   "invalid_request_error",
                   {},
                   "unknown_url"});
  }
  const bool reads = request.method == http::Method::get || request.method == http::Method::head;
  if (is_models ? !reads : request.method != http::Method::post) {
    const std::string_view allow = is_models ? "GET, HEAD" : "POST";
    http::Response response = to_response(wrong_method(request, allow));
    response.headers.set("Allow", std::string(allow));
    return responder.respond(std::move(response));
  }
  const std::string_view key = bearer_of(request);
  if (key.empty()) {
    return refuse({401,
                   "There is no API key; send it as Authorization: Bearer KEY.",
                   "invalid_request_error",
                   {},
                   "invalid_api_key"});
  }
  auto caller = hub_->ports.access->identify(key);
  if (!caller.ok()) return refuse(api_error(caller.error()));
  if (is_models) return answer_models(*hub_, request, *caller, std::move(responder));
  if (request.body.size() > hub_->settings.body_bytes_max) {
    return responder.respond(
        refusal(413, "the body has " + std::to_string(request.body.size()) + " bytes; at most " +
                         std::to_string(hub_->settings.body_bytes_max) + " are taken"));
  }
  auto parsed = parse_request(*work, request.body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return refuse(*error);
  auto& asked = std::get<InferenceRequest>(parsed);
  if (const auto error = check_size(asked)) return refuse(*error);
  auto job = make_job(std::move(asked), std::move(*caller), std::move(responder), wall_now());
  const bool posted = hub_->post([hub = hub_.get(), job] { hub->take_job(job); });
  if (!posted) job->responder->respond(refusal(503, "the gateway is stopping"));
}

void Gateway::offer(Endpoint endpoint) {
  hub_->post([hub = hub_.get(), endpoint = std::move(endpoint)] { hub->offer(endpoint); });
}

void Gateway::withdraw(const std::string& model) {
  hub_->post([hub = hub_.get(), model] { hub->withdraw(model); });
}

void Gateway::add_instance(std::string name, std::string model, std::string socket_path) {
  hub_->post([hub = hub_.get(), name = std::move(name), model = std::move(model),
              path = std::move(socket_path)] { hub->add_instance(name, model, path); });
}

void Gateway::drain_instance(const std::string& name, std::function<void()> done) {
  hub_->post([hub = hub_.get(), name, done = std::move(done)] { hub->drain_instance(name, done); });
}

void Gateway::remove_instance(const std::string& name) {
  hub_->post([hub = hub_.get(), name] { hub->remove_instance(name); });
}

void Gateway::explain(const std::string& model, std::string why, bool is_refused) {
  hub_->post([hub = hub_.get(), model, why = std::move(why), is_refused] {
    hub->explain(model, why, is_refused);
  });
}

void Gateway::ask_metrics(std::function<void(std::string)> callback) {
  hub_->post([hub = hub_.get(), callback = std::move(callback)] { callback(hub->metrics()); });
}

void Gateway::ask_instances(std::function<void(std::vector<InstanceReport>)> callback) {
  hub_->post([hub = hub_.get(), callback = std::move(callback)] { callback(hub->instances()); });
}

void Gateway::ask_loads(std::function<void(std::vector<ModelLoad>)> callback) {
  hub_->post([hub = hub_.get(), callback = std::move(callback)] { callback(hub->loads()); });
}

}  // namespace loam::gateway

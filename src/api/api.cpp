// Dispatch: who asks, what for, whether they may; then the handler.
#include "api/api.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "api/call.hpp"
#include "api/routes.hpp"

namespace loam::api {
namespace {

constexpr std::size_t key_bytes_max = 255;

// BLAKE2b of method, path and body: what an idempotency key stands for.
std::string fingerprint_of(const http::Request& request) {
  crypto_generichash_state state;
  std::array<unsigned char, 32> hash{};
  crypto_generichash_init(&state, nullptr, 0, hash.size());
  const auto add = [&](std::string_view text) {
    const std::string length = std::to_string(text.size()) + ":";
    for (const std::string_view part : {std::string_view(length), text}) {
      crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                                part.size());
    }
  };
  add(http::name_of(request.method));
  add(request.path);
  add(request.body);
  crypto_generichash_final(&state, hash.data(), hash.size());
  std::array<char, 65> text{};
  sodium_bin2hex(text.data(), text.size(), hash.data(), hash.size());
  return text.data();
}

Result<RequestKey> key_of(const Call& call) {
  const http::Headers& headers = call.request.headers;
  const std::string* key = headers.find("Idempotency-Key");
  if (key == nullptr || !call.route->keyed) return RequestKey{};
  const bool good = !key->empty() && key->size() <= key_bytes_max &&
                    headers.count("Idempotency-Key") == 1 &&
                    std::all_of(key->begin(), key->end(), [](char c) { return c > 32 && c < 127; });
  if (!good) {
    return invalid("the Idempotency-Key is not usable",
                   "send one of 1 to 255 visible ASCII characters, such as a UUID");
  }
  return RequestKey{call.caller.scope(), *key, fingerprint_of(call.request)};
}

Result<void> check_query(const Call& call) {
  const auto& known = call.route->query;
  for (std::size_t i = 0; i < call.request.query.size(); ++i) {
    const http::Parameter& given = call.request.query[i];
    const bool fits = std::any_of(known.begin(), known.end(), [&](const QueryParameter& parameter) {
      return given.name == parameter.name;
    });
    if (!fits) {
      return invalid("'" + given.name + "' is not a parameter of this request",
                     "check its spelling, or leave it out");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (call.request.query[j].name == given.name)
        return invalid("'" + given.name + "' is given twice", "give it once");
    }
  }
  return {};
}

// A problem where the body cannot be of this request.
std::optional<Problem> check_body(const Call& call) {
  const std::string& body = call.request.body;
  if (*call.route->request == '\0') {
    const bool empty = body.find_first_not_of(" \t\r\n{}") == std::string::npos;
    if (empty) return std::nullopt;
    return problem_of(invalid("this request takes no body", "leave it out"));
  }
  const std::string_view type = call.request.headers.get("Content-Type", "application/json");
  const std::string_view media = type.substr(0, type.find_first_of("; "));
  if (http::equal_ignoring_case(media, "application/json")) return std::nullopt;
  Problem problem = problem_of(invalid("the body is '" + std::string(type) + "'",
                                       "send JSON with Content-Type: application/json"));
  problem.status = 415;
  problem.title = std::string(http::reason_of(415));
  return problem;
}

void refuse(Call& call, const Problem& problem, const std::string& allow = {}) {
  http::Response response = response_of(problem);
  if (!allow.empty()) response.headers.set("Allow", allow);
  call.core->metrics.on_request(response.status);
  call.responder.respond(std::move(response));
}

// The route of a request, or its problem given.
bool find_route(Call& call) {
  http::RouteResult found = call.core->router.match(call.request.method, call.request.path);
  if (auto* match = std::get_if<http::RouteMatch>(&found)) {
    call.match = std::move(*match);
    call.route = &routes()[call.match.index];
    return true;
  }
  const auto* wrong = std::get_if<http::WrongMethod>(&found);
  // Who is not known learns nothing of what there is.
  if (const auto caller = call.core->authenticator.authenticate(call.request); !caller) {
    refuse(call, problem_of(caller.error()));
  } else if (wrong != nullptr) {
    Problem problem = problem_of(invalid(
        std::string(http::name_of(call.request.method)) + " is not for " + call.request.path,
        "use one of " + wrong->allow));
    problem.status = 405;
    problem.title = std::string(http::reason_of(405));
    refuse(call, problem, wrong->allow);
  } else {
    refuse(call, problem_of(Error{ErrorKind::not_found, "there is nothing at " + call.request.path,
                                  "see what there is at /v1/openapi.json"}));
  }
  return false;
}

// What the same request was answered before; a stream then has its end alone.
void answer_again(Call& call, const std::string& first) {
  if (*call.route->events == '\0') return call.answer(first);
  call.core->metrics.on_request(call.route->status);
  http::Stream stream = call.responder.begin_events();
  stream.send({"done", first, {}});
  stream.finish();
}

void dispatch(const CallPtr& call) {
  if (!find_route(*call)) return;
  const Route& route = *call->route;
  auto caller = call->core->authenticator.authenticate(call->request);
  if (caller) {
    call->caller = std::move(*caller);
  } else if (!route.open) {
    return call->fail(caller.error());
  }
  if (!route.open && !may(call->caller.role, route.action)) {
    return call->fail(
        Error{ErrorKind::permission_denied,
              "the role " + std::string(name_of(call->caller.role)) + " may not do this",
              "ask an admin; see who you are with: loam whoami"});
  }
  if (const auto good = check_query(*call); !good) return call->fail(good.error());
  if (const auto problem = check_body(*call)) return refuse(*call, *problem);
  auto key = key_of(*call);
  if (!key) return call->fail(key.error());
  call->key = std::move(*key);
  // The head of a stream would be followed by its events.
  if (call->request.method == http::Method::head && *route.events != '\0') return call->answer({});
  if (route.keeps_answer && !call->key.key.empty()) {
    const auto first = call->core->kept.begin(call->key, KeptAnswers::Clock::now());
    if (!first) return call->fail(first.error());
    if (*first) return answer_again(*call, **first);
    call->began = true;
  }
  route.handle(call);
}

}  // namespace

ApiCore::ApiCore(Backend& given_backend, Authenticator& given_authenticator,
                 TokenStore& given_tokens, ApiOptions given_options)
    : backend(given_backend),
      authenticator(given_authenticator),
      tokens(given_tokens),
      options(given_options),
      live(options.tick, options.ticker),
      workers(options.workers) {
  for (std::size_t i = 0; i < routes().size(); ++i) {
    const auto added = router.add(routes()[i].method, routes()[i].pattern, i);
    LOAM_ASSERT(added.ok());
  }
}

Api::Api(Backend& backend, Authenticator& authenticator, TokenStore& tokens, ApiOptions options)
    : core_(std::make_shared<ApiCore>(backend, authenticator, tokens, options)) {
  LOAM_ASSERT(sodium_init() >= 0);
}

Api::~Api() {
  stop();
}

void Api::handle(http::Request request, http::Responder responder) {
  auto call = std::make_shared<Call>(core_, std::move(request), std::move(responder));
  core_->workers.run([call] { dispatch(call); });
}

http::Response Api::refusal(int status, std::string_view detail) {
  Problem problem;
  problem.status = status;
  problem.title = std::string(http::reason_of(status));
  problem.detail = std::string(detail);
  problem.code = name_of(status >= 500 ? ErrorKind::unavailable : ErrorKind::invalid_argument);
  return response_of(problem);
}

void Api::on_record(const Record& record) {
  if (const auto task = core_->metrics.on_record(record)) core_->live.changed(*task);
}

void Api::tick(Instant now) {
  core_->live.tick(now);
}

void Api::stop() {
  core_->live.stop();
  core_->workers.stop();
}

}  // namespace loam::api

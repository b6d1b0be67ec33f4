// The service itself: health, who one is, metrics, tokens, backup.
#include "api/handlers.hpp"

namespace loam::api::handlers {
namespace {

TokenView view_of_token(const TokenInfo& info, std::string secret = {}) {
  TokenView view;
  view.name = info.name;
  view.role = std::string(name_of(info.role));
  view.tenant = info.tenant;
  view.created_at = to_text(info.created_at);
  if (info.revoked()) view.revoked_at = to_text(info.revoked_at);
  view.token = std::move(secret);
  return view;
}

Instant now_of(Backend& backend) {
  Instant now;
  backend.read([&](const engine::State&, Instant at) { now = at; });
  return now;
}

}  // namespace

void health(const CallPtr& call) {
  Backend& backend = call->backend();
  HealthView view;
  view.journal_ok = backend.journal_healthy();
  view.status = view.journal_ok ? "ok" : "degraded";
  view.version = backend.version();
  view.started_at = to_text(backend.started_at());
  view.now = to_text(now_of(backend));
  http::Response response =
      http::make_response(view.journal_ok ? 200 : 503, "application/json", to_json(view));
  call->core->metrics.on_request(response.status);
  call->responder.respond(std::move(response));
}

void whoami(const CallPtr& call) {
  const Caller& caller = call->caller;
  call->answer(to_json(WhoAmIView{caller.actor.subject, caller.actor.issuer,
                                  std::string(name_of(caller.role)), caller.tenant}));
}

void openapi(const CallPtr& call) {
  static const std::string document = openapi_document();
  call->answer(document);
}

void metrics(const CallPtr& call) {
  call->core->metrics.on_request(200);
  call->responder.respond(http::make_response(200, "text/plain; version=0.0.4; charset=utf-8",
                                              call->core->metrics.text(call->backend())));
}

void list_tokens(const CallPtr& call) {
  TokenList list;
  for (const TokenInfo& info : call->core->tokens.list())
    list.tokens.push_back(view_of_token(info));
  call->answer(to_json(list));
}

void create_token(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(request, body_of<TokenRequest>(*call));
    LOAM_TRY(role, parse_role(request.role));
    if (!request.tenant.empty()) LOAM_CHECK(call->tenant(request.tenant));
    const Instant now = now_of(call->backend());
    LOAM_TRY(secret, call->core->tokens.create(request.name, role, request.tenant, now));
    TokenInfo info;
    info.name = request.name;
    info.role = role;
    info.tenant = request.tenant;
    info.created_at = now;
    return to_json(view_of_token(info, std::move(secret)));
  }());
}

void revoke_token(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(info, call->core->tokens.revoke(call->parameter("name"), now_of(call->backend())));
    return to_json(view_of_token(info));
  }());
}

void backup(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(request, body_of<BackupRequest>(*call));
    if (!request.path.starts_with('/') || request.path.find('\0') != std::string::npos) {
      return invalid("'" + request.path + "' is not an absolute path",
                     "give a path on the daemon's machine that begins with /");
    }
    LOAM_TRY(done, call->backend().backup(request.path));
    return to_json(BackupView{request.path, done.bytes, done.sequence});
  }());
}

void reload(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(summary, call->backend().reload());
    return to_json(ReloadView{std::move(summary)});
  }());
}

}  // namespace loam::api::handlers

// Tokens that gateways counted: recorded once, and how far.
#include <limits>

#include "api/handlers.hpp"

namespace loam::api::handlers {
namespace {

struct Asked {
  RecordTokens command;
  std::vector<std::string> refused;
};

Result<TokenUse> use_of(const TokenUseEntry& entry) {
  TokenUse use;
  use.project = entry.project.empty() ? "default" : entry.project;
  use.environment = entry.environment.empty() ? "default" : entry.environment;
  use.model = entry.model;
  LOAM_TRY(from, parse_instant(entry.from));
  LOAM_TRY(to, parse_instant(entry.to));
  use.from = from;
  use.to = to;
  use.requests = entry.requests;
  use.prompt_tokens = entry.prompt_tokens;
  use.cached_tokens = entry.cached_tokens;
  use.generated_tokens = entry.generated_tokens;
  use.tags = entry.tags;
  use.owner_project = entry.owner_project.empty() ? "default" : entry.owner_project;
  use.owner_environment = entry.owner_environment.empty() ? "default" : entry.owner_environment;
  use.owner_tags = entry.owner_tags;
  return use;
}

// An entry whose caller is not known can be charged to nobody: it is told and not recorded, so that
// it holds up no other.
Result<Asked> asked_of(Call& call) {
  LOAM_TRY(request, body_of<TokenUsageRequest>(call));
  Asked asked;
  asked.command.source = request.source;
  asked.command.sequence = request.sequence;
  for (const TokenUseEntry& entry : request.uses) {
    LOAM_TRY(use, use_of(entry));
    call.backend().read([&](const engine::State& state, Instant) {
      const Tenant* caller = state.find_tenant(entry.tenant);
      const Tenant* owner = state.find_tenant(entry.owner);
      if (caller != nullptr) use.caller = caller->id;
      if (owner != nullptr) use.owner = owner->id;
    });
    if (use.caller.valid()) {
      asked.command.uses.push_back(std::move(use));
    } else {
      asked.refused.push_back("there is no tenant '" + entry.tenant +
                              "': " + std::to_string(entry.requests) + " requests to " +
                              entry.model + " are charged to nobody");
    }
  }
  return asked;
}

}  // namespace

void record_tokens(const CallPtr& call) {
  auto asked = asked_of(*call);
  if (!asked) return call->fail(asked.error());
  TokenUsageView view;
  view.source = asked->command.source;
  view.refused = std::move(asked->refused);
  call->post(
      std::move(asked->command), [view](const std::string& subject) mutable -> Result<std::string> {
        LOAM_TRY(sequence, parse_decimal(subject, 0, std::numeric_limits<std::int64_t>::max(),
                                         "sequence number"));
        view.sequence = sequence;
        return to_json(view);
      });
}

void show_token_source(const CallPtr& call) {
  TokenUsageView view;
  view.source = call->parameter("source");
  call->backend().read([&](const engine::State& state, Instant) {
    const auto found = state.token_sources.find(view.source);
    if (found != state.token_sources.end()) view.sequence = found->second;
  });
  call->answer(to_json(view));
}

}  // namespace loam::api::handlers

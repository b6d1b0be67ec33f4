#include "engine/decide.hpp"

#include "base/assert.hpp"
#include "engine/decisions.hpp"

namespace loam::engine {

Decision decide(const State& state, Instant now, const Command& command) {
  LOAM_ASSERT(now >= state.now);
  return std::visit([&](const auto& asked) { return decide_on(state, now, asked); }, command);
}

Decision decide(const State& state, Instant now, const Command& command, const RequestKey& key) {
  if (key.key.empty()) return decide(state, now, command);
  if (const auto found = state.requests.find({key.scope, key.key}); found != state.requests.end()) {
    const RecordedRequest& first = found->second;
    if (first.fingerprint == key.fingerprint) return {{}, first.subject, std::nullopt, {}};
    return Draft::rejected({RejectCode::key_reused,
                            "the idempotency key '" + key.key +
                                "' was used for another request at " + to_text(first.at),
                            "use a fresh key for a new request"});
  }
  Decision decision = decide(state, now, command);
  if (!decision.reject) {
    decision.events.push_back(
        RequestRecorded{key.scope, key.key, key.fingerprint, decision.subject});
  }
  return decision;
}

}  // namespace loam::engine

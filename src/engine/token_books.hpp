// Tokens in the books: what gateways counted, charged to those who called and credited to those
// whose instances answered. Pure.
#pragma once

#include "domain/event.hpp"

namespace loam::engine {

class State;

// For evolve(), after its event.
void apply_to_books(State& state, const TokensUsed& event, Instant at);

}  // namespace loam::engine

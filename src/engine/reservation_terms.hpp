// Reservations: what may be reserved and on what terms, and who may run on it. Pure.
#pragma once

#include <string>

#include "engine/reservations.hpp"
#include "engine/state.hpp"

namespace loam::engine {

// A reservation's order as a task that would use all of it all the time.
TaskSpec spec_of(const ReservationOrder& order);

// Whether hours of it are still to be charged: until then what runs on it is paid from what is set
// aside for it.
bool is_open(const Reservation& reservation);

// What is to be set aside for what is left of it from `from` on, at the dearest price known, with
// tax.
Money most_of(const State& state, const Tenant& tenant, const Reservation& reservation,
              Instant from);

// Says that it locks nothing from `at` on; what is held is released where no hour is left to
// charge.
void end_reservation(Draft& draft, const Reservation& reservation, Instant at, ReservationEnd end,
                     std::string reason);

}  // namespace loam::engine

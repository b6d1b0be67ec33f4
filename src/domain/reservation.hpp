// Reservations as they were made: capacity locked for a future interval. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <string>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"
#include "domain/place.hpp"
#include "domain/task.hpp"

namespace loam {

// What is locked, and for when.
struct ReservationOrder {
  Attribution attribution;  // whose cost unused time is
  ResourceRequest request;  // of each member
  std::int64_t gang = 1;    // members
  Tariff tariff = Tariff::flat;
  std::string queue;  // of whose devices; empty: the pool's first
  Instant from;       // [from, to)
  Instant to;

  friend bool operator==(const ReservationOrder&, const ReservationOrder&) = default;
};
BOOST_DESCRIBE_STRUCT(ReservationOrder, (), (attribution, request, gang, tariff, queue, from, to))

struct Reservation {
  ReservationId id;
  TenantId tenant;
  ReservationOrder order;
  std::vector<PromisedMember> members;  // where; it may move
  MilliCe billable_ce;                  // of all members
  Isolation isolation = Isolation::software;
  Instant ended_at = Instant::never();  // before its time where that is earlier
  Instant charged_to;                   // its pieces up to then were charged
  Money held;                           // what is set aside for it now

  friend bool operator==(const Reservation&, const Reservation&) = default;
};
BOOST_DESCRIBE_STRUCT(Reservation, (),
                      (id, tenant, order, members, billable_ce, isolation, ended_at, charged_to,
                       held))

// Up to when it locks its place.
inline Instant locks_until(const Reservation& reservation) {
  return reservation.ended_at < reservation.order.to ? reservation.ended_at : reservation.order.to;
}

}  // namespace loam

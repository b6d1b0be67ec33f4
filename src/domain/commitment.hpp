// Commitments as they were sold. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"
#include "domain/task.hpp"

namespace loam {

// The fee of one period, charged when the period begins.
struct CommitmentFee {
  Instant from;                     // of the days that it is for
  Instant to;                       // half open
  std::int64_t days = 0;            // of these
  std::int64_t days_of_period = 0;  // of the whole period
  Money list;
  Money net;

  friend bool operator==(const CommitmentFee&, const CommitmentFee&) = default;
};
BOOST_DESCRIBE_STRUCT(CommitmentFee, (), (from, to, days, days_of_period, list, net))

// What was agreed: a right to `ce` at every instant of [from, to), or to use worth `spend` in every
// hour of it.
struct CommitmentTerms {
  MilliCe ce;               // 0 where money is committed
  std::int64_t months = 1;  // of a period
  Instant from;
  Instant to;
  RateCardId card;
  Money unit_price;                 // list, per CE-hour
  std::vector<CommitmentFee> fees;  // in order, without gap
  // An hour, at the unit price; zero where a capacity is committed.
  Money spend;

  friend bool operator==(const CommitmentTerms&, const CommitmentTerms&) = default;
};
BOOST_DESCRIBE_STRUCT(CommitmentTerms, (), (ce, months, from, to, card, unit_price, fees, spend))

struct Commitment {
  CommitmentId id;
  TenantId tenant;
  Attribution attribution;  // whose cost the fee is
  CommitmentTerms terms;
  std::int64_t fees_charged = 0;        // how many
  Instant ended_at = Instant::never();  // covers no longer: cancelled, or a fee was not paid
  bool cancelled = false;

  friend bool operator==(const Commitment&, const Commitment&) = default;
};
BOOST_DESCRIBE_STRUCT(Commitment, (),
                      (id, tenant, attribution, terms, fees_charged, ended_at, cancelled))

}  // namespace loam

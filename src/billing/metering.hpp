// Metering: usage records taken once each, for ever, in any order. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "billing/usage.hpp"

namespace loam::billing {

class Metering {
 public:
  // correction: its time, or part of it, was closed already; it is charged in the open period at
  // the price of its own time.
  enum class Receipt { booked, duplicate, correction };

  // Refuses with the reason, and books nothing: what check() refuses, a record whose id is known
  // with other content (conflict), a record that overlaps another one of its lease (conflict).
  Result<Receipt> add(const Usage& usage);

  // Ends the open period: what is before `until` from now on comes late. Requires that it does not
  // go back.
  void close(Instant until);
  Instant open_from() const { return open_from_; }

  // The part of a record that comes late, and the rest; the ids stay. Either may be missing.
  struct Parts {
    std::vector<Usage> late;
    std::vector<Usage> open;
  };
  Parts parts(const Usage& usage) const;

  // What no record of the lease covers in [from, to).
  std::vector<Period> gaps(LeaseId lease, Instant from, Instant to) const;
  std::size_t size() const { return known_.size(); }

 private:
  std::map<std::string, std::uint64_t, std::less<>> known_;  // digest of the content by id
  std::map<LeaseId, std::map<Instant, Instant>> covered_;
  Instant open_from_;
};

}  // namespace loam::billing

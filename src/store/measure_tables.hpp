// The projections of what was measured of leases and of what the pool could give: `measures` and
// `capacity`. Internal to this folder. Not pure: writes to a database.
#pragma once

#include <string>
#include <string_view>

#include "domain/event.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

// SQL for the time of a lease within [from, to) that was measured, and for how long its devices
// were busy in it, in ms; both 0 where nothing was. The arguments are SQL too. A measure lies
// evenly in its time. Cost: the measures that meet the time.
std::string measured_ms_sql(std::string_view lease, std::string_view from, std::string_view to);
std::string busy_ms_sql(std::string_view lease, std::string_view from, std::string_view to);

class MeasureTables {
 public:
  Result<void> prepare(Database& database);

  // What was measured since it was last told; before the lease's own row has it.
  Result<void> measured(const ServicesUsed& event);
  Result<void> measured(const LeaseEnded& event);
  // A device is in service from `at` on, or no more, as its row says: while it is healthy and does
  // not drain; one that drains, until its last lease has ended.
  Result<void> changed(DeviceId device, Instant at);
  // Those that drain, of a lease whose row says that it has ended.
  Result<void> left(LeaseId lease, Instant at);

 private:
  Statement note_measure_, note_last_, forget_later_, note_device_, note_left_;
};

}  // namespace loam::store

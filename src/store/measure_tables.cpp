#include "store/measure_tables.hpp"

#include <utility>

namespace loam::store {
namespace {

// The measures of a lease that meet [from, to). Ordered by their ends and without overlap: the
// first one that ends at `to` or later is the last one to look at.
std::string meeting(std::string_view lease, std::string_view from, std::string_view to) {
  const std::string of(lease), begin(from), end(to);
  return "FROM measures m WHERE m.lease_id = " + of + " AND m.to_ms > " + begin +
         " AND m.from_ms < " + end +
         " AND m.to_ms <= coalesce((SELECT min(n.to_ms) FROM measures n WHERE n.lease_id = " + of +
         " AND n.to_ms >= " + end + "), " + end + ")";
}

std::string overlap(std::string_view from, std::string_view to) {
  return "(min(m.to_ms, " + std::string(to) + ") - max(m.from_ms, " + std::string(from) + "))";
}

// From where the lease was last measured, or from its start, up to ?2; ?3 is what its devices were
// busy up to then.
std::string note_measure(std::string_view where) {
  return "INSERT INTO measures SELECT id, begin_ms, ?2, max(0, ?3 - coalesce(device_time_ms, 0)) "
         "FROM (SELECT id, device_time_ms, isolation, coalesce((SELECT max(m.to_ms) FROM measures "
         "m WHERE m.lease_id = leases.id), started_ms) AS begin_ms FROM leases WHERE id = ?1) "
         "WHERE begin_ms < ?2" +
         std::string(where);
}

// A step in the capacity of the devices of `from`, at ?2 but not before the last one.
std::string note_capacity(std::string_view from) {
  return "INSERT OR REPLACE INTO capacity SELECT d.id, max(?2, coalesce((SELECT max(c.from_ms) "
         "FROM capacity c WHERE c.device_id = d.id), ?2)), CASE WHEN d.health <> 'healthy' THEN 0 "
         "WHEN d.draining = 0 THEN d.general_milli_ce "
         "WHEN EXISTS(SELECT 1 FROM tasks t JOIN leases l ON l.task_id = t.id JOIN slices s ON "
         "s.lease_id = l.id WHERE t.state <> 'finished' AND l.ended_ms IS NULL AND s.device_id = "
         "d.id) THEN d.general_milli_ce ELSE 0 END FROM " +
         std::string(from);
}

}  // namespace

std::string measured_ms_sql(std::string_view lease, std::string_view from, std::string_view to) {
  return "(SELECT coalesce(sum(" + overlap(from, to) + "), 0) " + meeting(lease, from, to) + ")";
}

// In binary fractions: the product of two times may pass 64 bits, and this is no charge.
std::string busy_ms_sql(std::string_view lease, std::string_view from, std::string_view to) {
  return "(SELECT CAST(round(coalesce(sum(1.0 * m.device_time_ms * " + overlap(from, to) +
         " / (m.to_ms - m.from_ms)), 0)) AS INTEGER) " + meeting(lease, from, to) + ")";
}

Result<void> MeasureTables::prepare(Database& database) {
  const std::pair<Statement*, std::string> all[] = {
      {&note_measure_, note_measure("")},
      // Nothing used is a measurement too, but where nothing bound the guard to the task.
      {&note_last_, note_measure(" AND (?3 > 0 OR isolation <> 'advisory')")},
      {&forget_later_, "DELETE FROM capacity WHERE device_id = ?1 AND from_ms > ?2"},
      {&note_device_, note_capacity("devices d WHERE d.id = ?1")},
      {&note_left_, note_capacity("slices s JOIN devices d ON d.id = s.device_id WHERE "
                                  "s.lease_id = ?1 AND d.draining = 1")}};
  for (const auto& [statement, sql] : all) {
    LOAM_TRY(prepared, database.prepare(sql));
    *statement = std::move(prepared);
  }
  return {};
}

Result<void> MeasureTables::measured(const ServicesUsed& event) {
  if (!event.lease.valid() || !event.device_time) return {};
  return note_measure_.run(static_cast<std::int64_t>(event.lease.value), event.to,
                           event.device_time->ms);
}

Result<void> MeasureTables::measured(const LeaseEnded& event) {
  // Of what was lost nobody told the rest.
  if (event.verdict.outcome == TaskOutcome::device_lost && event.device_time.ms == 0) return {};
  return note_last_.run(static_cast<std::int64_t>(event.lease.value), event.ended_at,
                        event.device_time.ms);
}

// A device is found to be lost after it was: what was noted of it since then did not happen.
Result<void> MeasureTables::changed(DeviceId device, Instant at) {
  const auto id = static_cast<std::int64_t>(device.value);
  LOAM_CHECK(forget_later_.run(id, at));
  return note_device_.run(id, at);
}

Result<void> MeasureTables::left(LeaseId lease, Instant at) {
  return note_left_.run(static_cast<std::int64_t>(lease.value), at);
}

}  // namespace loam::store

#include "billing/metering.hpp"

#include "base/assert.hpp"

namespace loam::billing {
namespace {

// FNV-1a over the fields: tells a record that was sent again from another one under the same id.
class Digest {
 public:
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }
  void add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      mix(static_cast<unsigned char>((static_cast<std::uint64_t>(number) >> shift) & 0xff));
  }
  std::uint64_t value() const { return state_; }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 1'099'511'628'211ULL; }
  std::uint64_t state_ = 14'695'981'039'346'656'037ULL;
};

std::uint64_t digest_of(const Usage& usage) {
  Digest digest;
  for (const std::uint64_t id : {usage.lease.value, usage.task.value, usage.tenant.value})
    digest.add(static_cast<std::int64_t>(id));
  digest.add(usage.from.ms);
  digest.add(usage.to.ms);
  digest.add(usage.run_from.ms);
  digest.add(static_cast<std::int64_t>(usage.terms.purchase_model));
  digest.add(static_cast<std::int64_t>(usage.terms.tariff));
  digest.add(static_cast<std::int64_t>(usage.terms.work_class));
  digest.add(static_cast<std::int64_t>(usage.terms.isolation));
  digest.add(usage.terms.service_class);
  digest.add(usage.billable_ce.value);
  digest.add(usage.memory.value);
  digest.add(usage.storage.value);
  digest.add(usage.backup.value);
  digest.add(usage.network_bytes);
  digest.add(usage.who.project);
  digest.add(usage.who.environment);
  digest.add(usage.who.model);
  for (const auto& [key, value] : usage.who.tags) {
    digest.add(key);
    digest.add(value);
  }
  return digest.value();
}

}  // namespace

Result<Metering::Receipt> Metering::add(const Usage& usage) {
  LOAM_CHECK(check(usage));
  const std::uint64_t digest = digest_of(usage);
  if (const auto known = known_.find(usage.id); known != known_.end()) {
    if (known->second == digest) return Receipt::duplicate;
    return Error{ErrorKind::conflict,
                 "the usage record '" + usage.id + "' was taken before with other content",
                 "send a change under an id of its own"};
  }
  auto& covered = covered_[usage.lease];
  const auto next = covered.lower_bound(usage.from);
  const bool overlaps = (next != covered.end() && next->first < usage.to) ||
                        (next != covered.begin() && std::prev(next)->second > usage.from);
  if (overlaps) {
    return Error{ErrorKind::conflict,
                 "the usage record '" + usage.id + "' from " + to_text(usage.from) + " to " +
                     to_text(usage.to) + " overlaps another one of lease " + usage.lease.text(),
                 "records of a lease follow one another"};
  }
  covered.emplace(usage.from, usage.to);
  known_.emplace(usage.id, digest);
  return usage.from < open_from_ ? Receipt::correction : Receipt::booked;
}

void Metering::close(Instant until) {
  LOAM_ASSERT(until >= open_from_);
  open_from_ = until;
}

Metering::Parts Metering::parts(const Usage& usage) const {
  if (usage.to <= open_from_) return {{usage}, {}};
  if (usage.from >= open_from_) return {{}, {usage}};
  Usage late = usage;
  Usage open = usage;
  late.to = open.from = open_from_;
  open.network_bytes = 0;  // bytes are priced when the record begins
  return {{late}, {open}};
}

std::vector<Period> Metering::gaps(LeaseId lease, Instant from, Instant to) const {
  std::vector<Period> found;
  const auto covered = covered_.find(lease);
  Instant at = from;
  if (covered != covered_.end()) {
    for (const auto& [begin, end] : covered->second) {
      if (end <= at) continue;
      if (begin >= to) break;
      if (begin > at) found.push_back({at, begin});
      at = end;
    }
  }
  if (at < to) found.push_back({at, to});
  return found;
}

}  // namespace loam::billing

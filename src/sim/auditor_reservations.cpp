// Auditor, rule 14: what is reserved is there for its tenant while it is in force, and is charged
// once, used or not. It follows the usage records by itself.
#include <algorithm>

#include "sim/auditor.hpp"

namespace loam::sim {
namespace {

constexpr Duration hour = Duration::hours(1);
constexpr Duration notice = Duration::minutes(2);    // of spot that has to leave in time
constexpr Duration patience = Duration::minutes(1);  // for what has to be decided after a record

Instant hour_after(Instant instant) {
  return Instant{(instant.ms / hour.ms + 1) * hour.ms};
}

bool covers(const Reservation& reservation, Instant at) {
  return reservation.order.from <= at && at < locks_until(reservation);
}

bool is_spot(PurchaseModel model) {
  return model == PurchaseModel::spot;
}

std::set<DeviceId> devices_of(const std::vector<PromisedMember>& members) {
  std::set<DeviceId> devices;
  for (const PromisedMember& member : members) {
    for (const PromisedSlice& slice : member.slices) devices.insert(slice.device);
  }
  return devices;
}

}  // namespace

Auditor::ReservationEntry* Auditor::reservation(ReservationId id) {
  const auto found = reservations_.find(id);
  if (found != reservations_.end()) return &found->second;
  fail(14, id.text() + " is spoken of and was never made");
  return nullptr;
}

// --- What is locked
// -------------------------------------------------------------------------------

// Their own tasks count as what is locked; where one that moved has more there than it has now,
// that.
Auditor::Load Auditor::locked_on(const DeviceBook& device, Instant at) const {
  Load locked;
  for (const auto& [id, entry] : reservations_) {
    if (!covers(entry.reservation, at)) continue;
    Load reserved;
    for (const PromisedMember& member : entry.reservation.members) {
      for (const PromisedSlice& slice : member.slices) {
        if (devices_.at(slice.device.value - 1).name != device.name) continue;
        reserved.share += slice.share;
        reserved.memory += slice.memory;
      }
    }
    Load used;
    for (const LeaseId lease : device.leases) {
      const LeaseBook& book = leases_.at(lease);
      if (book.reservation != id || book.leaving || book.ends_by <= at) continue;
      for (const Slice& slice : book.slices) {
        if (devices_.at(slice.device.value - 1).name != device.name) continue;
        used.share += slice.share;
        used.memory += slice.memory;
      }
    }
    locked.share += std::max(reserved.share, used.share);
    locked.memory += std::max(reserved.memory, used.memory);
  }
  return locked;
}

// Who was asked to stop, or is over its limit by then, may still be there and should not.
Auditor::Load Auditor::others_on(const DeviceBook& device, Instant at, bool spot_leaves) const {
  Load load;
  for (const LeaseId id : device.leases) {
    const LeaseBook& book = leases_.at(id);
    const auto own = reservations_.find(book.reservation);
    if (own != reservations_.end() && covers(own->second.reservation, at)) continue;
    if (book.leaving || std::min(book.first_ends_by, book.ends_by) <= at) continue;
    if (spot_leaves && is_spot(book.purchase_model)) continue;
    for (const Slice& slice : book.slices) {
      if (devices_.at(slice.device.value - 1).name != device.name) continue;
      load.share += slice.promised();
      load.memory += slice.memory_promised();
    }
  }
  return load;
}

void Auditor::check_locked(DeviceId id, Instant at, bool spot_leaves) {
  const DeviceBook& device = devices_.at(id.value - 1);
  const Load locked = locked_on(device, at);
  if (locked.share > whole_device || locked.memory > device.facts.memory) {
    fail(14, "more is reserved of " + device.name + " at " + to_text(at) +
                 " than it has: " + to_text(locked.share) + " and " + to_text(locked.memory));
  }
  if (locked.share.value == 0) return;
  const Load others = others_on(device, at, spot_leaves);
  if (locked.share + others.share > whole_device ||
      locked.memory + others.memory > device.facts.memory) {
    fail(14, "others have " + to_text(others.share) + " and " + to_text(others.memory) + " of " +
                 device.name + " at " + to_text(at) + ", of which " + to_text(locked.share) +
                 " and " + to_text(locked.memory) + " are reserved");
  }
}

// Of all reservations to come and in force, whenever they are: what is left of it now is surely
// nobody's.
Auditor::Load Auditor::reserved_on(const DeviceBook& device) const {
  Load load;
  for (const auto& [id, entry] : reservations_) {
    if (locks_until(entry.reservation) <= now_) continue;
    for (const PromisedMember& member : entry.reservation.members) {
      for (const PromisedSlice& slice : member.slices) {
        if (devices_.at(slice.device.value - 1).name != device.name) continue;
        load.share += slice.share;
        load.memory += slice.memory;
      }
    }
  }
  return load;
}

// Where it lies there is room, beside the other reservations and whoever stays, all the time.
void Auditor::check_members(const ReservationEntry& entry) {
  const Reservation& reservation = entry.reservation;
  const std::string name = reservation.id.text();
  if (reservation.members.size() != static_cast<std::size_t>(reservation.order.gang))
    fail(14, name + " has a place for some of its members");
  const Instant begin = std::max(reservation.order.from, now_);
  for (const DeviceId id : devices_of(reservation.members)) {
    const DeviceBook& device = devices_.at(id.value - 1);
    if (!device.healthy || device.draining)
      fail(14, name + " lies on " + device.name + ", which takes no leases");
    check_locked(id, begin, true);
    for (const auto& [other, known] : reservations_) {
      const Instant from = known.reservation.order.from;
      if (from > begin && covers(reservation, from)) check_locked(id, from, true);
    }
  }
}

void Auditor::on(const Record& record, const ReservationMade& event) {
  const Reservation& made = event.reservation;
  if (made.id <= last_reservation_) fail(14, made.id.text() + " was given out before");
  last_reservation_ = made.id;
  if (made.order.from < record.at || made.order.to <= made.order.from)
    fail(14, made.id.text() + " begins in the past, or lasts no time");
  if (made.charged_to != made.order.from || made.ended_at != Instant::never() ||
      made.billable_ce.value <= 0)
    fail(14, made.id.text() + " was charged, or ended, before it was made, or is of nothing");
  ReservationEntry entry;
  entry.reservation = made;
  entry.held = Money::zero(tenants_.at(made.tenant.value - 1).spec.currency);
  entry.lies_since = made.order.from;
  check_members(reservations_.insert_or_assign(made.id, std::move(entry)).first->second);
  paying_ = made.id;
}

void Auditor::on(const Record& record, const ReservationMoved& event) {
  ReservationEntry* entry = reservation(event.reservation);
  if (entry == nullptr) return;
  if (entry->reservation.ended_at != Instant::never())
    fail(14, event.reservation.text() + " moves after its end");
  entry->reservation.members = event.members;
  if (entry->reservation.order.to <= record.at) return;  // nobody has said yet that it is over
  entry->lies_since = std::max(entry->reservation.order.from, record.at);
  entry->irregular = true;  // its tasks may go on where they are, beside others on it
  check_members(*entry);
}

void Auditor::on(const Record& record, const ReservationEnded& event) {
  ReservationEntry* entry = reservation(event.reservation);
  if (entry == nullptr) return;
  Reservation& known = entry->reservation;
  if (known.ended_at != Instant::never()) fail(14, known.id.text() + " ends twice");
  const bool begun = known.order.from <= record.at;
  bool right = event.at <= record.at;
  switch (event.end) {
    case ReservationEnd::over:
      right = right && event.at == known.order.to;
      break;
    case ReservationEnd::cancelled:
      right = !begun && event.at == record.at;
      break;
    default:
      right = right && (begun ? event.at >= known.charged_to && event.at <= known.order.to
                              : event.at == record.at);
  }
  if (!right) fail(14, known.id.text() + " ends at " + to_text(event.at) + " without reason");
  known.ended_at = event.at;
  entry->heard_end = record.at;
  paying_ = known.id;
}

// Rule 6 asks nothing about those whom a reservation's beginning displaces but that they are spot.
bool Auditor::makes_room_for_reservation(const LeaseBook& book, const TaskBook& owner) const {
  if (!is_spot(book.purchase_model) && !is_spot(owner.spec.purchase_model)) return false;
  return std::any_of(reservations_.begin(), reservations_.end(), [&](const auto& known) {
    const Reservation& reservation = known.second.reservation;
    if (now_ < reservation.order.from - notice || locks_until(reservation) <= now_) return false;
    const std::set<DeviceId> devices = devices_of(reservation.members);
    return std::any_of(book.slices.begin(), book.slices.end(),
                       [&](const Slice& slice) { return devices.count(slice.device) != 0; });
  });
}

// --- Who runs on it
// -------------------------------------------------------------------------------

void Auditor::check_on_reservation(const TaskBook& book, const LeaseBook& lease, LeaseId id) {
  const ReservationId named = book.spec.reservation;
  if (named.valid() != (lease.purchase_model == PurchaseModel::reservation))
    fail(14, id.text() + " is bought as a reservation and is on none, or the other way round");
  if (!named.valid()) return;
  ReservationEntry* entry = reservation(named);
  if (entry == nullptr) return;
  const Reservation& reserved = entry->reservation;
  if (reserved.tenant != book.tenant || !covers(reserved, now_))
    fail(14, id.text() + " is on " + named.text() + ", which is not its tenant's, or not in force");
  std::map<DeviceId, Load> left;
  for (const PromisedMember& member : reserved.members) {
    for (const PromisedSlice& slice : member.slices) {
      left[slice.device].share += slice.share;
      left[slice.device].memory += slice.memory;
    }
  }
  MilliCe used;
  for (const auto& [other, known] : leases_) {
    if (known.reservation != named) continue;
    used += known.billable;
    for (const Slice& slice : known.slices) {
      const auto there = left.find(slice.device);
      if (there == left.end()) continue;
      there->second.share -= slice.share;
      there->second.memory -= slice.memory;
    }
  }
  for (const Slice& slice : lease.slices) {
    const auto there = left.find(slice.device);
    if (there == left.end() || there->second.share.value < 0 || there->second.memory.value < 0)
      fail(14, id.text() + " is beside what " + named.text() + " has");
  }
  if (used > reserved.billable_ce) entry->irregular = true;
}

// Whoever else starts on its devices is gone when it begins, or fits beside it.
void Auditor::check_beside_reservations(const LeaseBook& granted) {
  if (granted.reservation.valid()) return;
  for (const Slice& slice : granted.slices) {
    check_locked(slice.device, now_, false);
    for (const auto& [id, entry] : reservations_) {
      const Instant from = entry.reservation.order.from;
      if (from > now_ && covers(entry.reservation, from))
        check_locked(slice.device, from, now_ < from - notice);
    }
  }
}

// --- What it costs
// --------------------------------------------------------------------------------

Auditor::ReservationEntry* Auditor::payer_of(const TaskBook& book) {
  if (!book.spec.reservation.valid()) return nullptr;
  const auto found = reservations_.find(book.spec.reservation);
  if (found == reservations_.end()) return nullptr;
  const Reservation& reserved = found->second.reservation;
  return reserved.charged_to < locks_until(reserved) ? &found->second : nullptr;
}

// Money that is set aside for no task is a reservation's.
void Auditor::book_held(const Transaction& transaction, TenantBook& tenant) {
  const auto found = reservations_.find(paying_);
  for (const Posting& posting : transaction.postings) {
    if (posting.account.kind == AccountKind::held && !posting.amount.is_zero()) {
      if (found == reservations_.end()) {
        fail(9, transaction.id.text() + " sets money aside for nobody");
        return;
      }
      found->second.held += posting.amount;
    }
    const bool beyond_hold =
        found != reservations_.end() && transaction.kind == TransactionKind::charge &&
        posting.account.kind == AccountKind::wallet && posting.amount.is_negative();
    if (!beyond_hold) continue;
    tenant.overrun -= posting.amount;
    if (!found->second.irregular)
      fail(9, found->first.text() + " was charged " + to_text(-posting.amount) +
                  " beyond what is held for it");
  }
  if (found != reservations_.end() && found->second.held.is_negative())
    fail(9, found->first.text() + " holds " + to_text(found->second.held));
}

void Auditor::on(const Record&, const ReservationHeld& event) {
  ReservationEntry* entry = reservation(event.reservation);
  if (entry == nullptr) return;
  if (event.held != entry->held)
    fail(9, event.reservation.text() + " is said to hold " + to_text(event.held) + " and holds " +
                to_text(entry->held));
}

void Auditor::note_reserved_use(const LeaseBook& book, const UsageRecord& usage) {
  if (!book.reservation.valid() || usage.from == usage.to) return;
  ReservationEntry* entry = reservation(book.reservation);
  if (entry == nullptr) return;
  const Reservation& reserved = entry->reservation;
  // Told after its hour was charged, or beyond its end: it is paid before what is unused then.
  if (std::min(usage.from, usage.to) < reserved.charged_to || usage.to > locks_until(reserved))
    entry->irregular = true;
  if (usage.to > usage.from) {
    entry->uses.push_back({usage.lease, usage.from, usage.to, usage.billable_ce});
    return;
  }
  for (ReservedUse& use : entry->uses) {
    if (use.lease == usage.lease) use.to = std::min(use.to, std::max(use.from, usage.to));
  }
}

// Of all that was reserved in that time, in milli-CE × ms: what nobody used, and what was used
// besides.
std::pair<Int128, Int128> Auditor::unused_and_beyond(const ReservationEntry& entry, Instant from,
                                                     Instant to) {
  std::map<Instant, std::int64_t> changes{{from, 0}, {to, 0}};
  for (const ReservedUse& use : entry.uses) {
    const Instant begin = std::max(use.from, from);
    const Instant end = std::min(use.to, to);
    if (begin >= end) continue;
    changes[begin] += use.ce.value;
    changes[end] -= use.ce.value;
  }
  Int128 unused = 0;
  Int128 beyond = 0;
  std::int64_t used = 0;
  for (auto at = changes.begin(); std::next(at) != changes.end(); ++at) {
    used += at->second;
    const Int128 left = entry.reservation.billable_ce.value - used;
    const Int128 lasts = (std::next(at)->first - at->first).ms;
    (left > 0 ? unused : beyond) += (left > 0 ? left : -left) * lasts;
  }
  return {unused, beyond};
}

// Its price is one that the card has for reservations, of which the card's share is charged.
void Auditor::check_unused_line(const AdjustmentLine& line, const std::string& what) {
  if (!line.card.valid() || line.card.value > cards_.size()) {
    fail(14, what + " is charged by no card");
    return;
  }
  const RateCard& card = cards_[line.card.value - 1];
  const bool sold =
      std::any_of(card.terms.prices.begin(), card.terms.prices.end(), [&](const Price& price) {
        return price.purchase_model == PurchaseModel::reservation &&
               std::any_of(price.tiers.begin(), price.tiers.end(),
                           [&](const Tier& tier) { return tier.price == line.key.unit_price; });
      });
  if (!sold)
    fail(14,
         what + " has the price " + to_text(line.key.unit_price) + ", which no card has for it");
  if (card.terms.granularity != Granularity::exact) return;  // units that were begun cost more
  const Int128 divisor = Int128{1000} * hour.ms * 10'000;
  const Int128 worth =
      line.key.unit_price.units() * line.milli_ce_ms * card.terms.reservation_unused.value;
  const Int128 off = line.list.units() * divisor - worth;
  constexpr int roundings_max = 1000;  // a piece's is half of the last decimal, or twice that
  if (off > divisor * roundings_max || -off > divisor * roundings_max)
    fail(14, what + " costs " + to_text(line.list) + ", which is not what the time is worth");
}

void Auditor::on(const Record& record, const ReservationCharged& event) {
  ReservationEntry* entry = reservation(event.reservation);
  if (entry == nullptr) return;
  Reservation& reserved = entry->reservation;
  const std::string what =
      event.reservation.text() + " from " + to_text(event.from) + " to " + to_text(event.to);
  if (event.tenant != reserved.tenant) fail(14, what + " is charged to another tenant");
  if (event.to > record.at) fail(14, what + " is charged before it is over");
  if (event.from == reserved.charged_to) {
    if (event.to != std::min(hour_after(event.from), locks_until(reserved)))
      fail(14, what + " is no whole hour of it, nor the rest");
    entry->pieces[event.from].to = event.to;
    reserved.charged_to = event.to;
  }
  const auto piece = entry->pieces.find(event.from);
  if (piece == entry->pieces.end() || piece->second.to != event.to) {
    fail(14, what + " leaves a gap, or is charged twice");
    return;
  }
  for (const AdjustmentLine& line : event.lines) {
    owe(event.tenant, line);
    if (line.key.purchase_model != PurchaseModel::reservation ||
        (line.key.kind != InvoiceLineKind::unused && line.key.kind != InvoiceLineKind::covered))
      fail(14, what + " has a line of another kind");
    if (line.key.kind == InvoiceLineKind::unused) {
      piece->second.unused += line.milli_ce_ms;
      check_unused_line(line, what);
    } else {
      piece->second.beyond -= line.milli_ce_ms;
    }
  }
  const auto [unused, beyond] = unused_and_beyond(*entry, event.from, event.to);
  if (unused != piece->second.unused || beyond != piece->second.beyond)
    fail(14, what + " is not charged for what was unused, or not given back what was used besides");
  paying_ = event.reservation;
}

// --- Against the engine's books, and at the end
// ----------------------------------------------------

// All that is set aside is a task's or a reservation's.
void Auditor::check_held() {
  std::map<TenantId, Money> sums;
  const auto add = [&](TenantId tenant, Money held) {
    sums.try_emplace(tenant, Money::zero(held.currency())).first->second += held;
  };
  for (const auto& [id, book] : tasks_) add(book.tenant, book.held);
  for (const auto& [id, entry] : reservations_) add(entry.reservation.tenant, entry.held);
  for (const auto& [account, amount] : balances_) {
    if (account.kind != AccountKind::held) continue;
    const auto sum = sums.find(account.tenant);
    if (sum == sums.end() ? !amount.is_zero() : amount != sum->second)
      fail(9, to_text(account) + " is " + to_text(amount) +
                  ", which is not what is held for tasks and reservations");
  }
}

void Auditor::check_reservations(const Seen& seen) {
  for (const Reservation& theirs : seen.reservations) {
    const ReservationEntry* mine = reservation(theirs.id);
    if (mine == nullptr) return;
    const Reservation& known = mine->reservation;
    if (theirs.held != mine->held)
      fail(9, theirs.id.text() + " holds " + to_text(theirs.held) + " in the engine's books and " +
                  to_text(mine->held) + " by its postings");
    if (theirs.members != known.members || theirs.ended_at != known.ended_at ||
        theirs.charged_to != known.charged_to)
      fail(14, theirs.id.text() + " is another in the engine's books");
  }
  for (const auto& [id, entry] : reservations_) {
    if (!covers(entry.reservation, now_) || now_ < entry.lies_since + patience) continue;
    for (const DeviceId device : devices_of(entry.reservation.members))
      check_locked(device, now_, false);
  }
  for (const auto& [id, book] : tasks_) {
    const auto found = reservations_.find(book.spec.reservation);
    if (book.stage != Stage::waiting || found == reservations_.end()) continue;
    const ReservationEntry& entry = found->second;
    if (entry.reservation.ended_at != Instant::never() && now_ >= entry.heard_end + patience)
      fail(14, id.text() + " waits for " + found->first.text() + ", which ended");
  }
}

void Auditor::check_reservations_over() {
  for (const auto& [id, entry] : reservations_) {
    const Reservation& reserved = entry.reservation;
    if (reserved.ended_at == Instant::never()) fail(14, id.text() + " never ended");
    if (reserved.charged_to < locks_until(reserved))
      fail(14, id.text() + " was not charged to its end");
    for (const auto& [from, piece] : entry.pieces) {
      const auto [unused, beyond] = unused_and_beyond(entry, from, piece.to);
      if (unused != piece.unused || beyond != piece.beyond)
        fail(14, id.text() + " from " + to_text(from) + " was not charged for what was used late");
    }
  }
}

}  // namespace loam::sim

// Auditor, rule 16: a running task is moved only for a waiting one of a higher level, which then
// starts or has lost its place; as often and at such a loss as the operator allows, and none that
// is protected.
#include <algorithm>

#include "sim/auditor.hpp"

namespace loam::sim {
namespace {

constexpr Duration window = Duration::hours(1);          // in which moves are counted
constexpr Duration turns_within = Duration::minutes(1);  // a daemon that is there decides by then

}  // namespace

bool Auditor::is_at(const std::vector<PromisedMember>& members, DeviceId device) {
  return std::any_of(members.begin(), members.end(), [&](const PromisedMember& member) {
    return std::any_of(member.slices.begin(), member.slices.end(),
                       [&](const PromisedSlice& slice) { return slice.device == device; });
  });
}

// What was to be its place is so no more, and whoever left for it has left in vain.
void Auditor::forget_place(TaskBook& book) {
  book.promise.reset();
  book.moved_for_it.clear();
  book.clear_since.reset();
}

void Auditor::forget_places_on(DeviceId device) {
  for (auto& [id, book] : tasks_) {
    if (book.promise && is_at(book.promise->members, device)) forget_place(book);
    if (book.move && is_at(book.move->members, device)) book.move.reset();
  }
}

void Auditor::on(const Record& record, const MoveBegun& event) {
  TaskBook* book = task(event.task, 16);
  TaskBook* asker = task(event.asker, 16);
  if (book == nullptr || asker == nullptr) return;
  const std::string who = event.task.text();
  if (book->stage != Stage::leased || book->move)
    fail(16, who + " is moved, and does not run, or moves already");
  if (asker->stage != Stage::waiting)
    fail(16, who + " makes room for " + event.asker.text() + ", which does not wait");
  TaskSpec sold = book->spec;
  if (book->sold_as_spot) sold.purchase_model = PurchaseModel::spot;
  if (level_of(sold) >= level_of(asker->spec))
    fail(16, who + " makes room for " + event.asker.text() + ", which is no higher");
  if (book->spec.reservation.valid() || book->spec.deadline)
    fail(16, who + " is moved, and is on a reservation or has a deadline");
  if (event.members.size() != static_cast<std::size_t>(book->spec.gang))
    fail(16, who + " has a new place for some of its members");
  check_move_budget(*book, event);
  check_protection(*book, record.at);
  book->move = event;
  asker->moved_for_it.insert(event.task);
  begun_.insert(event.asker);
}

void Auditor::check_move_budget(const TaskBook& book, const MoveBegun& event) {
  const DefragSettings& allowed = settings_.defrag;
  std::erase_if(moves_, [&](const auto& move) { return move.first <= now_ - window; });
  const bool again = std::any_of(moves_.begin(), moves_.end(),
                                 [&](const auto& move) { return move.second == event.task; });
  if (again) fail(16, event.task.text() + " is moved twice within an hour");
  moves_.emplace_back(now_, event.task);
  if (static_cast<std::int64_t>(moves_.size()) > allowed.moves_per_hour) {
    fail(16, std::to_string(moves_.size()) + " tasks are moved within an hour, and " +
                 std::to_string(allowed.moves_per_hour) + " may be");
  }
  // Nobody tells of checkpoints: all that it has run at a stretch may be lost.
  Duration lost;
  for (const LeaseId id : book.leases) lost = std::max(lost, now_ - leases_.at(id).granted_at);
  if (event.lost != lost)
    fail(16, event.task.text() + " is said to lose " + to_text(event.lost) + " by its move, not " +
                 to_text(lost));
  if (lost > allowed.lost_work_max) {
    fail(16, event.task.text() + " loses " + to_text(lost) + " by its move, and may lose " +
                 to_text(allowed.lost_work_max));
  }
}

// As far as its queue says it itself.
void Auditor::check_protection(const TaskBook& book, Instant at) {
  const QueueSettings& queue = queue_of(book.spec);
  const auto too_young = [&](LeaseId id) {
    return queue.safe && at - leases_.at(id).granted_at < *queue.safe;
  };
  if (std::any_of(book.leases.begin(), book.leases.end(), too_young))
    fail(16, book.id.text() + " is moved within its minimum run time");
  const bool earns_more = queue.discipline == "blind" || queue.discipline == "semi_blind";
  if (queue.preemptions.value_or(0) == 0 || earns_more) return;
  const Duration usual = queue.discipline == "priority" ? Duration::hours(24) : Duration{};
  const Duration counted = queue.preemption_window.value_or(usual);
  const auto count =
      std::count_if(book.preempted_at.begin(), book.preempted_at.end(),
                    [&](Instant preempted) { return counted.ms == 0 || preempted > at - counted; });
  if (count >= *queue.preemptions)
    fail(16, book.id.text() + " was preempted so often that it is protected, and is moved");
}

// What follows a move without its asker being promised a start was for nobody.
void Auditor::check_askers_promised() {
  if (begun_.empty()) return;
  fail(16, begun_.begin()->text() + " is promised no start, and others made room for it");
}

// Between batches.
void Auditor::check_askers_started() {
  for (auto& [id, book] : tasks_) {
    if (book.moved_for_it.empty() || book.stage != Stage::waiting) continue;
    // A task of one that has used up its month may not start after all.
    if (tenants_.at(book.tenant.value - 1).spec.quota.ce_hours_month) continue;
    const bool leaving =
        std::any_of(book.moved_for_it.begin(), book.moved_for_it.end(), [&](TaskId mover) {
          const auto found = tasks_.find(mover);
          if (found == tasks_.end()) return false;
          const auto& leases = found->second.leases;
          return std::any_of(leases.begin(), leases.end(),
                             [&](LeaseId lease) { return leases_.at(lease).leaving; });
        });
    if (leaving) {
      book.clear_since.reset();
    } else if (!book.clear_since) {
      book.clear_since = now_;
    } else if (now_ > *book.clear_since + turns_within) {
      fail(16, id.text() + " does not start, and others have made room for it");
    }
  }
}

}  // namespace loam::sim

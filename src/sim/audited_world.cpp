#include "sim/audited_world.hpp"

namespace loam::sim {

AuditedWorld::AuditedWorld(Instant start, std::uint64_t seed) : World(start, seed) {
  World::on_record([this](const Record& record) {
    auditor_.hear(record);
    if (second_) second_(record);
  });
}

const std::string& AuditedWorld::broken() const {
  return auditor_.broken().empty() ? broken_ : auditor_.broken();
}

void AuditedWorld::audit() {
  if (stuck() && broken_.empty())
    broken_ = "rule 13: decisions without end at " + to_text(clock().true_now());
  if (!up()) return;
  const engine::State& now = state();
  Seen seen;
  seen.devices = now.devices;
  seen.tenants = now.tenants;
  for (const auto& [id, task] : now.tasks) seen.tasks.push_back(task);
  for (const auto& [id, lease] : now.leases) seen.leases.push_back(lease);
  for (const auto& [id, book] : now.reservations) seen.reservations.push_back(book.reservation);
  seen.balances = now.accounts.balances();
  auditor_.compare(seen);
  // Rule 4 on the nodes themselves.
  std::set<std::pair<TaskId, std::int64_t>> running;
  for (const auto& [id, attempt] : executor().attempts()) {
    if (attempt.phase != Attempt::Phase::running) continue;
    if (!running.insert({attempt.task, attempt.rank}).second && broken_.empty()) {
      broken_ = "rule 4: " + attempt.task.text() + " runs twice at " + to_text(clock().true_now());
    }
  }
}

void AuditedWorld::check_replay() {
  if (!up()) return;
  engine::State replayed;
  const Result<void> read = journal().replay(0, [&](const Record& record) -> Result<void> {
    engine::evolve(replayed, record);
    return {};
  });
  if (!broken_.empty()) return;
  if (!read) {
    broken_ = "rule 12: the journal cannot be read: " + read.error().message;
  } else if (engine::digest(replayed) != engine::digest(state())) {
    broken_ = "rule 12: the journal replayed gives another state at record " +
              std::to_string(replayed.sequence);
  }
}

void AuditedWorld::check_notices() {
  for (const auto& [id, attempt] : executor().attempts()) {
    if (attempt.noticed && !attempt.dead) auditor_.check_notice(id, *attempt.noticed);
  }
}

void AuditedWorld::check_nodes() {
  for (const auto& [id, attempt] : executor().attempts()) {
    if (attempt.phase != Attempt::Phase::ended || !attempt.end_answered || attempt.dead) continue;
    auditor_.check_ran(id, attempt.ran);
  }
}

}  // namespace loam::sim

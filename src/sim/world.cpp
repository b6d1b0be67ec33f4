#include "sim/world.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace loam::sim {
namespace {

constexpr Duration retry_after = Duration::seconds(10);  // while the journal takes nothing
constexpr std::size_t rounds_at_once_max = 5'000;        // far above what any workload needs

const Actor client{"simulation", "client"};

engine::Answer no_answer(std::string why) {
  engine::Answer answer;
  answer.error = Error{ErrorKind::unavailable, std::move(why), "send it again with the same key"};
  return answer;
}

}  // namespace

World::World(Instant start, std::uint64_t seed)
    : clock_(start), executor_(clock_, seed), last_run_(start) {
  this->start();
  restarts_ = 0;
}

engine::Answer World::ask(Command command, RequestKey key) {
  if (!up()) return no_answer("the daemon is down");
  std::vector<Question> batch;
  batch.push_back({std::move(command), std::move(key), std::nullopt});
  run(batch);
  return batch.front().answer ? *batch.front().answer : no_answer("the daemon died");
}

// A node does not report again what the daemon knows from before it died, nor what came before.
void World::forget_taken_health() {
  const engine::State& state = loop_->state();
  for (const Device& device : state.devices) {
    const auto taken = std::find_if(health_.rbegin(), health_.rend(), [&](const auto& report) {
      return report.device == device.id && report.health == device.health &&
             report.seen_at == device.seen_at;
    });
    if (taken == health_.rend()) continue;
    const auto behind = health_.erase(std::next(taken).base());
    health_.erase(std::remove_if(health_.begin(), behind,
                                 [&](const auto& report) { return report.device == device.id; }),
                  behind);
  }
}

void World::run(std::vector<Question>& batch) {
  LOAM_ASSERT(up());
  ++batches_;
  forget_taken_health();
  const std::size_t own = batch.size();
  for (const ReportDeviceHealth& report : health_) batch.push_back({report, {}, std::nullopt});
  const bool dying = die_armed_;
  executor_.set_deaf(dying);
  appended_ = 0;
  last_run_ = clock_.true_now();

  std::vector<engine::Submission> submissions;
  for (Question& question : batch) {
    submissions.push_back(
        {question.command, client, question.key,
         [&question](const engine::Answer& answer) { question.answer = answer; }});
  }
  loop_->run(std::move(submissions));

  executor_.set_deaf(false);
  const bool torn = journal_.take_torn();
  const bool died = (dying && appended_ > 0) || torn;
  const bool taken = died ? !torn : loop_->healthy();
  if (taken) health_.clear();
  if (died) {
    for (Question& question : batch) question.answer.reset();
  }
  batch.resize(own);
  if (!died) return;
  if (!torn) die_armed_ = false;
  kill();
  start();
}

void World::run_parcels(std::vector<Parcel> parcels) {
  std::vector<Question> batch;
  for (const Parcel& parcel : parcels) batch.push_back({parcel.command, {}, std::nullopt});
  run(batch);
  for (std::size_t i = 0; i < parcels.size(); ++i) {
    const auto& answer = batch[i].answer;
    if (!answer || answer->error) {
      executor_.unanswered(parcels[i]);
    } else {
      const bool stale = answer->reject && answer->reject->code == RejectCode::stale_epoch;
      executor_.answered(parcels[i], stale);
    }
  }
}

Instant World::next_due() const {
  Instant due = executor_.next_due();
  if (up()) {
    const Instant loop_due =
        loop_->healthy() ? clock_.true_time_of(loop_->next_due()) : last_run_ + retry_after;
    due = std::min(due, loop_due);
  }
  return due == Instant::never() ? due : std::max(due, clock_.true_now());
}

void World::advance_to(Instant true_time) {
  std::size_t rounds = 0;  // at one instant
  for (Instant due = next_due(); due <= true_time && !stuck_; due = next_due()) {
    rounds = due > clock_.true_now() ? 0 : rounds + 1;
    stuck_ = rounds > rounds_at_once_max;
    clock_.advance_to(due);
    std::vector<Parcel> parcels = executor_.collect();
    if (up()) {
      run_parcels(std::move(parcels));
    } else {
      for (const Parcel& parcel : parcels) executor_.unanswered(parcel);
    }
    if (due == Instant::never()) break;
  }
  if (true_time > clock_.true_now()) clock_.advance_to(true_time);
}

void World::report_health(DeviceId device, DeviceHealth health, Instant seen_at,
                          std::string reason) {
  if (health == DeviceHealth::lost) executor_.lose(device);
  health_.push_back({device, health, std::move(reason), seen_at});
  if (!up()) return;
  std::vector<Question> batch;
  run(batch);
}

void World::hear(const Record& record) {
  ++appended_;
  heard_sequence_ = record.sequence;
  if (listener_) listener_(record);
}

void World::kill() {
  LOAM_ASSERT(up());
  loop_.reset();
}

void World::start() {
  LOAM_ASSERT(!up());
  journal_.repair();
  loop_ = std::make_unique<engine::Loop>(clock_, journal_, executor_);
  const Result<void> recovered = loop_->recover();
  LOAM_ASSERT(recovered.ok());  // what was written here can be read here
  // A torn append may have left its frame whole: those records are durable and not heard yet.
  const Result<void> reread =
      journal_.replay(heard_sequence_, [this](const Record& record) -> Result<void> {
        hear(record);
        return {};
      });
  LOAM_ASSERT(reread.ok());
  loop_->on_record([this](const Record& record) { hear(record); });
  ++restarts_;
  // Reports come before the clock: what ended while nobody listened ended then.
  executor_.kill_unknown(loop_->state());
  executor_.report_again();
  run_parcels(executor_.collect());
}

}  // namespace loam::sim

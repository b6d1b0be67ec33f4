#include "app/loamd/loop_thread.hpp"

#include <chrono>

#include "base/assert.hpp"

namespace loam::daemon {
namespace {

// Between attempts while the journal cannot be written (a full disk, say).
constexpr Duration retry_pause = Duration::seconds(1);

}  // namespace

LoopThread::LoopThread(engine::Clock& clock, engine::Journal& journal, engine::Executor& executor)
    : clock_(clock), loop_(clock, journal, executor) {}

LoopThread::~LoopThread() {
  stop();
}

void LoopThread::start() {
  thread_ = std::thread([this] { run(); });
}

void LoopThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LoopThread::post(engine::Submission submission) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(submission));
  }
  wake_.notify_one();
}

void LoopThread::post_until_durable(Command command, Actor actor, Then then) {
  engine::Submission submission;
  submission.command = command;
  submission.actor = actor;
  submission.reply = [this, command, actor, then = std::move(then)](const engine::Answer& answer) {
    if (answer.error) {
      post_until_durable(command, actor, then);
    } else if (then) {
      then(answer);
    }
  };
  post(std::move(submission));
}

void LoopThread::read(const std::function<void(const engine::State&, Instant now)>& look) {
  LOAM_ASSERT(std::this_thread::get_id() != thread_.get_id());
  bool done = false;
  std::condition_variable changed;
  std::unique_lock lock(mutex_);
  if (stopping_) return;
  reads_.push_back({&look, &done, &changed});
  wake_.notify_one();
  changed.wait(lock, [&] { return done; });
}

std::optional<Duration> LoopThread::patience() {
  const Instant due = loop_.next_due();
  if (due == Instant::never()) return std::nullopt;
  const Duration until = due - clock_.now();
  return std::max(until, healthy_ ? Duration{0} : retry_pause);
}

void LoopThread::settled() {
  {
    const std::lock_guard lock(mutex_);
    settled_ = true;
  }
  wake_.notify_one();
}

bool LoopThread::gather(std::vector<engine::Submission>& batch, std::vector<Read>& reads) {
  const std::optional<Duration> sleep = patience();
  std::unique_lock lock(mutex_);
  const auto work = [&] { return stopping_ || settled_ || !inbox_.empty() || !reads_.empty(); };
  if (sleep) {
    wake_.wait_for(lock, std::chrono::milliseconds(sleep->ms), work);
  } else {
    wake_.wait(lock, work);
  }
  batch.swap(inbox_);
  reads.swap(reads_);
  if (settled_) {
    settled_ = false;
    loop_.wait_for_reports(false);
    batch.push_back({SchedulePass{}, {"loam", "loop"}, {}, {}});
  }
  return !(stopping_ && batch.empty() && reads.empty());
}

// Reads first: they look at what is durable and wait for no commit.
void LoopThread::answer(const std::vector<Read>& reads) {
  if (reads.empty()) return;
  for (const Read& read : reads)
    (*read.look)(loop_.state(), std::max(clock_.now(), loop_.state().now));
  // With the lock, or a reader might be gone with what it waits for.
  const std::lock_guard lock(mutex_);
  for (const Read& read : reads) {
    *read.done = true;
    read.changed->notify_one();
  }
}

void LoopThread::run_batch(std::vector<engine::Submission> batch) {
  const std::uint64_t before = loop_.state().sequence;
  loop_.run(std::move(batch));
  healthy_ = loop_.healthy();
  ++batches_;
  if (healthy_) {
    if (after_batch_ && loop_.state().sequence != before) after_batch_(loop_.state());
    return;
  }
  ++failures_;
  // Reports come back at once (post_until_durable): do not try again without a pause.
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::milliseconds(retry_pause.ms),
                 [&] { return stopping_ || !reads_.empty(); });
  if (stopping_) inbox_.clear();
}

void LoopThread::run() {
  std::vector<engine::Submission> batch;
  std::vector<Read> reads;
  while (gather(batch, reads)) {
    answer(reads);
    if (!batch.empty() || loop_.next_due() <= clock_.now()) run_batch(std::move(batch));
    batch.clear();
    reads.clear();
  }
}

}  // namespace loam::daemon

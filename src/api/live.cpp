#include "api/live.hpp"

#include <algorithm>
#include <chrono>

#include "api/workers.hpp"

namespace loam::api {
namespace {

Instant steady_now() {
  using namespace std::chrono;
  return {duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count()};
}

// Changes come in bursts: a short pause gathers them.
constexpr std::chrono::milliseconds gathering{5};

}  // namespace

LiveStreams::LiveStreams(Duration tick, bool ticker) : tick_(tick), with_ticker_(ticker) {}

LiveStreams::~LiveStreams() {
  stop();
}

void LiveStreams::add(std::shared_ptr<LiveStream> stream) {
  const std::lock_guard stepping(stepping_);
  Instant now;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    now = with_ticker_ ? steady_now() : last_;
    ++count_;  // before the step, so that a change during it is not missed
  }
  if (stream->step({now, true})) streams_.push_back(std::move(stream));
  const std::lock_guard lock(mutex_);
  count_ = streams_.size();
  if (!with_ticker_ || stopping_ || count_ == 0) return;
  if (!ticker_.joinable()) ticker_ = std::thread([this] { serve(); });
  wake_.notify_all();
}

void LiveStreams::changed(TaskId task) {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return;
  if (task.valid()) {
    changed_.insert(task);
  } else {
    all_changed_ = true;
  }
  woken_ = true;
  wake_.notify_all();
}

void LiveStreams::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  wake_.notify_all();
}

void LiveStreams::tick(Instant now) {
  const std::lock_guard stepping(stepping_);
  std::set<TaskId> changed;
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    changed.swap(changed_);
    all = std::exchange(all_changed_, false);
    last_ = std::max(last_, now);
  }
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const TaskId task = (*stream)->task();
    const bool touched = task.valid() && (all || changed.count(task) > 0);
    stream = (*stream)->step({now, touched}) ? std::next(stream) : streams_.erase(stream);
  }
  const std::lock_guard lock(mutex_);
  count_ = streams_.size();
}

void LiveStreams::serve() {
  block_signals();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || count_ > 0; });
      wake_.wait_for(lock, std::chrono::milliseconds(tick_.ms),
                     [this] { return stopping_ || woken_; });
      if (stopping_) return;
      if (woken_) wake_.wait_for(lock, gathering, [this] { return stopping_; });
      woken_ = false;
    }
    tick(steady_now());
  }
}

void LiveStreams::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (ticker_.joinable()) ticker_.join();
  const std::lock_guard stepping(stepping_);
  streams_.clear();
  const std::lock_guard lock(mutex_);
  count_ = 0;
}

}  // namespace loam::api

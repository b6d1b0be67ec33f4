// Live streams: what is looked at again and again while a client listens. One ticker thread, which
// sleeps while nobody does. Shell: threads.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "base/time.hpp"
#include "domain/ids.hpp"

namespace loam::api {

class LiveStream {
 public:
  virtual ~LiveStream() = default;
  struct Look {
    Instant now;           // paces; no wall clock
    bool changed = false;  // the journal said something of this stream's task
  };
  // False: it is over. Called by one thread at a time, never by the loop's.
  virtual bool step(const Look& look) = 0;
  virtual TaskId task() const { return {}; }  // whose changes it wants to hear of
};

class LiveStreams {
 public:
  LiveStreams(Duration tick, bool ticker);
  ~LiveStreams();

  // Takes the first step at once.
  void add(std::shared_ptr<LiveStream> stream);
  // From any thread; does not block. None: every task.
  void changed(TaskId task);
  // There may be room in a stream again.
  void wake();
  void tick(Instant now);
  void stop();

 private:
  void serve();

  const Duration tick_;
  const bool with_ticker_;
  std::mutex stepping_;  // held while streams step
  std::list<std::shared_ptr<LiveStream>> streams_;

  std::mutex mutex_;  // guards what follows; taken after stepping_
  std::condition_variable wake_;
  std::set<TaskId> changed_;
  bool all_changed_ = false;
  bool woken_ = false;
  bool stopping_ = false;
  std::size_t count_ = 0;  // of streams_
  Instant last_;
  std::thread ticker_;
};

}  // namespace loam::api

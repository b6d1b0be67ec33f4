// A mutex held for a scope. Not std::mutex: the guard brings no C++ library into its guests.
#pragma once

#include <pthread.h>

namespace loam::guard {

struct Locked {
  pthread_mutex_t& mutex;
  explicit Locked(pthread_mutex_t& m) : mutex(m) { ::pthread_mutex_lock(&mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { ::pthread_mutex_unlock(&mutex); }
};

}  // namespace loam::guard

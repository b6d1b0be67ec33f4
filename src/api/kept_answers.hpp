// Answers of writes that the journal does not record (tokens, backups, a look for devices), by
// idempotency key: the same request again gets the first answer and has no second effect. Kept in
// memory, a day at most: after a restart of the daemon such a request is a new one. Thread-safe.
// Internal to this folder.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "domain/command.hpp"

namespace loam::api {

class KeptAnswers {
 public:
  using Clock = std::chrono::steady_clock;

  // Nothing: it is new, and its caller must end() it. Else the first answer. ErrorKind::conflict
  // where the key stands for another request, or the first is still under way.
  Result<std::optional<std::string>> begin(const RequestKey& key, Clock::time_point now);
  // The answer of what was begun; nothing: it failed, and may be tried again.
  void end(const RequestKey& key, std::optional<std::string> answer);

 private:
  using Id = std::pair<std::string, std::string>;  // scope and key
  struct Entry {
    std::string fingerprint;
    std::optional<std::string> answer;  // nothing while under way
    Clock::time_point begun;
    std::list<Id>::iterator place;
  };
  void drop_old(Clock::time_point now);
  void drop(const Id& id);

  std::mutex mutex_;
  std::map<Id, Entry> entries_;
  std::list<Id> by_age_;  // oldest first
};

}  // namespace loam::api

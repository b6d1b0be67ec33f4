#include "api/kept_answers.hpp"

#include <iterator>

namespace loam::api {
namespace {

constexpr auto kept_for = std::chrono::hours(24);
constexpr std::size_t entries_max = 10'000;  // some MiB; who writes that often is no person

}  // namespace

Result<std::optional<std::string>> KeptAnswers::begin(const RequestKey& key,
                                                      Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  drop_old(now);
  const Id id{key.scope, key.key};
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    by_age_.push_back(id);
    entries_[id] = {key.fingerprint, std::nullopt, now, std::prev(by_age_.end())};
    return std::optional<std::string>();
  }
  if (found->second.fingerprint != key.fingerprint) {
    return Error{ErrorKind::conflict,
                 "the idempotency key '" + key.key + "' was used for another request",
                 "use a new key for a new request"};
  }
  if (!found->second.answer) {
    return Error{ErrorKind::conflict,
                 "the request with the idempotency key '" + key.key + "' is still under way",
                 "ask again once it has been answered"};
  }
  return found->second.answer;
}

void KeptAnswers::end(const RequestKey& key, std::optional<std::string> answer) {
  const std::lock_guard lock(mutex_);
  const Id id{key.scope, key.key};
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (answer) {
    found->second.answer = std::move(answer);
  } else {
    drop(id);
  }
}

void KeptAnswers::drop_old(Clock::time_point now) {
  while (!by_age_.empty()) {
    const Entry& oldest = entries_.at(by_age_.front());
    if (by_age_.size() < entries_max && oldest.begun + kept_for > now) return;
    drop(Id(by_age_.front()));
  }
}

void KeptAnswers::drop(const Id& id) {
  const auto found = entries_.find(id);
  by_age_.erase(found->second.place);
  entries_.erase(found);
}

}  // namespace loam::api

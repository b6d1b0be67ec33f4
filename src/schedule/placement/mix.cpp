#include "schedule/placement/mix.hpp"

#include <algorithm>
#include <numeric>

namespace loam::schedule {
namespace {

// Requests a window holds: enough that a type of 1 % is known to a tenth of its share, few enough
// that a pool follows a change of its tenants within hours.
constexpr std::int64_t window = 8192;

void append(std::string& key, std::int64_t value) {
  key += std::to_string(value);
  key += '|';
}

void append(std::string& key, const std::string& text) {
  append(key, static_cast<std::int64_t>(text.size()));  // so that no text imitates the next field
  key += text;
}

}  // namespace

std::int64_t Mix::total() const {
  return std::accumulate(
      types.begin(), types.end(), std::int64_t{0},
      [](std::int64_t sum, const RequestType& type) { return sum + type.count; });
}

std::string key_of(const Demand& demand) {
  std::string key;
  key.reserve(64);
  append(key, demand.devices);
  append(key, demand.ce ? demand.ce->value : -1);
  append(key, demand.share ? demand.share->value : -1);
  append(key, demand.memory ? demand.memory->value : -1);
  append(key, demand.cpu.value);
  append(key, demand.host_memory.value);
  append(key, static_cast<std::int64_t>(demand.device.value));
  append(key, static_cast<std::int64_t>(demand.work_class) * 2 + (demand.exclusive ? 1 : 0) +
                  (demand.oversubscribable ? 100 : 0));
  append(key, demand.device_type);
  append(key, demand.region);
  for (const std::string& type : demand.device_types) append(key, type);
  key += '/';
  for (const std::string& label : demand.labels) append(key, label);
  return key;
}

Mix mix_of(const std::vector<Demand>& demands) {
  std::map<std::string, RequestType> types;
  for (const Demand& demand : demands) {
    RequestType& type = types.try_emplace(key_of(demand), RequestType{demand, 0}).first->second;
    ++type.count;
  }
  Mix mix;
  for (auto& [key, type] : types) mix.types.push_back(std::move(type));
  return mix;
}

double distance(const Mix& a, const Mix& b) {
  if (a.types.empty() || b.types.empty()) return a.types.empty() && b.types.empty() ? 0 : 1;
  std::map<std::string, double> differences;
  for (const RequestType& type : a.types) {
    differences[key_of(type.demand)] +=
        static_cast<double>(type.count) / static_cast<double>(a.total());
  }
  for (const RequestType& type : b.types) {
    differences[key_of(type.demand)] -=
        static_cast<double>(type.count) / static_cast<double>(b.total());
  }
  double sum = 0;
  for (const auto& [key, difference] : differences)
    sum += difference < 0 ? -difference : difference;
  return sum / 2;
}

bool MixEstimator::note(const Demand& demand) {
  ++types_.try_emplace(key_of(demand), Type{demand, 0, 0}).first->second.recent;
  ++seen_;
  if (++in_window_ == window) {
    in_window_ = 0;
    for (auto at = types_.begin(); at != types_.end();) {
      at->second.before = at->second.recent;
      at->second.recent = 0;
      at = at->second.before == 0 ? types_.erase(at) : std::next(at);
    }
  }
  if (seen_ < next_) return false;
  next_ = seen_ < 64 ? seen_ * 2 : seen_ + std::max<std::int64_t>(1, std::min(seen_, window) / 4);
  return true;
}

Mix MixEstimator::mix() const {
  Mix mix;
  for (const auto& [key, type] : types_)
    mix.types.push_back({type.demand, type.recent + type.before});
  return mix;
}

}  // namespace loam::schedule

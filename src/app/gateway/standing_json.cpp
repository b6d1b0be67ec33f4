#include "app/gateway/standing_json.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace loam::serving {

namespace {

namespace json = boost::json;

// A tenth of a unit is more than anybody reads.
double tenths(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value * 10 + 0.5)) / 10;
}

json::value milliseconds(const std::optional<std::uint64_t>& microseconds) {
  if (!microseconds) return nullptr;
  return tenths(static_cast<double>(*microseconds) / 1000);
}

// A part of a whole in thousandths; null where there is no whole.
json::value part(std::uint64_t some, std::uint64_t all) {
  if (all == 0) return nullptr;
  return static_cast<double>(some * 1000 / all) / 1000;
}

}  // namespace

std::string standings_json(const std::vector<Endpoints::Standing>& standings) {
  json::array endpoints;
  for (const Endpoints::Standing& one : standings) {
    const gateway::Recent::Summary& recent = one.recent;
    const double seconds = static_cast<double>(recent.over.ms) / 1000;
    endpoints.push_back(json::object{
        {"model", one.model},
        {"state", infer::name_of(one.state)},
        {"instances", one.instances},
        {"queued", one.queued},
        {"in_flight", one.in_flight},
        {"waiting", one.waiting},
        {"requests", one.requests},
        {"memory_mib", one.memory.value},
        {"why", one.why},
        {"tokens_per_second",
         seconds > 0 ? tenths(static_cast<double>(recent.generated_tokens) / seconds) : 0.0},
        {"first_token_p50_ms", milliseconds(recent.first_token_p50_us)},
        {"first_token_p99_ms", milliseconds(recent.first_token_p99_us)},
        {"gap_p50_ms", milliseconds(recent.gap_p50_us)},
        {"gap_p99_ms", milliseconds(recent.gap_p99_us)},
        {"cached", part(recent.cached_tokens, recent.prompt_tokens)},
        {"batch", one.engines.batch},
        {"queue", one.waiting + one.engines.waiting},
        {"swapped", one.engines.swapped},
        {"kv_used", part(one.engines.kv_used_bytes, one.engines.kv_bytes)},
        {"kv_bytes", one.engines.kv_bytes},
        {"weights_bytes", one.engines.weights_bytes},
        {"prefix_bytes", one.engines.prefix_bytes},
        {"compute", one.engines.compute}});
  }
  return json::serialize(json::object{{"endpoints", std::move(endpoints)}});
}

}  // namespace loam::serving

#include "app/gateway/recovery.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "app/gateway/instance_host.hpp"
#include "app/gateway/usage_fields.hpp"

namespace loam::serving {
namespace {

namespace json = boost::json;

std::uint64_t sum_of(const json::object& line, std::string_view name) {
  return static_cast<std::uint64_t>(count_of(line, name).value_or(0));
}

TokenUsage usage_of(const json::object& line) {
  TokenUsage usage;
  usage.prompt_tokens = static_cast<std::uint32_t>(sum_of(line, "prompt_tokens"));
  usage.cached_tokens = static_cast<std::uint32_t>(sum_of(line, "cached_tokens"));
  usage.generated_tokens = static_cast<std::uint32_t>(sum_of(line, "generated_tokens"));
  usage.recomputed_tokens = static_cast<std::uint32_t>(sum_of(line, "recomputed_tokens"));
  usage.engine_time_us = sum_of(line, "engine_time_us");
  return usage;
}

// Calls `take` for each whole line from `from` on; where the file is shorter than that, from its
// beginning. Returns where the last whole line ends.
template <class Take>
std::uint64_t each_line(const std::string& path, std::uint64_t from, Take take) {
  std::error_code fault;
  const std::uint64_t bytes = std::filesystem::file_size(path, fault);
  if (fault) return 0;
  if (from > bytes) from = 0;
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(from));
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    from += line.size() + 1;
    boost::system::error_code bad;
    const json::value value = json::parse(line, bad);
    take(!bad && value.is_object() ? &value.get_object() : nullptr);
  }
  return from;
}

struct Place {
  std::uint64_t engines = 0;  // bytes read of each file
  std::uint64_t gateway = 0;
};

std::string place_file(const Config& config) {
  return engine_usage_file(config) + ".read";
}

Place load_place(const Config& config) {
  Place place;
  std::ifstream in(place_file(config));
  if (!(in >> place.engines >> place.gateway)) return {};
  std::error_code fault;
  const std::uint64_t bytes = std::filesystem::file_size(engine_usage_file(config), fault);
  // Another file took its place: everything is looked at anew, on both sides.
  return fault || place.engines > bytes ? Place{} : place;
}

Result<void> save_place(const Config& config, const Place& place) {
  const std::string path = place_file(config);
  const std::string draft = path + ".new";
  std::ofstream out(draft, std::ios::trunc);
  out << place.engines << ' ' << place.gateway << '\n';
  out.close();
  if (out && std::rename(draft.c_str(), path.c_str()) == 0) return {};
  return Error{ErrorKind::unavailable, "cannot write " + path,
               "check the folder and the space on its disk"};
}

struct Known {  // of a request, by the gateway's file
  bool settled = true;
  TokenUsage usage;  // with what failed tries cost
};

struct Spent {  // of a request, by the engines' file
  std::string tenant;
  std::string model;
  TokenUsage usage;
};

std::uint32_t beyond(std::uint32_t all, std::uint32_t known) {
  return all > known ? all - known : 0;
}

TokenUsage beyond(const TokenUsage& all, const TokenUsage& known) {
  TokenUsage more;
  more.prompt_tokens = beyond(all.prompt_tokens, known.prompt_tokens);
  more.cached_tokens = std::min(beyond(all.cached_tokens, known.cached_tokens), more.prompt_tokens);
  more.generated_tokens = beyond(all.generated_tokens, known.generated_tokens);
  return more;
}

}  // namespace

std::string engine_usage_file(const Config& config) {
  return engines_folder(config) + "/engine-usage.jsonl";
}

Result<Recovery> recover_usage(const Config& config,
                               const std::map<std::string, std::string>& owners, Instant now,
                               gateway::UsageSink& sink) {
  Recovery recovery;
  // No instance has ever run.
  if (!std::filesystem::exists(engine_usage_file(config))) return recovery;
  Place place = load_place(config);
  std::map<std::string, Spent> spent;
  const std::uint64_t engines_end =
      each_line(engine_usage_file(config), place.engines, [&](const json::object* line) {
        const std::string request = line == nullptr ? std::string() : text_of(*line, "request");
        if (request.empty() || text_of(*line, "tenant").empty()) {
          ++recovery.skipped;
          return;
        }
        // What failed there was tried elsewhere, or is the operator's loss.
        if (text_of(*line, "outcome") == "failed") return;
        Spent& sum = spent[request];
        sum.tenant = text_of(*line, "tenant");
        sum.model = text_of(*line, "model");
        sum.usage += usage_of(*line);
      });
  std::map<std::string, Known> known;
  place.gateway = each_line(config.usage_file, place.gateway, [&](const json::object* line) {
    if (line == nullptr) return;  // the outbox tells of it
    const std::string request = text_of(*line, "request");
    if (spent.count(request) == 0) return;
    Known& of = known[request];
    const json::value* settled = line->if_contains("settled");
    of.settled = settled == nullptr || !settled->is_bool() || settled->get_bool();
    of.usage += usage_of(*line);
    of.usage.prompt_tokens += static_cast<std::uint32_t>(sum_of(*line, "wasted_prompt_tokens"));
    of.usage.generated_tokens +=
        static_cast<std::uint32_t>(sum_of(*line, "wasted_generated_tokens"));
  });
  for (const auto& [request, of] : spent) {
    const auto written = known.find(request);
    if (written != known.end() && written->second.settled) continue;
    const TokenUsage more =
        written == known.end() ? of.usage : beyond(of.usage, written->second.usage);
    if (more.prompt_tokens == 0 && more.generated_tokens == 0) continue;
    gateway::UsageRecord record;
    record.request = request;
    record.caller.tenant = of.tenant;
    record.model = of.model;
    const auto owner = owners.find(of.model);
    if (owner != owners.end()) record.owner = owner->second;
    record.outcome = gateway::UsageOutcome::client_left;
    record.usage = more;
    record.arrived = now;
    sink.record(record);
    ++recovery.requests;
  }
  place.engines = engines_end;
  LOAM_CHECK(save_place(config, place));
  return recovery;
}

}  // namespace loam::serving

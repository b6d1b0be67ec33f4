#include "billing/attribution.hpp"

#include <algorithm>
#include <array>
#include <boost/describe/enum_to_string.hpp>
#include <cstdlib>

#include "base/assert.hpp"
#include "billing/apportion.hpp"

namespace loam::billing {

std::string model_name(const std::string& model, const std::string& version) {
  return version.empty() ? model : model + "@" + version;
}

LineKey key_of(const Attribution& who) {
  LineKey key;
  key.project = who.project;
  key.environment = who.environment;
  key.model = who.model;
  key.model_version = who.model_version;
  return key;
}

Result<void> take_model(std::string_view text, Attribution& who) {
  const std::size_t at = text.rfind('@');
  who.model = std::string(text.substr(0, at));
  who.model_version.clear();
  if (at == std::string_view::npos) return {};
  who.model_version = std::string(text.substr(at + 1));
  if (who.model.empty() || who.model_version.empty())
    return invalid("'" + std::string(text) + "' is not a model and its version",
                   "write it as NAME@VERSION, or leave the version out");
  return {};
}
namespace {

constexpr std::size_t key_bytes_max = 63;
constexpr std::size_t value_bytes_max = 256;
constexpr std::size_t tags_max = 100;

bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= key_bytes_max &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.' || c == '/';
         });
}

bool is_value(std::string_view value) {
  return value.size() <= value_bytes_max && std::none_of(value.begin(), value.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == ',';
         });
}

}  // namespace

Result<void> check(const Tags& tags) {
  if (tags.size() > tags_max)
    return invalid(std::to_string(tags.size()) + " tags are too many", "the most is 100");
  for (const auto& [key, value] : tags) {
    if (!is_key(key))
      return invalid("'" + key + "' is not the name of a tag",
                     "use 1 to 63 letters, digits, '-', '_', '.', '/'");
    if (!is_value(value))
      return invalid(
          "the value of the tag '" + key + "' is too long or has commas or control bytes",
          "use at most 256 bytes, none of them a comma");
  }
  return {};
}

std::string to_text(const Tags& tags) {
  std::string text;
  for (const auto& [key, value] : tags) text += (text.empty() ? "" : ",") + key + "=" + value;
  return text;
}

namespace {

struct Pipeline {
  const char* name;
  const char* mark;  // "true", or anything, where it runs the job
  std::array<const char*, 6> variables;
};

constexpr std::array<const char*, 6> ci_tags{"repository", "workflow", "ref",
                                             "run",        "commit",   "actor"};
constexpr std::array<Pipeline, 6> pipelines{{
    {"github",
     "GITHUB_ACTIONS",
     {"GITHUB_REPOSITORY", "GITHUB_WORKFLOW", "GITHUB_REF_NAME", "GITHUB_RUN_ID", "GITHUB_SHA",
      "GITHUB_ACTOR"}},
    {"gitlab",
     "GITLAB_CI",
     {"CI_PROJECT_PATH", "CI_JOB_NAME", "CI_COMMIT_REF_NAME", "CI_PIPELINE_ID", "CI_COMMIT_SHA",
      "GITLAB_USER_LOGIN"}},
    {"jenkins",
     "JENKINS_URL",
     {"GIT_URL", "JOB_NAME", "BRANCH_NAME", "BUILD_ID", "GIT_COMMIT", "BUILD_USER_ID"}},
    {"buildkite",
     "BUILDKITE",
     {"BUILDKITE_REPO", "BUILDKITE_PIPELINE_SLUG", "BUILDKITE_BRANCH", "BUILDKITE_BUILD_NUMBER",
      "BUILDKITE_COMMIT", "BUILDKITE_BUILD_CREATOR"}},
    {"circleci",
     "CIRCLECI",
     {"CIRCLE_PROJECT_REPONAME", "CIRCLE_JOB", "CIRCLE_BRANCH", "CIRCLE_BUILD_NUM", "CIRCLE_SHA1",
      "CIRCLE_USERNAME"}},
    {"azure",
     "TF_BUILD",
     {"BUILD_REPOSITORY_NAME", "BUILD_DEFINITIONNAME", "BUILD_SOURCEBRANCHNAME", "BUILD_BUILDID",
      "BUILD_SOURCEVERSION", "BUILD_REQUESTEDFOR"}},
}};

}  // namespace

void add_ci_tags(const std::function<std::string(const char*)>& variable, Tags& tags) {
  for (const Pipeline& pipeline : pipelines) {
    const std::string mark = variable(pipeline.mark);
    if (mark.empty() || mark == "false") continue;
    tags.emplace("ci", pipeline.name);
    for (std::size_t i = 0; i < ci_tags.size(); ++i) {
      std::string value = variable(pipeline.variables[i]);
      value.erase(0, std::min(value.find_first_not_of(" \t\r\n"), value.size()));
      value.erase(value.find_last_not_of(" \t\r\n") + 1);
      // A pipeline's variable never makes a submission fail: what no tag may hold is left out.
      if (!value.empty() && is_value(value)) tags.emplace(ci_tags[i], value);
    }
    return;
  }
}

// --- Idle and shared cost
// --------------------------------------------------------------------------

const char* name_of(IdleMethod method) noexcept {
  switch (method) {
    case IdleMethod::kept:
      return "kept";
    case IdleMethod::weighted:
      return "weighted";
    case IdleMethod::even:
      return "even";
  }
  return "?";
}

Result<IdleMethod> parse_idle_method(std::string_view text) {
  for (const IdleMethod method : {IdleMethod::kept, IdleMethod::weighted, IdleMethod::even}) {
    if (text == name_of(method)) return method;
  }
  return invalid("'" + std::string(text) + "' is no way to bear idle cost",
                 "use kept, weighted or even");
}

SplitCost split_cost(Money cost, Int128 parts, const std::vector<Share>& shares,
                     IdleMethod method) {
  LOAM_ASSERT(parts > 0);
  SplitCost result{{}, Money::zero(cost.currency())};
  Int128 held = 0;
  std::vector<Int128> weights;
  for (const Share& share : shares) {
    LOAM_ASSERT(share.part >= 0);
    held += share.part;
    weights.push_back(share.part);
  }
  if (held == 0) {
    result.idle = cost;
    return result;
  }
  weights.push_back(std::max<Int128>(0, parts - held));
  std::vector<Money> amounts = split(cost, weights);
  const Money idle = amounts.back();
  amounts.pop_back();
  weights.pop_back();
  if (method == IdleMethod::kept) {
    result.idle = idle;
  } else if (method == IdleMethod::weighted) {
    amounts = split(cost, weights);
  } else {
    std::vector<Int128> alike;
    for (const Int128 weight : weights) alike.push_back(weight > 0 ? 1 : 0);
    const std::vector<Money> more = split(idle, alike);
    for (std::size_t i = 0; i < amounts.size(); ++i) amounts[i] += more[i];
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto [at, fresh] = result.of.try_emplace(shares[i].who, amounts[i]);
    if (!fresh) at->second += amounts[i];
  }
  return result;
}

// --- Costs by group and time
// -----------------------------------------------------------------------

Result<Bucket> parse_bucket(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Bucket>, 5> names{
      {{"none", Bucket::none},
       {"hour", Bucket::hour},
       {"day", Bucket::day},
       {"week", Bucket::week},
       {"month", Bucket::month}}};
  for (const auto& [name, bucket] : names)
    if (text == name) return bucket;
  return invalid("'" + std::string(text) + "' is no bucket of time",
                 "use none, hour, day, week or month");
}

namespace {

// The value of a row under a name of group_by; nothing for an unknown name.
std::optional<std::string> value_of(const CostRow& row, std::string_view name) {
  if (name == "tenant") return row.tenant;
  if (name == "project") return row.who.project;
  if (name == "environment") return row.who.environment;
  if (name == "model") return row.who.model.empty() ? "(none)" : row.who.model;
  if (name == "model_version") {
    return row.who.model.empty() ? "(none)" : model_name(row.who.model, row.who.model_version);
  }
  if (name == "group") return row.group.empty() ? "(none)" : row.group;
  if (name == "task") return row.task.empty() ? "(none)" : row.task;
  if (name == "purchase_model") return boost::describe::enum_to_string(row.purchase_model, "?");
  if (name == "meter") return row.meter;
  if (!name.starts_with("tag:")) return std::nullopt;
  const auto tag = row.who.tags.find(std::string(name.substr(4)));
  return tag == row.who.tags.end() ? "(none)" : tag->second;
}

struct Slot {
  std::string name;
  Instant until;
};

// "2026-11-30T09:00:00Z", "2026-11-30T14:00+05:30": as the wall clock of the zone shows it.
std::string hour_text(const LocalTime& local, Duration offset, Instant begin) {
  if (offset.ms == 0) return loam::to_text(begin);
  constexpr std::int64_t minute_ms = 60'000, hour_ms = 3'600'000;
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const std::int64_t away = std::abs(offset.ms);
  return to_text(local.date) + "T" + two(local.of_day.ms / hour_ms) + ":00" +
         (offset.ms < 0 ? "-" : "+") + two(away / hour_ms) + ":" + two(away % hour_ms / minute_ms);
}

Slot slot_at(Bucket bucket, const Zone& zone, Instant at) {
  const LocalTime local = zone.local(at);
  switch (bucket) {
    case Bucket::none:
      return {"", Instant::never()};
    case Bucket::hour: {
      // Hours of real time: the repeated one is two buckets, told apart by their instants.
      const std::int64_t past = local.of_day.ms % 3'600'000;
      const Instant begin = at - Duration{past};
      const Instant end = std::min(begin + Duration::hours(1), zone.next_change(at));
      return {hour_text(local, zone.offset_at(at), begin), end};
    }
    case Bucket::day:
      return {to_text(local.date), zone.first_instant({add_days(local.date, 1), {}})};
    case Bucket::week: {
      const int since_monday = (weekday_of(local.date) + 6) % 7;
      const Date monday = add_days(local.date, -since_monday);
      return {to_text(monday), zone.first_instant({add_days(monday, 7), {}})};
    }
    case Bucket::month:
      return {month_text(zone, at), month_of(zone, at).to};
  }
  return {"", Instant::never()};
}

struct Pieces {
  std::vector<std::string> names;
  std::vector<Int128> lengths;
};

// A row's time by bucket, and how much of it lies outside the period asked for (last, unnamed).
Pieces pieces_of(const CostRow& row, const CostQuery& query) {
  Pieces pieces;
  const Period all{row.from, std::max(row.to, row.from + Duration{1})};
  const Period inside{query.period ? std::max(all.from, query.period->from) : all.from,
                      query.period ? std::min(all.to, query.period->to) : all.to};
  Int128 within = 0;
  for (Instant at = inside.from; at < inside.to;) {
    const Slot slot = slot_at(query.bucket, query.zone, at);
    const Instant end = std::min(inside.to, slot.until);
    pieces.names.push_back(slot.name);
    pieces.lengths.push_back((end - at).ms);
    within += (end - at).ms;
    at = end;
  }
  pieces.lengths.push_back((all.to - all.from).ms - within);
  return pieces;
}

}  // namespace

std::vector<Period> cut_into(const Period& period, Bucket bucket, const Zone& zone) {
  std::vector<Period> all;
  for (Instant at = period.from; at < period.to;) {
    const Instant end = std::min(period.to, slot_at(bucket, zone, at).until);
    all.push_back({at, end});
    at = end;
  }
  return all;
}

Result<std::vector<CostLine>> group_costs(const std::vector<CostRow>& rows,
                                          const CostQuery& query) {
  std::vector<std::string> names = query.group_by;
  for (const auto& [name, value] : query.where) names.push_back(name);
  for (const std::string& name : names) {
    if (!value_of(CostRow{}, name))
      return invalid("costs cannot be grouped by '" + name + "'",
                     "use tenant, project, environment, model, model_version, group, task, "
                     "purchase_model, meter or tag:KEY");
  }
  std::map<std::pair<std::string, std::vector<std::string>>, Money> sums;
  for (const CostRow& row : rows) {
    if (row.net.currency() != rows.front().net.currency())
      return invalid("the costs are in several currencies", "ask for one tenant or currency");
    const bool wanted = std::all_of(
        query.where.begin(), query.where.end(),
        [&](const auto& filter) { return value_of(row, filter.first) == filter.second; });
    if (!wanted) continue;
    std::vector<std::string> groups;
    for (const std::string& name : query.group_by) groups.push_back(*value_of(row, name));
    const Pieces pieces = pieces_of(row, query);
    const std::vector<Money> amounts = split(row.net, pieces.lengths);
    for (std::size_t i = 0; i < pieces.names.size(); ++i) {
      const auto [at, fresh] = sums.try_emplace({pieces.names[i], groups}, amounts[i]);
      if (!fresh) at->second += amounts[i];
    }
  }
  std::vector<CostLine> lines;
  for (const auto& [key, net] : sums) lines.push_back({key.first, key.second, net});
  return lines;
}

}  // namespace loam::billing

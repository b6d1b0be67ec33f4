// Attribution: whose cost it is, filled in from a pipeline's variables; idle and shared cost split
// and conserved; costs grouped and cut into time. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "billing/calendar.hpp"
#include "billing/rater.hpp"
#include "domain/ledger.hpp"
#include "domain/task.hpp"

namespace loam::billing {

// A model as people write it: "name", or "name@version".
std::string model_name(const std::string& model, const std::string& version);
// Puts it into `who`. Refuses an empty name or version beside the '@'.
Result<void> take_model(std::string_view text, Attribution& who);

// The beginning of a line's key: whose it is. Of the kind `usage` until another is set.
LineKey key_of(const Attribution& who);

using Tags = std::map<std::string, std::string>;

// At most 100 tags, whose keys have 1 to 63 letters, digits, '-', '_', '.', '/', and whose values
// at most 256 bytes without control characters or commas. The error names the tag.
Result<void> check(const Tags& tags);
// "cost-centre=42,team=vision", by key.
std::string to_text(const Tags& tags);

// Adds the tags that the variables of a pipeline tell (GitHub Actions, GitLab CI, Jenkins,
// Buildkite, CircleCI, Azure Pipelines): ci, repository, workflow, ref, run, commit, actor.
// `variable` gives one by name, empty where it is not set. What the task says itself stays. No
// known pipeline adds nothing.
void add_ci_tags(const std::function<std::string(const char*)>& variable, Tags& tags);

// --- Idle and shared cost
// --------------------------------------------------------------------------

enum class IdleMethod {
  kept,      // idle is a row of its own
  weighted,  // over those who hold a part, by their part
  even,      // over those who hold a part, alike
};
const char* name_of(IdleMethod method) noexcept;
// Refuses what is none.
Result<IdleMethod> parse_idle_method(std::string_view text);

struct Share {
  std::string who;
  Int128 part = 0;  // of the whole's `parts`
};
struct SplitCost {
  std::map<std::string, Money> of;
  Money idle;  // what nobody bears
};
// `cost` of `parts` parts, of which `shares` are held. Everything adds up to `cost` to the last
// unit. Nobody holds any: all of it stays idle, whatever the method. Parts held beyond the whole
// (oversubscribed) leave no idle, and the cost is split by part. Requires parts > 0, shares >= 0.
SplitCost split_cost(Money cost, Int128 parts, const std::vector<Share>& shares, IdleMethod method);

// --- Costs by group and time
// -----------------------------------------------------------------------

// One charge with whom it belongs to.
struct CostRow {
  Instant from;
  Instant to;
  std::string tenant;
  Attribution who;
  std::string group;  // of tasks
  std::string task;   // "t17"; empty: of none
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  std::string meter = "compute";  // what was metered, or the kind of what is charged besides
  Money net;
};

enum class Bucket { none, hour, day, week, month };
Result<Bucket> parse_bucket(std::string_view text);

// A period cut at the bucket's bounds, by the wall clock of the zone.
std::vector<Period> cut_into(const Period& period, Bucket bucket, const Zone& zone);

struct CostQuery {
  // "tenant", "project", "environment", "model", "model_version", "group", "task",
  // "purchase_model", "meter" or "tag:KEY"
  std::vector<std::string> group_by;
  std::map<std::string, std::string> where;  // the same names: what must be equal
  Bucket bucket = Bucket::none;
  Zone zone;                     // of days, weeks (from Monday) and months
  std::optional<Period> period;  // rows are cut to it
};
struct CostLine {
  std::string bucket;  // "2025-03-01", "2025-03", an hour with its offset from UTC; empty: none
  std::vector<std::string> groups;  // as in group_by; "(none)" where a row has no such tag
  Money net;
};
// Sorted by bucket and groups. A row over several buckets is split by time and conserved to the
// last unit. Refuses unknown group names, and rows of several currencies.
Result<std::vector<CostLine>> group_costs(const std::vector<CostRow>& rows, const CostQuery& query);

}  // namespace loam::billing

#include "engine/start_times.hpp"

#include <algorithm>
#include <vector>

#include "billing/accounts.hpp"
#include "billing/calendar.hpp"
#include "engine/queries.hpp"
#include "schedule/deferral.hpp"
#include "schedule/recurrence.hpp"

namespace loam::engine {
namespace {

Reject bad(std::string message, std::string next_step) {
  return {RejectCode::invalid_argument, std::move(message), std::move(next_step)};
}

// The calendar's zones as the scheduler sees them.
class WallClock final : public schedule::ZoneClock {
 public:
  explicit WallClock(billing::Zone zone) : zone_(std::move(zone)) {}

  schedule::LocalTime local(Instant instant) const override {
    const billing::LocalTime time = zone_.local(instant);
    const auto minutes = static_cast<int>(time.of_day.ms / Duration::minutes(1).ms);
    return {time.date.year, time.date.month, time.date.day, minutes / 60, minutes % 60};
  }
  Instant first(const schedule::LocalTime& time) const override {
    return zone_.first_instant(
        {{time.year, time.month, time.day}, Duration::minutes(time.hour * 60 + time.minute)});
  }

 private:
  billing::Zone zone_;
};

struct Recurrence {
  schedule::Cron cron;
  billing::Zone zone;
};

// "0 2 * * 1-5 Europe/Berlin", "@daily": the zone follows the expression.
Result<Recurrence> parse_recurrence(const std::string& text) {
  constexpr std::size_t fields = 5;
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const bool named = !words.empty() && words.front().front() == '@';
  const std::size_t of_cron = named ? 1 : fields;
  std::string zone = "UTC";
  if (words.size() == of_cron + 1) {
    zone = words.back();
    words.pop_back();
  }
  std::string expression;
  for (const std::string& word : words) expression += (expression.empty() ? "" : " ") + word;
  LOAM_TRY(cron, schedule::Cron::parse(expression));
  LOAM_TRY(opened, billing::Zone::open(zone));
  return Recurrence{std::move(cron), std::move(opened)};
}

StartAnswer next_due(Instant now, const TaskSpec& spec) {
  const auto recurrence = parse_recurrence(spec.recurrence);
  if (!recurrence) {
    return {{},
            bad("the recurrence '" + spec.recurrence + "': " + recurrence.error().message,
                "write five fields and a zone, such as '0 2 * * 1-5 Europe/Berlin', or @daily")};
  }
  const auto next = recurrence->cron.next(now, WallClock(recurrence->zone));
  if (!next) {
    return {{},
            bad("the recurrence '" + spec.recurrence + "' never comes again",
                "write five fields and a zone, such as '0 2 * * 1-5 Europe/Berlin', or @daily")};
  }
  return {*next, std::nullopt};
}

// What a CE-hour of it costs from `now` on, as far as that is known.
std::vector<schedule::PriceStep> prices_of(const State& state, Instant now, Instant until,
                                           const Tenant& tenant, const TaskSpec& spec) {
  std::vector<schedule::PriceStep> steps;
  const billing::Terms terms = terms_of(spec).front();
  const Currency currency = tenant.spec.currency;
  for (Instant at = now; at < until;) {
    const billing::PriceTable* table = state.rates.at(currency, at);
    billing::PriceTable::Stretch stretch{0, Instant::never()};
    if (terms.tariff == Tariff::time_of_day) stretch = table->stretch_at(at);
    const Price* price = table->price(terms, stretch.window);
    if (price == nullptr) break;  // a card to come that does not sell it: nothing is put off to it
    const Int128 units = price->tiers.front().price.units();
    if (units > std::numeric_limits<std::int64_t>::max()) break;
    steps.push_back({at, static_cast<std::int64_t>(units)});
    at = std::min(stretch.until, state.rates.next_change(currency, at));
  }
  return steps;
}

StartAnswer cheapest(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec) {
  const Instant deadline = *spec.deadline;
  if (runs_by_plan(spec)) return {{}, plan_spot(state, now, tenant, spec).reject};
  if (now + spec.limit > deadline) {
    return {{},
            bad("a task of at most " + to_text(spec.limit) + " does not meet the deadline " +
                    to_text(deadline) + ": it is " + to_text(now),
                "give a later deadline, or a shorter time with --time")};
  }
  if (spec.reservation.valid()) return {};
  const Instant until = std::min(deadline, now + deferral_max + spec.limit);
  const auto steps = prices_of(state, now, until, tenant, spec);
  if (steps.size() < 2) return {};
  const auto start = schedule::cheapest_start(steps, {now, until}, spec.limit);
  return {start && *start > now ? *start : Instant{}, std::nullopt};
}

}  // namespace

StartAnswer start_of(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec) {
  if (!spec.recurrence.empty()) return next_due(now, spec);
  if (spec.deadline) return cheapest(state, now, tenant, spec);
  return {};
}

std::string accept_next(Draft& draft, const Task& ended, Money released,
                        const std::optional<RunUse>& use) {
  if (ended.spec->recurrence.empty()) return {};
  const State& state = draft.state();
  const Tenant& tenant = state.tenant(ended.tenant);
  std::shared_ptr<const TaskSpec> spec = ended.spec;
  if (spec->auto_ce)
    spec = std::make_shared<const TaskSpec>(with_ce(state, tenant.id, *ended.spec, use));
  const StartAnswer start = next_due(draft.now(), *spec);
  const HoldAnswer needed = hold_for(state, draft.now(), tenant, *spec, Duration{0});
  if (start.reject) return start.reject->message;
  if (needed.reject) return needed.reject->message;
  if (needed.amount > available(state, tenant.id) + released)
    return "the next run " + beyond_means_words(state, tenant, needed.amount);
  const TaskId next{draft.next().task++};
  draft.add(TaskAccepted{next, tenant.id, spec, start.not_before});
  if (!needed.amount.is_zero()) {
    draft.add(TransactionPosted{
        billing::hold(TransactionId{draft.next().transaction++}, tenant.id, next, needed.amount)});
  }
  return {};
}

}  // namespace loam::engine

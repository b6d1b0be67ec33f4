#include "engine/token_books.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/attribution.hpp"
#include "billing/token_rating.hpp"
#include "engine/adjustment_books.hpp"
#include "engine/decisions.hpp"

namespace loam::engine {
namespace {

constexpr std::size_t uses_max = 1000;  // of one command: a decision stays short
constexpr std::size_t name_max = 256;
constexpr std::int64_t tokens_max = 1'000'000'000'000'000;

Reject bad(std::string message, std::string next_step) {
  return {RejectCode::invalid_argument, std::move(message), std::move(next_step)};
}

std::optional<Reject> fault_of(const State& state, const TokenUse& use) {
  const auto known = [&](TenantId id) { return id.valid() && id.value <= state.tenants.size(); };
  if (!known(use.caller) || (use.owner.valid() && !known(use.owner))) {
    return Reject{RejectCode::no_such_tenant,
                  "there is no " + (known(use.caller) ? use.owner : use.caller).text(),
                  "see the tenants with: loam tenant list"};
  }
  for (const std::int64_t count :
       {use.requests, use.prompt_tokens, use.cached_tokens, use.generated_tokens}) {
    if (count < 0 || count > tokens_max)
      return bad(std::to_string(count) + " tokens or requests are out of range",
                 "report what was counted, 0 or more");
  }
  if (use.cached_tokens > use.prompt_tokens) {
    return bad(std::to_string(use.cached_tokens) + " cached tokens are more than the prompt's " +
                   std::to_string(use.prompt_tokens),
               "cached tokens are a part of the prompt's");
  }
  if (use.from > use.to) {
    return bad("the use from " + to_text(use.from) + " ends before it begins", "turn it round");
  }
  if (use.model.empty() || use.model.size() > name_max)
    return bad("the model's name has " + std::to_string(use.model.size()) + " bytes",
               "give 1 to 256");
  for (const std::string& name :
       {use.project, use.environment, use.owner_project, use.owner_environment}) {
    if (!is_name(name))
      return bad("'" + name + "' is not a name",
                 "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  for (const auto* tags : {&use.tags, &use.owner_tags}) {
    if (const auto good = billing::check(*tags); !good.ok())
      return bad(good.error().message, good.error().next_step);
  }
  return std::nullopt;
}

// Charges the caller and credits the owner, each in one transaction that sums to zero.
void post(Draft& draft, const TokensUsed& event) {
  const State& state = draft.state();
  const auto note = [&](const char* whose) {
    return std::string(whose) + " of " + event.use.model;
  };
  if (!event.charged.empty()) {
    const LineSum sum = sum_of(state, event.charged, event.charged.front().net.currency());
    if (!sum.whole().is_zero()) {
      Transaction charge =
          billing::charge(TransactionId{draft.next().transaction++}, event.use.caller, TaskId{},
                          sum.net, sum.tax, Money::zero(sum.net.currency()));
      charge.note = note("tokens");
      draft.add(TransactionPosted{std::move(charge)});
    }
  }
  if (!event.earned.empty()) {
    const LineSum sum = sum_of(state, event.earned, event.earned.front().net.currency());
    Transaction credit = billing::refund(TransactionId{draft.next().transaction++}, event.use.owner,
                                         TaskId{}, -sum.net, -sum.tax);
    credit.note = note("others' tokens");
    draft.add(TransactionPosted{std::move(credit)});
  }
}

TokensUsed rated(const State& state, Instant now, const RecordTokens& asked, const TokenUse& use) {
  TokensUsed event;
  event.source = asked.source;
  event.sequence = asked.sequence;
  event.use = use;
  // A gateway's clock that runs ahead does not reach into a card of the future.
  event.use.from = std::min(use.from, now);
  event.use.to = std::min(use.to, now);
  const Tenant& caller = state.tenant(use.caller);
  const billing::PriceTable* table = state.rates.at(caller.spec.currency, event.use.from);
  if (table == nullptr) return event;  // there was no price yet, for anything
  event.charged = billing::rate_tokens(*table, event.use, caller.spec.discount);
  for (AdjustmentLine& line : event.charged)
    line.month_end = month_end(state, use.caller, event.use.from);
  if (!use.owner.valid() || use.owner == use.caller) return event;
  // Money of another currency cannot be passed on as it is.
  if (state.tenant(use.owner).spec.currency != caller.spec.currency) return event;
  event.earned = billing::income_of(event.use, event.charged, table->card().id);
  for (AdjustmentLine& line : event.earned)
    line.month_end = month_end(state, use.owner, event.use.from);
  return event;
}

}  // namespace

Decision decide_on(const State& state, Instant now, const RecordTokens& asked) {
  if (asked.source.empty() || asked.source.size() > name_max || asked.sequence <= 0) {
    return Draft::rejected(bad("'" + asked.source.substr(0, 80) + "' and " +
                                   std::to_string(asked.sequence) + " do not name what was counted",
                               "give a source and a sequence number above 0"));
  }
  if (asked.uses.size() > uses_max) {
    return Draft::rejected(bad(std::to_string(asked.uses.size()) + " entries are too many at once",
                               "send at most " + std::to_string(uses_max)));
  }
  Draft draft(state, now);
  const auto last = state.token_sources.find(asked.source);
  if (last != state.token_sources.end() && asked.sequence <= last->second) {
    draft.subject(std::to_string(last->second));  // recorded before: once is enough
    return draft.done();
  }
  for (const TokenUse& use : asked.uses) {
    if (auto reject = fault_of(state, use)) return Draft::rejected(std::move(*reject));
  }
  for (const TokenUse& use : asked.uses) {
    TokensUsed event = rated(state, now, asked, use);
    draft.add(event);
    post(draft, event);
  }
  draft.subject(std::to_string(asked.sequence));
  return draft.done();
}

void apply_to_books(State& state, const TokensUsed& event, Instant at) {
  std::int64_t& last = state.token_sources[event.source];
  LOAM_ASSERT(event.sequence >= last);
  last = event.sequence;
  for (const AdjustmentLine& line : event.charged) {
    add_open(state, event.use.caller, line, event.use.from);
    count_in_budgets(state, event.use.caller, line, at);
  }
  for (const AdjustmentLine& line : event.earned)
    add_open(state, event.use.owner, line, event.use.from);
}

}  // namespace loam::engine

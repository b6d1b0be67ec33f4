#include "schedule/admission/quotas.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/money.hpp"

namespace loam::schedule {
namespace {

constexpr std::int64_t ms_per_hour = 3'600'000;

std::string amount_text(Dimension dimension, std::int64_t value) {
  switch (dimension) {
    case Dimension::ce:
      return decimal_text(value, 3) + " CE";
    case Dimension::memory:
      return to_text(Mebibytes{value}) + " of device memory";
    case Dimension::devices:
      return decimal_text(value, 3) + " devices";
    case Dimension::tasks:
      return std::to_string(value) + " tasks";
    case Dimension::cpu:
      return decimal_text(value, 3) + " CPUs";
    case Dimension::host_memory:
      return to_text(Mebibytes{value}) + " of host memory";
  }
  return std::to_string(value);
}

const Amounts& nothing() {
  static const Amounts amounts{};
  return amounts;
}

}  // namespace

const char* name_of(Dimension dimension) noexcept {
  switch (dimension) {
    case Dimension::ce:
      return "ce";
    case Dimension::memory:
      return "memory";
    case Dimension::devices:
      return "devices";
    case Dimension::tasks:
      return "tasks";
    case Dimension::cpu:
      return "cpu";
    case Dimension::host_memory:
      return "host_memory";
  }
  return "";
}

std::string to_text(const Shortfall& s) {
  const auto amount = [&](std::int64_t value) { return amount_text(s.dimension, value); };
  const std::string asks = "asks " + amount(s.asked) + " with " + amount(s.held) + " held";
  switch (s.kind) {
    case Shortfall::Kind::nominal:
      return asks + " of at most " + amount(s.most);
    case Shortfall::Kind::borrow_max:
      return asks + " of at most " + amount(s.most) + ", what may be borrowed included";
    case Shortfall::Kind::lent:
      return asks + "; its own quota is lent out and has yet to come back";
    case Shortfall::Kind::cohort:
      return asks + "; nobody in the cohort has enough that idles";
    case Shortfall::Kind::longest:
      return "may run for " + to_text(Duration{s.asked}) + ", at most " +
             to_text(Duration{s.most}) + " is allowed";
    case Shortfall::Kind::no_limit:
      return "states no time limit, and at most " + to_text(Duration{s.most}) + " is allowed";
    case Shortfall::Kind::month:
      return "may use " + decimal_text(s.asked, 3) + " CE-hours with " + decimal_text(s.held, 3) +
             " used or running of the month's " + decimal_text(s.most, 3);
  }
  return asks;
}

Quotas Quotas::on_top_of(const Quotas& base, Instant now) {
  Quotas scratch;
  scratch.now_ = std::max(base.now_, now);
  scratch.base_ = &base;
  return scratch;
}

const Quotas::Account* Quotas::find(TenantId tenant) const {
  const auto found = accounts_.find(tenant);
  if (found != accounts_.end()) return &found->second;
  return base_ == nullptr ? nullptr : base_->find(tenant);
}

const Quotas::Cohort* Quotas::find_cohort(const std::string& name) const {
  const auto found = cohorts_.find(name);
  if (found != cohorts_.end()) return &found->second;
  return base_ == nullptr ? nullptr : base_->find_cohort(name);
}

// To be changed: copied from the base the first time.
Quotas::Account& Quotas::account(TenantId tenant) {
  const auto [at, fresh] = accounts_.try_emplace(tenant);
  if (!fresh || base_ == nullptr) return at->second;
  if (const Account* known = base_->find(tenant)) at->second = *known;
  const std::string& cohort = at->second.spec.cohort;
  if (cohort.empty() || cohorts_.count(cohort) != 0) return at->second;
  if (const Cohort* known = base_->find_cohort(cohort)) cohorts_[cohort] = *known;
  return at->second;
}

std::int64_t Quotas::kept(const Account& account, std::size_t d) {
  if (!account.spec.nominal[d]) return 0;
  const std::int64_t nominal = *account.spec.nominal[d];
  return nominal - std::min(nominal, account.spec.lend_max[d].value_or(nominal));
}

// Of the cohort's stock, by one that holds `held`.
std::int64_t Quotas::taken(const Account& account, std::size_t d, std::int64_t held) {
  return account.spec.nominal[d] ? std::max<std::int64_t>(0, held - kept(account, d)) : 0;
}

void Quotas::join(const Account& account, std::int64_t sign) {
  if (account.spec.cohort.empty()) return;
  Cohort& cohort = cohorts_[account.spec.cohort];
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (!account.spec.nominal[d]) continue;
    cohort.stock.values[d] += sign * (*account.spec.nominal[d] - kept(account, d));
    cohort.taken.values[d] += sign * taken(account, d, account.held.values[d]);
  }
}

void Quotas::set(TenantId tenant, QuotaSpec spec) {
  LOAM_ASSERT(base_ == nullptr);  // a scratch copy has no settings of its own
  Account& account = accounts_[tenant];
  join(account, -1);
  account.spec = std::move(spec);
  join(account, +1);
}

namespace {

// What a task may use; of one without a limit nobody knows: an hour of it.
std::int64_t milli_ce_hours(const Amounts& amounts, std::optional<Duration> limit) {
  const Int128 ms = limit.value_or(Duration{ms_per_hour}).ms;
  return static_cast<std::int64_t>(ms * amounts[Dimension::ce] / ms_per_hour);
}

}  // namespace

void Quotas::hold(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit,
                  std::int64_t sign) {
  Account& account = this->account(tenant);
  join(account, -1);
  account.month_running += sign * milli_ce_hours(amounts, limit);
  for (std::size_t d = 0; d < dimensions; ++d) {
    account.held.values[d] += sign * amounts.values[d];
    LOAM_ASSERT(account.held.values[d] >= 0);
  }
  join(account, +1);
}

void Quotas::charge(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit) {
  hold(tenant, amounts, limit, +1);
}

void Quotas::release(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit) {
  hold(tenant, amounts, limit, -1);
}

void Quotas::set_month(TenantId tenant, std::int64_t milli_ce_hours, Instant until) {
  Account& account = this->account(tenant);
  account.month_milli_ce_hours = milli_ce_hours;
  account.month_until = until;
}

// Used, and what running tasks may yet use.
std::int64_t Quotas::of_month(const Account& account) const {
  const bool over = now_ >= account.month_until;
  return (over ? 0 : account.month_milli_ce_hours) + account.month_running;
}

std::optional<Shortfall> Quotas::check_one(const Account& account, std::size_t d,
                                           std::int64_t amount) const {
  if (amount == 0 || !account.spec.nominal[d]) return std::nullopt;
  const std::int64_t nominal = *account.spec.nominal[d];
  const std::int64_t held = account.held.values[d];
  const auto dimension = static_cast<Dimension>(d);
  using Kind = Shortfall::Kind;
  if (account.spec.cohort.empty()) {
    if (held + amount <= nominal) return std::nullopt;
    return Shortfall{Kind::nominal, dimension, amount, held, nominal};
  }
  if (account.spec.borrow_max[d] && held + amount > nominal + *account.spec.borrow_max[d]) {
    return Shortfall{Kind::borrow_max, dimension, amount, held,
                     nominal + *account.spec.borrow_max[d]};
  }
  const Cohort& cohort = *find_cohort(account.spec.cohort);
  const std::int64_t more = taken(account, d, held + amount) - taken(account, d, held);
  if (more == 0 || cohort.taken.values[d] + more <= cohort.stock.values[d]) return std::nullopt;
  return Shortfall{held + amount <= nominal ? Kind::lent : Kind::cohort, dimension, amount, held,
                   nominal};
}

std::optional<Shortfall> Quotas::check(TenantId tenant, const Amounts& amounts,
                                       std::optional<Duration> limit) const {
  const Account* account = find(tenant);
  if (account == nullptr) return std::nullopt;
  using Kind = Shortfall::Kind;
  if (const auto& longest = account->spec.longest) {
    if (!limit) return Shortfall{Kind::no_limit, Dimension::tasks, 0, 0, longest->ms};
    if (*limit > *longest)
      return Shortfall{Kind::longest, Dimension::tasks, limit->ms, 0, longest->ms};
  }
  if (const auto& most = account->spec.ce_hours_month) {
    const std::int64_t asked = milli_ce_hours(amounts, limit);
    const std::int64_t used = of_month(*account);
    if (used + asked > *most) return Shortfall{Kind::month, Dimension::ce, asked, used, *most};
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (auto shortfall = check_one(*account, d, amounts.values[d])) return shortfall;
  }
  return std::nullopt;
}

std::optional<Shortfall> Quotas::never(TenantId tenant, const Amounts& amounts,
                                       std::optional<Duration> limit) const {
  const Account* account = find(tenant);
  if (account == nullptr) return std::nullopt;
  const QuotaSpec& spec = account->spec;
  using Kind = Shortfall::Kind;
  if (spec.longest && !limit)
    return Shortfall{Kind::no_limit, Dimension::tasks, 0, 0, spec.longest->ms};
  if (spec.longest && *limit > *spec.longest)
    return Shortfall{Kind::longest, Dimension::tasks, limit->ms, 0, spec.longest->ms};
  if (spec.ce_hours_month) {
    const std::int64_t asked = milli_ce_hours(amounts, limit);
    if (asked > *spec.ce_hours_month)
      return Shortfall{Kind::month, Dimension::ce, asked, 0, *spec.ce_hours_month};
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (amounts.values[d] == 0 || !spec.nominal[d]) continue;
    std::int64_t most = *spec.nominal[d];
    if (!spec.cohort.empty()) {
      const std::int64_t stock = find_cohort(spec.cohort)->stock.values[d];
      const std::int64_t lent = kept(*account, d) + stock;
      most = spec.borrow_max[d] ? std::min(lent, most + *spec.borrow_max[d]) : lent;
    }
    if (amounts.values[d] > most)
      return Shortfall{Kind::nominal, static_cast<Dimension>(d), amounts.values[d], 0, most};
  }
  return std::nullopt;
}

Amounts Quotas::borrowed(TenantId tenant) const {
  Amounts beyond;
  const Account* account = find(tenant);
  if (account == nullptr) return beyond;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (!account->spec.nominal[d]) continue;
    beyond.values[d] =
        std::max<std::int64_t>(0, account->held.values[d] - *account->spec.nominal[d]);
  }
  return beyond;
}

bool Quotas::within_nominal(TenantId tenant, const Amounts& amounts) const {
  const Account* account = find(tenant);
  if (account == nullptr) return true;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (amounts.values[d] == 0 || !account->spec.nominal[d]) continue;
    if (account->held.values[d] + amounts.values[d] > *account->spec.nominal[d]) return false;
  }
  return true;
}

bool Quotas::in_cohort(TenantId tenant) const {
  const Account* account = find(tenant);
  return account != nullptr && !account->spec.cohort.empty();
}

bool Quotas::same_cohort(TenantId a, TenantId b) const {
  const Account* of_a = find(a);
  const Account* of_b = find(b);
  return of_a != nullptr && of_b != nullptr && !of_a->spec.cohort.empty() &&
         of_a->spec.cohort == of_b->spec.cohort;
}

const Amounts& Quotas::held(TenantId tenant) const {
  const Account* account = find(tenant);
  return account == nullptr ? nothing() : account->held;
}

}  // namespace loam::schedule

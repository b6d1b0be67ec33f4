// Quotas: what each tenant may hold at once, in several dimensions, and what the tenants of a
// cohort lend one another of it while it idles. A tenant keeps `nominal − lend_max` to itself; the
// rest of every member's nominal is one stock from which members take beyond what they keep. So a
// member's idle quota is lent although its own head task still waits, and can be reclaimed from
// those who hold more than their nominal. After Kueue's cohorts. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"
#include "schedule/admission/amounts.hpp"

namespace loam::schedule {

using Limits = std::array<std::optional<std::int64_t>, dimensions>;  // by Dimension

struct QuotaSpec {
  Limits nominal;      // absent: no limit; such a tenant neither lends nor borrows there
  Limits borrow_max;   // beyond nominal; absent: as much as the cohort lends
  Limits lend_max;     // of nominal; absent: all of it
  std::string cohort;  // empty: alone, lends and borrows nothing
  std::optional<Duration> longest;             // of one task's stated limit
  std::optional<std::int64_t> ce_hours_month;  // milli-CE hours
};

struct Shortfall {
  enum class Kind {
    nominal,     // its own limit, and nobody to borrow from
    borrow_max,  // it may not borrow so much
    lent,        // within its limit, but others hold what it lent: reclaimable
    cohort,      // nobody in the cohort has enough that idles
    longest,     // states a longer limit than allowed
    no_limit,    // a longest duration is set, and the task states none
    month,       // the month's CE hours
  };
  Kind kind = Kind::nominal;
  Dimension dimension = Dimension::ce;
  std::int64_t asked = 0;
  std::int64_t held = 0;
  std::int64_t most = 0;
};
// "asks 4 devices with 6 held of at most 8": for people.
std::string to_text(const Shortfall& shortfall);

class Quotas {
 public:
  Quotas() = default;
  // A scratch copy on top of `base`, which it must not outlive nor see change: only what is charged
  // or released in it is copied. `now`: a month that is over by then counts for nothing.
  static Quotas on_top_of(const Quotas& base, Instant now = {});

  // Replaces what was known; what the tenant holds is kept. O(members of its cohorts).
  void set(TenantId tenant, QuotaSpec spec);

  // What running tasks hold. release() requires that it was charged. O(log tenants).
  // What one may use until its `limit` counts against the month until it ends.
  void charge(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit = {});
  void release(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit = {});

  // Milli-CE hours that the tenant has used of the month that ends at `until`.
  void set_month(TenantId tenant, std::int64_t milli_ce_hours, Instant until = Instant::never());

  // Why one more task that takes `amounts` for at most `limit` may not run now; nothing: it may.
  std::optional<Shortfall> check(TenantId tenant, const Amounts& amounts,
                                 std::optional<Duration> limit) const;
  // Why it could not run even were nothing else running, lent or used up: it would wait for ever.
  std::optional<Shortfall> never(TenantId tenant, const Amounts& amounts,
                                 std::optional<Duration> limit) const;
  bool admissible(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit) const {
    return !never(tenant, amounts, limit);
  }

  // What it holds beyond its nominal, per dimension; 0 where it has no limit or is below it.
  Amounts borrowed(TenantId tenant) const;
  bool borrows(TenantId tenant) const { return borrowed(tenant) != Amounts{}; }
  // Within its nominal with `amounts` more: only such a task may reclaim.
  bool within_nominal(TenantId tenant, const Amounts& amounts) const;
  bool in_cohort(TenantId tenant) const;
  bool same_cohort(TenantId a, TenantId b) const;
  const Amounts& held(TenantId tenant) const;

 private:
  struct Account {
    QuotaSpec spec;
    Amounts held;
    std::int64_t month_milli_ce_hours = 0;
    Instant month_until = Instant::never();
    std::int64_t month_running = 0;  // milli-CE hours that running tasks may use in all
  };
  struct Cohort {
    Amounts stock;  // that members lend in all
    Amounts taken;  // of it, by members beyond what they keep
  };

  const Account* find(TenantId tenant) const;
  const Cohort* find_cohort(const std::string& name) const;
  Account& account(TenantId tenant);
  static std::int64_t kept(const Account& account, std::size_t d);
  static std::int64_t taken(const Account& account, std::size_t d, std::int64_t held);
  void hold(TenantId tenant, const Amounts& amounts, std::optional<Duration> limit,
            std::int64_t sign);
  std::int64_t of_month(const Account& account) const;
  void join(const Account& account, std::int64_t sign);
  std::optional<Shortfall> check_one(const Account& account, std::size_t d,
                                     std::int64_t amount) const;

  Instant now_;
  const Quotas* base_ = nullptr;  // what is not in these tables; nullptr: there is no more
  std::map<TenantId, Account> accounts_;
  std::map<std::string, Cohort, std::less<>> cohorts_;
};

}  // namespace loam::schedule

// Tenant: who asks and pays. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <optional>
#include <string>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"

namespace loam {

// prepaid: holds never pass the wallet. postpaid: holds never pass the credit limit.
BOOST_DEFINE_ENUM_CLASS(PaymentMode, prepaid, postpaid)
// When what was charged becomes an invoice: when somebody asks, or also at each month's end.
BOOST_DEFINE_ENUM_CLASS(Invoicing, on_demand, monthly)

// A tenant's limits; an absent one is no limit.
struct Quota {
  std::optional<MilliCe> ce;           // held by running tasks at once
  std::optional<Mebibytes> memory;     // device memory, likewise
  std::optional<std::int64_t> tasks;   // running at once
  std::optional<std::int64_t> queued;  // waiting at once
  std::optional<MilliDevice> devices;  // parts of devices held by running tasks at once
  std::optional<Duration> longest;     // the longest time limit of a task
  // Tenants of one cohort use what the others leave idle of theirs; empty: none.
  std::string cohort;
  std::optional<BasisPoints> borrow;  // at most, of its own quota beyond it; absent: what there is
  std::optional<BasisPoints> lend;    // at most, of its own quota; absent: all of it
  std::optional<std::int64_t> ce_hours_month;  // milli-CE hours of a calendar month, UTC

  friend bool operator==(const Quota&, const Quota&) = default;
};
BOOST_DESCRIBE_STRUCT(Quota, (),
                      (ce, memory, tasks, queued, devices, longest, cohort, borrow, lend,
                       ce_hours_month))

struct TenantSpec {
  std::string name;  // lower-case letters, digits, '-'; unique
  PaymentMode payment = PaymentMode::prepaid;
  Currency currency;
  Money credit_limit;    // postpaid only
  BasisPoints discount;  // off list price, 0 … 10,000
  Quota quota;
  std::string billing_zone = "UTC";  // IANA: its months are those of this zone
  Invoicing invoicing = Invoicing::on_demand;

  friend bool operator==(const TenantSpec&, const TenantSpec&) = default;
};
BOOST_DESCRIBE_STRUCT(TenantSpec, (),
                      (name, payment, currency, credit_limit, discount, quota, billing_zone,
                       invoicing))

struct Tenant {
  TenantId id;
  TenantSpec spec;
  // What its active leases hold, against the quota.
  MilliCe ce_used;
  Mebibytes memory_used;
  std::int64_t tasks_running = 0;
  std::int64_t tasks_waiting = 0;
};
BOOST_DESCRIBE_STRUCT(Tenant, (), (id, spec, ce_used, memory_used, tasks_running, tasks_waiting))

// Names people give (tenants, projects, tasks): 1 to 63 of a-z 0-9 '-', starting with a letter.
bool is_name(std::string_view text);

}  // namespace loam

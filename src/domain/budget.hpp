// Budgets: monthly spending limits, and what is told when a threshold is passed. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"
#include "domain/task.hpp"

namespace loam {

// Whose spending counts: the tenant's, narrowed by what is named.
struct BudgetScope {
  TenantId tenant;
  std::optional<std::string> project;
  std::optional<std::string> environment;
  std::optional<std::string> model;

  bool covers(TenantId who, const Attribution& what) const {
    return tenant == who && (!project || *project == what.project) &&
           (!environment || *environment == what.environment) && (!model || *model == what.model);
  }
  friend bool operator==(const BudgetScope&, const BudgetScope&) = default;
};
BOOST_DESCRIBE_STRUCT(BudgetScope, (), (tenant, project, environment, model))

// Of running tasks at the limit.
BOOST_DEFINE_ENUM_CLASS(RunningPolicy, let_run, stop)

struct Budget {
  std::string name;  // unique
  BudgetScope scope;
  Money monthly;
  std::string zone = "UTC";  // whose calendar months
  BasisPoints remind_at{8'000};
  BasisPoints limit_at{10'000};
  BasisPoints approve_at{12'000};
  RunningPolicy running = RunningPolicy::let_run;
  Duration approval_wait = Duration::hours(24);  // after which an unanswered request expires
  std::vector<std::string> channels;             // webhook addresses and commands, for the sender

  friend bool operator==(const Budget&, const Budget&) = default;
};
BOOST_DESCRIBE_STRUCT(Budget, (),
                      (name, scope, monthly, zone, remind_at, limit_at, approve_at, running,
                       approval_wait, channels))

// reminder: remind_at passed. limited: limit_at passed, no new tasks. stop_running: and by policy
// the running ones end. approval_requested: approve_at passed, running tasks end unless somebody
// approves. approval_expired: nobody answered, or the approval's time is over.
BOOST_DEFINE_ENUM_CLASS(BudgetNoticeKind, reminder, limited, stop_running, approval_requested,
                        approved, approval_refused, approval_expired)

struct BudgetNotice {
  std::string budget;
  BudgetNoticeKind kind = BudgetNoticeKind::reminder;
  Instant at;
  Money spent;
  Money limit;  // in force
  std::string words;
  std::vector<std::string> channels;

  friend bool operator==(const BudgetNotice&, const BudgetNotice&) = default;
};
BOOST_DESCRIBE_STRUCT(BudgetNotice, (), (budget, kind, at, spent, limit, words, channels))

struct Approval {
  std::string by;
  Instant until;
  Money new_limit;  // monthly, in force until then

  friend bool operator==(const Approval&, const Approval&) = default;
};
BOOST_DESCRIBE_STRUCT(Approval, (), (by, until, new_limit))

}  // namespace loam

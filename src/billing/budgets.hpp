// Budgets: monthly spending limits with thresholds. 80 % reminds, 100 % admits no new task, 120 %
// needs an approval to continue; all three can be set. Notices are data: who sends them, retries
// and logs is somebody else's. Pure; callers order the operations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "billing/calendar.hpp"
#include "domain/task.hpp"

namespace loam::billing {

// Whose spending counts: the tenant's, narrowed by what is named.
struct BudgetScope {
  TenantId tenant;
  std::optional<std::string> project;
  std::optional<std::string> environment;
  std::optional<std::string> model;

  bool covers(TenantId who, const Attribution& what) const;
};

enum class RunningPolicy { let_run, stop };  // of running tasks at the limit

struct Budget {
  std::string name;
  BudgetScope scope;
  Money monthly;
  std::string zone = "UTC";  // whose calendar months
  BasisPoints remind_at{8'000};
  BasisPoints limit_at{10'000};
  BasisPoints approve_at{12'000};
  RunningPolicy running = RunningPolicy::let_run;
  bool hard = true;                              // denies where what was spent cannot be known
  Duration approval_wait = Duration::hours(24);  // after which an unanswered request expires
  std::vector<std::string> channels;             // webhook addresses and commands, for the sender
};

enum class BudgetNoticeKind {
  reminder,            // remind_at passed
  limited,             // limit_at passed: no new tasks
  stop_running,        // and by policy the running ones end
  approval_requested,  // approve_at passed: running tasks end unless somebody approves
  approved,
  approval_refused,
  approval_expired,  // nobody answered, or the approval's time is over
};
const char* name_of(BudgetNoticeKind kind) noexcept;

struct BudgetNotice {
  std::string budget;
  BudgetNoticeKind kind;
  Instant at;
  Money spent;
  Money limit;  // in force
  std::string words;
  std::vector<std::string> channels;
};

struct Approval {
  std::string by;
  Instant until;
  Money new_limit;  // monthly, in force until then
};

class BudgetBook {
 public:
  // Refuses a name that is taken, thresholds that do not rise, an amount not above zero, an unknown
  // zone.
  Result<void> add(Budget budget);
  Result<void> remove(const std::string& name);

  // Whether a task that may cost `estimate` may start, by every budget that covers it: what was
  // spent, what is reserved and the estimate stay within the limit. ErrorKind::exhausted names the
  // first budget that denies. With `known` false (the ledger cannot be reached) a hard budget
  // denies and a soft one admits.
  Result<void> admit(TenantId tenant, const Attribution& what, Money estimate, Instant now,
                     bool known = true) const;
  // admit(), and the estimate is reserved under `key` until settle(). ErrorKind::conflict for a key
  // in use.
  Result<void> reserve(const std::string& key, TenantId tenant, const Attribution& what,
                       Money estimate, Instant now);
  // The reservation ends and `actual` is spent. A key that is not reserved only spends.
  std::vector<BudgetNotice> settle(const std::string& key, TenantId tenant, const Attribution& what,
                                   Money actual, Instant now);
  std::vector<BudgetNotice> spend(TenantId tenant, const Attribution& what, Money amount,
                                  Instant now);

  // Answers an open request. ErrorKind::conflict where none is open, ErrorKind::invalid_argument
  // for a new limit that is not above what was spent or a time that is over.
  Result<BudgetNotice> approve(const std::string& name, const Approval& approval, Instant now);
  Result<BudgetNotice> refuse(const std::string& name, const std::string& by, Instant now);
  // What time brings: requests and approvals that expire, months that begin anew.
  std::vector<BudgetNotice> tick(Instant now);

  struct Standing {
    Money spent;
    Money reserved;
    Money available;  // never below zero
    Money limit;      // in force
    bool request_open = false;
  };
  // Requires a budget of that name.
  Standing standing(const std::string& name, Instant now) const;
  bool knows(const std::string& name) const { return books_.contains(name); }

 private:
  struct Book {
    Budget budget;
    Zone zone;
    Period month;
    Money spent;
    std::map<std::string, Money> reserved;
    Money reserved_sum;
    bool reminded = false;
    bool limited = false;
    bool asked = false;  // the request of this month was made
    std::optional<Instant> request_until;
    std::optional<Approval> approval;
  };

  static Money limit_of(const Book& book, Instant now);
  static void roll(Book& book, Instant now);
  static void notify(Book& book, Instant now, std::vector<BudgetNotice>& notices);
  static BudgetNotice notice(const Book& book, BudgetNoticeKind kind, Instant now,
                             std::string words);

  std::map<std::string, Book> books_;
};

}  // namespace loam::billing

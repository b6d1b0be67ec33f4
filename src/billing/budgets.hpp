// Budgets: monthly spending limits with thresholds. 80 % reminds, 100 % admits no new task, 120 %
// needs an approval to continue; all three can be set. Notices are data: who sends them, retries
// and logs is somebody else's. Pure; callers order the operations.
#pragma once

#include <map>
#include <optional>

#include <string>
#include <vector>

#include "billing/calendar.hpp"
#include "domain/budget.hpp"

namespace loam::billing {

const char* name_of(BudgetNoticeKind kind) noexcept;
// A notice as it is sent: one JSON object.
std::string to_json(const BudgetNotice& notice);

// What a book knows of one budget, for a snapshot.
struct BudgetReserve {
  std::string key;
  Money amount;
};
BOOST_DESCRIBE_STRUCT(BudgetReserve, (), (key, amount))
struct BudgetImage {
  Budget budget;
  Instant month_from;
  Instant month_to;
  Money spent;
  std::vector<BudgetReserve> reserved;
  bool reminded = false;
  bool limited = false;
  bool stopped = false;
  bool asked = false;
  bool denied = false;
  std::optional<Instant> request_until;
  std::optional<Approval> approval;
};
BOOST_DESCRIBE_STRUCT(BudgetImage, (),
                      (budget, month_from, month_to, spent, reserved, reminded, limited, stopped,
                       asked, denied, request_until, approval))

// What was spent lately under one attribution, from `from` on.
struct SpentImage {
  TenantId tenant;
  std::string project;
  std::string environment;
  std::string model;
  Instant from;
  Money amount;
};
BOOST_DESCRIBE_STRUCT(SpentImage, (), (tenant, project, environment, model, from, amount))

// What was spent in the present month of any time zone, whether a budget counts it or not. Kept in
// quarters of an hour around the turn of a month, where months of zones begin, and in one sum for
// the rest of it: some 200 sums an attribution at most.
class RecentSpending {
 public:
  void add(TenantId tenant, const Attribution& what, Money amount, Instant at);
  // Of what lies in scope since `from`, the beginning of a month that is not over, in a currency.
  Money since(const BudgetScope& scope, Instant from, Currency currency) const;
  std::vector<SpentImage> images() const;
  void restore(std::vector<SpentImage> images);

 private:
  struct Who {
    TenantId tenant;
    std::string project;
    std::string environment;
    std::string model;
    friend auto operator<=>(const Who&, const Who&) = default;
  };
  std::map<Who, std::map<Instant, Money>> sums_;
};

class BudgetBook {
 public:
  // Refuses a name that is taken, thresholds that do not rise, an amount not above zero, an unknown
  // zone.
  Result<void> add(Budget budget);
  // What a budget that is made now finds spent of its month, and its beginning with that. The zone
  // must be known, as add() sees to.
  Money found(const Budget& budget, Instant now) const;
  void begin(const std::string& name, Money spent, Instant now);
  // A budget with other terms under its name: what was spent and reserved stays, and thresholds are
  // told anew. Refuses what add() does, another scope and another currency.
  Result<void> change(Budget budget);
  Result<void> remove(const std::string& name);
  bool empty() const { return books_.empty(); }

  // Whether a task that may cost `estimate` may start, by every budget that covers it: what was
  // spent, what is reserved and the estimate stay within the limit. ErrorKind::exhausted names the
  // first budget that denies.
  Result<void> admit(TenantId tenant, const Attribution& what, Money estimate, Instant now) const;
  // count() and set_aside() only add up, due() says the next thing to be told at `now` without
  // changing anything, told() notes that it was.
  void count(TenantId tenant, const Attribution& what, Money amount, Instant now);
  void set_aside(const std::string& key, TenantId tenant, const Attribution& what, Money amount,
                 Instant now);  // zero: no more
  std::optional<BudgetNotice> due(Instant now) const;
  void told(const BudgetNotice& notice);
  // When time alone brings something after `now`: a request or an approval ends, or a new month
  // begins for a budget that holds tasks back. never() for nothing.
  Instant next_due(Instant now) const;

  // Why no task so attributed starts now, in words: a limit that is passed; nothing else.
  std::optional<std::string> holds_back(TenantId tenant, const Attribution& what,
                                        Instant now) const;
  // Whether running tasks so attributed end now, by policy or because nobody approved; its name.
  std::optional<std::string> ends(TenantId tenant, const Attribution& what, Instant now) const;
  // What is reserved by a budget whose running tasks end now, by key.
  std::vector<std::string> ending_keys(const std::string& name) const;

  // The notice of an answer to an open request; apply() does an approval, told() a refusal.
  // ErrorKind::conflict where none is open, ErrorKind::invalid_argument for a new limit that is not
  // above what was spent or a time that is over.
  Result<BudgetNotice> check(const std::string& name, const Approval& approval, Instant now) const;
  Result<BudgetNotice> check_refusal(const std::string& name, const std::string& by,
                                     Instant now) const;
  void apply(const std::string& name, const Approval& approval);

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
  const Budget& budget(const std::string& name) const { return books_.at(name).budget; }
  std::optional<Approval> approval(const std::string& name) const {
    return books_.at(name).approval;
  }
  std::vector<std::string> names() const;
  std::vector<BudgetImage> images() const;
  // Requires an image that images() gave; the zone must be known here.
  Result<void> restore(BudgetImage image);
  const RecentSpending& spent() const { return recent_; }
  void restore(std::vector<SpentImage> images) { recent_.restore(std::move(images)); }

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
    bool stopped = false;  // it was told that running tasks end
    bool asked = false;    // the request of this month was made
    bool denied = false;   // refused, or nobody answered
    std::optional<Instant> request_until;
    std::optional<Approval> approval;
  };

  static Money limit_of(const Book& book, Instant now);
  static void roll(Book& book, Instant now);
  static std::optional<BudgetNotice> due(const Book& book, Instant now);
  static void told(Book& book, const BudgetNotice& notice);
  static bool ends(const Book& book, Instant now);
  static Result<Zone> check(const Budget& budget);
  static BudgetNotice notice(const Book& book, BudgetNoticeKind kind, Instant now,
                             std::string words);

  std::map<std::string, Book> books_;
  RecentSpending recent_;
};

}  // namespace loam::billing

#include "billing/budgets.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_bp = 10'000;

Money share_of(Money whole, BasisPoints share) {
  return whole.times_ratio(share.value, whole_bp, Rounding::half_even);
}

std::string percent(BasisPoints share) {
  return decimal_text(share.value, 2) + " %";
}

}  // namespace

bool BudgetScope::covers(TenantId who, const Attribution& what) const {
  return tenant == who && (!project || *project == what.project) &&
         (!environment || *environment == what.environment) && (!model || *model == what.model);
}

const char* name_of(BudgetNoticeKind kind) noexcept {
  switch (kind) {
    case BudgetNoticeKind::reminder:
      return "reminder";
    case BudgetNoticeKind::limited:
      return "limited";
    case BudgetNoticeKind::stop_running:
      return "stop_running";
    case BudgetNoticeKind::approval_requested:
      return "approval_requested";
    case BudgetNoticeKind::approved:
      return "approved";
    case BudgetNoticeKind::approval_refused:
      return "approval_refused";
    case BudgetNoticeKind::approval_expired:
      return "approval_expired";
  }
  return "?";
}

Result<void> BudgetBook::add(Budget budget) {
  if (budget.name.empty()) return invalid("the budget has no name", "name it");
  if (books_.contains(budget.name)) {
    return Error{ErrorKind::conflict, "there is a budget '" + budget.name + "' already",
                 "take another name"};
  }
  if (budget.monthly.is_negative() || budget.monthly.is_zero())
    return invalid("a budget of " + to_text(budget.monthly) + " is not above zero",
                   "give a positive amount");
  const bool rise = budget.remind_at.value > 0 && budget.remind_at <= budget.limit_at &&
                    budget.limit_at <= budget.approve_at;
  if (!rise) {
    return invalid("the thresholds " + percent(budget.remind_at) + ", " + percent(budget.limit_at) +
                       ", " + percent(budget.approve_at) + " do not rise",
                   "remind first, then limit, then ask for approval");
  }
  if (budget.approval_wait.ms <= 0)
    return invalid("a request that waits " + to_text(budget.approval_wait) + " expires at once",
                   "give it some time");
  LOAM_TRY(zone, Zone::open(budget.zone));
  Book book;
  book.zone = zone;
  book.spent = book.reserved_sum = Money::zero(budget.monthly.currency());
  book.budget = std::move(budget);
  const std::string name = book.budget.name;
  books_.emplace(name, std::move(book));
  return {};
}

Result<void> BudgetBook::remove(const std::string& name) {
  if (books_.erase(name) == 0)
    return Error{ErrorKind::not_found, "there is no budget '" + name + "'", {}};
  return {};
}

Money BudgetBook::limit_of(const Book& book, Instant now) {
  const Money limit = share_of(book.budget.monthly, book.budget.limit_at);
  if (book.approval && now < book.approval->until) return std::max(limit, book.approval->new_limit);
  return limit;
}

// A new month begins with nothing spent; what is reserved goes on.
void BudgetBook::roll(Book& book, Instant now) {
  if (book.month.contains(now) || now < book.month.from) return;
  book.month = month_of(book.zone, now);
  book.spent = Money::zero(book.spent.currency());
  book.reminded = book.limited = book.asked = false;
  book.request_until.reset();
  book.approval.reset();
}

BudgetNotice BudgetBook::notice(const Book& book, BudgetNoticeKind kind, Instant now,
                                std::string words) {
  return {book.budget.name,    kind, now, book.spent, limit_of(book, now), std::move(words),
          book.budget.channels};
}

void BudgetBook::notify(Book& book, Instant now, std::vector<BudgetNotice>& notices) {
  const Budget& budget = book.budget;
  const auto passed = [&](BasisPoints share) {
    return book.spent >= share_of(budget.monthly, share);
  };
  const std::string spent = to_text(book.spent) + " of " + to_text(budget.monthly) + " are spent";
  if (!book.reminded && passed(budget.remind_at)) {
    book.reminded = true;
    notices.push_back(notice(book, BudgetNoticeKind::reminder, now,
                             spent + ": more than " + percent(budget.remind_at)));
  }
  if (!book.limited && passed(budget.limit_at)) {
    book.limited = true;
    notices.push_back(notice(book, BudgetNoticeKind::limited, now, spent + ": no new task starts"));
    if (budget.running == RunningPolicy::stop)
      notices.push_back(
          notice(book, BudgetNoticeKind::stop_running, now, spent + ": running tasks end"));
  }
  const bool approved =
      book.approval && now < book.approval->until && book.spent < book.approval->new_limit;
  if (!book.asked && !approved && passed(budget.approve_at)) {
    book.asked = true;
    book.request_until = now + budget.approval_wait;
    notices.push_back(notice(
        book, BudgetNoticeKind::approval_requested, now,
        spent + ": approve until " + to_text(*book.request_until) + " for tasks to continue"));
  }
}

Result<void> BudgetBook::admit(TenantId tenant, const Attribution& what, Money estimate,
                               Instant now, bool known) const {
  for (const auto& [name, kept] : books_) {
    if (!kept.budget.scope.covers(tenant, what)) continue;
    if (!known) {
      if (!kept.budget.hard) continue;
      return Error{ErrorKind::unavailable,
                   "the budget '" + name + "' cannot be checked: what was spent is not known",
                   "try again when the ledger can be reached"};
    }
    if (estimate.currency() != kept.spent.currency()) {
      return invalid("the estimate " + to_text(estimate) +
                         " is not in the currency of the budget '" + name + "'",
                     "use " + std::string(kept.spent.currency().code()));
    }
    Book book = kept;
    roll(book, now);
    const Money limit = limit_of(book, now);
    if (book.spent + book.reserved_sum + estimate <= limit) continue;
    const Money used = book.spent + book.reserved_sum;
    return Error{ErrorKind::exhausted,
                 "the budget '" + name + "' of " + to_text(limit) + " has " +
                     to_text(limit > used ? limit - used : Money::zero(limit.currency())) +
                     " left and " + to_text(estimate) + " are asked for",
                 "ask for less, or have the budget raised"};
  }
  return {};
}

Result<void> BudgetBook::reserve(const std::string& key, TenantId tenant, const Attribution& what,
                                 Money estimate, Instant now) {
  for (const auto& [name, book] : books_) {
    if (book.reserved.contains(key))
      return Error{ErrorKind::conflict, "'" + key + "' is reserved already", "use another key"};
  }
  LOAM_CHECK(admit(tenant, what, estimate, now));
  for (auto& [name, book] : books_) {
    if (!book.budget.scope.covers(tenant, what)) continue;
    roll(book, now);
    book.reserved.emplace(key, estimate);
    book.reserved_sum += estimate;
  }
  return {};
}

std::vector<BudgetNotice> BudgetBook::settle(const std::string& key, TenantId tenant,
                                             const Attribution& what, Money actual, Instant now) {
  for (auto& [name, book] : books_) {
    const auto reserved = book.reserved.find(key);
    if (reserved == book.reserved.end()) continue;
    book.reserved_sum -= reserved->second;
    book.reserved.erase(reserved);
  }
  return spend(tenant, what, actual, now);
}

std::vector<BudgetNotice> BudgetBook::spend(TenantId tenant, const Attribution& what, Money amount,
                                            Instant now) {
  std::vector<BudgetNotice> notices;
  for (auto& [name, book] : books_) {
    if (!book.budget.scope.covers(tenant, what)) continue;
    if (amount.currency() != book.spent.currency()) continue;  // another wallet's money
    roll(book, now);
    book.spent += amount;
    notify(book, now, notices);
  }
  return notices;
}

Result<BudgetNotice> BudgetBook::approve(const std::string& name, const Approval& approval,
                                         Instant now) {
  const auto found = books_.find(name);
  if (found == books_.end())
    return Error{ErrorKind::not_found, "there is no budget '" + name + "'", {}};
  Book& book = found->second;
  if (!book.request_until || now >= *book.request_until) {
    return Error{ErrorKind::conflict, "the budget '" + name + "' has no open request",
                 "change the budget itself instead"};
  }
  if (approval.by.empty()) return invalid("an approval names who gives it", "say by whom");
  if (approval.until <= now)
    return invalid("an approval until " + to_text(approval.until) + " is over already",
                   "give a later time");
  if (approval.new_limit.currency() != book.spent.currency() || approval.new_limit <= book.spent) {
    return invalid("a new limit of " + to_text(approval.new_limit) + " is not above the " +
                       to_text(book.spent) + " spent",
                   "give a higher one");
  }
  book.approval = approval;
  book.request_until.reset();
  book.asked = false;  // beyond the new limit somebody is asked again
  return notice(book, BudgetNoticeKind::approved, now,
                "approved by " + approval.by + " until " + to_text(approval.until) + " up to " +
                    to_text(approval.new_limit));
}

Result<BudgetNotice> BudgetBook::refuse(const std::string& name, const std::string& by,
                                        Instant now) {
  const auto found = books_.find(name);
  if (found == books_.end())
    return Error{ErrorKind::not_found, "there is no budget '" + name + "'", {}};
  Book& book = found->second;
  if (!book.request_until)
    return Error{ErrorKind::conflict, "the budget '" + name + "' has no open request", {}};
  book.request_until.reset();
  return notice(book, BudgetNoticeKind::approval_refused, now,
                "refused by " + by + ": running tasks end");
}

std::vector<BudgetNotice> BudgetBook::tick(Instant now) {
  std::vector<BudgetNotice> notices;
  for (auto& [name, book] : books_) {
    if (book.request_until && now >= *book.request_until) {
      book.request_until.reset();
      notices.push_back(notice(book, BudgetNoticeKind::approval_expired, now,
                               "nobody answered the request: running tasks end"));
    }
    if (book.approval && now >= book.approval->until) {
      const std::string by = book.approval->by;
      book.approval.reset();
      notices.push_back(notice(book, BudgetNoticeKind::approval_expired, now,
                               "the approval by " + by + " is over"));
      notify(book, now, notices);
    }
    roll(book, now);
  }
  return notices;
}

BudgetBook::Standing BudgetBook::standing(const std::string& name, Instant now) const {
  Book book = books_.at(name);
  roll(book, now);
  Standing standing{book.spent, book.reserved_sum, Money::zero(book.spent.currency()),
                    limit_of(book, now), book.request_until.has_value()};
  const Money used = book.spent + book.reserved_sum;
  if (standing.limit > used) standing.available = standing.limit - used;
  return standing;
}

}  // namespace loam::billing

#include "billing/budgets.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/csv.hpp"

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

std::string to_json(const BudgetNotice& notice) {
  return "{\"budget\":" + json_string(notice.budget) + ",\"kind\":\"" + name_of(notice.kind) +
         "\",\"at\":\"" + loam::to_text(notice.at) + "\",\"currency\":\"" +
         std::string(notice.spent.currency().code()) + "\",\"spent\":\"" +
         amount_text(notice.spent) + "\",\"limit\":\"" + amount_text(notice.limit) +
         "\",\"words\":" + json_string(notice.words) + "}";
}

Result<Zone> BudgetBook::check(const Budget& budget) {
  if (budget.name.empty()) return invalid("the budget has no name", "name it");
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
  return Zone::open(budget.zone);
}

Result<void> BudgetBook::add(Budget budget) {
  if (books_.contains(budget.name)) {
    return Error{ErrorKind::conflict, "there is a budget '" + budget.name + "' already",
                 "take another name"};
  }
  LOAM_TRY(zone, check(budget));
  Book book;
  book.zone = zone;
  book.spent = book.reserved_sum = Money::zero(budget.monthly.currency());
  book.budget = std::move(budget);
  const std::string name = book.budget.name;
  books_.emplace(name, std::move(book));
  return {};
}

Result<void> BudgetBook::change(Budget budget) {
  const auto found = books_.find(budget.name);
  if (found == books_.end())
    return Error{ErrorKind::not_found, "there is no budget '" + budget.name + "'", {}};
  Book& book = found->second;
  const bool same = budget.scope == book.budget.scope &&
                    budget.monthly.currency() == book.budget.monthly.currency();
  if (!same) {
    return Error{ErrorKind::conflict,
                 "the budget '" + budget.name + "' keeps what it counts and its currency",
                 "remove it, or make one of another name"};
  }
  LOAM_TRY(zone, check(budget));
  book.zone = zone;
  book.budget = std::move(budget);
  book.reminded = book.limited = book.stopped = book.asked = book.denied = false;
  book.request_until.reset();
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
  book.reminded = book.limited = book.stopped = book.asked = book.denied = false;
  book.request_until.reset();
  book.approval.reset();
}

BudgetNotice BudgetBook::notice(const Book& book, BudgetNoticeKind kind, Instant now,
                                std::string words) {
  return {book.budget.name,    kind, now, book.spent, limit_of(book, now), std::move(words),
          book.budget.channels};
}

// The next thing to be told, oldest reason first.
std::optional<BudgetNotice> BudgetBook::due(const Book& book, Instant now) {
  if (now >= book.month.to) return std::nullopt;  // a new month: nothing is spent yet
  const Budget& budget = book.budget;
  const auto passed = [&](BasisPoints share) {
    return book.spent >= share_of(budget.monthly, share);
  };
  const std::string spent = to_text(book.spent) + " of " + to_text(budget.monthly) + " are spent";
  if (book.request_until && now >= *book.request_until) {
    return notice(book, BudgetNoticeKind::approval_expired, now,
                  "nobody answered the request: running tasks end");
  }
  if (book.approval && now >= book.approval->until) {
    return notice(book, BudgetNoticeKind::approval_expired, now,
                  "the approval by " + book.approval->by + " is over");
  }
  if (!book.reminded && passed(budget.remind_at)) {
    return notice(book, BudgetNoticeKind::reminder, now,
                  spent + ": more than " + percent(budget.remind_at));
  }
  if (!book.limited && passed(budget.limit_at))
    return notice(book, BudgetNoticeKind::limited, now, spent + ": no new task starts");
  if (book.limited && !book.stopped && budget.running == RunningPolicy::stop)
    return notice(book, BudgetNoticeKind::stop_running, now, spent + ": running tasks end");
  const bool approved =
      book.approval && now < book.approval->until && book.spent < book.approval->new_limit;
  if (!book.asked && !approved && passed(budget.approve_at)) {
    return notice(book, BudgetNoticeKind::approval_requested, now,
                  spent + ": approve until " + to_text(now + budget.approval_wait) +
                      " for tasks to continue");
  }
  return std::nullopt;
}

void BudgetBook::told(Book& book, const BudgetNotice& notice) {
  switch (notice.kind) {
    case BudgetNoticeKind::reminder:
      book.reminded = true;
      return;
    case BudgetNoticeKind::limited:
      book.limited = true;
      return;
    case BudgetNoticeKind::stop_running:
      book.stopped = true;
      return;
    case BudgetNoticeKind::approval_requested:
      book.asked = true;
      book.request_until = notice.at + book.budget.approval_wait;
      return;
    case BudgetNoticeKind::approval_expired:
      if (book.request_until && notice.at >= *book.request_until) {
        book.request_until.reset();
        book.denied = true;
      } else {
        book.approval.reset();
      }
      return;
    case BudgetNoticeKind::approval_refused:
      book.request_until.reset();
      book.denied = true;
      return;
    case BudgetNoticeKind::approved:
      return;  // apply() does it
  }
}

std::optional<BudgetNotice> BudgetBook::due(Instant now) const {
  for (const auto& [name, book] : books_) {
    if (auto next = due(book, now)) return next;
  }
  return std::nullopt;
}

void BudgetBook::told(const BudgetNotice& notice) {
  const auto found = books_.find(notice.budget);
  if (found != books_.end()) told(found->second, notice);
}

Instant BudgetBook::next_due(Instant now) const {
  Instant next = Instant::never();
  for (const auto& [name, book] : books_) {
    if (now >= book.month.to) continue;  // over: nothing of it is told any more
    if (book.request_until) next = std::min(next, *book.request_until);
    if (book.approval) next = std::min(next, book.approval->until);
    if (book.limited || book.denied) next = std::min(next, book.month.to);
  }
  return next;
}

Money BudgetBook::found(const Budget& budget, Instant now) const {
  const auto zone = Zone::open(budget.zone);
  LOAM_ASSERT(zone.ok());
  return recent_.since(budget.scope, month_of(*zone, now).from, budget.monthly.currency());
}

void BudgetBook::begin(const std::string& name, Money spent, Instant now) {
  Book& book = books_.at(name);
  roll(book, now);
  book.spent = spent;
}

void BudgetBook::count(TenantId tenant, const Attribution& what, Money amount, Instant now) {
  recent_.add(tenant, what, amount, now);
  for (auto& [name, book] : books_) {
    if (!book.budget.scope.covers(tenant, what)) continue;
    if (amount.currency() != book.spent.currency()) continue;  // another wallet's money
    roll(book, now);
    book.spent += amount;
  }
}

void BudgetBook::set_aside(const std::string& key, TenantId tenant, const Attribution& what,
                           Money amount, Instant now) {
  for (auto& [name, book] : books_) {
    if (!book.budget.scope.covers(tenant, what)) continue;
    if (amount.currency() != book.spent.currency()) continue;
    roll(book, now);
    const auto reserved = book.reserved.find(key);
    if (reserved != book.reserved.end()) {
      book.reserved_sum -= reserved->second;
      book.reserved.erase(reserved);
    }
    if (amount.is_zero()) continue;
    book.reserved.emplace(key, amount);
    book.reserved_sum += amount;
  }
}

bool BudgetBook::ends(const Book& book, Instant now) {
  if (now >= book.month.to) return false;
  const bool approved = book.approval && now < book.approval->until;
  return book.denied || (book.stopped && !approved);
}

std::optional<std::string> BudgetBook::ends(TenantId tenant, const Attribution& what,
                                            Instant now) const {
  for (const auto& [name, book] : books_) {
    if (book.budget.scope.covers(tenant, what) && ends(book, now)) return name;
  }
  return std::nullopt;
}

std::optional<std::string> BudgetBook::holds_back(TenantId tenant, const Attribution& what,
                                                  Instant now) const {
  for (const auto& [name, book] : books_) {
    if (!book.budget.scope.covers(tenant, what) || now >= book.month.to) continue;
    const Money limit = limit_of(book, now);
    if (book.spent >= limit || ends(book, now))
      return "the budget '" + name + "' of " + to_text(limit) + " is used up";
  }
  return std::nullopt;
}

std::vector<std::string> BudgetBook::ending_keys(const std::string& name) const {
  std::vector<std::string> keys;
  const auto found = books_.find(name);
  if (found == books_.end()) return keys;
  for (const auto& [key, amount] : found->second.reserved) keys.push_back(key);
  return keys;
}

Result<void> BudgetBook::admit(TenantId tenant, const Attribution& what, Money estimate,
                               Instant now) const {
  for (const auto& [name, kept] : books_) {
    if (!kept.budget.scope.covers(tenant, what)) continue;
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

Result<BudgetNotice> BudgetBook::check(const std::string& name, const Approval& approval,
                                       Instant now) const {
  const auto found = books_.find(name);
  if (found == books_.end())
    return Error{ErrorKind::not_found, "there is no budget '" + name + "'", {}};
  const Book& book = found->second;
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
  BudgetNotice told = notice(book, BudgetNoticeKind::approved, now,
                             "approved by " + approval.by + " until " + to_text(approval.until) +
                                 " up to " + to_text(approval.new_limit));
  told.limit = std::max(told.limit, approval.new_limit);
  return told;
}

void BudgetBook::apply(const std::string& name, const Approval& approval) {
  const auto found = books_.find(name);
  if (found == books_.end()) return;
  Book& book = found->second;
  book.approval = approval;
  book.request_until.reset();
  book.denied = false;
  book.asked = false;  // beyond the new limit somebody is asked again
}

Result<BudgetNotice> BudgetBook::check_refusal(const std::string& name, const std::string& by,
                                               Instant now) const {
  const auto found = books_.find(name);
  if (found == books_.end())
    return Error{ErrorKind::not_found, "there is no budget '" + name + "'", {}};
  if (!found->second.request_until)
    return Error{ErrorKind::conflict, "the budget '" + name + "' has no open request",
                 "see where it stands with: loam budget show " + name};
  return notice(found->second, BudgetNoticeKind::approval_refused, now,
                "refused by " + by + ": running tasks end");
}

std::vector<std::string> BudgetBook::names() const {
  std::vector<std::string> all;
  for (const auto& [name, book] : books_) all.push_back(name);
  return all;
}

std::vector<BudgetImage> BudgetBook::images() const {
  std::vector<BudgetImage> images;
  for (const auto& [name, book] : books_) {
    BudgetImage& image = images.emplace_back();
    image = {book.budget, book.month.from, book.month.to,      book.spent,
             {},          book.reminded,   book.limited,       book.stopped,
             book.asked,  book.denied,     book.request_until, book.approval};
    for (const auto& [key, amount] : book.reserved) image.reserved.push_back({key, amount});
  }
  return images;
}

Result<void> BudgetBook::restore(BudgetImage image) {
  const std::string name = image.budget.name;
  LOAM_CHECK(add(std::move(image.budget)));
  Book& book = books_.at(name);
  book.month = {image.month_from, image.month_to};
  book.spent = image.spent;
  for (BudgetReserve& reserve : image.reserved) {
    book.reserved_sum += reserve.amount;
    book.reserved.emplace(std::move(reserve.key), reserve.amount);
  }
  book.reminded = image.reminded;
  book.limited = image.limited;
  book.stopped = image.stopped;
  book.asked = image.asked;
  book.denied = image.denied;
  book.request_until = image.request_until;
  book.approval = image.approval;
  return {};
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

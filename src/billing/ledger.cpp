#include "billing/ledger.hpp"

#include "base/assert.hpp"

namespace loam::billing {
namespace {

Error used_already(TransactionId id) {
  return {ErrorKind::conflict, "the transaction " + id.text() + " was another one before",
          "give each operation an id of its own"};
}

// A reversal has the kind of what it undoes, with every posting turned round.
bool is_reversal(const Transaction& transaction) {
  return transaction.kind == TransactionKind::refund
             ? transaction.postings.back().amount.is_negative()
             : transaction.postings.front().amount.units() > 0;
}

bool same(const Transaction& a, const Transaction& b) {
  return a.kind == b.kind && a.tenant == b.tenant && a.task == b.task && a.postings == b.postings;
}

}  // namespace

void Ledger::open(TenantId tenant, const Wallet& wallet) {
  const auto [at, fresh] = wallets_.insert_or_assign(tenant, wallet);
  LOAM_ASSERT(at->second.credit_limit.currency() == wallet.currency);
  if (fresh) charged_.emplace(tenant, Money::zero(wallet.currency));
  LOAM_ASSERT(charged_.at(tenant).currency() == wallet.currency);
}

Money Ledger::wallet(TenantId tenant) const {
  return accounts_.balance(wallet_of(tenant, wallets_.at(tenant).currency));
}

Money Ledger::held(TenantId tenant) const {
  return accounts_.balance(held_of(tenant, wallets_.at(tenant).currency));
}

Money Ledger::available(TenantId tenant) const {
  const Wallet& terms = wallets_.at(tenant);
  const Money balance = wallet(tenant);
  return terms.payment == PaymentMode::postpaid ? balance + terms.credit_limit : balance;
}

Result<Wallet> Ledger::wallet_terms(TenantId tenant, Money amount) const {
  const auto found = wallets_.find(tenant);
  if (found == wallets_.end())
    return Error{ErrorKind::not_found, "the tenant " + tenant.text() + " has no wallet", {}};
  if (amount.currency() != found->second.currency) {
    return invalid("the amount " + to_text(amount) + " is not in the wallet's currency",
                   "use " + std::string(found->second.currency.code()));
  }
  if (amount.is_negative() || amount.is_zero())
    return invalid("the amount " + to_text(amount) + " is not above zero",
                   "give a positive amount");
  return found->second;
}

Result<std::optional<Transaction>> Ledger::seen(TransactionId id, const Transaction& asked) const {
  const auto known = transactions_.find(id);
  if (known == transactions_.end()) return std::optional<Transaction>();
  if (!same(known->second, asked)) return used_already(id);
  return std::optional<Transaction>(known->second);
}

Result<Transaction> Ledger::book(Transaction transaction) {
  LOAM_ASSERT(transaction.id.valid());
  accounts_.apply(transaction);
  const auto [at, fresh] = transactions_.emplace(transaction.id, std::move(transaction));
  LOAM_ASSERT(fresh);
  return at->second;
}

Result<Transaction> Ledger::top_up(TransactionId id, TenantId tenant, Money amount,
                                   std::string note) {
  LOAM_CHECK(wallet_terms(tenant, amount));
  Transaction asked = billing::top_up(id, tenant, amount, std::move(note));
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  return book(std::move(asked));
}

Result<Transaction> Ledger::hold(TransactionId id, TenantId tenant, TaskId task, Money amount,
                                 Instant expires_at) {
  LOAM_CHECK(wallet_terms(tenant, amount));
  Transaction asked = billing::hold(id, tenant, task, amount);
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  const Money free = available(tenant);
  if (amount > free) {
    return Error{ErrorKind::exhausted,
                 to_text(amount) + " are to be set aside and " + to_text(free) + " are free",
                 "top up the wallet, or ask for less"};
  }
  holds_.emplace(id, Hold{tenant, task, amount, expires_at});
  if (expires_at != Instant::never()) expiries_.emplace(expires_at, id);
  return book(std::move(asked));
}

Result<Ledger::Hold*> Ledger::pending(TransactionId hold) {
  const auto found = holds_.find(hold);
  if (found == holds_.end())
    return Error{ErrorKind::not_found, "there is no hold " + hold.text(), {}};
  if (found->second.state != HoldState::pending) {
    const char* const words[] = {"pending", "posted", "released", "expired"};
    return Error{ErrorKind::conflict,
                 "the hold " + hold.text() + " was " +
                     words[static_cast<std::size_t>(found->second.state)] + " already",
                 "a hold ends once"};
  }
  return &found->second;
}

Result<Transaction> Ledger::post(TransactionId id, TransactionId hold, Money amount) {
  const auto of = holds_.find(hold);
  if (of == holds_.end()) return Error{ErrorKind::not_found, "there is no hold " + hold.text(), {}};
  const Hold& asked_of = of->second;
  if (amount.currency() != asked_of.amount.currency() || amount.is_negative() ||
      amount > asked_of.amount) {
    return invalid("cannot post " + to_text(amount) + " of the hold of " + to_text(asked_of.amount),
                   "post zero up to what is held");
  }
  // One transaction: the charge to revenue, the rest back to the wallet.
  const Currency currency = amount.currency();
  Transaction asked;
  asked.id = id;
  asked.kind = TransactionKind::charge;
  asked.tenant = asked_of.tenant;
  asked.task = asked_of.task;
  asked.postings = {{held_of(asked_of.tenant, currency), -asked_of.amount},
                    {revenue_in(currency), amount},
                    {wallet_of(asked_of.tenant, currency), asked_of.amount - amount}};
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  LOAM_TRY(open, pending(hold));
  open->state = HoldState::posted;
  expiries_.erase({open->expires_at, hold});
  charged_.at(open->tenant) += amount;
  return book(std::move(asked));
}

Result<Transaction> Ledger::release(TransactionId id, TransactionId hold) {
  const auto of = holds_.find(hold);
  if (of == holds_.end()) return Error{ErrorKind::not_found, "there is no hold " + hold.text(), {}};
  Transaction asked = billing::release(id, of->second.tenant, of->second.task, of->second.amount);
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  LOAM_TRY(open, pending(hold));
  open->state = HoldState::released;
  expiries_.erase({open->expires_at, hold});
  return book(std::move(asked));
}

std::vector<Transaction> Ledger::expire(Instant now, TransactionId first_id) {
  std::vector<Transaction> all;
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const TransactionId hold = expiries_.begin()->second;
    expiries_.erase(expiries_.begin());
    Hold& ended = holds_.at(hold);
    ended.state = HoldState::expired;
    all.push_back(*book(billing::release(first_id, ended.tenant, ended.task, ended.amount)));
    ++first_id.value;
  }
  return all;
}

Result<Transaction> Ledger::charge(TransactionId id, TenantId tenant, TaskId task, Money amount) {
  LOAM_CHECK(wallet_terms(tenant, amount));
  const Currency currency = amount.currency();
  Transaction asked;
  asked.id = id;
  asked.kind = TransactionKind::charge;
  asked.tenant = tenant;
  asked.task = task;
  asked.postings = {{wallet_of(tenant, currency), -amount}, {revenue_in(currency), amount}};
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  if (amount > available(tenant)) {
    return Error{
        ErrorKind::exhausted,
        to_text(amount) + " are to be charged and " + to_text(available(tenant)) + " are free",
        "top up the wallet"};
  }
  charged_.at(tenant) += amount;
  return book(std::move(asked));
}

Result<Transaction> Ledger::refund(TransactionId id, TenantId tenant, TaskId task, Money amount) {
  LOAM_CHECK(wallet_terms(tenant, amount));
  Transaction asked = billing::refund(id, tenant, task, amount, Money::zero(amount.currency()));
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  if (amount > charged_.at(tenant)) {
    return invalid("a refund of " + to_text(amount) + " is more than the " +
                       to_text(charged_.at(tenant)) + " ever charged",
                   "give a credit by top-up instead");
  }
  charged_.at(tenant) -= amount;
  return book(std::move(asked));
}

Result<Transaction> Ledger::reverse(TransactionId id, TransactionId of, std::string note) {
  const auto found = transactions_.find(of);
  if (found == transactions_.end())
    return Error{ErrorKind::not_found, "there is no transaction " + of.text(), {}};
  const Transaction& original = found->second;
  Transaction asked = original;
  asked.id = id;
  asked.note = std::move(note);
  for (Posting& posting : asked.postings) posting.amount = -posting.amount;
  LOAM_TRY(known, seen(id, asked));
  if (known) return *known;
  const bool settles_hold =
      original.kind == TransactionKind::charge && original.postings.size() > 2;
  const bool may = !is_reversal(original) && (original.kind == TransactionKind::top_up ||
                                              original.kind == TransactionKind::refund ||
                                              original.kind == TransactionKind::charge);
  if (!may || settles_hold) {
    return invalid("the transaction " + of.text() + " cannot be reversed",
                   settles_hold ? "refund it instead" : "reverse a top-up, a charge or a refund");
  }
  if (!reversed_.insert(of).second) {
    return Error{ErrorKind::conflict, "the transaction " + of.text() + " was reversed already",
                 "it is undone once"};
  }
  const Money amount = original.postings.back().amount;
  if (original.kind == TransactionKind::charge) charged_.at(original.tenant) -= amount;
  if (original.kind == TransactionKind::refund) charged_.at(original.tenant) += amount;
  return book(std::move(asked));
}

std::optional<Ledger::HoldState> Ledger::state_of(TransactionId hold) const {
  const auto found = holds_.find(hold);
  if (found == holds_.end()) return std::nullopt;
  return found->second.state;
}

Money Ledger::imbalance(Currency currency) const {
  Money sum = Money::zero(currency);
  for (const auto& [account, balance] : accounts_.balances()) {
    if (account.currency == currency) sum += balance;
  }
  return sum;
}

}  // namespace loam::billing

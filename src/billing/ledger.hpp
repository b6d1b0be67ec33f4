// Ledger: two-phase holds, wallets and credit over double entry. Every operation has an id given by
// the caller, and each id takes effect once: sent again it gives the same answer. Pure; callers
// order the operations.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "billing/accounts.hpp"
#include "domain/tenant.hpp"

namespace loam::billing {

struct Wallet {
  Currency currency;
  PaymentMode payment = PaymentMode::prepaid;
  Money credit_limit;  // postpaid: how far below zero holds may take the wallet
};

class Ledger {
 public:
  enum class HoldState { pending, posted, released, expired };

  // Requires a tenant without one, or the same currency.
  void open(TenantId tenant, const Wallet& wallet);

  // What a further hold may take: the wallet, and the credit of a postpaid tenant.
  Money available(TenantId tenant) const;
  Money wallet(TenantId tenant) const;
  Money held(TenantId tenant) const;
  const Accounts& accounts() const { return accounts_; }

  // Money paid in, or given. Requires that the tenant has a wallet (here and below).
  Result<Transaction> top_up(TransactionId id, TenantId tenant, Money amount, std::string note);
  // Sets money aside: pending until it is posted, released or expires. ErrorKind::exhausted where
  // the wallet and the credit do not reach, and nothing is booked.
  Result<Transaction> hold(TransactionId id, TenantId tenant, TaskId task, Money amount,
                           Instant expires_at = Instant::never());
  // Charges what was used, at most what is pending, and gives the rest back; once a hold.
  // ErrorKind::invalid_argument above it, ErrorKind::conflict for a hold that is not pending.
  Result<Transaction> post(TransactionId id, TransactionId hold, Money amount);
  // Gives a pending hold back; once.
  Result<Transaction> release(TransactionId id, TransactionId hold);
  // Gives back the holds whose time is over, oldest first; ids from `first_id` on.
  std::vector<Transaction> expire(Instant now, TransactionId first_id);
  // Charges without a hold (a fee, an invoice's tax): may take the wallet below zero only as far as
  // its credit.
  Result<Transaction> charge(TransactionId id, TenantId tenant, TaskId task, Money amount);
  // Gives money back to the wallet: at most what the tenant was charged in all.
  Result<Transaction> refund(TransactionId id, TenantId tenant, TaskId task, Money amount);
  // Undoes a top-up, charge or refund as a whole, once: the same kind, with every posting turned
  // round. A reversed payment may leave the wallet
  // below zero: what was bought with it is owed, and further holds are refused.
  Result<Transaction> reverse(TransactionId id, TransactionId of, std::string note);

  std::optional<HoldState> state_of(TransactionId hold) const;
  // Every transaction by id.
  const std::map<TransactionId, Transaction>& transactions() const { return transactions_; }
  // Σ balances of a currency; zero at every instant.
  Money imbalance(Currency currency) const;

 private:
  struct Hold {
    TenantId tenant;
    TaskId task;
    Money amount;
    Instant expires_at;
    HoldState state = HoldState::pending;
  };

  // The transaction known under the id; ErrorKind::conflict where it is another one than asked.
  Result<std::optional<Transaction>> seen(TransactionId id, const Transaction& asked) const;
  Result<Transaction> book(Transaction transaction);
  Result<Hold*> pending(TransactionId hold);
  Result<Wallet> wallet_terms(TenantId tenant, Money amount) const;

  Accounts accounts_;
  std::map<TenantId, Wallet> wallets_;
  std::map<TransactionId, Hold> holds_;
  std::set<std::pair<Instant, TransactionId>> expiries_;
  std::map<TransactionId, Transaction> transactions_;
  std::set<TransactionId> reversed_;
  std::map<TenantId, Money> charged_;
};

}  // namespace loam::billing

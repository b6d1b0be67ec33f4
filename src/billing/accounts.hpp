// Accounts: balances by double entry, and the transactions that loam makes. Every transaction's
// postings sum to zero per currency. Pure.
#pragma once

#include <map>

#include "domain/ledger.hpp"

namespace loam::billing {

class Accounts {
 public:
  // Requires postings that sum to zero.
  void apply(const Transaction& transaction);
  // Zero for an account never posted to.
  Money balance(const Account& account) const;
  const std::map<Account, Money>& balances() const { return balances_; }
  // For a snapshot.
  void restore(const Account& account, Money balance) { balances_[account] = balance; }

 private:
  std::map<Account, Money> balances_;
};

// Whether the postings sum to zero in every currency.
bool sums_to_zero(const Transaction& transaction);

Account wallet_of(TenantId tenant, Currency currency);
Account held_of(TenantId tenant, Currency currency);
Account revenue_in(Currency currency);
Account cash_in(Currency currency);
Account tax_in(Currency currency);
Account rounding_in(Currency currency);

// Ids are given by the caller. Amounts require > 0 (charge: >= 0).
Transaction top_up(TransactionId id, TenantId tenant, Money amount, std::string note);
// From the wallet to the outside.
Transaction payout(TransactionId id, TenantId tenant, Money amount, std::string note);
// Turns a top-up of `amount`, or where it is below zero a payout, round.
Transaction reversal(TransactionId id, TransactionId of, TenantId tenant, Money amount,
                     std::string note);
// Sets `amount` aside for a task.
Transaction hold(TransactionId id, TenantId tenant, TaskId task, Money amount);
// Posts a charge and the tax on it: first from what is held for the task (`held`), the rest from
// the wallet.
Transaction charge(TransactionId id, TenantId tenant, TaskId task, Money amount, Money tax,
                   Money held);
// Gives back to the wallet what was charged too much, with its tax.
Transaction refund(TransactionId id, TenantId tenant, TaskId task, Money amount, Money tax);
// What an invoice in payable units comes to beyond what was charged (`net`) and what was taken as
// tax (`tax`), from the wallet; below zero: back to it.
Transaction rounding(TransactionId id, TenantId tenant, Money net, Money tax, std::string note);
// Returns what is held and not needed.
Transaction release(TransactionId id, TenantId tenant, TaskId task, Money amount);

}  // namespace loam::billing

#include "billing/accounts.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

Transaction transfer(TransactionId id, TransactionKind kind, TenantId tenant, TaskId task,
                     const Account& from, const Account& to, Money amount) {
  Transaction transaction;
  transaction.id = id;
  transaction.kind = kind;
  transaction.tenant = tenant;
  transaction.task = task;
  transaction.postings = {{from, -amount}, {to, amount}};
  return transaction;
}

}  // namespace

bool sums_to_zero(const Transaction& transaction) {
  std::map<Currency, Money> sums;
  for (const Posting& posting : transaction.postings) {
    const auto [sum, fresh] = sums.try_emplace(posting.amount.currency(), posting.amount);
    if (!fresh) sum->second += posting.amount;
  }
  return std::all_of(sums.begin(), sums.end(),
                     [](const auto& sum) { return sum.second.is_zero(); });
}

void Accounts::apply(const Transaction& transaction) {
  LOAM_ASSERT(sums_to_zero(transaction));
  for (const Posting& posting : transaction.postings) {
    const auto [balance, fresh] = balances_.try_emplace(posting.account, posting.amount);
    if (!fresh) balance->second += posting.amount;
  }
}

Money Accounts::balance(const Account& account) const {
  const auto found = balances_.find(account);
  return found == balances_.end() ? Money::zero(account.currency) : found->second;
}

Account wallet_of(TenantId tenant, Currency currency) {
  return {AccountKind::wallet, tenant, currency};
}
Account held_of(TenantId tenant, Currency currency) {
  return {AccountKind::held, tenant, currency};
}
Account revenue_in(Currency currency) {
  return {AccountKind::revenue, TenantId{}, currency};
}
Account tax_in(Currency currency) {
  return {AccountKind::tax, TenantId{}, currency};
}
Account rounding_in(Currency currency) {
  return {AccountKind::rounding, TenantId{}, currency};
}
Account cash_in(Currency currency) {
  return {AccountKind::cash, TenantId{}, currency};
}

Transaction top_up(TransactionId id, TenantId tenant, Money amount, std::string note) {
  const Currency currency = amount.currency();
  Transaction transaction = transfer(id, TransactionKind::top_up, tenant, TaskId{},
                                     cash_in(currency), wallet_of(tenant, currency), amount);
  transaction.note = std::move(note);
  return transaction;
}

Transaction payout(TransactionId id, TenantId tenant, Money amount, std::string note) {
  const Currency currency = amount.currency();
  Transaction transaction = transfer(id, TransactionKind::payout, tenant, TaskId{},
                                     wallet_of(tenant, currency), cash_in(currency), amount);
  transaction.note = std::move(note);
  return transaction;
}

Transaction reversal(TransactionId id, TransactionId of, TenantId tenant, Money amount,
                     std::string note) {
  const Currency currency = amount.currency();
  Transaction transaction = transfer(id, TransactionKind::reversal, tenant, TaskId{},
                                     wallet_of(tenant, currency), cash_in(currency), amount);
  transaction.reverses = of;
  transaction.note = std::move(note);
  return transaction;
}

Transaction hold(TransactionId id, TenantId tenant, TaskId task, Money amount) {
  const Currency currency = amount.currency();
  return transfer(id, TransactionKind::hold, tenant, task, wallet_of(tenant, currency),
                  held_of(tenant, currency), amount);
}

Transaction charge(TransactionId id, TenantId tenant, TaskId task, Money amount, Money tax,
                   Money held) {
  const Currency currency = amount.currency();
  const Money whole = amount + tax;
  const Money from_held = std::min(whole, held);
  Transaction transaction = transfer(id, TransactionKind::charge, tenant, task,
                                     held_of(tenant, currency), revenue_in(currency), from_held);
  transaction.postings[1].amount = amount;
  if (from_held < whole)
    transaction.postings.push_back({wallet_of(tenant, currency), from_held - whole});
  if (!tax.is_zero()) transaction.postings.push_back({tax_in(currency), tax});
  return transaction;
}

Transaction refund(TransactionId id, TenantId tenant, TaskId task, Money amount, Money tax) {
  const Currency currency = amount.currency();
  Transaction transaction = transfer(id, TransactionKind::refund, tenant, task,
                                     revenue_in(currency), wallet_of(tenant, currency), amount);
  transaction.postings[1].amount = amount + tax;
  if (!tax.is_zero()) transaction.postings.push_back({tax_in(currency), -tax});
  return transaction;
}

Transaction rounding(TransactionId id, TenantId tenant, Money net, Money tax, std::string note) {
  const Currency currency = net.currency();
  Transaction transaction = transfer(id, TransactionKind::rounding, tenant, TaskId{},
                                     wallet_of(tenant, currency), rounding_in(currency), net);
  transaction.postings[0].amount = -(net + tax);
  if (!tax.is_zero()) transaction.postings.push_back({tax_in(currency), tax});
  transaction.note = std::move(note);
  return transaction;
}

Transaction release(TransactionId id, TenantId tenant, TaskId task, Money amount) {
  const Currency currency = amount.currency();
  return transfer(id, TransactionKind::release, tenant, task, held_of(tenant, currency),
                  wallet_of(tenant, currency), amount);
}

}  // namespace loam::billing

// Postings and invoices: double entry. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <string>
#include <vector>

#include "base/money.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"
#include "domain/task.hpp"

namespace loam {

// Accounts. Per tenant: wallet (money free to spend; below zero only down to a postpaid tenant's
// credit limit) and held (set aside for tasks). Per currency: revenue, and cash as the outside
// world (minus what was paid in).
BOOST_DEFINE_ENUM_CLASS(AccountKind, wallet, held, cash, revenue)

struct Account {
  AccountKind kind = AccountKind::cash;
  TenantId tenant;  // none for cash and revenue
  Currency currency;

  friend auto operator<=>(const Account&, const Account&) = default;
};
BOOST_DESCRIBE_STRUCT(Account, (), (kind, tenant, currency))

// "wallet:tenant-2:USD"
std::string to_text(const Account& account);

struct Posting {
  Account account;
  Money amount;  // signed; those of one transaction sum to zero per currency

  friend bool operator==(const Posting&, const Posting&) = default;
};
BOOST_DESCRIBE_STRUCT(Posting, (), (account, amount))

BOOST_DEFINE_ENUM_CLASS(TransactionKind, top_up, hold, charge, release, refund)

struct Transaction {
  TransactionId id;
  TransactionKind kind = TransactionKind::top_up;
  TenantId tenant;
  TaskId task;  // none for a top-up
  std::string note;
  std::vector<Posting> postings;

  friend bool operator==(const Transaction&, const Transaction&) = default;
};
BOOST_DESCRIBE_STRUCT(Transaction, (), (id, kind, tenant, task, note, postings))

// What one invoice line adds up: everything charged under one attribution at one price.
struct LineKey {
  std::string project;
  std::string environment;
  std::string model;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Money unit_price;

  friend auto operator<=>(const LineKey& a, const LineKey& b) {
    return std::tuple(a.project, a.environment, a.model, a.purchase_model, a.unit_price.currency(),
                      a.unit_price.units()) <=>
           std::tuple(b.project, b.environment, b.model, b.purchase_model, b.unit_price.currency(),
                      b.unit_price.units());
  }
  friend bool operator==(const LineKey&, const LineKey&) = default;
};
BOOST_DESCRIBE_STRUCT(LineKey, (), (project, environment, model, purchase_model, unit_price))

struct InvoiceLine {
  LineKey key;
  std::int64_t milli_ce_ms = 0;  // quantity: milli-CE × milliseconds
  Money list;
  Money net;      // exact
  Money payable;  // rounded to the currency's unit; the lines sum to the invoice's total

  friend bool operator==(const InvoiceLine&, const InvoiceLine&) = default;
};
BOOST_DESCRIBE_STRUCT(InvoiceLine, (), (key, milli_ce_ms, list, net, payable))

// Immutable once issued; numbered without gaps by its id.
struct Invoice {
  InvoiceId id;
  TenantId tenant;
  Currency currency;
  Instant from;  // usage in [from, to)
  Instant to;
  std::vector<InvoiceLine> lines;
  Money total;

  friend bool operator==(const Invoice&, const Invoice&) = default;
};
BOOST_DESCRIBE_STRUCT(Invoice, (), (id, tenant, currency, from, to, lines, total))

}  // namespace loam

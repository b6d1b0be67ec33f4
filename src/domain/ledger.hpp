// Postings and invoices: double entry. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <compare>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/money.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"
#include "domain/task.hpp"

namespace loam {

// Accounts. Per tenant: wallet (money free to spend; below zero only down to a postpaid tenant's
// credit limit) and held (set aside for tasks). Per currency: revenue, taxes collected, cash as the
// outside world (minus what was paid in), and rounding: what invoices in payable units came to more
// or less than what was charged.
BOOST_DEFINE_ENUM_CLASS(AccountKind, wallet, held, cash, revenue, tax, rounding)

struct Account {
  AccountKind kind = AccountKind::cash;
  TenantId tenant;  // none but for wallet and held
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

// refund: of what was charged. rounding: of an invoice. payout: from the wallet to whom it belongs.
// reversal: of a top-up or a payout that did not happen.
BOOST_DEFINE_ENUM_CLASS(TransactionKind, top_up, hold, charge, release, refund, rounding, payout,
                        reversal)

struct Transaction {
  TransactionId id;
  TransactionKind kind = TransactionKind::top_up;
  TenantId tenant;
  TaskId task;             // none for a top-up
  TransactionId reverses;  // none but for a reversal
  std::string note;
  std::vector<Posting> postings;

  friend bool operator==(const Transaction&, const Transaction&) = default;
};
BOOST_DESCRIBE_STRUCT(Transaction, (), (id, kind, tenant, task, reverses, note, postings))

// usage; correction: of a period already invoiced, at the price of its own time; credit: given back
// for what was promised and not delivered; fee: of a commitment; covered: use that a commitment
// covers, given back at the price at which it was charged; …_tokens: of a model, by kind (prompt:
// not cached ones); token_income: what others were charged for tokens of one's own model; storage:
// held, by a GiB-hour; network: moved, by a GiB; unused: of a reservation; backup: as storage.
BOOST_DEFINE_ENUM_CLASS(InvoiceLineKind, usage, correction, credit, fee, covered, prompt_tokens,
                        cached_tokens, generated_tokens, token_income, storage, network, unused,
                        backup)

// Whether a line's quantity is tokens, and its unit price that of a million.
constexpr bool counts_tokens(InvoiceLineKind kind) {
  return kind >= InvoiceLineKind::prompt_tokens && kind <= InvoiceLineKind::token_income;
}
// Whether it is MiB × ms.
constexpr bool counts_held(InvoiceLineKind kind) {
  return kind == InvoiceLineKind::storage || kind == InvoiceLineKind::backup;
}
// Whether it is that, or bytes.
constexpr bool counts_service(InvoiceLineKind kind) {
  return counts_held(kind) || kind == InvoiceLineKind::network;
}

// What one invoice line adds up: everything charged under one attribution at one price.
struct LineKey {
  InvoiceLineKind kind = InvoiceLineKind::usage;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  bool per_task = false;  // the unit price is a task's, not a CE-hour's
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::string window;  // of time_of_day
  Money unit_price;

  friend std::strong_ordering operator<=>(const LineKey& a, const LineKey& b) {
    const auto rest = [](const LineKey& k) {
      return std::tuple(k.purchase_model, k.tariff, k.per_task, k.unit_price.currency(),
                        k.unit_price.units());
    };
    if (const auto order = std::tie(a.kind, a.project, a.environment, a.model, a.model_version) <=>
                           std::tie(b.kind, b.project, b.environment, b.model, b.model_version);
        order != 0)
      return order;
    if (const auto order = rest(a) <=> rest(b); order != 0) return order;
    return a.window <=> b.window;
  }
  friend bool operator==(const LineKey&, const LineKey&) = default;
};
BOOST_DESCRIBE_STRUCT(LineKey, (),
                      (kind, project, environment, model, purchase_model, tariff, window, per_task,
                       unit_price, model_version))

struct InvoiceLine {
  LineKey key;
  std::int64_t milli_ce_ms = 0;  // quantity: milli-CE × milliseconds billed, or as its kind counts
  std::int64_t tasks = 0;        // quantity where the price is per task
  Money list;
  Money net;      // exact
  Money payable;  // rounded to the currency's unit; the lines sum to the invoice's total

  friend bool operator==(const InvoiceLine&, const InvoiceLine&) = default;
};
BOOST_DESCRIBE_STRUCT(InvoiceLine, (), (key, milli_ce_ms, tasks, list, net, payable))

// What is charged or given back besides usage.
struct AdjustmentLine {
  LineKey key;
  RateCardId card;               // whose taxes apply
  std::int64_t milli_ce_ms = 0;  // quantity, or as its kind counts; below zero: given back
  Money list;
  Money net;  // below zero: given back
  // Of the month in its tenant's billing zone that it belongs to; 1970 where none was told.
  Instant month_end;
  // Whose use it gives back; none where its event names the lease, or it is of none.
  LeaseId lease;

  friend bool operator==(const AdjustmentLine&, const AdjustmentLine&) = default;
};
BOOST_DESCRIBE_STRUCT(AdjustmentLine, (), (key, card, milli_ce_ms, list, net, month_end, lease))

// A tax's share of what it applies to, rounded once.
struct TaxLine {
  std::string name;
  std::int64_t parts_per_million = 0;
  Money base;
  Money amount;  // payable

  friend bool operator==(const TaxLine&, const TaxLine&) = default;
};
BOOST_DESCRIBE_STRUCT(TaxLine, (), (name, parts_per_million, base, amount))

// Who sells, as an invoice must say it. Lines of the address are separated by newlines.
struct Seller {
  std::string name;  // empty: nobody was named
  std::string address;
  std::string tax_id;
  std::string terms;                // of payment, in words
  std::int64_t due_after_days = 0;  // of what is not paid from a wallet

  friend bool operator==(const Seller&, const Seller&) = default;
};
BOOST_DESCRIBE_STRUCT(Seller, (), (name, address, tax_id, terms, due_after_days))

// Immutable once issued; numbered without gaps by its id.
struct Invoice {
  InvoiceId id;
  TenantId tenant;
  Currency currency;
  Instant from;  // usage in [from, to)
  Instant to;
  std::vector<InvoiceLine> lines;
  Money subtotal;  // Σ payable of the lines
  std::vector<TaxLine> taxes;
  Money total;     // subtotal and taxes
  Money rounding;  // total less what was charged, tax included; posted when it is issued
  // The last month that it takes in ends then; later than `to` where the month goes on.
  Instant months_to;
  Seller seller;
  // What the wallet does not cover of it, and by when it is to be paid. Absent: nobody said.
  std::optional<Money> due;
  std::optional<Instant> due_at;

  friend bool operator==(const Invoice&, const Invoice&) = default;
};
BOOST_DESCRIBE_STRUCT(Invoice, (),
                      (id, tenant, currency, from, to, lines, subtotal, taxes, total, rounding,
                       months_to, seller, due, due_at))

// Gives back a part of an invoice, or all that is left of it. Immutable; numbered without gaps.
struct CreditNote {
  CreditNoteId id;
  InvoiceId invoice;
  TenantId tenant;
  Currency currency;
  Money net;  // above zero; before tax
  std::vector<TaxLine> taxes;
  Money total;
  std::string reason;

  friend bool operator==(const CreditNote&, const CreditNote&) = default;
};
BOOST_DESCRIBE_STRUCT(CreditNote, (), (id, invoice, tenant, currency, net, taxes, total, reason))

}  // namespace loam

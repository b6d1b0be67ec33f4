// A bill from usage records, adjustments, invoices and credit notes: one line for each task, price
// and invoice. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "api/backend.hpp"
#include "api/money_types.hpp"
#include "billing/calendar.hpp"

namespace loam::api {

// By card: what its prices are taxed with.
using CardTaxes = std::map<RateCardId, std::vector<Tax>>;

// The invoice that a charge is on.
struct Invoiced {
  InvoiceId invoice;        // none: not invoiced yet
  bool correction = false;  // an earlier one had ended its month before it was told

  friend auto operator<=>(const Invoiced&, const Invoiced&) = default;
};

// Which invoice a charge is on: the first of its tenant's that could take it in.
class InvoiceFinder {
 public:
  // In any order.
  void add(const InvoiceRecord& record);
  Invoiced of(const UsageRecord& record) const;
  Invoiced of(const AdjustmentRecord& record) const;

 private:
  struct Span {
    Instant to;
    Instant months_to;
    UsageId usage_upto;
    std::uint64_t sequence = 0;
  };
  template <class Takes>
  Invoiced first(Instant month_end, const Takes& takes) const;
  std::map<InvoiceId, Span> spans_;
};

class BillMaker {
 public:
  // Of [period.from, period.to). `taxes` must outlive it.
  BillMaker(std::string tenant, Currency currency, std::string billing_zone, std::string seller,
            billing::Period period, const CardTaxes& taxes);

  // What lies in the period of each; the rest is not this bill's.
  void add(const UsageRecord& record, const UsageFacts& facts, const Invoiced& on);
  void add(const AdjustmentRecord& record, const Invoiced& on);
  // Where they were issued in the period.
  void add(const InvoiceRecord& record);
  void add(const CreditNoteRecord& record);

  bool empty() const;
  // Ids of the tasks that something on it is of, for which describe() is called before view().
  std::set<TaskId> tasks() const;
  void describe(const TaskRecord& task);
  // `from` none: the beginning of the first usage.
  BillView view(std::optional<Instant> from, Instant to) const;

 private:
  struct Line {
    Instant first = Instant::never();
    Instant last;
    Duration length;
    Duration units;  // in the units begun that the card bills by
    std::int64_t tasks = 0;
    Money list;
    Money net;
    Duration measured;     // of `length`
    Duration device_time;  // in that
  };
  struct Price {
    MilliCe billable_ce;
    Money unit_price;
    BasisPoints discount;
    PurchaseModel purchase_model;
    Tariff tariff;
    std::string window;
    Isolation isolation;
    std::string region;
    Invoiced on;
    bool operator<(const Price& other) const;
  };
  struct TaskLines {
    std::map<Price, Line> lines;
    Duration length;
    BasisPoints discount;  // that its last record was large enough to tell
  };
  struct Taxed {
    Money base;
    Money amount;
  };

  struct Adjusted {
    Instant at;
    TaskId task;
    AdjustmentView view;
  };
  // What is added up: of one price, and of whom.
  using SumKey =
      std::tuple<Invoiced, LineKey, TaskId, std::string, std::map<std::string, std::string>>;

  void tax(RateCardId card, Money net);
  void tax(const Tax& by, Money base, Money amount);
  // What a document charges or gives back.
  AdjustmentView& adjust(const char* kind, Instant at, Money net, InvoiceId invoice);
  static AdjustmentView view_of(const AdjustmentRecord& record, const Invoiced& on);
  static BillLine line_of(const Price& price, const Line& sum);
  static void describe(BillLine& line, const TaskRecord& record);
  const TaskRecord* described(TaskId id) const;
  // In order of time.
  std::vector<AdjustmentView> adjustment_views() const;

  std::string tenant_;
  Currency currency_;
  std::string billing_zone_;
  std::string seller_;
  billing::Period period_;
  const CardTaxes& card_taxes_;
  Instant first_ = Instant::never();
  std::map<TaskId, TaskLines> tasks_;
  std::map<TaskId, TaskRecord> described_;
  std::vector<Adjusted> adjustments_;
  // Added up: gateways and nodes report often.
  std::map<SumKey, AdjustmentRecord> summed_;
  Money adjusted_;
  std::map<std::pair<std::string, std::int64_t>, Taxed> taxes_;  // by name and rate
  std::vector<BilledInvoice> invoices_;
  std::vector<CreditNoteView> credit_notes_;
};

}  // namespace loam::api

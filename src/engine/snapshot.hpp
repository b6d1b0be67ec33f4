// Snapshot: a plain copy of the state's tables, cheap to take (strings of devices are shared), to
// be encoded elsewhere while the loop goes on. Indexes are rebuilt on loading. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/state.hpp"

namespace loam::engine {

struct TaxedImage {
  std::string name;
  std::int64_t parts_per_million = 0;
  Money base;
};
BOOST_DESCRIBE_STRUCT(TaxedImage, (), (name, parts_per_million, base))

struct MonthImage {
  Instant end;
  std::vector<InvoiceLine> lines;
  std::vector<TaxedImage> taxed;
  Money tax;
};
BOOST_DESCRIBE_STRUCT(MonthImage, (), (end, lines, taxed, tax))

struct OpenChargesImage {
  TenantId tenant;
  Instant from;
  bool follows_invoice = false;
  std::vector<MonthImage> months;
};
BOOST_DESCRIBE_STRUCT(OpenChargesImage, (), (tenant, from, follows_invoice, months))

struct TierImage {
  TenantId tenant;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Instant month;
  std::string milli_ce_ms;  // wider than a number of JSON
};
BOOST_DESCRIBE_STRUCT(TierImage, (), (tenant, purchase_model, month, milli_ce_ms))

struct BalanceImage {
  Account account;
  Money amount;
};
BOOST_DESCRIBE_STRUCT(BalanceImage, (), (account, amount))

struct RequestImage {
  std::string scope;
  std::string key;
  std::string fingerprint;
  std::string subject;
  Instant at;
};
BOOST_DESCRIBE_STRUCT(RequestImage, (), (scope, key, fingerprint, subject, at))

struct SpotImage {
  Currency currency;
  Instant from;
  Money price;
};
BOOST_DESCRIBE_STRUCT(SpotImage, (), (currency, from, price))

struct ReviewImage {
  Currency currency;
  TaskId after;
};
BOOST_DESCRIBE_STRUCT(ReviewImage, (), (currency, after))

struct EndingImage {
  std::string budget;
  TaskId task;
};
BOOST_DESCRIBE_STRUCT(EndingImage, (), (budget, task))

struct WantedImage {
  TaskId task;
  MilliCe ce;
};
BOOST_DESCRIBE_STRUCT(WantedImage, (), (task, ce))

struct CoverHourImage {
  Instant start;
  std::vector<CoverPiece> pieces;
  std::vector<AdjustmentLine> given;
  bool due = false;
};
BOOST_DESCRIBE_STRUCT(CoverHourImage, (), (start, pieces, given, due))

struct CommitmentBookImage {
  TenantId tenant;
  std::vector<Commitment> commitments;
  std::vector<CoverHourImage> hours;
};
BOOST_DESCRIBE_STRUCT(CommitmentBookImage, (), (tenant, commitments, hours))

struct ReservationBookImage {
  Reservation reservation;
  std::vector<CoverHourImage> hours;
};
BOOST_DESCRIBE_STRUCT(ReservationBookImage, (), (reservation, hours))

struct TokenSourceImage {
  std::string source;
  std::int64_t sequence = 0;
};
BOOST_DESCRIBE_STRUCT(TokenSourceImage, (), (source, sequence))

struct MonthUseImage {
  TenantId tenant;
  Instant until;
  std::string milli_ce_ms;  // wider than a number of JSON
};
BOOST_DESCRIBE_STRUCT(MonthUseImage, (), (tenant, until, milli_ce_ms))

struct RunUsesImage {
  TenantId tenant;
  std::string name;
  std::vector<RunUse> runs;
};
BOOST_DESCRIBE_STRUCT(RunUsesImage, (), (tenant, name, runs))

struct StateImage {
  std::int64_t sequence = 0;
  Instant now;
  std::int64_t next_task = 1;
  std::int64_t next_lease = 1;
  std::int64_t next_usage = 1;
  std::int64_t next_transaction = 1;
  std::int64_t next_invoice = 1;
  std::int64_t next_credit_note = 1;
  std::int64_t next_commitment = 1;
  std::int64_t next_reservation = 1;
  std::vector<Node> nodes;
  std::vector<Device> devices;
  std::vector<Tenant> tenants;
  std::vector<Task> tasks;
  std::vector<Lease> leases;
  std::vector<RateCard> rate_cards;
  std::vector<BalanceImage> balances;
  std::vector<OpenChargesImage> open_charges;
  std::vector<TierImage> tiers;
  std::vector<InvoiceStanding> invoices;
  std::vector<Payment> payments;
  std::vector<SpotImage> spot;
  std::vector<ReviewImage> reviews;
  std::vector<billing::BudgetImage> budgets;
  std::vector<billing::SpentImage> spent;
  std::vector<CommitmentBookImage> commitments;
  std::vector<EndingImage> ending;
  std::vector<WantedImage> spot_waiting;
  std::vector<RequestImage> requests;
  SchedulingSettings settings;
  schedule::SchedulerImage scheduler;
  std::vector<TokenSourceImage> token_sources;
  std::vector<MonthUseImage> month_uses;
  Seller seller;
  std::vector<ReservationBookImage> reservations;
  std::vector<SpotPlan> spot_plans;
  std::vector<RunUsesImage> run_uses;
};
BOOST_DESCRIBE_STRUCT(StateImage, (),
                      (sequence, now, next_task, next_lease, next_usage, next_transaction,
                       next_invoice, next_credit_note, next_commitment, next_reservation, nodes,
                       devices, tenants, tasks, leases, rate_cards, balances, open_charges, tiers,
                       invoices, payments, spot, reviews, budgets, spent, commitments, ending,
                       spot_waiting, requests, settings, scheduler, token_sources, month_uses,
                       seller, reservations, spot_plans, run_uses))

// O(size of the state); the pause of a snapshot.
StateImage image_of(const State& state);
// Requires an image whose rate cards pass check_cards().
State state_of(StateImage image);

// Whether a rate card of the journal or a snapshot can be used on this machine: its time zone may
// be missing here. The error names it.
Result<void> check_card(const RateCard& card);
// Likewise of all cards, and of the tenants' billing zones.
Result<void> check_cards(const StateImage& image);

// The text a snapshot is stored as; versioned like events.
inline constexpr int snapshot_version = 10;
std::string encode(const StateImage& image);
Result<StateImage> decode_image(std::string_view text, int version);

// A digest of the whole state: equal states have equal digests on every machine (FNV-1a over the
// encoded image). For replay checks, not for security.
std::uint64_t digest(const State& state);

}  // namespace loam::engine
